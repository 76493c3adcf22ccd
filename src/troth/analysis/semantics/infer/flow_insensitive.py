"""What the variables of a function may hold, whichever way it runs.

All that a variable is bound to is put together, wherever in the function that stands; whatever only the order of
statements can tell (a list that is filled, an attribute that is set, a class that is asked for) stays open. This costs
a part of what a walk does, and is enough to see that a function makes no promise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.facts.model import declares_scope
from troth.analysis.facts.names import dotted
from troth.analysis.facts.nodes import children
from troth.analysis.semantics.evidence.framework_parameters import response_of
from troth.analysis.semantics.infer.evaluator import Evaluator
from troth.analysis.semantics.values import (
    Builtin,
    ClassObject,
    External,
    FunctionValue,
    Lambda,
    Table,
    Value,
    members_of,
    union,
)
from troth.analysis.semantics.walk.awaitables_in_value import holds_promise, is_promise

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from troth.analysis.facts.model import Node
    from troth.analysis.semantics.program import Program
    from troth.analysis.semantics.symbols import Function

__all__ = ["OpenError", "Variables"]

_LEAVES = frozenset({"name", "const"})  # expressions without others inside
_ASKING = frozenset({"hasattr", "isasyncgenfunction", "isgeneratorfunction"})
_DEEPEST = 40  # variables made of variables; a walk, which takes them in turn, can tell more


class OpenError(Exception):
    """Only a walk can tell what is asked for."""


class Variables(Evaluator):
    """Evaluates expressions of a function by all that its variables are bound to."""

    def __init__(self, program: Program, function: Function) -> None:
        super().__init__(program, function.module, function, None)
        self.inside = function
        self.returned: list[Node] = []
        self.attributes: list[Node] = []
        """The attributes that are read, but for those that are called."""
        self.unnamed: list[Node] = []
        """The callees that begin with no name, of calls that are not awaited: `load().get`, `handlers[kind]`."""
        self.taken: list[Node] = []
        """What `with` enters and `for` loops over plainly."""
        self._bound: dict[str, list[Callable[[], Value | None]]] = {}
        self._held: dict[str, Value | None] = {}
        self._finding_out: set[str] = set()
        self._items: dict[str, list[Callable[[], Value | None]]] = {}  # what is put into what a variable holds
        self._asked: set[str] = set()  # variables of which a class was asked for
        self._open: set[str] = set()  # names, and attributes of names
        self._block(function.body())

    def on_name(self, node: Node) -> Value | None:
        name = node[1]
        if name in self.env:  # the variable of a comprehension that is being looked at
            return self.env[name]
        if name in self._held:
            return self._held[name]
        if name in self._open or name in self._finding_out or len(self._finding_out) >= _DEEPEST:
            raise OpenError
        self._finding_out.add(name)
        outside, self.env = self.env, {}
        try:
            values = [bound() for bound in self._bound.get(name, ())]
            if not values or self._means_more(name):
                values.append(self.outer(name))
            value = union(values)
            if name in self._items:
                value = union([self._filled(member, self._items[name]) for member in members_of(value)])
        finally:
            self._finding_out.discard(name)
            self.env = outside
        self._held[name] = value
        return value

    def _means_more(self, name: str) -> bool:
        """Whether a name that is bound in the function is that of a parameter or a definition as well."""
        return name in self._asked or name in self.inside.params or name in self.module.inner(self.inside.index)

    @staticmethod
    def _filled(value: Value | None, items: list[Callable[[], Value | None]]) -> Value | None:
        """A collection with what is put into it."""
        if isinstance(value, Table):
            return Builtin("dict", (Builtin("str"), union([*value.values, *(item() for item in items)])))
        if isinstance(value, Builtin):
            return Builtin(value.name, (*value.args[:-1], union([*value.args[-1:], *(item() for item in items)])))
        return value

    def on_attr(self, node: Node) -> Value | None:
        if self._open and dotted(node) in self._open:
            raise OpenError
        return super().on_attr(node)

    def on_lambda(self, node: Node) -> Value | None:
        def unknown() -> Value | None:
            return None

        return Lambda(node[2], unknown)

    # -- what is bound where -------------------------------------------------------------------------------------------

    def _bind(self, name: str, value: Callable[[], Value | None]) -> None:
        self._bound.setdefault(name, []).append(value)

    def _block(self, statements: tuple[Node, ...]) -> None:
        for statement in statements:
            _STATEMENTS[statement[0]](self, statement)

    def _targets(self, target: Node, value: Callable[[], Value | None], part: Callable[..., Value | None]) -> None:
        """Bind the names of `target`, each to its part of `value`."""
        if target[0] == "index" and target[1][0] == "name":
            self._items.setdefault(target[1][1], []).append(value)
        for name in _names(target):
            if target[0] == "name":
                self._bind(name, value)
            else:
                self._bind(name, lambda name=name: part(target, value(), name))  # type: ignore[misc]
        self._store(target)

    def _store(self, target: Node) -> None:
        """What is set below a variable is known in the order of statements alone."""
        kind = target[0]
        if kind == "attr":
            key = dotted(target)
            if key:
                self._open.add(key)
            self._look(target[1])
        elif kind == "index":
            self._look(target[1])
            self._look(target[2])
        elif kind in {"tuple", "list"}:
            for part in target[1]:
                self._store(part)
        elif kind == "star":
            self._store(target[1])

    def _part(self, target: Node, value: Value | None, name: str) -> Value | None:
        """What an assignment of `value` to `target` gives the variable `name`."""
        parts = self.parts(value, len(target[1]))
        item = None if parts is not None or is_promise(value) else self.iterated(value)
        for index, part in enumerate(target[1]):
            inner = part[1] if part[0] == "star" else part
            if any(name == one for one in _names(inner)):
                given = item if parts is None else parts[index]
                return given if inner[0] == "name" else self._part(inner, given, name)
        return None

    def _part_of_item(self, target: Node, value: Value | None, name: str) -> Value | None:
        """What a turn of a loop over such values gives the variable `name`."""
        outside, self.env = self.env, {}
        try:
            self.bind(target, value)
            return self.env.get(name)
        finally:
            self.env = outside

    def _assign(self, statement: Node) -> None:
        node = statement[2]
        self._look(node)
        for target in statement[1]:
            self._targets(target, lambda: self.value(node), self._part)

    def _annassign(self, statement: Node) -> None:
        _, target, annotation, node = statement
        if node is not None:
            self._look(node)
        if target[0] == "name":
            self._bind(target[1], lambda: self._declared(annotation, node))
        else:
            self._targets(target, lambda: self._declared(annotation, node), self._part)

    def _declared(self, annotation: Node, node: Node | None) -> Value | None:
        value = None if node is None else self.value(node)
        declared = self.program.types.annotated(annotation, self.module, self.inside, self.inside.owner)
        return value if declared is None or holds_promise(value) else declared

    def _augassign(self, statement: Node) -> None:
        target, node = statement[1], statement[2]
        if target[0] == "name":
            self._items.setdefault(target[1], []).append(lambda: self.iterated(self.value(node)))
        self._store(target)
        self._look(node)

    def _return(self, statement: Node) -> None:
        if statement[1] is not None:
            self.returned.append(statement[1])
            self._look(statement[1])

    def _if(self, statement: Node) -> None:
        self._look(statement[1])
        self._block(statement[2])
        self._block(statement[3])

    def _for(self, statement: Node) -> None:
        _, is_async, target, iterable, body, orelse, _ = statement
        self._look(iterable, is_awaited=is_async)
        self._loop(target, iterable, is_async=is_async)
        self._block(body)
        self._block(orelse)

    def _loop(self, target: Node, iterable: Node, *, is_async: bool) -> None:
        if not is_async:
            self.taken.append(iterable)

        def item() -> Value | None:
            source = self.value(iterable)
            return self.iterated_async(source) if is_async else self.iterated(source)

        self._targets(target, item, self._part_of_item)

    def _with(self, statement: Node) -> None:
        _, is_async, items, body, _ = statement
        for node, target in items:
            self._look(node, is_awaited=is_async)
            if not is_async:
                self.taken.append(node)
            if target is not None:

                def entered(node: Node = node) -> Value | None:
                    value = self.entered(self.value(node), is_async=is_async)
                    if is_async and (value is None or isinstance(value, External)):
                        return response_of(self.program, node) or value
                    return value

                self._targets(target, entered, self._part)
        self._block(body)

    def _try(self, statement: Node) -> None:
        _, body, handlers, orelse, final = statement
        self._block(body)
        for _types, name, handler, _line in handlers:
            if name is not None:
                self._bind(name, _nothing)
            self._block(handler)
        self._block(orelse)
        self._block(final)

    def _import(self, statement: Node) -> None:
        for local, module, name, level in statement[1]:
            if name != "*":
                self._bind(
                    local,
                    lambda m=module, n=name, level=level: self.program.names.imported(  # type: ignore[misc]
                        self.module, m, n, level
                    ),
                )

    def _def(self, statement: Node) -> None:
        inner = self.module.function(statement[1])
        for decorator in inner.facts.decorators:
            self._look(decorator)
        if inner.owner is None and declares_scope(inner.facts):
            for one in inner.body():
                if one[0] == "scope":
                    self._open.update(one[1].split())  # it may set them whenever it is called

    def _class(self, statement: Node) -> None:
        known = {name: len(bound) for name, bound in self._bound.items()}
        self._block(statement[2])
        self._open.update(name for name, bound in self._bound.items() if len(bound) != known.get(name))

    def _match(self, statement: Node) -> None:
        subject = statement[1]
        self._look(subject)
        for matched, captures, name, guard, body in statement[2]:
            self._open.update(captures.split())
            if matched is not None:
                self._open.update(one for one in (name, dotted(subject)) if one)
            if guard is not None:
                self._look(guard)
            self._block(body)

    def _scope(self, statement: Node) -> None:
        self._open.update(statement[1].split())

    def _others(self, statement: Node) -> None:
        for part in children(statement):
            self._look(part)

    def _look(self, node: Node, *, is_awaited: bool = False) -> None:
        """Find what an expression binds, asks for, reads, or calls by no name."""
        kind = node[0]
        if kind == "call":
            self._look_at_call(node, is_awaited=is_awaited)
            return
        if kind == "await":
            self._look(node[1], is_awaited=True)
            return
        if kind == "attr":
            self.attributes.append(node)
        elif kind == "comp":
            for is_async, target, iterable, _ in node[3]:
                self._loop(target, iterable, is_async=is_async)
        elif kind == "walrus":
            self._bind(node[1], lambda: self.value(node[2]))
        elif kind == "lambda":
            self._open.update(param[0] for param in node[1])
        for part in children(node):
            if part[0] not in _LEAVES:
                self._look(part)

    def _look_at_call(self, node: Node, *, is_awaited: bool) -> None:
        callee = node[1]
        if callee[0] == "attr":
            if not is_awaited and not _begins_with_name(callee):
                self.unnamed.append(callee)
            self._look(callee[1])
        elif callee[0] != "name":
            if not is_awaited:
                self.unnamed.append(callee)
            self._look(callee)
        elif callee[1] == "isinstance" and len(node[2]) == 2:
            self._asks_for_class(*node[2])
        elif callee[1] in _ASKING and node[2]:
            self._leave_open(node[2][0])
        for part in node[2]:
            if part[0] not in _LEAVES:
                self._look(part)
        for _, part in node[3]:
            if part[0] not in _LEAVES:
                self._look(part)

    def _leave_open(self, node: Node) -> None:
        key = dotted(node)
        if key:
            self._open.add(key)

    def _asks_for_class(self, node: Node, classes: Node) -> None:
        """`isinstance(x, Store)`: on one side of it `x` is that."""
        if node[0] != "name":
            self._leave_open(node)
            return
        self._asked.add(node[1])
        for one in classes[1] if classes[0] == "tuple" else (classes,):
            self._bind(node[1], lambda one=one: self._of_class(self.value(one)))  # type: ignore[misc]

    def _of_class(self, cls: Value | None) -> Value | None:
        if isinstance(cls, ClassObject):
            return self.program.types.instance(cls.cls, (), None)
        if isinstance(cls, FunctionValue) and cls.function.qualname.startswith("builtins."):
            return Builtin(cls.function.name)
        return None


def _nothing() -> Value | None:
    return None


def _begins_with_name(node: Node) -> bool:
    while node[0] == "attr":
        node = node[1]
    return bool(node[0] == "name")


def _names(target: Node) -> Iterator[str]:
    kind = target[0]
    if kind == "name":
        yield target[1]
    elif kind in {"tuple", "list"}:
        for part in target[1]:
            yield from _names(part)
    elif kind == "star":
        yield from _names(target[1])


_STATEMENTS: dict[str, Callable[[Variables, Node], None]] = {
    "assign": Variables._assign,
    "annassign": Variables._annassign,
    "augassign": Variables._augassign,
    "return": Variables._return,
    "if": Variables._if,
    "while": Variables._if,
    "for": Variables._for,
    "with": Variables._with,
    "try": Variables._try,
    "import": Variables._import,
    "def": Variables._def,
    "class": Variables._class,
    "match": Variables._match,
    "scope": Variables._scope,
    **dict.fromkeys(["expr", "raise", "assert", "del", "break", "continue"], Variables._others),
}
