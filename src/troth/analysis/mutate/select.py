"""Find which of all possible mutants are taken: seeded, at most one per outermost function, fair to every shape.

Nothing here depends on hash order, on the random module or on line numbers: candidates are ordered by a digest of the
seed and the place, so the same seed on the same tree takes the same mutants on every system and Python version.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from troth.analysis.mutate.mutant import Mutant
from troth.analysis.mutate.operator import Operator
from troth.analysis.mutate.source.module import SourceModule
from troth.analysis.mutate.source.project import MutatedProject
from troth.analysis.mutate.source.text import UnreadableError

__all__ = ["candidates", "select"]


def candidates(project: MutatedProject, operators: Sequence[Operator]) -> tuple[list[Mutant], dict[str, str]]:
    """Every mutant that could be planted, in the order of the files; and the files that this Python cannot parse.

    One file at a time: the trees of a large project would not fit side by side.
    """
    mutants: list[Mutant] = []
    unparsable: dict[str, str] = {}
    for source in project.sources.values():
        # Every operator needs an `async def` in the file, and most files of most projects have none.
        if "async" not in source.text:
            continue
        try:
            module = SourceModule(source)
        except UnreadableError as problem:
            unparsable[source.path] = str(problem)
            continue
        mutants += (mutant for operator in operators for mutant in operator.find(module, project))
    return mutants, unparsable


def select(mutants: Iterable[Mutant], *, n: int, seed: int) -> list[Mutant]:
    """Take up to `n` mutants, in turns: first between the operators, then between the shapes of each.

    A shape that has run out leaves its turns to the others. The scarcest shape goes first, because a function that has
    given its one mutant to a common shape is lost to a rare one. The result is in the order of the files.
    """
    strata: defaultdict[str, defaultdict[str, list[Mutant]]] = defaultdict(lambda: defaultdict(list))
    for mutant in mutants:
        strata[mutant.operator][mutant.shape].append(mutant)
    chosen: list[Mutant] = []
    used: set[tuple[str, str]] = set()
    sources = [_in_turns(shapes, used, seed) for _, shapes in sorted(strata.items())]
    while sources and len(chosen) < n:
        for source in list(sources):
            drawn = next(source, None)
            if drawn is None:
                sources.remove(source)
            elif len(chosen) < n:
                chosen.append(drawn)
    return sorted(chosen, key=lambda mutant: (mutant.path, mutant.line, mutant.operator, mutant.ordinal))


def _in_turns(shapes: dict[str, list[Mutant]], used: set[tuple[str, str]], seed: int) -> Iterator[Mutant]:
    """The mutants of one operator, shape after shape, leaving out functions that are used already."""
    order = sorted(shapes, key=lambda shape: (len(shapes[shape]), shape))
    queues = [iter(sorted(shapes[shape], key=lambda mutant: _rank(mutant, seed))) for shape in order]
    while queues:
        for queue in list(queues):
            for mutant in queue:
                if (mutant.path, mutant.function) not in used:
                    used.add((mutant.path, mutant.function))
                    yield mutant
                    break
            else:
                queues.remove(queue)


def _rank(mutant: Mutant, seed: int) -> str:
    return hashlib.sha256(f"{seed}:{mutant.place}".encode()).hexdigest()
