"""Knows what the methods of a class do with one of its attributes."""

from typing import Any

from troth.analysis.facts.model import speaks_of
from troth.analysis.program.calls import callee_text
from troth.analysis.program.consumers import awaits_a_value, looks_like_keeper, looks_like_runner
from troth.analysis.program.entities import Function

__all__ = ["collect_uses", "uses_contents"]

_OF_COROUTINES = frozenset({"send", "throw", "close", "cr_frame", "cr_code", "cr_await", "cr_running"})


def collect_uses(node: Any, name: str, uses: set[str], *, inside: bool = False) -> None:
    """Add to `uses` how `….name` is used below `node`.

    "awaited", which a runner does too, "misused", "assigned", "given" to somebody who does not look like one that
    awaits, or "other". With `inside` the attribute is a collection, and a loop over it or an item of it is no misuse.
    """
    if inside:
        _look_inside(node, name, uses)
    else:
        _walk(node, name, uses, "other")


def uses_contents(function: Function, name: str) -> bool:
    """Whether the class around gives the contents of a collection that it keeps to anybody, or awaits them."""
    owner = function.class_around
    if owner is None:
        return False
    uses: set[str] = set()
    awaits = False
    for method in (owner.module.function(index) for indexes in owner.methods.values() for index in indexes):
        f = method.facts
        if speaks_of(f, (name,)):
            collect_uses(method.body(), name, uses, inside=True)
            awaits = awaits or any(looks_like_keeper(callee) for callee in (*f.calls, *f.awaited))
            awaits = awaits or awaits_a_value(method.body())
    # In a function that could await, the contents are meant to be results unless somebody awaits or runs them.
    return bool(uses & {"awaited", "other"}) and (awaits or not function.is_async)


def _look_inside(node: Any, name: str, uses: set[str]) -> None:
    if not isinstance(node, tuple) or not node:
        return
    if node[0] == "assign" and len(node) == 3:
        _look_inside(node[2], name, uses)
        return  # where something is put into it, nothing is taken out
    if node[0] == "attr" and len(node) == 4 and node[2] == name:  # a keyword may be named `attr` too
        uses.add("other")
    for part in node:
        _look_inside(part, name, uses)


def _walk(node: Any, name: str, uses: set[str], context: str) -> None:
    if not isinstance(node, tuple) or not node:
        return
    kind = node[0]
    if not isinstance(kind, str):
        for part in node:
            _walk(part, name, uses, context)
        return
    if kind == "attr":
        if node[2] == name:
            uses.add(context)
        inside = node[2] in _OF_COROUTINES or node[2].startswith("__")
        _walk(node[1], name, uses, "other" if inside else "misused")
    elif kind == "await":
        _walk(node[1], name, uses, "awaited")
    elif kind == "index":
        _walk(node[1], name, uses, "misused")
        _walk(node[2], name, uses, "other")
    elif kind == "call":
        _walk(node[1], name, uses, "other")
        callee = callee_text(node[1])
        context = "awaited" if looks_like_runner(callee) else "other" if looks_like_keeper(callee) else "given"
        for part in (*node[2], *(value for _, value in node[3])):
            _walk(part, name, uses, context if part[0] == "attr" else "other")
    elif kind == "assign":
        for target in node[1]:
            _walk(target, name, uses, "assigned")
        _walk(node[2], name, uses, "other")
    elif kind == "annassign":
        _walk(node[1], name, uses, "assigned")
        _walk(node[3], name, uses, "other")
    elif kind == "lambda":
        for param in node[1]:
            _walk(param[2], name, uses, "other")
        _walk(node[2], name, uses, "other")
    elif kind == "compare" and ("const", "None") in node[3]:
        _walk(node[1], name, uses, "other")  # whether there is one yet
    elif kind in {"if", "while", "not", "compare", "binop", "fstr"}:
        for part in node[1:]:
            _walk(part, name, uses, "misused" if _is_expression(part) else "other")
    elif kind == "for":
        _walk(node[3], name, uses, "misused" if not node[1] else "other")
        for part in (node[4], node[5]):
            _walk(part, name, uses, "other")
    elif kind in {"and", "or"}:
        for part in node[1]:
            _walk(part, name, uses, "misused" if context == "misused" else "other")
    else:
        for part in node[1:]:
            _walk(part, name, uses, "other")


def _is_expression(node: Any) -> bool:
    return isinstance(node, tuple) and bool(node) and isinstance(node[0], str)
