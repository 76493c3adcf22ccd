"""Tell whether the arguments of a call fit the parameters of the function that it calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.facts.fields import KIND

if TYPE_CHECKING:
    from troth.analysis.facts.model import Node
    from troth.analysis.semantics.symbols import Function

__all__ = ["takes_arguments"]


def takes_arguments(function: Function, node: Node, *, is_bound: bool) -> bool | None:
    """Whether the call can reach the body of `function`; None where the call is given stars, so that it cannot be told.

    A call that does not fit raises TypeError before there is a coroutine.
    """
    _, _, arguments, keywords, _ = node
    names = [name for name, _ in keywords]
    if None in names or any(argument[KIND] == "star" for argument in arguments):
        return None
    params = [*function.facts.params][1 if is_bound else 0 :]
    placed = [name for name, _, _, kind in params if kind in {"", "/"}]
    named = {name for name, _, _, kind in params if kind not in {"/", "*", "**"}}
    required = {name for name, _, default, kind in params if default is None and kind not in {"*", "**"}}
    stars = {kind for _, _, _, kind in params}
    if len(arguments) > len(placed) and "*" not in stars:
        return False
    filled = set(placed[: len(arguments)])
    if filled.intersection(names) or not ("**" in stars or named.issuperset(names)):
        return False
    return required <= filled.union(names)
