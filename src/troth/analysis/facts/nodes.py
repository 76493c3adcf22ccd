"""Walk over the nodes of which facts consist.

A tuple is a node because of the place it stands at, never because of what it begins with: a keyword argument, a
parameter and an imported name are tuples that begin with a name of the checked code, and that may be `attr` or `call`.
So each kind of node says here which of its places hold nodes, and everybody who looks for something below a node asks
this module.
"""

from collections.abc import Callable, Collection, Iterable, Iterator

from troth.analysis.facts.fields import ATTR_BASE, CONST_TYPE, KIND, NAME_ID
from troth.analysis.facts.model import Node

__all__ = ["KINDS", "children", "of_kind", "walk", "words_of"]

Nodes = list[Node]


def children(node: Node) -> Nodes:
    """The nodes that stand directly in `node`, in the order of its places."""
    return _CHILDREN[node[0]](node)


def walk(nodes: Iterable[Node], *, skip: Collection[str] = ()) -> Iterator[Node]:
    """`nodes` and all that stand in them, each before its parts; nodes of a kind to `skip` are left out as a whole.

    The body of a function inside is not part of the nodes around it.
    """
    stack = list(nodes)
    stack.reverse()
    while stack:
        node = stack.pop()
        own = node[KIND]
        if own in skip:
            continue
        yield node
        if own == "name" or own == "const":  # noqa: PLR1714  most nodes; compiled, a set is made each time
            continue
        if own == "attr":
            stack.append(node[ATTR_BASE])
            continue
        inside = _CHILDREN[own](node)
        inside.reverse()
        stack += inside


def of_kind(nodes: Iterable[Node], kind: str, *, skip: Collection[str] = ()) -> Iterator[Node]:
    """The nodes of one kind among those that `walk` gives, whose steps are repeated here: most nodes are of another."""
    stack = list(nodes)
    stack.reverse()
    while stack:
        node = stack.pop()
        own = node[KIND]
        if own in skip:
            continue
        if own == kind:
            yield node
        if own == "name" or own == "const":  # noqa: PLR1714
            continue
        if own == "attr":
            stack.append(node[ATTR_BASE])
            continue
        inside = _CHILDREN[own](node)
        inside.reverse()
        stack += inside


def words_of(node: Node) -> Iterator[str]:
    """The names, attributes and strings in an expression, an annotation mostly."""
    for part in walk((node,)):
        kind = part[0]
        if kind == "name":
            yield part[NAME_ID]
        elif kind == "attr" or (kind == "const" and part[CONST_TYPE] == "str" and len(part) == 3):
            yield part[2]


def _none(_node: Node) -> Nodes:
    return []


def _first(node: Node) -> Nodes:
    return [node[1]]


def _first_if_any(node: Node) -> Nodes:
    return [] if node[1] is None else [node[1]]


def _second(node: Node) -> Nodes:
    return [node[2]]


def _first_two(node: Node) -> Nodes:
    return [node[1], node[2]]


def _items(node: Node) -> Nodes:
    return list(node[1])


def _call(node: Node) -> Nodes:
    return [node[1], *node[2], *[value for _, value in node[3]]]


def _dict(node: Node) -> Nodes:
    return [*[key for key in node[1] if key is not None], *node[2]]


def _ifexp(node: Node) -> Nodes:
    return [node[1], node[2], node[3]]


def _compare(node: Node) -> Nodes:
    return [node[1], *node[3]]


def _lambda(node: Node) -> Nodes:
    return [*[default for _, _, default, _ in node[1] if default is not None], node[2]]


def _comprehension(node: Node) -> Nodes:
    parts: Nodes = list(node[2])
    for _, target, iterated, conditions in node[3]:
        parts += (target, iterated, *conditions)
    return parts


def _assign(node: Node) -> Nodes:
    return [*node[1], node[2]]


def _annotated(node: Node) -> Nodes:
    return [part for part in node[1:] if part is not None]


def _if(node: Node) -> Nodes:
    return [node[1], *node[2], *node[3]]


def _for(node: Node) -> Nodes:
    return [node[2], node[3], *node[4], *node[5]]


def _with(node: Node) -> Nodes:
    entered: Nodes = [part for item in node[2] for part in item if part is not None]
    return [*entered, *node[3]]


def _try(node: Node) -> Nodes:
    parts: Nodes = list(node[1])
    for types, _, body, _ in node[2]:
        if types is not None:
            parts.append(types)
        parts += body
    return [*parts, *node[3], *node[4]]


def _match(node: Node) -> Nodes:
    parts: Nodes = [node[1]]
    for matched, _, _, guard, body in node[2]:
        parts += [part for part in (matched, guard) if part is not None]
        parts += body
    return parts


def _class(node: Node) -> Nodes:
    return list(node[2])


_CHILDREN: dict[str, Callable[[Node], Nodes]] = {
    **dict.fromkeys(("name", "const", "classref", "imported"), _none),
    **dict.fromkeys(("break", "continue", "import", "def", "scope"), _none),
    **dict.fromkeys(("attr", "await", "not", "yieldfrom", "star", "expr"), _first),
    **dict.fromkeys(("yield", "return", "raise"), _first_if_any),
    **dict.fromkeys(("walrus", "entered"), _second),
    **dict.fromkeys(("index", "binop", "augassign", "assert"), _first_two),
    **dict.fromkeys(("list", "tuple", "set", "and", "or", "fstr", "parts", "slice", "del"), _items),
    **dict.fromkeys(("if", "while"), _if),
    "call": _call,
    "dict": _dict,
    "ifexp": _ifexp,
    "compare": _compare,
    "lambda": _lambda,
    "comp": _comprehension,
    "assign": _assign,
    "annassign": _annotated,
    "for": _for,
    "with": _with,
    "try": _try,
    "match": _match,
    "class": _class,
}

KINDS = frozenset(_CHILDREN)
