"""Score a checker: what it newly says when batches of mutants stand in the copy."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from troth.analysis.mutate.checkers.checker import CheckedPart, Checker, CheckerError, Sightings
from troth.analysis.mutate.measure.batch import batches
from troth.analysis.mutate.measure.diagnostic import new_sightings
from troth.analysis.mutate.measure.judge import judge
from troth.analysis.mutate.measure.process import run_command
from troth.analysis.mutate.measure.workspace import ProjectCopy, workspace
from troth.analysis.mutate.mutant import Mutant
from troth.analysis.mutate.operator import Operator
from troth.analysis.mutate.result import MutantVerdict, Result
from troth.analysis.mutate.source.discover import Layout
from troth.analysis.mutate.source.project import MutatedProject
from troth.analysis.mutate.source.roots import has_namespaces, import_roots
from troth.analysis.mutate.source.splice import Spliced, by_path, splice
from troth.analysis.mutate.source.text import UnreadableError
from troth.errors import RunError

__all__ = ["score_checker", "set_apart"]


@dataclass(frozen=True, slots=True)
class _Bench:
    """What stays the same from run to run."""

    checker: Checker
    operators: Mapping[str, Operator]
    project: MutatedProject
    space: ProjectCopy
    scope: CheckedPart
    limit: float
    before: Sightings


def score_checker(
    mutants: Sequence[Mutant],
    *,
    checker: Checker,
    operators: Mapping[str, Operator],
    project: MutatedProject,
    layout: Layout,
    batch_size: int,
    limit: float,
) -> Iterator[Result]:
    """The verdicts, as they come in: batch after batch, each result once.

    Raises `RunError` if the checker fails on the untouched copy, since then nothing it says later means anything.
    """
    broken, sound = set_apart(mutants, project)
    yield from broken
    with workspace(layout) as space, tempfile.TemporaryDirectory(prefix="troth-scratch-") as scratch:
        scope = CheckedPart(
            space.root,
            layout.targets,
            layout.chosen,
            import_roots(project),
            has_namespaces(project),
            Path(scratch).resolve(),
        )
        try:
            before = _look(checker, scope, limit)
        except CheckerError as problem:
            raise RunError(
                f"`{checker.label}` failed on the untouched copy of the project: {problem}\n"
                "No mutant was planted, because the result of a checker that already fails means nothing.\n"
                "Run the same command in the project itself; `--limit` gives it more time."
            ) from problem
        bench = _Bench(checker, operators, project, space, scope, limit, before)
        for batch in batches(sound, size=batch_size):
            yield from _measure(bench, batch)


def set_apart(mutants: Sequence[Mutant], project: MutatedProject) -> tuple[list[Result], list[Mutant]]:
    """The mutants whose file would not parse, as results, and all the others."""
    broken: list[Result] = []
    sound: list[Mutant] = []
    for mutant in mutants:
        try:
            for path, edits in by_path(mutant.edits).items():
                splice(project.sources[path], edits).after.parse()
        except UnreadableError as problem:
            broken.append(Result(mutant.key, MutantVerdict.BROKEN, (str(problem),)))
        else:
            sound.append(mutant)
    return broken, sound


def _look(checker: Checker, scope: CheckedPart, limit: float) -> Sightings:
    process = run_command(checker.command(scope), cwd=scope.root, limit=limit)
    return checker.read(process, scope)


def _measure(bench: _Bench, batch: Sequence[Mutant]) -> Iterator[Result]:
    """One run for the whole batch; if the checker crashes, halves, until it is known on which mutants it does."""
    changed = _changed(bench.project, batch)
    after = [spliced.after for spliced in changed.values()]
    try:
        with bench.space.holding(after, bench.project.sources):
            sightings = _look(bench.checker, bench.scope, bench.limit)
    except CheckerError as problem:
        if len(batch) == 1:
            yield Result(batch[0].key, MutantVerdict.CRASHED, (str(problem),))
            return
        half = len(batch) // 2
        yield from _measure(bench, batch[:half])
        yield from _measure(bench, batch[half:])
        return
    new = new_sightings(bench.before, sightings, changed)
    for mutant in batch:
        yield judge(mutant, new, changed, bench.operators[mutant.operator], bench.checker)


def _changed(project: MutatedProject, batch: Sequence[Mutant]) -> dict[str, Spliced]:
    edits = by_path(edit for mutant in batch for edit in mutant.edits)
    return {path: splice(project.sources[path], own) for path, own in edits.items()}
