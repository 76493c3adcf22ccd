"""Find which of several overloads a call means, by the constants that it is given: `run(stream=False)`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.facts.names import last_name
from troth.analysis.semantics.symbols import Class, Function

if TYPE_CHECKING:
    from troth.analysis.facts.model import Node, Param

__all__ = ["meant_overloads"]


def meant_overloads(function: Function, node: Node, *, is_bound: bool) -> list[Function]:
    """The overloads of `function` that the call at `node` may mean; none where there are none, or all may be meant."""
    overloads = _overloads(function)
    if not overloads or any(arg[0] == "star" for arg in node[2]) or any(name is None for name, _ in node[3]):
        return []
    meant = [overload for overload in overloads if _fits(overload, node, is_bound=is_bound)]
    return meant if len(meant) < len(overloads) else []


def _overloads(function: Function) -> list[Function]:
    module, owner = function.module, function.owner
    if isinstance(owner, Class):
        definitions = [module.function(index) for index in owner.methods.get(function.name, ())]
    else:
        definitions = [binding for binding in module.bindings.get(function.name, ()) if isinstance(binding, Function)]
    return (
        [definition for definition in definitions if definition.decorated_with("overload")]
        if len(definitions) > 1
        else []
    )


def _fits(overload: Function, node: Node, *, is_bound: bool) -> bool:
    """Whether nothing in the call speaks against this overload: a constant it does not take, or one that is missing."""
    params = [*overload.facts.params][1 if is_bound else 0 :]
    plain = [param for param in params if param[3] in {"", "/"}]
    by_name: dict[str, Node] = {param[0]: arg for param, arg in zip(plain, node[2], strict=False)}
    by_name.update((name, arg) for name, arg in node[3])
    for param in params:
        if param[3] in {"*", "**"}:
            continue
        arg = by_name.get(param[0])
        if arg is None:
            if param[2] is None:
                return False
        elif arg[0] == "const" and not _takes(param, arg):
            return False
    return True


def _takes(param: Param, arg: Node) -> bool:
    """Whether a parameter may be given that constant."""
    annotation = param[1]
    if annotation is None or annotation[0] != "index" or last_name(annotation[1]) != "Literal":
        return True
    items = annotation[2][1] if annotation[2][0] == "tuple" else (annotation[2],)
    return arg in items
