"""Walk through functions and put the rules, in several processes where that pays."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from troth.analysis.crash import Crash, contained
from troth.analysis.facts.checksum import DamagedError
from troth.analysis.findings import Finding
from troth.analysis.parallel import can_fork, in_processes
from troth.analysis.pipeline.dependency_record import Trace, traced
from troth.analysis.pipeline.request import AnalysisRequest
from troth.analysis.rules import CheckRule
from troth.analysis.semantics import Program

__all__ = ["once", "walk_files"]

_WORTH_A_PROCESS = 400  # functions; walking through fewer takes less time than a second process needs to pay


class _Piece(NamedTuple):
    """What one process found out about its share of the files."""

    findings: list[Finding]
    crashes: list[Crash]
    returning: set[str]
    walked: dict[str, list[int]]
    read: Trace | None


def walk_files(
    program: Program,
    paths: list[str],
    request: AnalysisRequest,
    earlier: Trace | None,
    *,
    traces_later: bool = False,
) -> tuple[list[Finding], list[Crash], Trace | None]:
    """What the rules find in `paths`, with the work spread over processes where that pays; and what was read for it.

    Whoever `traces_later` asks the program himself what was read, when there is time: he gets None for it, unless
    several processes were at work, which are gone then.
    """
    rules = request.rules
    if not paths:
        program.asked = ()
        return [], [], None if program.reads is None or traces_later else traced(program, paths, earlier)
    program.prepare()
    functions = sum(len(program.module(path).facts.functions) for path in paths)
    count = max(1, min(request.jobs, functions // _WORTH_A_PROCESS, len(paths))) if can_fork() else 1
    if count > 1:
        program.make_tables()
    shares: list[list[str]] = [paths[start::count] for start in range(count)]

    def work_on(share: list[str]) -> Callable[[], _Piece]:
        def work() -> _Piece:
            returning, walked = program.walk(share)
            findings, failures = _ask_rules(program, share, rules)
            read = None
            is_alone = traces_later and count == 1
            if (
                program.reads is not None and not failures and not program.crashes and not is_alone
            ):  # else nothing is kept
                read = traced(program, share, earlier)
            return _Piece(findings, [*failures, *program.crashes], returning, walked, read)

        return work

    pieces = in_processes([work_on(share) for share in shares])
    findings = [finding for piece in pieces for finding in piece.findings]
    crashes = [crash for piece in pieces for crash in piece.crashes]
    returning = {name for piece in pieces for name in piece.returning}
    trace: Trace | None = None
    for each in pieces:
        trace = each.read if trace is None or each.read is None else trace.joined(each.read)
    if any(
        piece.returning != returning for piece in pieces
    ):  # one share may call what another found to return awaitables
        program.learn(returning)
        beyond = {path: functions for piece in pieces for path, functions in piece.walked.items()}
        known_to_all = set.intersection(*(piece.returning for piece in pieces))
        _, late = program.walk(paths, beyond=beyond, calling=returning - known_to_all)
        late_findings, late_crashes = _ask_rules(program, list(late), rules)
        findings += late_findings
        crashes += late_crashes
        if trace is not None and not crashes:
            trace = trace.joined(traced(program, list(late), earlier))
    own = frozenset(program.paths)
    # What is wrong inside a library is not ours to tell.
    return once(finding for finding in findings if finding.span.path in own), crashes, trace


def _ask_rules(program: Program, paths: Sequence[str], rules: Sequence[CheckRule]) -> tuple[list[Finding], list[Crash]]:
    """What the rules say after a walk: file by file where it is noted for whose sake something is read.

    A rule that fails when it is asked about all files is asked about each, so that it costs only where it fails.
    """
    findings: list[Finding] = []
    crashes: list[Crash] = []
    if program.reads is None:
        failing: list[CheckRule] = []
        for rule in rules:
            answer = _ask(rule, program, "", f"{rule.code} had to be asked about each file by itself")
            if isinstance(answer, Crash):
                failing.append(rule)
                crashes.append(answer)
            else:
                findings += answer
        rules = failing
    asked_about = program.asked
    for path in paths if rules else ():
        program.pause()
        with program.ask_about(path):
            for rule in rules:
                answer = _ask(rule, program, path, f"{rule.code} was skipped in this file")
                if isinstance(answer, Crash):
                    crashes.append(answer)
                else:
                    findings += answer
    program.asked = asked_about
    by_file = {crash.rule for crash in crashes if crash.path}
    return findings, [crash for crash in crashes if crash.path or crash.rule not in by_file]


def _ask(rule: CheckRule, program: Program, path: str, cost: str) -> list[Finding] | Crash:
    try:
        return list(rule.check(program))
    except DamagedError:
        raise
    except Exception as error:  # noqa: BLE001  a rule that fails must not cost the others
        return contained(error, path, cost, rule=rule.code)


def once(findings: Iterable[Finding]) -> list[Finding]:
    """Each finding once: the same call may be judged on several ways."""
    return list({(finding.code, finding.span): finding for finding in findings}.values())
