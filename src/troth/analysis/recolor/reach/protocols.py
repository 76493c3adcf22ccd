"""Name the classes that may stand in for a protocol whose color changes: whether they do is for somebody to say."""

from collections.abc import Collection, Sequence

from troth.analysis.recolor.decisions import Decisions, place_of
from troth.analysis.recolor.problem import Obstacle
from troth.analysis.recolor.reach.family import may_fulfil
from troth.analysis.semantics import Program
from troth.analysis.semantics.symbols import Function

__all__ = ["perhaps_fulfilling"]


def perhaps_fulfilling(
    program: Program,
    functions: Sequence[Function],
    changed: Collection[Function],
    decisions: Decisions,
    color: str = "async",
) -> list[Obstacle]:
    """The methods that have the color which those of a protocol lose, and its name."""
    problems = []
    for function in functions:
        for fulfilling in may_fulfil(program, function, changed):
            if decisions.about(fulfilling, fulfilling.module.path) is None:
                path, line = fulfilling.place
                why = f"it may stand in for `{function.qualname}`, which becomes {color}"
                lines = tuple(f"{place_of(fulfilling, path)}: {answer}" for answer in ("recolor", "leave"))
                doubt = (
                    f"may stand in for `{function.qualname}`, which is {color} now; then this has to be {color} as well"
                )
                problems.append(Obstacle(path, line, fulfilling.qualname, why, (function,), lines, doubt))
    return problems
