"""Find which of several overloads a call means, by the constants that it is given: `run(stream=False)`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.facts.fields import CONST_VALUE, INDEX_BASE, INDEX_KEY, ITEMS, KIND
from troth.analysis.facts.names import last_name
from troth.analysis.semantics.symbols import Class, Function
from troth.analysis.semantics.values import Instance, Union, union

if TYPE_CHECKING:
    from troth.analysis.facts.model import Node, Param
    from troth.analysis.semantics.values import Value

__all__ = ["meant_by_stream", "meant_overloads"]


def meant_overloads(function: Function, node: Node, *, is_bound: bool) -> list[Function]:
    """The overloads of `function` that the call at `node` may mean; none where there are none, or all may be meant."""
    overloads = _overloads(function)
    if not overloads or any(arg[KIND] == "star" for arg in node[2]) or any(name is None for name, _ in node[3]):
        return []
    meant = [overload for overload in overloads if _fits(overload, node, is_bound=is_bound)]
    return meant if len(meant) < len(overloads) else []


def meant_by_stream(result: Value | None, node: Node, path: str) -> Value | None:
    """What a client gives that streams on request: tables have `Answer | Stream`, and `stream=True` decides."""
    if not isinstance(result, Union):
        return result
    asked = next((value for name, value in node[3] if name == "stream"), None)
    if asked is None or asked[:2] != ("const", "bool"):
        return result
    streams = [member for member in result.members if isinstance(member, Instance) and "Stream" in member.cls.name]
    if not streams or len(streams) == len(result.members):
        return result
    if asked[CONST_VALUE] != "True":
        return union([member for member in result.members if member not in streams])
    why = ("`stream=True` asks for it", path, node[-1][0])
    return union([Instance(member.cls, member.args, why, guess=member.guess) for member in streams])


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
        elif arg[KIND] == "const" and not _takes(param, arg):
            return False
    return True


def _takes(param: Param, arg: Node) -> bool:
    """Whether a parameter may be given that constant."""
    annotation = param[1]
    if annotation is None or annotation[KIND] != "index" or last_name(annotation[INDEX_BASE]) != "Literal":
        return True
    items = annotation[INDEX_KEY][ITEMS] if annotation[INDEX_KEY][KIND] == "tuple" else (annotation[INDEX_KEY],)
    return arg in items
