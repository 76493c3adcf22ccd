"""What the methods of a class do with one of its attributes."""

from troth.analysis.facts.model import Node, speaks_of
from troth.analysis.facts.nodes import children
from troth.analysis.semantics.infer.call_results import callee_text
from troth.analysis.semantics.symbols import Function
from troth.analysis.semantics.walk.coroutine_sinks import awaits_a_value, looks_like_keeper, looks_like_runner

__all__ = ["collect_uses", "uses_contents"]

_OF_COROUTINES = frozenset({"send", "throw", "close", "cr_frame", "cr_code", "cr_await", "cr_running"})


def collect_uses(body: tuple[Node, ...], name: str, uses: set[str], *, inside: bool = False) -> None:
    """Add to `uses` how `….name` is used in `body`.

    "awaited", which a runner does too, "misused", "assigned", "given" to somebody who does not look like one that
    awaits, or "other". With `inside` the attribute is a collection, and a loop over it or an item of it is no misuse.
    """
    for node in body:
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


def _look_inside(node: Node, name: str, uses: set[str]) -> None:
    if node[0] == "assign":
        _look_inside(node[2], name, uses)
        return  # where something is put into it, nothing is taken out
    if node[0] == "attr" and node[2] == name:
        uses.add("other")
    for part in children(node):
        _look_inside(part, name, uses)


def _walk(node: Node, name: str, uses: set[str], context: str) -> None:
    kind = node[0]
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
        if node[3] is not None:
            _walk(node[3], name, uses, "other")
    elif kind == "compare" and ("const", "None") in node[3]:
        _walk(node[1], name, uses, "other")  # whether there is one yet
    elif kind in {"if", "while"}:
        _walk(node[1], name, uses, "misused")
        for part in (*node[2], *node[3]):
            _walk(part, name, uses, "other")
    elif kind == "compare":
        _walk(node[1], name, uses, "misused")
        for part in node[3]:
            _walk(part, name, uses, "other")
    elif kind in {"not", "binop"}:
        for part in children(node):
            _walk(part, name, uses, "misused")
    elif kind == "for":
        _walk(node[3], name, uses, "misused" if not node[1] else "other")
        for part in (*node[4], *node[5]):
            _walk(part, name, uses, "other")
    elif kind in {"and", "or"}:
        for part in node[1]:
            _walk(part, name, uses, "misused" if context == "misused" else "other")
    else:
        for part in children(node):
            _walk(part, name, uses, "other")
