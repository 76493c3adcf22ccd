"""Find where a function takes a variable of the function around it for a result: `settings["url"]`, `if rows:`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.facts.nodes import walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from troth.analysis.facts.model import At, Node
    from troth.analysis.semantics.incident import MisuseKind
    from troth.analysis.semantics.symbols import Function

__all__ = ["uses_inside"]

_OF_AWAITABLES = frozenset(
    {"send", "throw", "close", "done", "result", "cancel", "cancelled", "exception", "add_done_callback"}
)
_HANDING_ON = ("await", "return", "yield", "yieldfrom")
_TESTING = ("if", "ifexp", "while", "not")
_UNPACKING = (("tuple",), ("list",))
# Whoever asks what a thing is, or awaits something that is no call, may know that it is an awaitable.
_ASKING = frozenset({"isinstance", "iscoroutine", "isawaitable", "hasattr", "callable", "type", "getattr"})


def uses_inside(function: Function, variable: str) -> Iterator[tuple[MisuseKind, At, str]]:
    """The kind, the place and the text of each such use; none where the function may treat it as an awaitable."""
    if variable in function.params or function.facts.decorators:
        return
    if any(_last(call) in _ASKING for call in function.facts.calls):
        return
    nodes = list(walk(function.body()))
    name = ("name", variable)
    handed_on = {(kind, name) for kind in _HANDING_ON}
    if any(node[:2] in handed_on or _is_bound(node, name) for node in nodes):
        return
    tested = {(kind, name) for kind in _TESTING}
    for node in nodes:
        if node[:2] == ("index", name):
            yield "subscript", function.facts.at, ""
        elif node[:2] == ("attr", name):
            _, _, attribute, at = node
            if attribute not in _OF_AWAITABLES and not attribute.startswith("_"):
                yield "attribute", at, attribute
        elif node[:2] in tested:
            yield "condition", function.facts.at, ""
        elif node[:2] == ("for", False) and node[3:4] == (name,):
            yield "iteration", function.facts.at, ""


def _last(callee: str) -> str:
    _, _, name = callee.rpartition(".")
    return name


def _is_bound(node: Node, name: Node) -> bool:
    """Whether the function makes a variable of its own, or sets that of the function around it."""
    kind, *places = node
    _, variable = name
    if kind == "scope":
        return variable in " ".join(places).split()
    if kind == "assign":
        targets, *_ = places
        return any(
            target in {name, variable} or (target[:1] in _UNPACKING and name in walk((target,))) for target in targets
        )
    return kind in {"annassign", "augassign", "walrus"} and places[:1] in ([name], [variable])
