"""Score a project's tests: whether the command that passes on the untouched copy fails on a mutant."""

import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue

from troth.analysis.mutate.measure.by_checker import set_apart
from troth.analysis.mutate.measure.coverage import Coverage
from troth.analysis.mutate.measure.process import Finished
from troth.analysis.mutate.measure.reach import probed, reached_by_probes
from troth.analysis.mutate.measure.suite import Suite
from troth.analysis.mutate.measure.workspace import ProjectCopy, workspace
from troth.analysis.mutate.mutant import Mutant
from troth.analysis.mutate.result import MutantVerdict, Result
from troth.analysis.mutate.source.discover import Layout
from troth.analysis.mutate.source.project import MutatedProject
from troth.analysis.mutate.source.roots import import_roots
from troth.analysis.mutate.source.splice import by_path, splice
from troth.errors import RunError

__all__ = ["score_tests"]

# A mutant that makes tests wait forever would hold everything up; one that makes them only slower should not count
# as hung. Three times the untouched run and five seconds more told the two apart in every suite that was tried.
_PATIENCE, _GRACE = 3.0, 5.0
_UNTOUCHED_LIMIT = 3600.0


@dataclass(frozen=True)
class _Bench:
    """What stays the same from run to run; `spare` holds the copies that nobody works in at the moment."""

    suite: Suite
    project: MutatedProject
    spare: "SimpleQueue[ProjectCopy]"
    limit: float
    stop: threading.Event = field(default_factory=threading.Event)
    # Selections of tests by whether they pass on the untouched copy. Two threads may both find out; that is harmless.
    passes: dict[tuple[str, ...], bool] = field(default_factory=dict)


def score_tests(
    mutants: Sequence[Mutant],
    *,
    command: str,
    project: MutatedProject,
    layout: Layout,
    jobs: int,
    limit: float | None,
    coverage: Coverage | None,
    notice: Callable[[str], None],
) -> Iterator[Result]:
    """The verdicts, as they come in, in no particular order.

    Raises `RunError` if the command fails on the untouched copy. What the reader should know besides is told `notice`.
    """
    broken, sound = set_apart(mutants, project)
    yield from broken
    with ExitStack() as copies:
        first = copies.enter_context(workspace(layout))
        suite = Suite(command, import_roots(project))
        whole = suite.run(first, limit or _UNTOUCHED_LIMIT)
        if whole.code != 0:
            how = "did not end in time" if whole.code is None else f"ended with {whole.code}"
            raise RunError(
                f"`{command}` {how} on the untouched copy of the project:\n{whole.tail}\n"
                "No mutant was planted: failing tests cannot detect a mutant.\n"
                "The copy leaves out what git ignores and has its own import roots first on PYTHONPATH; "
                "make the command pass there, or name tests that do."
            )
        limit = limit or _PATIENCE * whole.seconds + _GRACE
        reached = (
            _reached(sound, coverage) if coverage else _probe(sound, suite, project, first, limit=limit, notice=notice)
        )
        yield from (Result(mutant.key, MutantVerdict.UNREACHED) for mutant in sound if reached.get(mutant.key) is False)
        reachable = [mutant for mutant in sound if reached.get(mutant.key) is not False]
        if sound and not reachable:
            notice(
                "None of the mutants is reached by the tests. If they should be, the command may run an installed copy "
                "of the project instead of the one it is started in."
            )
        spare: SimpleQueue[ProjectCopy] = SimpleQueue()
        spare.put(first)
        for _ in range(min(jobs, len(reachable)) - 1):
            spare.put(copies.enter_context(workspace(layout)))
        bench = _Bench(suite, project, spare, limit)
        yield from _all(bench, reachable, coverage, jobs)


def _reached(mutants: Sequence[Mutant], coverage: Coverage) -> Mapping[str, bool]:
    reached = {mutant.key: coverage.is_reached(mutant.path, *mutant.run_lines) for mutant in mutants}
    return {key: is_reached for key, is_reached in reached.items() if is_reached is not None}


def _probe(
    mutants: Sequence[Mutant],
    suite: Suite,
    project: MutatedProject,
    space: ProjectCopy,
    *,
    limit: float,
    notice: Callable[[str], None],
) -> Mapping[str, bool]:
    """One run of all tests with a probe in the place of each mutant."""
    with tempfile.TemporaryDirectory(prefix="troth-reach-") as name:
        directory = Path(name).resolve()
        changed = probed(mutants, project, directory)
        with space.holding(changed, project.sources):
            process = suite.run(space, limit)
        if process.code == 0:
            return reached_by_probes(mutants, changed, directory)
    notice("It could not be determined which mutants the tests reach: the tests fail with probes in the code.")
    return {}


def _all(bench: _Bench, mutants: Sequence[Mutant], coverage: Coverage | None, jobs: int) -> Iterator[Result]:
    """One run per mutant, `jobs` of them at a time; on the way out all that still runs is ended."""
    with ThreadPoolExecutor(max_workers=max(1, jobs)) as pool:
        pending: set[Future[Result]] = {
            pool.submit(_run_mutant, bench, mutant, coverage.tests(mutant.path, *mutant.run_lines) if coverage else ())
            for mutant in mutants
        }
        try:
            while pending:
                finished, pending = wait(pending, return_when=FIRST_COMPLETED)
                for future in finished:
                    yield future.result()
        finally:
            bench.stop.set()
            for future in pending:
                future.cancel()


def _run_mutant(bench: _Bench, mutant: Mutant, tests: tuple[str, ...]) -> Result:
    space = bench.spare.get()
    try:
        process = _with(bench, space, mutant, tests)
        if tests and process.code not in (0, None) and not _passes(bench, space, tests):
            # The selection does not pass on the untouched copy either (the data may be older than the tests), so its
            # failure says nothing; the whole command decides.
            process = _with(bench, space, mutant, ())
    finally:
        bench.spare.put(space)
    if process.code is None:
        return Result(mutant.key, MutantVerdict.HUNG, (f"after {bench.limit:.0f} seconds",), process.seconds)
    verdict = MutantVerdict.CAUGHT if process.code else MutantVerdict.SURVIVED
    return Result(mutant.key, verdict, _failures_in(process) if process.code else (), process.seconds)


def _with(bench: _Bench, space: ProjectCopy, mutant: Mutant, tests: tuple[str, ...]) -> Finished:
    sources = bench.project.sources
    changed = [splice(sources[path], own).after for path, own in by_path(mutant.edits).items()]
    with space.holding(changed, sources):
        return bench.suite.run(space, bench.limit, tests=tests, stop=bench.stop)


def _passes(bench: _Bench, space: ProjectCopy, tests: tuple[str, ...]) -> bool:
    if tests not in bench.passes:
        process = bench.suite.run(space, bench.limit, tests=tests, stop=bench.stop)
        bench.passes[tests] = process.code == 0
    return bench.passes[tests]


def _failures_in(process: Finished) -> tuple[str, ...]:
    """The failures by name, as pytest and unittest give them, or else the last line."""
    lines = [line.strip() for line in (process.stdout + "\n" + process.stderr).splitlines() if line.strip()]
    failures = [line for line in lines if line.startswith(("FAILED ", "ERROR ", "FAIL:", "ERROR:"))]
    return tuple(line[:300] for line in (failures[:3] or lines[-1:]))
