"""Look at a project: read its files, link them, ask the rules, and keep what the next look can use.

Each stage takes what the one before has made: `read_files` gives facts, `_plan` says what has to be looked at again,
`_walk_until_settled` looks, `_findings` joins that with what still holds, and `_keep` leaves it for the next time. A
first look, or one without a cache, is the same with nothing that still holds.
"""

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from troth.analysis.crash import Crash, contained
from troth.analysis.edits.in_notebook import in_notebooks
from troth.analysis.facts import store
from troth.analysis.facts.checksum import DamagedError
from troth.analysis.facts.extract_many import Progress
from troth.analysis.facts.model import FileFacts
from troth.analysis.findings import Finding
from troth.analysis.gc_pause import uncollected
from troth.analysis.incremental.context import Surroundings, surroundings
from troth.analysis.incremental.dependencies import Reads
from troth.analysis.incremental.saved_tables import SavedTables
from troth.analysis.pipeline.broken_file import outside_of_broken
from troth.analysis.pipeline.dependency_record import DependencyReaders, Trace, in_groups, traced
from troth.analysis.pipeline.earlier_run import facts_before, no_piece, outdated, usable_tables, usable_trace
from troth.analysis.pipeline.link_program import link_program
from troth.analysis.pipeline.read_files import FilesRead, read_files
from troth.analysis.pipeline.request import AbandonedError, AnalysisRequest
from troth.analysis.pipeline.walk_files import once, walk_files
from troth.analysis.pipeline.warm_state import Memory
from troth.analysis.project.project import Project
from troth.analysis.result import Analysis, told
from troth.analysis.rules import all_rules
from troth.analysis.semantics import Program
from troth.analysis.semantics.resolve.imports import importers
from troth.analysis.semantics.resolve.installed_packages import Installed
from troth.analysis.source import lines
from troth.errors import TrothError

__all__ = ["analyse"]


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
    is_wanted: Callable[[], bool] | None = None,
) -> Analysis:
    """Find what the rules have to say about the whole of `project`.

    `python` names an interpreter whose installed packages may be read (never imported). `jobs` is the number of
    processes, 0 for as many as pay. `cache` is a folder for facts, shared between runs; None keeps nothing. `overlay`
    gives the contents of files that differ from the disk, by their path in the project. `progress` is told how many
    files of how many are read, and which one comes now. `on_request` are the codes of rules to be put besides those
    that are on by default.
    `memory` is what an earlier call of the same process kept; it comes before the cache and is brought up to date. In a
    `hurry` only the files that changed since are looked at; what this means for others is owed to the next call.
    `is_wanted` is asked again and again; once it says no, `AbandonedError` is raised, and `memory` is as it was before.
    """
    with uncollected():
        rules = [rule for rule in all_rules() if rule.is_default or rule.code in on_request]
        request = AnalysisRequest(project, python, jobs or _cores(), overlay or {}, progress, rules, hurry, is_wanted)
        look = _Look(request, cache, memory)
        try:
            return look.take()
        except DamagedError:
            return look.take(anew=True)
        except TrothError:
            raise
        except AbandonedError:
            if memory is not None:
                memory.is_spoiled = True
            raise
        except Exception as error:
            if cache is None and memory is None:
                raise
            crash = contained(error, "", "what earlier runs found out was not used")
            answer = look.take(anew=True)
            return answer._replace(crashes=(*answer.crashes, crash))


class _Plan(NamedTuple):
    """What has to be looked at: files and questions since an earlier run, or everything where `trace` is None."""

    trace: Trace | None
    files: set[str] | None  # None: all
    questions: set[str]
    tables: SavedTables | None
    program: Program

    @property
    def is_settled(self) -> bool:
        """Whether nothing has to be looked at again."""
        return self.trace is not None and self.files is not None and not self.files and not self.questions


class _Walked(NamedTuple):
    """What was found where the program was looked at."""

    findings: list[Finding]
    crashes: list[Crash]
    paths: list[str]
    asked: set[str] | None  # the files whose earlier findings are replaced; None: all
    trace: Trace | None
    program: Program


@dataclass(slots=True)
class _Look:
    """One look at a project, with what earlier ones left in the cache or in this process."""

    request: AnalysisRequest
    cache: Path | None
    memory: Memory | None

    def take(self, *, anew: bool = False) -> Analysis:
        """Look, and tell; `anew` uses nothing that earlier looks have left."""
        request, memory = self.request, self.memory
        around = self._surroundings()
        earlier = None if anew else self._left_by_earlier(around.words)
        files = read_files(request, earlier, memory)
        plan = self._plan(earlier, files, around)
        walked = self._walk_until_settled(plan, files, around)
        crashes = [*walked.crashes, *walked.program.crashes]
        crashes += [problem.crash for problem in files.problems.values() if problem.crash is not None]
        if crashes and earlier is not None:  # what has changed for other files cannot be told any more
            return self.take(anew=True)
        findings = self._findings(earlier, files, walked)
        if crashes:  # an answer that lacks something is not kept
            return self._tell(findings, files, walked, tuple(dict.fromkeys(crashes)))
        self._keep(around.words, earlier, files, plan, walked, findings)
        if memory is not None and memory.judges_broken and files.broken:
            now = lines.Lines(request.project.root, request.overlay)
            findings = outside_of_broken(
                findings, {path: (memory.whole[path], now.data(path)) for path in files.broken}
            )
        return self._tell(findings, files, walked)

    def _surroundings(self) -> Surroundings:
        """What surrounds the project; in a hurry, what surrounded it at the last look."""
        project, python, memory = self.request.project, self.request.python, self.memory
        rules = [rule.code for rule in self.request.rules]
        question = project.root, project.source_roots, python, rules
        if memory is not None and self.request.hurry and memory.around is not None and memory.around[0] == question:
            return memory.around[1]
        around = surroundings(project, python, rules)
        if memory is not None:
            memory.around = question, around
        return around

    def _left_by_earlier(self, context: str) -> store.Kept | None:
        if self.memory is not None:
            self._trace_last_look(self.memory)
        earlier = self.memory.last_look(context) if self.memory is not None else None
        return store.load(self.cache, context) if earlier is None and self.cache is not None else earlier

    def _traces_later(self, trace: Trace | None) -> bool:
        return trace is not None and self.request.hurry and self.memory is not None

    @staticmethod
    def _trace_last_look(memory: Memory) -> None:
        """Note what was read in the last look, if that was a hurried one: nobody needed it for the answer."""
        untraced, memory.untraced = memory.untraced, None
        if untraced is None or memory.kept is None or not isinstance(memory.kept.trace, Trace):
            return
        program, paths = untraced
        if program is memory.program and program.reads is not None:
            earlier = memory.kept.trace
            memory.kept = memory.kept._replace(trace=earlier.updated(traced(program, paths, earlier), paths))
            memory.silent.learn(program, memory.facts)

    def _plan(self, earlier: store.Kept | None, files: FilesRead, around: Surroundings) -> _Plan:
        """Find what has to be looked at."""
        request, memory = self.request, self.memory
        # Rules on request may ask about all files at once; and nothing is certain of what depends on an unread file.
        is_traceable = not files.unread and request.asks_only_default_rules
        trace = usable_trace(earlier, request.project.files, files.changed) if is_traceable else None
        tables = usable_tables(earlier, trace, files.changed, files.linked, memory)
        is_same = memory is not None and not memory.is_spoiled and earlier is not None and not files.changed
        if memory is not None and memory.owed and not request.hurry:
            is_same = False  # the program of a hurried look has asked about a few files, and remembers the answers
        program = memory.program if is_same and memory is not None else None
        if program is None:
            program = self._link(files, around, tables)
        if trace is None or earlier is None:
            if memory is not None:
                memory.silent.clear()
            return _Plan(trace, None, set(), tables, program)
        if memory is not None:
            for path in sorted(files.changed):
                before = facts_before(earlier, path, memory)
                memory.silent.edited(path, before, files.linked.get(path))
        if request.hurry and memory is not None:
            changed = files.changed
            if not memory.owed:
                memory.settled_trace = trace
            memory.hurried = frozenset(changed) if changed else memory.hurried
            memory.owed.update({path: memory.facts.get(path) for path in changed if path not in memory.owed})
            return _Plan(trace, changed, set(), tables, program)
        paths, questions = outdated(earlier, trace, files.changed, files.linked, program, memory)
        return _Plan(trace, paths, questions, tables, program)

    def _link(self, files: FilesRead, around: Surroundings, tables: SavedTables | None) -> Program:
        memory = self.memory
        installed = memory.installed(around.packages) if memory is not None else Installed(around.packages)
        is_traced = (self.cache is not None or memory is not None) and self.request.asks_only_default_rules
        reads = Reads() if is_traced else None
        program = link_program(self.request.project, files, around, installed, reads, tables)
        program.take_over(memory.program if memory is not None else None)
        return program

    def _walk_until_settled(self, plan: _Plan, files: FilesRead, around: Surroundings) -> _Walked:
        """Look at what is planned, and at what turns out to depend on it."""
        request, trace, program = self.request, plan.trace, plan.program
        if plan.is_settled:
            return _Walked([], [], [], plan.files, trace, program)
        asked = None if plan.files is None else set(plan.files)
        questions = set(plan.questions)
        while True:
            program.pause = request.go_on
            paths = [
                path for path in request.project.files if path in files.judged and (asked is None or path in asked)
            ]
            if self.memory is not None and trace is not None:
                program.apart = self.memory.silent.files(files.linked)
                program.spared = self.memory.silent.in_files(paths, files.linked)
                program.uneventful.clear()
                program.read_apart = {}
            if trace is not None:
                trace.hand_over(program, paths, questions)
                for question in questions:
                    program.names_found(question)
            findings, crashes, now = walk_files(program, paths, request, trace, traces_later=self._traces_later(trace))
            if trace is None or asked is None or now is None or request.hurry:
                break
            mask = trace.reading(trace.differing(now, paths))
            if trace.files(mask) <= asked and trace.questions(mask) <= questions:
                break
            asked |= trace.files(mask)
            questions |= trace.questions(mask)
            program = self._link(files, around, plan.tables)
        if trace is not None and now is not None:
            now = trace.updated(now, paths)
        elif trace is not None and request.hurry and self.memory is not None:
            self.memory.untraced = program, paths
            now = trace
        return _Walked(findings, crashes, paths, asked, now, program)

    def _findings(self, earlier: store.Kept | None, files: FilesRead, walked: _Walked) -> list[Finding]:
        """What was found now, and what an earlier run found where nothing has changed."""
        disk = lines.Lines(self.request.project.root, self.request.overlay)
        fresh = in_notebooks(
            walked.findings, lambda path: files.texts[path] if path in files.texts else disk.data(path) or b""
        )
        still = [] if walked.asked is None or earlier is None else earlier.findings_beyond(walked.asked, files.judged)
        return once([*still, *_doubted(fresh, walked.program, files.linked)])

    def _keep(
        self,
        context: str,
        earlier: store.Kept | None,
        files: FilesRead,
        plan: _Plan,
        walked: _Walked,
        findings: Collection[Finding],
    ) -> None:
        """Leave what was found out to the next look."""
        project, memory, program = self.request.project, self.memory, walked.program
        is_further = earlier is not None and plan.trace is not None
        left = store.Kept(
            files.stamps,
            {path: files.problems.get(path) or files.facts.raw(path) for path in project.files},
            tuple(findings),
            None if files.unread else walked.trace,
            earlier.base if is_further and earlier is not None else None,
            {*earlier.since, *files.changed} if is_further and earlier is not None else (),
        )
        is_first = memory is None or memory.kept is None
        if memory is None and program.reads is not None:
            program.reads.forget()
        is_news = files.read_now or earlier is None or len(earlier.facts) != len(project.files)
        if self.cache is not None and not self.request.overlay and is_first and is_news:
            _save(self.cache, context, left, program)
        if memory is None:
            return
        if plan.trace is None:
            left = left._replace(base=memory.base_of(files.linked, program))
        read = project.files if is_first else files.read_now
        texts = {path: self.request.overlay.get(path, project.root / path) for path in read}
        memory.keep(context, left, files.linked, program, texts)
        if not self.request.hurry:
            memory.owed.clear()
            if walked.trace is not None and plan.trace is not None:
                memory.silent.learn(program, files.linked)

    def _tell(
        self, findings: Iterable[Finding], files: FilesRead, walked: _Walked, crashes: tuple[Crash, ...] = ()
    ) -> Analysis:
        checked = len(self.request.project.files)
        return told(findings, files.problems, checked, tuple(walked.paths), walked.program, crashes)


def _save(cache: Path, context: str, left: store.Kept, program: Program) -> None:
    """Keep what was found out: on top of what the last full run left, or anew where this was one."""
    trace = left.trace
    if not isinstance(trace, Trace):
        store.save(cache, context, left, ())
    elif left.base is not None:
        store.save(cache, context, left._replace(trace=trace.packed()), None)
    else:
        groups = in_groups(trace.readers.later)
        packed = replace(trace, readers=DependencyReaders(no_piece, {})).packed()
        store.save(cache, context, left._replace(trace=packed), [*program.tables_made(), *groups.items()])


def _doubted(findings: Iterable[Finding], program: Program, facts: Mapping[str, FileFacts]) -> Iterator[Finding]:
    """Nothing is certain of what depends on a file that could not be read."""
    unread = set(program.unread)
    doubtful = importers(unread, facts, program.finder) if unread else set()
    for finding in findings:
        depends = finding.span.path in doubtful or any(reason.path in doubtful for reason in finding.reasons)
        yield finding._replace(confidence="likely") if depends and finding.confidence == "certain" else finding


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
