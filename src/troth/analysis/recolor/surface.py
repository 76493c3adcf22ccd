"""The colors of a surface: which side is consistent, and what each direction would cost."""

from dataclasses import dataclass

from troth.analysis.recolor.plan import Color, Plan
from troth.analysis.semantics.symbols import Function

__all__ = ["Surface", "surface"]


@dataclass(frozen=True, slots=True)
class Surface:
    """The methods of a target by color, and the plan of each direction."""

    methods: tuple[tuple[Function, Color, str], ...]  # with what keeps it from the other color, if anything does
    to_sync: Plan
    to_async: Plan

    @property
    def consistent(self) -> Color:
        """The color that all of it can have: async if something truly waits, else sync."""
        return "async" if self.to_sync.unable else "sync"


def surface(functions: tuple[Function, ...], to_sync: Plan, to_async: Plan) -> Surface:
    """What is known about `functions`."""
    waits = {unable.function: unable.why for unable in to_sync.unable}
    cannot = {unable.function: unable.why for unable in to_async.unable}
    rows: list[tuple[Function, Color, str]] = []
    for function in functions:
        color: Color = "async" if function.is_async else "sync"
        rows.append((function, color, (waits if function.is_async else cannot).get(function, "")))
    return Surface(tuple(rows), to_sync, to_async)
