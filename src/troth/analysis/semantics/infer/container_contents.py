"""What the methods of a class put into a collection that begins empty: `self.locks[name] = Lock()`.

Only objects of classes are told of. Whatever else is put in, or comes from where nobody can tell, may be anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.facts.fields import (
    ASSIGN_TARGETS,
    ASSIGN_VALUE,
    ATTR_BASE,
    ATTR_NAME,
    CALL_ARGS,
    CONST_VALUE,
    INDEX_BASE,
    INDEX_KEY,
    KIND,
    NAME_ID,
)
from troth.analysis.facts.model import speaks_of
from troth.analysis.facts.nodes import walk
from troth.analysis.semantics.values import Builtin, Instance, Nothing, Table, Value, members_of, union

if TYPE_CHECKING:
    from collections.abc import Iterator

    from troth.analysis.facts.model import Node
    from troth.analysis.semantics.resolve.project_files import ProjectFiles
    from troth.analysis.semantics.symbols import Class, Function

__all__ = ["filled", "is_empty"]

_PUTTING = frozenset({"append", "add", "appendleft", "insert", "setdefault", "put_nowait"})


def is_empty(value: Value | None) -> bool:
    """Whether a value is a collection of which nothing is known but that it is one."""
    if type(value) is Table:
        return not value.values
    return (
        type(value) is Builtin and value.name in {"dict", "list", "set"} and (not value.args or value.args[-1] is None)
    )


def filled(program: ProjectFiles, cls: Class, name: str, empty: Value) -> Value:
    """The attribute with what the methods of its class put into it; as it was where they put in nothing known."""
    held: dict[str, list[Value | None]] = {}  # by what it is put under; "" for anything but a text
    for indexes in cls.methods.values():
        function = cls.module.function(indexes[-1])
        if not function.facts.params or not speaks_of(function.facts, (name,)):
            continue
        for key, node in _put(function.body(), function.facts.params[0][0], name):
            held.setdefault(key, []).extend(_told(program, function, node))
    if not any(any(values) for values in held.values()):
        return empty
    of_all = union([value for values in held.values() for value in values])
    if isinstance(empty, Builtin) and empty.name != "dict":
        return Builtin(empty.name, (of_all,))
    if "" not in held:
        return Table({key: union(values) for key, values in held.items()}, tuple(map(union, held.values())))
    return Builtin("dict", (None, of_all))


def _told(program: ProjectFiles, function: Function, node: Node) -> list[Value | None]:
    """What a method puts in, as far as it can be told without a walk; a variable stands for all it is assigned."""
    nodes = [node]
    if node[KIND] == "name" and node[NAME_ID] not in function.params:
        nodes = [
            statement[ASSIGN_VALUE]
            for statement in walk(function.body())
            if statement[KIND] == "assign" and node in statement[ASSIGN_TARGETS]
        ] or nodes
    value = union([program.value_of(node, function.module, function) for node in nodes])
    return [m if isinstance(m, Instance) else None for m in members_of(value) if not isinstance(m, Nothing)]


def _put(body: tuple[Node, ...], self: str, name: str) -> Iterator[tuple[str, Node]]:
    """The expressions whose values are put into `self.name` in `body`, each with the text it is put under."""
    for node in walk(body):
        if node[KIND] == "assign":
            for target in node[ASSIGN_TARGETS]:
                if target[KIND] == "index" and _is_it(target[INDEX_BASE], self, name):
                    key = target[INDEX_KEY]
                    yield key[CONST_VALUE] if key[:2] == ("const", "str") and len(key) == 3 else "", node[ASSIGN_VALUE]
        elif node[KIND] == "call" and _is_putting(node, self, name):
            yield "", node[CALL_ARGS][-1]


def _is_putting(node: Node, self: str, name: str) -> bool:
    """Whether a call puts its last argument in: `self.name.append(…)`."""
    callee, arguments = node[1], node[2]
    if callee[KIND] != "attr" or callee[ATTR_NAME] not in _PUTTING or not arguments or arguments[-1][KIND] == "star":
        return False
    return _is_it(callee[ATTR_BASE], self, name)


def _is_it(node: Node, self: str, name: str) -> bool:
    return bool(node[KIND] == "attr" and node[ATTR_NAME] == name and node[ATTR_BASE] == ("name", self))
