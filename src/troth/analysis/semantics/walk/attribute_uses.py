"""What the methods of a class do with one of its attributes."""

from collections.abc import Callable, Iterator

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
    if node[KIND] == "attr" and node[ATTR_NAME] == name:
        uses.add(context)
    for part, part_context in _contexts(node, context):
        _walk(part, name, uses, part_context)


def _contexts(node: Node, context: str) -> Iterator[tuple[Node, str]]:
    """The parts of a node, each with how it is used there."""
    contexts = _CONTEXTS.get(node[KIND])
    if contexts is not None:
        yield from contexts(node, context)
    else:
        yield from ((part, "other") for part in children(node))


def _of_attribute(node: Node, _context: str) -> Iterator[tuple[Node, str]]:
    attribute = node[ATTR_NAME]
    yield node[ATTR_BASE], "other" if attribute in _OF_COROUTINES or attribute.startswith("__") else "misused"


def _of_await(node: Node, _context: str) -> Iterator[tuple[Node, str]]:
    yield node[VALUE], "awaited"


def _of_index(node: Node, _context: str) -> Iterator[tuple[Node, str]]:
    yield node[INDEX_BASE], "misused"
    yield node[INDEX_KEY], "other"


def _of_call(node: Node, _context: str) -> Iterator[tuple[Node, str]]:
    yield node[CALL_FUNC], "other"
    callee = callee_text(node[CALL_FUNC])
    context = "awaited" if looks_like_runner(callee) else "other" if looks_like_keeper(callee) else "given"
    for part in (*node[CALL_ARGS], *(value for _, value in node[CALL_KEYWORDS])):
        yield part, context if part[KIND] == "attr" else "other"


def _of_assignment(node: Node, _context: str) -> Iterator[tuple[Node, str]]:
    for target in node[ASSIGN_TARGETS]:
        yield target, "assigned"
    yield node[ASSIGN_VALUE], "other"


def _of_annotated_assignment(node: Node, _context: str) -> Iterator[tuple[Node, str]]:
    yield node[ANNASSIGN_TARGET], "assigned"
    if node[ANNASSIGN_VALUE] is not None:
        yield node[ANNASSIGN_VALUE], "other"


def _of_comparison(node: Node, _context: str) -> Iterator[tuple[Node, str]]:
    if ("const", "None") in node[COMPARE_OTHERS]:
        yield node[COMPARE_LEFT], "other"  # whether there is one yet
        return
    yield node[COMPARE_LEFT], "misused"
    for part in node[COMPARE_OTHERS]:
        yield part, "other"


def _of_test(node: Node, _context: str) -> Iterator[tuple[Node, str]]:
    yield node[TEST], "misused"
    for part in (*node[BODY], *node[ORELSE]):
        yield part, "other"


def _of_operation(node: Node, _context: str) -> Iterator[tuple[Node, str]]:
    for part in children(node):
        yield part, "misused"


def _of_loop(node: Node, _context: str) -> Iterator[tuple[Node, str]]:
    yield node[FOR_ITER], "other" if node[FOR_IS_ASYNC] else "misused"
    for part in (*node[FOR_BODY], *node[FOR_ORELSE]):
        yield part, "other"


def _of_alternatives(node: Node, context: str) -> Iterator[tuple[Node, str]]:
    for part in node[ITEMS]:
        yield part, "misused" if context == "misused" else "other"


_CONTEXTS: dict[str, Callable[[Node, str], Iterator[tuple[Node, str]]]] = {
    "attr": _of_attribute,
    "await": _of_await,
    "index": _of_index,
    "call": _of_call,
    "assign": _of_assignment,
    "annassign": _of_annotated_assignment,
    "compare": _of_comparison,
    "if": _of_test,
    "while": _of_test,
    "not": _of_operation,
    "binop": _of_operation,
    "for": _of_loop,
    "and": _of_alternatives,
    "or": _of_alternatives,
}
