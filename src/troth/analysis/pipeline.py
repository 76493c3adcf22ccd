"""Take a project through all stages of analysis: texts, facts, program, rules, findings."""

import os
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from troth.analysis.crash import Crash, contained
from troth.analysis.edits.in_notebook import in_notebooks
from troth.analysis.facts import store
from troth.analysis.facts.checksum import DamagedError
from troth.analysis.facts.extract_many import Gathered, Progress, gather, source_of
from troth.analysis.facts.model import AllFacts, FileFacts
from troth.analysis.findings import Finding
from troth.analysis.gc_pause import uncollected
from troth.analysis.incremental import facts_diff
from troth.analysis.incremental.broken_file import outside_of_broken
from troth.analysis.incremental.context import surroundings
from troth.analysis.incremental.dependencies import Reads
from troth.analysis.incremental.dependency_record import Readers, Trace, in_groups, traced
from troth.analysis.incremental.facts_diff import Token
from troth.analysis.incremental.saved_tables import Tables
from troth.analysis.incremental.warm_state import Memory
from troth.analysis.parallel import in_processes
from troth.analysis.project.project import Project
from troth.analysis.result import Analysis, told
from troth.analysis.rules import Rule, all_rules
from troth.analysis.semantics import Program
from troth.analysis.semantics.resolve import library
from troth.analysis.semantics.resolve.imports import importers
from troth.analysis.semantics.resolve.installed_packages import Installed
from troth.analysis.source import lines
from troth.analysis.source.notebook import read_notebook
from troth.analysis.source.problem import Problem, is_unopened
from troth.analysis.source.text import Text, decode
from troth.errors import TrothError

__all__ = ["Analysis", "analyse"]

_MANY = 40  # files; after so many have changed all are looked at again, to tell who reads what now
_MANY_READ = 100_000  # things that files looked at again have read
_WORTH_A_PROCESS = 400  # functions; walking through fewer takes less time than a second process needs to pay


def analyse(
    project: Project,
    *,
    python: Path | None = None,
    jobs: int = 0,
    cache: Path | None = None,
    overlay: Mapping[str, bytes] | None = None,
    progress: Progress | None = None,
    on_request: Collection[str] = (),
    memory: Memory | None = None,
    hurry: bool = False,
) -> Analysis:
    """Find what the rules have to say about the whole of `project`.

    `python` names an interpreter whose installed packages may be read (never imported). `jobs` is the number of
    processes, 0 for as many as pay. `cache` is a folder for facts, shared between runs; None keeps nothing. `overlay`
    gives the contents of files that differ from the disk, by their path in the project. `progress` is told how many
    files of how many are read, and which one comes now. `on_request` are the codes of rules to be put besides those
    that are on by default.
    `memory` is what an earlier call of the same process kept; it comes before the cache and is brought up to date. In a
    `hurry` only the files that changed since are looked at; what this means for others is owed to the next call.
    """
    with uncollected():
        rules = [rule for rule in all_rules() if rule.is_default or rule.code in on_request]
        looking = partial(
            _analyse, project, python, jobs or _cores(), cache, overlay or {}, progress, rules, memory, hurry=hurry
        )
        try:
            return looking()
        except DamagedError:
            return looking(is_kept=False)
        except TrothError:
            raise
        except Exception as error:
            if cache is None and memory is None:
                raise
            crash = contained(error, "", "what earlier runs found out was not used")
            anew = looking(is_kept=False)
            return anew._replace(crashes=(*anew.crashes, crash))


def _analyse(
    project: Project,
    python: Path | None,
    jobs: int,
    cache: Path | None,
    overlay: Mapping[str, bytes],
    progress: Progress | None,
    rules: Sequence[Rule],
    memory: Memory | None,
    *,
    hurry: bool,
    is_kept: bool = True,
) -> Analysis:
    packages, allowed, self_run, oldest, context = surroundings(project, python, [rule.code for rule in rules])
    earlier = memory.last_look(context) if memory is not None and is_kept else None
    if earlier is None and cache is not None and is_kept:
        earlier = store.load(cache, context)
    # Only who looks again has to tell one unsaved text from the next.
    of_text = store.stamp_of if memory is not None else _no_stamp
    stamps = {
        path: of_text(overlay[path]) if path in overlay else store.stamp(f"{project.root}/{path}")
        for path in project.files
    }
    old = earlier.facts if earlier is not None else {}
    unchanged = {
        p: old[p]
        for p in project.files
        if p in old and earlier is not None and earlier.stamps[p] == stamps[p] and not is_unopened(old[p])
    }
    read = gather(
        project.root,
        [p for p in project.files if p not in unchanged],
        overlay=overlay,
        jobs=jobs,
        progress=progress,
        meanwhile=_look_up,
    )
    _read_newer(read, project.root, overlay, python, memory.whole if memory is not None else ())
    before = memory.facts if memory is not None else AllFacts({})
    readable: dict[str, FileFacts | bytes] = {}
    problems: dict[str, Problem] = {}
    for path in project.files:
        content = unchanged[path] if path in unchanged else read[path]
        if isinstance(content, Problem):
            problems[path] = content
        else:
            readable[path] = before.known(path) if path in unchanged and path in before else content
    facts = AllFacts(readable)
    typing = {
        path: before.known(path) for path in problems if memory is not None and path in before and path in memory.whole
    }
    texts = {**overlay, **{path: memory.whole[path] for path in typing}} if memory is not None else overlay
    linked = AllFacts({**readable, **typing}) if typing else facts
    judged = linked if memory is not None and memory.judges_broken else facts
    changed = set(read) | (set(old) - set(project.files))
    unread = frozenset(path for path, p in problems.items() if p.newer_syntax)
    # Rules on request may ask about all files at once; and nothing is certain of what depends on an unread file.
    trace = None if unread or not all(rule.is_default for rule in rules) else _trace(earlier, project.files, changed)
    installed = memory.installed(packages) if memory is not None else Installed(packages)
    reads = (cache is not None or memory is not None) and all(rule.is_default for rule in rules)

    tables = _tables(earlier, trace, changed, linked, memory)

    def make() -> Program:
        linked_program = _link(project, linked, texts, installed, Reads() if reads else None, tables)
        linked_program.take_over(memory.program if memory is not None else None)
        linked_program.unread = unread
        linked_program.allowed = allowed
        linked_program.self_running = self_run
        linked_program.oldest_python = oldest
        return linked_program

    is_same = memory is not None and memory.program is not None and earlier is not None and not changed
    program = memory.program if is_same and memory is not None and memory.program is not None else make()
    to_walk: set[str] | None = None
    again: set[str] = set()
    if trace is not None and earlier is not None:
        if hurry and memory is not None:
            to_walk = changed
            memory.owed.update({path: before.get(path) for path in changed if path not in memory.owed})
        else:
            to_walk, again = _outdated(earlier, trace, changed, linked, program, memory)
    is_settled = trace is not None and to_walk is not None and not to_walk and not again
    fresh: list[Finding] = []
    crashes: list[Crash] = []
    found_out: Trace | None = trace
    walked: list[str] = []
    while not is_settled:
        walked = [p for p in project.files if p in judged and (to_walk is None or p in to_walk)]
        if trace is not None:
            trace.hand_over(program, walked, again)
            for question in again:
                program.names_found(question)
        fresh, crashes, found_out = _walk(program, walked, jobs, rules, trace)
        if trace is None or to_walk is None or found_out is None or hurry:
            break
        mask = trace.reading(trace.differing(found_out, walked))
        if trace.files(mask) <= to_walk and trace.questions(mask) <= again:
            break
        to_walk |= trace.files(mask)
        again |= trace.questions(mask)
        program = make()
    crashes += [*program.crashes, *(problem.crash for problem in problems.values() if problem.crash is not None)]
    if crashes and earlier is not None:  # what has changed for other files cannot be told any more
        return _analyse(project, python, jobs, cache, overlay, progress, rules, memory, hurry=hurry, is_kept=False)
    disk = lines.Lines(project.root, overlay)
    fresh = in_notebooks(fresh, lambda path: texts[path] if path in texts else disk.data(path) or b"")
    findings = [] if to_walk is None or earlier is None else earlier.findings_beyond(to_walk, judged)
    findings = _once([*findings, *_doubted(fresh, program, linked)])
    if trace is not None and found_out is not None and not is_settled:
        found_out = trace.updated(found_out, walked)
    if crashes:  # an answer that lacks something is not kept
        return told(findings, problems, len(project.files), tuple(walked), program, tuple(dict.fromkeys(crashes)))
    outcome = store.Kept(
        stamps,
        {path: problems.get(path) or facts.raw(path) for path in project.files},
        tuple(findings),
        None if found_out is None or unread else found_out,
        None if earlier is None or trace is None else earlier.base,
        () if earlier is None or trace is None else {*earlier.since, *changed},
    )
    is_first = memory is None or memory.kept is None
    if memory is None and program.reads is not None:
        program.reads.forget()
    if cache is not None and not overlay and is_first and (read or earlier is None or len(old) != len(project.files)):
        _save(cache, context, outcome, program)
    if memory is not None:
        anew = project.files if is_first else read
        if trace is None:
            outcome = outcome._replace(base=memory.base_of(linked, program))
        memory.keep(context, outcome, linked, program, {path: overlay.get(path, project.root / path) for path in anew})
        if not hurry:
            memory.owed.clear()
        if memory.judges_broken and typing:
            now = lines.Lines(project.root, overlay)
            findings = outside_of_broken(findings, {path: (memory.whole[path], now.data(path)) for path in typing})
    return told(findings, problems, len(project.files), tuple(walked), program)


def _no_stamp(_data: bytes) -> store.Stamp:
    return (0, 0)


def _save(cache: Path, context: str, outcome: store.Kept, program: Program) -> None:
    """Keep what was found out: on top of what the last full run left, or anew where this was one."""
    trace = outcome.trace
    if not isinstance(trace, Trace):
        store.save(cache, context, outcome, ())
    elif outcome.base is not None:
        store.save(cache, context, outcome._replace(trace=trace.packed()), None)
    else:
        groups = in_groups(trace.readers.later)
        packed = replace(trace, readers=Readers(_nothing, {})).packed()
        store.save(cache, context, outcome._replace(trace=packed), [*program.tables_made(), *groups.items()])


def _look_up(read: Gathered) -> None:
    """Read what is known of the packages that files import: it will be asked for, and kept, in any case."""
    imports = {imported.module for facts in read.values() if isinstance(facts, FileFacts) for imported in facts.imports}
    for top in {module.partition(".")[0] for module in imports}:
        library.async_names(top)
        library.coroutine_names(top)
        library.only_async_names(top)


def _read_newer(
    read: Gathered, root: Path, overlay: Mapping[str, bytes], python: Path | None, whole: Container[str]
) -> None:
    """Let a newer interpreter read what this one refused; what that one refuses too is a mistake of the file.

    A file that was `whole` a moment ago is being typed in, unless it looks like newer syntax: nobody is started for it.
    """
    refused = [
        path
        for path, content in read.items()
        if isinstance(content, Problem) and content.is_syntax and (content.newer_syntax or path not in whole)
    ]
    if not refused:
        return
    from troth.analysis.facts.other_interpreter import newest_python, read_with

    newest = newest_python(python)
    if newest is not None:
        disk = lines.Lines(root, overlay)
        texts = {path: data for path in refused if (data := disk.data(path)) is not None}
        read.update(read_with(newest, texts))


def _doubted(findings: Iterable[Finding], program: Program, facts: Mapping[str, FileFacts]) -> Iterator[Finding]:
    """Nothing is certain of what depends on a file that could not be read."""
    unread = set(program.unread)
    doubtful = importers(unread, facts, program.finder) if unread else set()
    for finding in findings:
        depends = finding.span.path in doubtful or any(reason.path in doubtful for reason in finding.reasons)
        yield finding._replace(confidence="likely") if depends and finding.confidence == "certain" else finding


def _link(
    project: Project,
    facts: Mapping[str, FileFacts],
    overlay: Mapping[str, bytes],
    installed: Installed,
    reads: Reads | None,
    tables: Tables | None,
) -> Program:
    texts: dict[str, Text] = {}
    own = frozenset(project.files)

    def data_of(path: str) -> bytes:
        if path in overlay:
            return overlay[path]
        return (project.root / path).read_bytes() if path in own else installed.data(path)

    def text_of(path: str) -> Text:
        if path not in texts:
            texts[path] = Text(_decoded(path, data_of(path)))
        return texts[path]

    def cell_of(path: str, line: int) -> tuple[int | None, int]:
        return read_notebook(data_of(path)).cell_of(line) if path.endswith(".ipynb") else (None, 0)

    return Program(project.files, project.source_roots, facts.get, text_of, cell_of, installed, reads, tables)


def _decoded(path: str, data: bytes) -> str:
    """The text of a file; of one that cannot be read as Python what is there: words can still be looked for in it."""
    try:
        return decode(source_of(path, data))
    except (SyntaxError, LookupError, ValueError, RecursionError):  # in another coding than it says, or no notebook
        return lines.decode(data)


def _trace(earlier: store.Kept | None, files: Sequence[str], changed: Collection[str]) -> Trace | None:
    """What earlier runs read, if they had the same files: one more may be what an old import means.

    Where much has changed since all files were looked at, that is done again.
    """
    if earlier is None or earlier.trace is None or len({*earlier.since, *changed}) > _MANY:
        return None
    if isinstance(earlier.trace, Trace):
        trace = earlier.trace
    else:
        paths, later, *more = store.unpacked(earlier.trace)
        trace = Trace(paths, Readers(_nothing if earlier.base is None else earlier.base.get, later), *more)
    is_too_much = len(trace.readers.later) > _MANY_READ and earlier.base is not None
    return trace if trace.paths == tuple(files) and not is_too_much else None


def _nothing(_piece: str) -> None:
    return None


def _tables(
    earlier: store.Kept | None,
    trace: Trace | None,
    changed: Collection[str],
    facts: Mapping[str, FileFacts],
    memory: Memory | None,
) -> Tables | None:
    """The tables of an earlier run, if it had the same files and left any."""
    if earlier is None or trace is None or earlier.base is None or not earlier.base.pieces:
        return None
    places = {path: number for number, path in enumerate(trace.paths)}
    then = earlier.base.facts
    since = {
        places[path]: (FileFacts.unpack(then[path]) if path in then else None, facts.get(path))
        for path in {*earlier.since, *changed}
    }
    lately = {places[path]: (_before(earlier, path, memory), facts.get(path)) for path in changed}

    def packed() -> Iterator[tuple[int, bytes]]:
        return ((number, then[path]) for path, number in places.items() if number not in since and path in then)

    return Tables(earlier.base.get, since, trace.sets, lately, packed)


def _outdated(
    earlier: store.Kept,
    trace: Trace,
    changed: set[str],
    facts: Mapping[str, FileFacts],
    program: Program,
    memory: Memory | None,
) -> tuple[set[str], set[str]]:
    """The files whose findings may have changed since the earlier run, and the questions to be asked again."""
    owed = memory.owed if memory is not None else {}
    moved = changed | owed.keys()
    if not moved:
        return set(), set()
    tokens: set[Token] = set()
    for path in moved:
        before = owed[path] if path in owed else _before(earlier, path, memory)
        tokens |= facts_diff.changed(path, before, facts.get(path))
    if len(tokens) > len(moved):  # more than the texts
        program.prepare()
        tokens |= trace.of_sets(program.suspected)
    mask = trace.reading(tokens)
    outdated = changed | trace.files(mask)
    # A finding elsewhere may point at a line that has moved.
    outdated |= {f.span.path for f in earlier.findings if not moved.isdisjoint(f.paths)}
    # What was looked at in a hurry is up to date, unless something came since.
    return (outdated if changed else outdated - owed.keys()), trace.questions(mask)


def _before(earlier: store.Kept, path: str, memory: Memory | None) -> FileFacts | None:
    """What a file said at the earlier run."""
    if memory is not None and path in memory.facts:
        return memory.facts[path]
    content = earlier.facts.get(path)
    if content is None or isinstance(content, Problem):
        return None
    return content if isinstance(content, FileFacts) else FileFacts.unpack(content)


def _walk(
    program: Program, paths: list[str], jobs: int, rules: Sequence[Rule], earlier: Trace | None
) -> tuple[list[Finding], list[Crash], Trace | None]:
    """What the rules find in `paths`, with the work spread over processes where that pays; and what was read for it."""
    if not paths:
        program.asked = ()
        return [], [], None if program.reads is None else traced(program, paths, earlier)
    program.prepare()
    functions = sum(len(program.module(path).facts.functions) for path in paths)
    count = max(1, min(jobs, functions // _WORTH_A_PROCESS))
    shares: list[list[str]] = [paths[start::count] for start in range(count)]

    def piece(share: list[str]) -> Callable[[], _Piece]:
        def work() -> _Piece:
            returning, walked = program.walk(share)
            share_findings, failed = _found(program, share, rules)
            read = None
            if program.reads is not None and not failed and not program.crashes:  # else nothing is kept
                read = traced(program, share, earlier)
            return _Piece(share_findings, [*failed, *program.crashes], returning, walked, read)

        return work

    parts = in_processes([piece(share) for share in shares])
    findings = [f for part in parts for f in part.findings]
    crashes = [crash for part in parts for crash in part.crashes]
    returning = {name for part in parts for name in part.returning}
    trace: Trace | None = None
    for part in parts:
        trace = part.read if trace is None or part.read is None else trace.joined(part.read)
    if any(part.returning != returning for part in parts):  # one share may call what another found to return promises
        program.learn(returning)
        beyond = {path: numbers for part in parts for path, numbers in part.walked.items()}
        known_to_all = set.intersection(*(part.returning for part in parts))
        _, late = program.walk(paths, beyond=beyond, calling=returning - known_to_all)
        late_findings, failed = _found(program, list(late), rules)
        findings += late_findings
        crashes += failed
        if trace is not None and not crashes:
            trace = trace.joined(traced(program, list(late), earlier))
    own = frozenset(program.paths)
    # What is wrong inside a library is not ours to tell.
    return _once(f for f in findings if f.span.path in own), crashes, trace


class _Piece(NamedTuple):
    """What one process found out about its share of the files."""

    findings: list[Finding]
    crashes: list[Crash]
    returning: set[str]
    walked: dict[str, list[int]]
    read: Trace | None


def _found(program: Program, paths: Sequence[str], rules: Sequence[Rule]) -> tuple[list[Finding], list[Crash]]:
    """What the rules say after a walk: file by file where it is noted for whose sake something is read.

    A rule that fails when it is asked about all files is asked about each, so that it costs only where it fails.
    """
    findings: list[Finding] = []
    crashes: list[Crash] = []
    if program.reads is None:
        failing: list[Rule] = []
        for rule in rules:
            answer = _asked(rule, program, "", f"{rule.code} had to be asked about each file by itself")
            if isinstance(answer, Crash):
                failing.append(rule)
                crashes.append(answer)
            else:
                findings += answer
        rules = failing
    asked_before = program.asked
    for path in paths if rules else ():
        with program.ask_about(path):
            for rule in rules:
                answer = _asked(rule, program, path, f"{rule.code} was skipped in this file")
                if isinstance(answer, Crash):
                    crashes.append(answer)
                else:
                    findings += answer
    program.asked = asked_before
    by_file = {crash.rule for crash in crashes if crash.path}
    return findings, [crash for crash in crashes if crash.path or crash.rule not in by_file]


def _asked(rule: Rule, program: Program, path: str, cost: str) -> list[Finding] | Crash:
    try:
        return list(rule.check(program))
    except DamagedError:
        raise
    except Exception as error:  # noqa: BLE001  a rule that fails must not cost the others
        return contained(error, path, cost, rule=rule.code)


def _once(findings: Iterable[Finding]) -> list[Finding]:
    """Each finding once: the same call may be judged on several ways."""
    return list({(f.code, f.span): f for f in findings}.values())


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
