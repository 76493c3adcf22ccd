"""Get from paths and a seed to the mutants of a project."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from troth.analysis.mutate.mutant import Mutant
from troth.analysis.mutate.operator import Operator
from troth.analysis.mutate.operators import all_operators
from troth.analysis.mutate.select import candidates, select
from troth.analysis.mutate.source.discover import Layout, find_root, lay_out
from troth.analysis.mutate.source.project import MutatedProject, read_project
from troth.errors import MisuseError

__all__ = ["MutationPlan", "make_plan"]


@dataclass(frozen=True, slots=True)
class MutationPlan:
    """What is going to be planted where. `possible` counts all places there were to choose from.

    `left_out` says of each file that cannot be read or parsed why.
    """

    layout: Layout
    project: MutatedProject
    operators: Mapping[str, Operator]
    mutants: tuple[Mutant, ...]
    left_out: Mapping[str, str]
    possible: int
    seed: int
    n: int


def make_plan(
    paths: Sequence[Path],
    *,
    operators: Sequence[str],
    n: int,
    seed: int,
    root: Path | None = None,
    with_tests: bool = False,
) -> MutationPlan:
    """Choose the mutants; nothing is copied or run yet."""
    available = all_operators()
    if unknown := [name for name in operators if name not in available]:
        raise MisuseError(
            f"There is no operator {unknown[0]!r}.\nNothing was done.\nThere are: {', '.join(available)}; or `all`."
        )
    for path in paths:
        if not path.exists():
            raise MisuseError(f"There is no {str(path)!r}.\nNothing was done.\nGive a file or directory that exists.")
    layout = lay_out(root or find_root(paths), paths, with_tests=with_tests)
    project = read_project(layout)
    chosen = {name: available[name] for name in sorted(set(operators))}
    mutants, unparsable = candidates(project, list(chosen.values()))
    left_out = {**project.unreadable, **unparsable}
    return MutationPlan(
        layout, project, chosen, tuple(select(mutants, n=n, seed=seed)), left_out, len(mutants), seed, n
    )
