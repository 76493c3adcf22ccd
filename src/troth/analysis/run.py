"""Knows how to take a project through all stages of analysis: texts, facts, program, rules, findings."""

import gc
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from troth.analysis.edits.in_notebook import in_notebooks
from troth.analysis.facts import store
from troth.analysis.facts.gather import Gathered, gather, source_of
from troth.analysis.facts.model import AllFacts, FileFacts
from troth.analysis.findings import Finding, Span
from troth.analysis.memory import Memory
from troth.analysis.parallel import in_processes
from troth.analysis.program import Program
from troth.analysis.program.installed import Installed, packages_of
from troth.analysis.program.interface import callers_of, changed_names, face, importers
from troth.analysis.rules import Rule, all_rules
from troth.analysis.source.notebook import read_notebook
from troth.analysis.source.pins import newest_allowed
from troth.analysis.source.project import Project
from troth.analysis.source.read import Problem
from troth.analysis.source.text import Text, decode

__all__ = ["Analysis", "analyse"]

_WORTH_A_PROCESS = 3_000  # functions; walking through fewer takes less time than a second process needs to pay


@dataclass(frozen=True, slots=True)
class Analysis:
    """What became known about a project.

    `unreadable` files could not be decoded or parsed (each of them is a finding too); `newer_syntax` files use syntax
    that the running interpreter does not know, and nothing that depends on them is called certain. `program` answers
    further questions (`troth fix`, `troth recolor`); after a warm run it has looked only at what changed.
    """

    findings: tuple[Finding, ...]
    checked: int
    unreadable: tuple[str, ...] = ()
    newer_syntax: tuple[str, ...] = ()
    program: Program | None = field(default=None, repr=False, compare=False)


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
    collecting = gc.isenabled()
    gc.disable()  # syntax trees have no cycles that matter, and looking for some costs a fifth of the time
    try:
        rules = [rule for rule in all_rules() if rule.is_default or rule.code in on_request]
        return _analyse(project, python, jobs or _cores(), cache, overlay or {}, progress, rules, memory, hurry=hurry)
    finally:
        if collecting:
            gc.enable()


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
) -> Analysis:
    packages = packages_of(project.root, python)
    allowed = newest_allowed(project.root)
    context = (
        f"{project.root} {project.source_roots} {packages} {[rule.code for rule in rules]} {sorted(allowed.items())}"
    )
    kept = memory.last_look(context) if memory is not None else None
    if kept is None and cache is not None:
        kept = store.load(cache, context)
    stamps = {path: (0, 0) if path in overlay else store.stamp(project.root / path) for path in project.files}
    old = kept.facts if kept is not None else {}
    known = {p: old[p] for p in project.files if p in old and kept is not None and kept.stamps[p] == stamps[p]}
    read = gather(
        project.root, [p for p in project.files if p not in known], overlay=overlay, jobs=jobs, progress=progress
    )
    _read_newer(read, project.root, overlay, python)
    before = memory.facts if memory is not None else AllFacts({})
    told: dict[str, FileFacts | bytes] = {}
    problems: dict[str, Problem] = {}
    for path in project.files:
        found = known[path] if path in known else read[path]
        if isinstance(found, Problem):
            problems[path] = found
        else:
            told[path] = before.raw(path) if path in known and path in before else found
    facts = AllFacts(told)
    typing = {
        path: before.raw(path) for path in problems if memory is not None and path in before and path in memory.whole
    }
    said = {**overlay, **{path: memory.whole[path] for path in typing}} if memory is not None else overlay
    linked = AllFacts({**told, **typing}) if typing else facts
    changed = set(read) | (set(old) - set(project.files))
    program = memory.program if memory is not None and kept is not None and not changed else None
    if program is None:
        installed = memory.installed(packages) if memory is not None else Installed(packages)
        program = _link(project, linked, said, installed)
        program.allowed = allowed
        program.take_over(memory.program if memory is not None else None)
    program.unread = frozenset(path for path, p in problems.items() if p.newer_syntax)

    asked: set[str] | None = None
    findings: list[Finding] = []
    if kept is not None and not program.unread:
        if hurry and memory is not None:
            asked = changed
            memory.owed.update({path: before.get(path) for path in changed if path not in memory.owed})
        else:
            asked = _outdated(kept, changed, linked, program, memory)
        findings = [f for f in kept.findings if f.span.path not in asked and f.span.path in facts]
    walked = [p for p in project.files if p in facts and (asked is None or p in asked)]
    fresh = in_notebooks(
        _walk(program, walked, jobs, rules),
        lambda path: overlay[path] if path in overlay else (project.root / path).read_bytes(),
    )
    findings = _once([*findings, *_doubted(fresh, program, facts)])
    left = store.Kept(stamps, {path: problems.get(path) or facts.raw(path) for path in project.files}, tuple(findings))
    is_first = memory is None or memory.kept is None
    if cache is not None and not overlay and is_first and (read or kept is None or len(old) != len(project.files)):
        store.save(cache, context, left)
    if memory is not None:
        anew = project.files if is_first else read
        memory.keep(context, left, linked, program, {path: project.root / path for path in anew})
        if not hurry:
            memory.owed.clear()
    # A template that only becomes Python when it is filled in is nobody's mistake.
    problems = {path: p for path, p in problems.items() if p.newer_syntax or not p.is_template}
    findings += [_unreadable(path, p) for path, p in problems.items() if not p.newer_syntax]
    findings.sort(key=lambda f: (f.span.path, f.span.cell or 0, f.span.line, f.span.column, f.code))
    return Analysis(
        tuple(findings),
        len(project.files),
        tuple(path for path, p in problems.items() if not p.newer_syntax),
        tuple(path for path, p in problems.items() if p.newer_syntax),
        program,
    )


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
        yield replace(finding, confidence="likely") if depends and finding.confidence == "certain" else finding


def _link(
    project: Project, facts: Mapping[str, FileFacts], overlay: Mapping[str, bytes], installed: Installed
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

    return Program(project.files, project.source_roots, facts.get, text_of, cell_of, installed)


def _outdated(
    kept: store.Kept, changed: set[str], facts: Mapping[str, FileFacts], program: Program, memory: Memory | None
) -> set[str]:
    """The files whose findings may have changed since the earlier run."""
    owed = memory.owed if memory is not None else {}
    outdated = set(changed)
    faces: set[str] = set()
    names: set[str] = set()
    for path in changed | owed.keys():
        before = owed[path] if path in owed else _before(kept, path, memory)
        after = facts.get(path)
        names |= changed_names(before, after)
        if before is None or after is None or face(before) != face(after):
            faces.add(path)
    if faces:
        if memory is not None and kept.facts.keys() != facts.keys():
            memory.targets.clear()  # a new file may be what an old import means
        outdated |= importers(faces, facts, program.finder, memory.targets if memory is not None else None)
    if names:
        outdated.update(callers_of(names, facts))
    # A finding elsewhere may point at a line that has moved.
    moved = changed | owed.keys()
    outdated |= {f.span.path for f in kept.findings if any(r.path in moved for r in f.reasons)}
    return outdated if changed else outdated - owed.keys()  # these were looked at in a hurry, and nothing came since


def _before(kept: store.Kept, path: str, memory: Memory | None) -> FileFacts | None:
    """What a file said at the earlier run."""
    if memory is not None and path in memory.facts:
        return memory.facts[path]
    found = kept.facts.get(path)
    if found is None or isinstance(found, Problem):
        return None
    return found if isinstance(found, FileFacts) else FileFacts.unpack(found)


def _walk(program: Program, paths: list[str], jobs: int, rules: Sequence[Rule]) -> list[Finding]:
    """What the rules find in `paths`, with the work spread over processes where that pays."""
    if not paths:
        program.asked = ()
        return []
    program.prepare()
    functions = sum(len(program.module(path).facts.functions) for path in paths)
    count = max(1, min(jobs, functions // _WORTH_A_PROCESS))
    shares: list[list[str]] = [paths[start::count] for start in range(count)]

    def piece(share: list[str]) -> Callable[[], tuple[list[Finding], set[str], dict[str, list[int]]]]:
        def work() -> tuple[list[Finding], set[str], dict[str, list[int]]]:
            returning, walked = program.walk(share)
            return [f for rule in rules for f in rule.check(program)], returning, walked

        return work

    findings: list[Finding] = []
    returning: set[str] = set()
    walked: dict[str, list[int]] = {}
    for found, names, done in in_processes([piece(share) for share in shares]):
        findings += found
        returning |= names
        walked.update(done)
    while count > 1 and program.learn(returning):  # one share may call what another found to return promises
        names, done = program.walk(paths, beyond=walked)
        findings += [f for rule in rules for f in rule.check(program)]
        returning |= names
        for path, indices in done.items():
            walked[path] = [*walked.get(path, []), *indices]
    own = frozenset(program.paths)
    return _once(f for f in findings if f.span.path in own)  # what is wrong inside a library is not ours to tell


def _once(findings: Iterable[Finding]) -> list[Finding]:
    """Each finding once: the same call may be judged on several ways."""
    return list({(f.code, f.span): f for f in findings}.values())


def _unreadable(path: str, problem: Problem) -> Finding:
    span = Span(path, problem.line, problem.column, problem.line, problem.column)
    message = f"this file cannot be read, so nothing in it is checked: {problem.text}"
    return Finding("T001", "unreadable-file", span, message, "certain", subject=problem.text)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
