"""Find on what objects a function sets attributes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.facts.fields import ATTR_BASE, KIND
from troth.analysis.semantics.walk.function_walk import Flow

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from troth.analysis.facts.model import At, Node
    from troth.analysis.semantics.program import Program
    from troth.analysis.semantics.symbols import Function
    from troth.analysis.semantics.values import Value

__all__ = ["objects_set"]


class _Recorder(Flow):
    """A walk that remembers on what attributes are set."""

    def __init__(self, program: Program, function: Function) -> None:
        super().__init__(program, function)
        self.met: dict[At, Value | None] = {}

    def _assign(self, target: Node, value: Value | None) -> None:
        if target[KIND] == "attr":
            self.met[target[3]] = self.value(target[ATTR_BASE])
        super()._assign(target, value)


def objects_set(program: Program, function: Function) -> dict[At, Value | None]:
    """The object of each `object.name = …` in `function`, by the place of `object.name`; walked through once."""
    answers: MutableMapping[Function, dict[At, Value | None]] = program.answers_to("objects set")
    if function not in answers:
        walk = _Recorder(program, function)
        walk.run()
        answers[function] = walk.met
    return answers[function]
