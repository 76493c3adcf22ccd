"""Get from a prepared check to a report: analyse, silence, hold against the past and the baseline."""

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from troth.analysis.check.filter import Reported
from troth.analysis.check.noqa import without_acknowledged
from troth.analysis.check.prepare import Prepared
from troth.analysis.check.replay_result import leaves_no_start, unchanged
from troth.analysis.check.suppress import UNUSED_ALLOW, silence, unused
from troth.analysis.crash import grouped
from troth.analysis.facts.directives import Comments
from troth.analysis.findings import Finding
from troth.analysis.findings.same_cause import once_per_cause
from troth.analysis.old_codes import OldCode, is_old
from troth.analysis.project.project import Project
from troth.analysis.report.content import CheckReport
from troth.analysis.report.place import shown_from
from troth.analysis.result import Analysis, unreadable_folder
from troth.analysis.source.allow import Allow
from troth.analysis.source.lines import Lines

if TYPE_CHECKING:
    from troth.analysis.check.since import Past
    from troth.analysis.crash import Crash
    from troth.analysis.facts.extract_many import Progress
    from troth.analysis.facts.store import Stamp
    from troth.analysis.pipeline.warm_state import Memory
    from troth.analysis.report.fingerprint import Mark

__all__ = ["check", "is_cold", "replay"]

Analyse = Callable[[Project, Mapping[str, bytes]], Analysis]


def check(
    prepared: Prepared,
    progress: "Progress | None" = None,
    memory: "Memory | None" = None,
    *,
    hurry: bool = False,
    reported: Reported | None = None,
    wants_program: bool = True,
    is_wanted: Callable[[], bool] | None = None,
) -> CheckReport:
    """Read the project, put the rules to it, and keep what is to be reported. A baseline is written if asked for.

    `memory` makes the next check of the same project, in the same process, a matter of what has changed; in a `hurry`
    only the changed files themselves are looked at, and the next check makes up for the others. `reported` is what an
    earlier check asked the settings. Whoever reads the findings and no more says that he wants no program: where
    nothing has changed since the last run there is none. `is_wanted` is asked between files; once it says no,
    `AbandonedError` is raised.
    """
    request, scope = prepared.request, prepared.scope
    recorded, old_codes = _recorded(prepared)
    past = None if request.since is None else _past(request.since, prepared)
    python, cache = prepared.python(), prepared.cache()
    is_reported = reported or Reported(prepared)

    def look_at(project: Project, overlay: Mapping[str, bytes]) -> Analysis:
        if not (wants_program or memory is not None or cache is None or overlay):
            replayed = unchanged(project, python=python, cache=cache, on_request=is_reported.on_request)
            if replayed is not None:
                return replayed
        from troth.analysis.pipeline import analyse  # late: it brings the program and all rules with it

        return analyse(
            project,
            python=python,
            jobs=request.jobs,
            cache=cache,
            overlay=overlay,
            progress=progress,
            on_request=is_reported.on_request,
            memory=memory if project is scope.project else None,
            hurry=hurry,
            is_wanted=is_wanted,
        )

    result = look_at(scope.project, prepared.overlay)
    comments = Comments(cache) if memory is None else memory.comments
    stamps = memory.kept.stamps if memory is not None and memory.kept is not None else None
    spoken = _Spoken(comments, stamps, recorded, old_codes)
    return _reported(prepared, result, is_reported, spoken, None if past is None else (past, look_at))


def replay(prepared: Prepared, reported: Reported) -> CheckReport | None:
    """The report of an earlier run, if nothing has changed since: without a program, and without importing one.

    None where something has to be looked at; whoever goes on to check finds that out as well.
    """
    cache = prepared.cache()
    if cache is None or prepared.overlay or prepared.request.since is not None:
        return None
    python, on_request = prepared.python(), reported.on_request
    result = unchanged(prepared.scope.project, python=python, cache=cache, on_request=on_request)
    if result is None:
        return None
    return _reported(prepared, result, reported, _Spoken(Comments(cache), None, *_recorded(prepared)))


def is_cold(prepared: Prepared, reported: Reported) -> bool:
    """Whether a check would look at everything, and could leave what the next one need not look at."""
    cache = prepared.cache()
    if cache is None or not os.access(cache, os.W_OK):
        return False
    python, on_request = prepared.python(), reported.on_request
    return leaves_no_start(prepared.scope.project, python=python, cache=cache, on_request=on_request)


class _Spoken(NamedTuple):
    """What users have said of findings: in comments, with the stamps of files where these are known; in a baseline."""

    comments: Comments
    stamps: "Mapping[str, Stamp] | None"
    recorded: "Sequence[Mark]"
    old_codes: Sequence[OldCode]


def _reported(
    prepared: Prepared,
    result: Analysis,
    is_reported: Reported,
    spoken: _Spoken,
    since: "tuple[Past, Analyse] | None" = None,
) -> CheckReport:
    """What is to be said of an analysis; with `since`, of what is new in it."""
    request, scope, root = prepared.request, prepared.scope, prepared.root.path
    lines = Lines(root, prepared.overlay)
    every = spoken.comments.of(sorted(scope.reported), root, lines, prepared.overlay, spoken.stamps)
    allows = list(filter(is_reported.obeys, every))
    findings, silenced, used = silence(_by_cell(result.findings, lines), allows)
    findings, acknowledged = without_acknowledged(findings, allows)
    crashed = {crash.path for crash in result.crashes}
    unread = {*result.unreadable, *result.newer_syntax, *crashed}
    findings += _idle([allow for allow in allows if allow.span.path not in unread], used, prepared, is_reported)
    if since is not None:
        findings, then = _new_since(since[0], findings, prepared, lines, since[1], is_reported)
        result = result._replace(crashes=(*result.crashes, *then))
    findings += [unreadable_folder(folder, reason) for folder, reason in scope.unread]
    everything = tuple(
        dict.fromkeys(sorted((finding for finding in findings if finding.span.path in scope.told), key=_order))
    )
    newer = tuple(path for path in result.newer_syntax if path in scope.reported)
    shown = shown_from(request.cwd, root)
    report = CheckReport(
        findings=tuple(filter(is_reported, everything)),
        checked=len(scope.reported) - len(newer),
        lines=lines,
        rules=prepared.rules,
        shown=shown,
        root=str(root),
        silenced=sum(map(is_reported, silenced)),
        acknowledged=sum(map(is_reported, acknowledged)),
        newer_syntax=newer,
        folders=scope.told - scope.reported,
        since=request.since,
        is_selected=request.select is not None,
        program=result.program,
        crashes=grouped(crash for crash in result.crashes if is_reported.is_missed(crash)),
        old_codes=(*is_reported.old_codes(), *_in_comments(allows, shown), *spoken.old_codes),
    )
    if prepared.baseline is not None:
        report = _beside_baseline(report, everything, spoken.recorded, prepared)
    return report._replace(findings=once_per_cause(report.findings), places=report.findings)


def _recorded(prepared: Prepared) -> "tuple[list[Mark], list[OldCode]]":
    """What the baseline knows; read before anything else, so that a bad one is refused at once."""
    file = prepared.baseline
    if file is None or (prepared.request.write_baseline and not file.exists()):
        return [], []
    from troth.analysis.check.baseline import read_baseline, renewed

    return renewed(read_baseline(file), file)


def _in_comments(allows: Sequence[Allow], shown: Callable[[str], str]) -> list[OldCode]:
    return [
        OldCode(name, f"{shown(allow.span.path)}:{allow.span.line}")
        for allow in allows
        for name in allow.names
        if is_old(name)
    ]


def _beside_baseline(
    report: CheckReport, everything: Sequence[Finding], recorded: "Sequence[Mark]", prepared: Prepared
) -> CheckReport:
    """The report with what the baseline knows left out; or, if that is asked for, the baseline written from it.

    `everything` are the findings of the reported files, of rules that are not asked for as well: what the baseline
    knows of them is neither repaired nor forgotten.
    """
    from troth.analysis.check.baseline import compare, write_baseline

    file = prepared.baseline or Path()
    report = report._replace(baseline=os.path.relpath(file, prepared.request.cwd).replace(os.sep, "/"))
    reported = prepared.scope.told
    compared = compare(everything, recorded, report.lines, reported)
    new = set(compared.new)
    if prepared.request.write_baseline and report.crashes:
        return report  # what is missing today would be forgotten
    if prepared.request.write_baseline:
        requested = set(report.findings)
        stay = [finding for finding in everything if finding in requested or finding not in new]
        write_baseline(file, stay, report.lines, reported, recorded)
        return report
    findings = tuple(finding for finding in report.findings if finding in new)
    # What a change repaired is not asked for where only what it brought is.
    repaired = compared.repaired if prepared.request.since is None and not report.crashes else ()
    known = len(once_per_cause(report.findings)) - len(once_per_cause(findings))
    return report._replace(findings=findings, known=known, repaired=repaired)


def _past(revision: str, prepared: Prepared) -> "Past":
    from troth.analysis.check.since import past_of

    return past_of(prepared.scope.project, revision, was_checked=prepared.would_check, marked=prepared.scope.marked)


def _new_since(
    past: "Past",
    today: Sequence[Finding],
    prepared: Prepared,
    lines: Lines,
    look_at: Analyse,
    is_reported: Reported,
) -> "tuple[list[Finding], tuple[Crash, ...]]":
    """What is new, and what could not be found out about the past."""
    from troth.analysis.check.since import introduced

    if past.is_same and not prepared.overlay:
        return [], ()
    old_lines = Lines(prepared.root.path, past.overlay)
    earlier = look_at(past.project, past.overlay)
    before = _by_cell(earlier.findings, old_lines)
    every = Comments().of(sorted(past.project.files), prepared.root.path, old_lines, past.overlay)
    then = list(filter(is_reported.obeys, every))
    before_kept, _, _ = silence(before, then)
    return introduced(past, without_acknowledged(before_kept, then)[0], today, lines), earlier.crashes


def _by_cell(findings: Sequence[Finding], lines: Lines) -> Sequence[Finding]:
    if not any(finding.span.path.endswith(".ipynb") for finding in findings):
        return findings
    from troth.analysis.source.notebook_cells import by_cell

    return by_cell(findings, lines)


def _idle(
    allows: Sequence[Allow],
    used: Collection[tuple[Allow, str]],
    prepared: Prepared,
    is_reported: Reported,
) -> list[Finding]:
    """What the comments themselves deserve, file by file, since each may have settings of its own."""
    by_path: dict[str, list[Allow]] = {}
    for allow in allows:
        by_path.setdefault(allow.span.path, []).append(allow)
    findings = []
    for path, file_allows in by_path.items():

        def is_on(code: str, name: str, path: str = path) -> bool:
            return code != UNUSED_ALLOW[0] and is_reported.is_on(path, code, name)

        findings += unused(file_allows, used, prepared.names, is_on=is_on)
    return findings


def _order(finding: Finding) -> tuple[str, int, int, int, str]:
    span = finding.span
    return (span.path, span.cell or 0, span.line, span.column, finding.code)
