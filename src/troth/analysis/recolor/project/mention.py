"""A place that names a function without calling it."""

import ast
from dataclasses import dataclass

from troth.analysis.recolor.project.tree import Tree
from troth.analysis.recolor.reach.callbacks import CallbackTaker
from troth.analysis.semantics.symbols import Function

__all__ = ["Mention"]


@dataclass(frozen=True, slots=True, eq=False)
class Mention:
    """A function handed around without being called. `to` is what it is given to, "" where that is not a call."""

    tree: Tree
    node: ast.expr
    name: str
    to: str
    is_known: bool
    functions: tuple[Function, ...] = ()
    taker: CallbackTaker | None = None
    caller: Function | None = None  # the function it stands in

    @property
    def path(self) -> str:
        """The file it is in."""
        return self.tree.view.path

    @property
    def line(self) -> int:
        """Its line."""
        return self.node.lineno
