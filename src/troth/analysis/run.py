"""Knows how to take a project through all stages of analysis: texts, facts, program, rules, findings."""

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from troth.analysis.answer import Analysis, told
from troth.analysis.collecting import uncollected
from troth.analysis.edits.in_notebook import in_notebooks
from troth.analysis.facts import store
from troth.analysis.facts.gather import Gathered, gather, source_of
from troth.analysis.facts.model import AllFacts, FileFacts
from troth.analysis.facts.seal import DamagedError
from troth.analysis.findings import Finding
from troth.analysis.memory import Memory
from troth.analysis.parallel import in_processes
from troth.analysis.program import Program, changes, library
from troth.analysis.program.changes import Token
from troth.analysis.program.imports import importers
from troth.analysis.program.installed import Installed
from troth.analysis.program.reads import Reads
from troth.analysis.program.tables import Tables
from troth.analysis.program.trace import Readers, Trace, in_groups, traced
from troth.analysis.rules import Rule, all_rules
from troth.analysis.source.notebook import read_notebook
from troth.analysis.source.problem import Problem
from troth.analysis.source.project import Project
from troth.analysis.source.text import Text, decode
from troth.analysis.surroundings import surroundings

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
    progress: Callable[[int, int], None] | None = None,
    on_request: Collection[str] = (),
    memory: Memory | None = None,
    hurry: bool = False,
) -> Analysis:
    """Find what the rules have to say about the whole of `project`.

    `python` names an interpreter whose installed packages may be read (never imported). `jobs` is the number of
    processes, 0 for as many as pay. `cache` is a folder for facts, shared between runs; None keeps nothing. `overlay`
    gives the contents of files that differ from the disk, by their path in the project. `progress` is told how many
    files of how many are read. `on_request` are the codes of rules to be put besides those that are on by default.
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


def _analyse(
    project: Project,
    python: Path | None,
    jobs: int,
    cache: Path | None,
    overlay: Mapping[str, bytes],
    progress: Callable[[int, int], None] | None,
    rules: Sequence[Rule],
    memory: Memory | None,
    *,
    hurry: bool,
    is_kept: bool = True,
) -> Analysis:
    packages, allowed, self_run, context = surroundings(project, python, [rule.code for rule in rules])
    kept = memory.last_look(context) if memory is not None else None
    if kept is None and cache is not None and is_kept:
        kept = store.load(cache, context)
    stamps = {path: (0, 0) if path in overlay else store.stamp(f"{project.root}/{path}") for path in project.files}
    old = kept.facts if kept is not None else {}
    known = {p: old[p] for p in project.files if p in old and kept is not None and kept.stamps[p] == stamps[p]}
    read = gather(
        project.root,
        [p for p in project.files if p not in known],
        overlay=overlay,
        jobs=jobs,
        progress=progress,
        meanwhile=_look_up,
    )
    _read_newer(read, project.root, overlay, python)
    before = memory.facts if memory is not None else AllFacts({})
    said: dict[str, FileFacts | bytes] = {}
    problems: dict[str, Problem] = {}
    for path in project.files:
        found = known[path] if path in known else read[path]
        if isinstance(found, Problem):
            problems[path] = found
        else:
            said[path] = before.known(path) if path in known and path in before else found
    facts = AllFacts(said)
    typing = {
        path: before.known(path) for path in problems if memory is not None and path in before and path in memory.whole
    }
    texts = {**overlay, **{path: memory.whole[path] for path in typing}} if memory is not None else overlay
    linked = AllFacts({**said, **typing}) if typing else facts
    changed = set(read) | (set(old) - set(project.files))
    unread = frozenset(path for path, p in problems.items() if p.newer_syntax)
    # Rules on request may ask about all files at once; and nothing is certain of what depends on an unread file.
    trace = None if unread or not all(rule.is_default for rule in rules) else _trace(kept, project.files, changed)
    installed = memory.installed(packages) if memory is not None else Installed(packages)
    reads = (cache is not None or memory is not None) and all(rule.is_default for rule in rules)

    tables = _tables(kept, trace, changed, linked, memory)

    def make() -> Program:
        made = _link(project, linked, texts, installed, Reads() if reads else None, tables)
        made.take_over(memory.program if memory is not None else None)
        made.unread = unread
        made.allowed = allowed
        made.self_running = self_run
        return made

    is_same = memory is not None and memory.program is not None and kept is not None and not changed
    program = memory.program if is_same and memory is not None and memory.program is not None else make()
    asked: set[str] | None = None
    again: set[str] = set()
    if trace is not None and kept is not None:
        if hurry and memory is not None:
            asked = changed
            memory.owed.update({path: before.get(path) for path in changed if path not in memory.owed})
        else:
            asked, again = _outdated(kept, trace, changed, linked, program, memory)
    is_settled = trace is not None and asked is not None and not asked and not again
    fresh: list[Finding] = []
    found_out: Trace | None = trace
    walked: list[str] = []
    while not is_settled:
        walked = [p for p in project.files if p in facts and (asked is None or p in asked)]
        if trace is not None:
            trace.hand_over(program, walked, again)
            for question in again:
                program.names_found(question)
        fresh, found_out = _walk(program, walked, jobs, rules, trace)
        if trace is None or asked is None or found_out is None or hurry:
            break
        mask = trace.reading(trace.differing(found_out, walked))
        if trace.files(mask) <= asked and trace.questions(mask) <= again:
            break
        asked |= trace.files(mask)
        again |= trace.questions(mask)
        program = make()
    fresh = in_notebooks(fresh, lambda path: overlay[path] if path in overlay else (project.root / path).read_bytes())
    findings = [] if asked is None or kept is None else kept.findings_beyond(asked, facts)
    findings = _once([*findings, *_doubted(fresh, program, facts)])
    if trace is not None and found_out is not None and not is_settled:
        found_out = trace.updated(found_out, walked)
    left = store.Kept(
        stamps,
        {path: problems.get(path) or facts.raw(path) for path in project.files},
        tuple(findings),
        None if found_out is None or unread else found_out,
        None if kept is None or trace is None else kept.base,
        () if kept is None or trace is None else {*kept.since, *changed},
    )
    is_first = memory is None or memory.kept is None
    if memory is None and program.reads is not None:
        program.reads.forget()
    if cache is not None and not overlay and is_first and (read or kept is None or len(old) != len(project.files)):
        _save(cache, context, left, program)
    if memory is not None:
        anew = project.files if is_first else read
        if trace is None:
            left = left._replace(base=memory.base_of(linked, program))
        memory.keep(context, left, linked, program, {path: project.root / path for path in anew})
        if not hurry:
            memory.owed.clear()
    return told(findings, problems, len(project.files), tuple(walked), program)


def _save(cache: Path, context: str, left: store.Kept, program: Program) -> None:
    """Keep what was found out: on top of what the last full run left, or anew where this was one."""
    trace = left.trace
    if not isinstance(trace, Trace):
        store.save(cache, context, left, ())
    elif left.base is not None:
        store.save(cache, context, left._replace(trace=trace.packed()), None)
    else:
        groups = in_groups(trace.readers.later)
        packed = replace(trace, readers=Readers(_nothing, {})).packed()
        store.save(cache, context, left._replace(trace=packed), [*program.tables_made(), *groups.items()])


def _look_up(read: Gathered) -> None:
    """Read what is known of the packages that files import: it will be asked for, and kept, in any case."""
    imports = {one.module for facts in read.values() if isinstance(facts, FileFacts) for one in facts.imports}
    for top in {module.partition(".")[0] for module in imports}:
        library.async_names(top)
        library.coroutine_names(top)
        library.only_async_names(top)


def _read_newer(read: Gathered, root: Path, overlay: Mapping[str, bytes], python: Path | None) -> None:
    """Let a newer interpreter read what this one refused; what that one refuses too is a mistake of the file."""
    refused = [path for path, found in read.items() if isinstance(found, Problem) and found.is_syntax]
    if not refused:
        return
    from troth.analysis.facts.newer import newest_python, read_with

    newest = newest_python(python)
    if newest is not None:
        texts = {path: overlay[path] if path in overlay else (root / path).read_bytes() for path in refused}
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
            texts[path] = Text(decode(source_of(path, data_of(path))))
        return texts[path]

    def cell_of(path: str, line: int) -> tuple[int | None, int]:
        return read_notebook(data_of(path)).cell_of(line) if path.endswith(".ipynb") else (None, 0)

    return Program(project.files, project.source_roots, facts.get, text_of, cell_of, installed, reads, tables)


def _trace(kept: store.Kept | None, files: Sequence[str], changed: Collection[str]) -> Trace | None:
    """What earlier runs read, if they had the same files: one more may be what an old import means.

    Where much has changed since all files were looked at, that is done again.
    """
    if kept is None or kept.trace is None or len({*kept.since, *changed}) > _MANY:
        return None
    if isinstance(kept.trace, Trace):
        trace = kept.trace
    else:
        paths, later, *rest = store.unpacked(kept.trace)
        trace = Trace(paths, Readers(_nothing if kept.base is None else kept.base.get, later), *rest)
    is_too_much = len(trace.readers.later) > _MANY_READ and kept.base is not None
    return trace if trace.paths == tuple(files) and not is_too_much else None


def _nothing(_piece: str) -> None:
    return None


def _tables(
    kept: store.Kept | None,
    trace: Trace | None,
    changed: Collection[str],
    facts: Mapping[str, FileFacts],
    memory: Memory | None,
) -> Tables | None:
    """The tables of an earlier run, if it had the same files and left any."""
    if kept is None or trace is None or kept.base is None or not kept.base.pieces:
        return None
    places = {path: number for number, path in enumerate(trace.paths)}
    then = kept.base.facts
    since = {
        places[path]: (FileFacts.unpack(then[path]) if path in then else None, facts.get(path))
        for path in {*kept.since, *changed}
    }
    lately = {places[path]: (_before(kept, path, memory), facts.get(path)) for path in changed}

    def packed() -> Iterator[tuple[int, bytes]]:
        return ((number, then[path]) for path, number in places.items() if number not in since and path in then)

    return Tables(kept.base.get, since, trace.sets, lately, packed)


def _outdated(
    kept: store.Kept,
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
        before = owed[path] if path in owed else _before(kept, path, memory)
        tokens |= changes.changed(path, before, facts.get(path))
    if len(tokens) > len(moved):  # more than the texts
        program.prepare()
        tokens |= trace.of_sets(program.suspected)
    mask = trace.reading(tokens)
    outdated = changed | trace.files(mask)
    # A finding elsewhere may point at a line that has moved.
    outdated |= {f.span.path for f in kept.findings if not moved.isdisjoint(f.paths)}
    # What was looked at in a hurry is up to date, unless something came since.
    return (outdated if changed else outdated - owed.keys()), trace.questions(mask)


def _before(kept: store.Kept, path: str, memory: Memory | None) -> FileFacts | None:
    """What a file said at the earlier run."""
    if memory is not None and path in memory.facts:
        return memory.facts[path]
    found = kept.facts.get(path)
    if found is None or isinstance(found, Problem):
        return None
    return found if isinstance(found, FileFacts) else FileFacts.unpack(found)


def _walk(
    program: Program, paths: list[str], jobs: int, rules: Sequence[Rule], known: Trace | None
) -> tuple[list[Finding], Trace | None]:
    """What the rules find in `paths`, with the work spread over processes where that pays; and what was read for it."""
    if not paths:
        program.asked = ()
        return [], None if program.reads is None else traced(program, paths, known)
    program.prepare()
    functions = sum(len(program.module(path).facts.functions) for path in paths)
    count = max(1, min(jobs, functions // _WORTH_A_PROCESS))
    shares: list[list[str]] = [paths[start::count] for start in range(count)]

    def piece(share: list[str]) -> Callable[[], _Piece]:
        def work() -> _Piece:
            returning, walked = program.walk(share)
            found = _found(program, share, rules)
            return found, returning, walked, None if program.reads is None else traced(program, share, known)

        return work

    told = in_processes([piece(share) for share in shares])
    findings = [f for found, _, _, _ in told for f in found]
    returning = {name for _, names, _, _ in told for name in names}
    trace: Trace | None = None
    for _, _, _, read in told:
        trace = read if trace is None or read is None else trace.joined(read)
    if any(names != returning for _, names, _, _ in told):  # one share may call what another found to return promises
        program.learn(returning)
        beyond = {path: done for _, _, walked, _ in told for path, done in walked.items()}
        known_to_all = set.intersection(*(names for _, names, _, _ in told))
        _, late = program.walk(paths, beyond=beyond, calling=returning - known_to_all)
        findings += _found(program, list(late), rules)
        if trace is not None:
            trace = trace.joined(traced(program, list(late), known))
    own = frozenset(program.paths)
    return _once(f for f in findings if f.span.path in own), trace  # what is wrong inside a library is not ours to tell


_Piece = tuple[list[Finding], set[str], dict[str, list[int]], "Trace | None"]


def _found(program: Program, paths: Sequence[str], rules: Sequence[Rule]) -> list[Finding]:
    """What the rules say after a walk: file by file where it is noted for whose sake something is read."""
    if program.reads is None:
        return [f for rule in rules for f in rule.check(program)]
    findings: list[Finding] = []
    for path in paths:
        with program.ask_about(path):
            findings += [f for rule in rules for f in rule.check(program)]
    return findings


def _once(findings: Iterable[Finding]) -> list[Finding]:
    """Each finding once: the same call may be judged on several ways."""
    return list({(f.code, f.span): f for f in findings}.values())


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
