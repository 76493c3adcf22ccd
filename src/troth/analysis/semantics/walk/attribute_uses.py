"""What the methods of a class do with one of its attributes."""

from troth.analysis.facts.fields import (
    ANNASSIGN_TARGET,
    ANNASSIGN_VALUE,
    ASSIGN_TARGETS,
    ASSIGN_VALUE,
    ATTR_BASE,
    ATTR_NAME,
    BODY,
    CALL_ARGS,
    CALL_FUNC,
    CALL_KEYWORDS,
    COMPARE_LEFT,
    COMPARE_OTHERS,
    FOR_BODY,
    FOR_IS_ASYNC,
    FOR_ITER,
    FOR_ORELSE,
    INDEX_BASE,
    INDEX_KEY,
    ITEMS,
    KIND,
    ORELSE,
    TEST,
    VALUE,
)
from troth.analysis.facts.model import Node, speaks_of
from troth.analysis.facts.names import callee_text
from troth.analysis.facts.nodes import children
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
    if node[KIND] == "assign":
        _look_inside(node[ASSIGN_VALUE], name, uses)
        return  # where something is put into it, nothing is taken out
    if node[KIND] == "attr" and node[ATTR_NAME] == name:
        uses.add("other")
    for part in children(node):
        _look_inside(part, name, uses)


def _walk(node: Node, name: str, uses: set[str], context: str) -> None:
    kind = node[0]
    if kind == "attr":
        if node[ATTR_NAME] == name:
            uses.add(context)
        inside = node[ATTR_NAME] in _OF_COROUTINES or node[ATTR_NAME].startswith("__")
        _walk(node[ATTR_BASE], name, uses, "other" if inside else "misused")
    elif kind == "await":
        _walk(node[VALUE], name, uses, "awaited")
    elif kind == "index":
        _walk(node[INDEX_BASE], name, uses, "misused")
        _walk(node[INDEX_KEY], name, uses, "other")
    elif kind == "call":
        _walk(node[CALL_FUNC], name, uses, "other")
        callee = callee_text(node[CALL_FUNC])
        context = "awaited" if looks_like_runner(callee) else "other" if looks_like_keeper(callee) else "given"
        for part in (*node[CALL_ARGS], *(value for _, value in node[CALL_KEYWORDS])):
            _walk(part, name, uses, context if part[KIND] == "attr" else "other")
    elif kind == "assign":
        for target in node[ASSIGN_TARGETS]:
            _walk(target, name, uses, "assigned")
        _walk(node[ASSIGN_VALUE], name, uses, "other")
    elif kind == "annassign":
        _walk(node[ANNASSIGN_TARGET], name, uses, "assigned")
        if node[ANNASSIGN_VALUE] is not None:
            _walk(node[ANNASSIGN_VALUE], name, uses, "other")
    elif kind == "compare" and ("const", "None") in node[COMPARE_OTHERS]:
        _walk(node[COMPARE_LEFT], name, uses, "other")  # whether there is one yet
    elif kind in {"if", "while"}:
        _walk(node[TEST], name, uses, "misused")
        for part in (*node[BODY], *node[ORELSE]):
            _walk(part, name, uses, "other")
    elif kind == "compare":
        _walk(node[COMPARE_LEFT], name, uses, "misused")
        for part in node[COMPARE_OTHERS]:
            _walk(part, name, uses, "other")
    elif kind in {"not", "binop"}:
        for part in children(node):
            _walk(part, name, uses, "misused")
    elif kind == "for":
        _walk(node[FOR_ITER], name, uses, "misused" if not node[FOR_IS_ASYNC] else "other")
        for part in (*node[FOR_BODY], *node[FOR_ORELSE]):
            _walk(part, name, uses, "other")
    elif kind in {"and", "or"}:
        for part in node[ITEMS]:
            _walk(part, name, uses, "misused" if context == "misused" else "other")
    else:
        for part in children(node):
            _walk(part, name, uses, "other")
