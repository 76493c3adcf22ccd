"""What a condition tells of names and attributes on the branch where it held, and where it did not."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from troth.analysis.facts.fields import (
    BODY,
    CALL_ARGS,
    CALL_FUNC,
    COMPARE_LEFT,
    COMPARE_OPS,
    COMPARE_OTHERS,
    CONST_VALUE,
    ITEMS,
    KIND,
    NAME_ID,
    ORELSE,
    TEST,
    VALUE,
)
from troth.analysis.facts.names import callee_text, dotted, last_name
from troth.analysis.facts.nodes import words_of
from troth.analysis.semantics.incident import MAYBE, PENDING, Taker
from troth.analysis.semantics.infer.awaitables_in_value import (
    awaitables,
    holds_awaitable,
    is_awaitable,
)
from troth.analysis.semantics.infer.evaluator import _at_of
from troth.analysis.semantics.resolve.color_checks import ASKS_FOR_FUNCTION, asks_for_color
from troth.analysis.semantics.symbols import Class
from troth.analysis.semantics.values import (
    OF_CLASS,
    Builtin,
    CallableType,
    ClassObject,
    Coroutine,
    FunctionValue,
    Instance,
    Nothing,
    Union,
    Value,
    members_of,
    union,
)
from troth.analysis.semantics.walk.awaitable_states import Ledger

if TYPE_CHECKING:
    from troth.analysis.facts.model import Node

__all__ = ["Narrowing", "arms_by_color", "asks_for_method", "asks_for_mode"]

_MODE = re.compile(
    r"(?i)^_*(?:(?:is|use|uses|run|in|as|has|want|wants|supports?)_?)?a?sync(?:hronous)?"
    r"(?:_(?:mode|code|flavou?r|context))?$"
)
_ASKS_FOR_OTHERS = frozenset({"isasyncgenfunction", "isgeneratorfunction"})
_AWAITABLE_TYPES = frozenset(
    {"Awaitable", "Coroutine", "CoroutineType", "Future", "Task", "AsyncIterator", "AsyncGenerator", "AsyncIterable"}
    | {"AsyncGeneratorType", "AbstractAsyncContextManager", "AsyncContextManager", "GeneratorType"}
)

_AWAITABLE_DUNDERS = frozenset({"__await__", "__aenter__", "__aexit__", "__aiter__", "__anext__"})


class Narrowing(Ledger):
    """A walk that learns from conditions."""

    def narrow(self, test: Node, *, truth: bool) -> None:
        """What is known on the branch where `test` came out as `truth`."""
        kind = test[0]
        if kind == "not":
            self.narrow(test[VALUE], truth=not truth)
        elif kind == "and" and truth:
            for part in test[ITEMS]:
                self.narrow(part, truth=True)
        elif kind == "or" and not truth:
            for part in test[ITEMS]:
                self.narrow(part, truth=False)
        elif kind == "or" and len({_asked_of(part) for part in test[ITEMS]}) == 1 and _asked_of(test[ITEMS][0]):
            self.narrow(test[ITEMS][0], truth=True)  # in two ways, of one and the same
        elif kind == "call" and test[CALL_FUNC] == ("name", "isinstance") and len(test[CALL_ARGS]) == 2:
            self._narrow_by_class(test[CALL_ARGS][0], test[CALL_ARGS][1], truth=truth)
        elif kind == "call" and len(test[CALL_ARGS]) == 1 and last_name(test[CALL_FUNC]) in ASKS_FOR_FUNCTION:
            if truth:
                self._narrow_to_async(test[CALL_ARGS][0])
            else:
                self._narrow_to_other(test[CALL_ARGS][0])
        elif kind == "call" and truth and len(test[CALL_ARGS]) == 1 and last_name(test[CALL_FUNC]) in _ASKS_FOR_OTHERS:
            self._narrow_to_other(test[CALL_ARGS][0])
        elif kind == "call" and test[CALL_FUNC] == ("name", "hasattr") and len(test[CALL_ARGS]) == 2:
            self._narrow_by_attribute(test[CALL_ARGS][0], test[CALL_ARGS][1], truth=truth)
        elif (
            kind == "compare"
            and len(test[COMPARE_OPS]) == 1
            and test[COMPARE_OTHERS][0] == ("const", "None")
            and test[COMPARE_LEFT][KIND] == "name"
        ):
            is_none = (test[COMPARE_OPS][0] in {"is", "=="}) == truth
            self._narrow_none(test[COMPARE_LEFT][NAME_ID], is_none=is_none)
        elif kind in {"name", "walrus"}:
            self._narrow_none(test[1], is_none=not truth)

    def on_ifexp(self, node: Node) -> Value | None:
        self.test(node[TEST])
        if (arms := arms_by_color(node)) is not None:
            awaited, plain = arms
            self.keep(self.value(plain))
            return self.value(awaited)
        if _asks_for_color(node[TEST]):
            return union(
                [self._arm(node[TEST], node[BODY], truth=True), self._arm(node[TEST], node[ORELSE], truth=False)]
            )
        return union([self._where(node[TEST], node[BODY]), self.value(node[ORELSE])])

    def _arm(self, test: Node, node: Node, *, truth: bool) -> Value | None:
        """What `node` is where it was asked whether calling something gives a coroutine."""
        outside, self.env = self.env, dict(self.env)
        self.narrow(test, truth=truth)
        value = self.value(node)
        self.env = outside
        return value

    def on_or(self, node: Node) -> Value | None:
        self._leave_to_run_time(node[ITEMS])
        return super().on_or(node)

    def _leave_to_run_time(self, parts: tuple[Node, ...]) -> None:
        """`not work or not iscoroutine(work)`: what a variable holds is asked in the same condition."""
        for part in parts:
            asked = part[VALUE] if part[KIND] == "not" else part
            if asked[KIND] != "call" or not asks_for_color(last_name(asked[CALL_FUNC])) or len(asked[CALL_ARGS]) != 1:
                continue
            key = dotted(asked[CALL_ARGS][0])
            if key and holds_awaitable(self.env.get(key)):
                self.keep(self.env[key])
                self._learn(key, None)

    def on_and(self, node: Node) -> Value | None:
        self._leave_to_run_time(node[ITEMS])
        *tests, last = node[ITEMS]
        for index, part in enumerate(tests):
            if index and _asks_for_class(tests[index - 1]):
                self._where(tests[index - 1], ("not", part))
            else:
                self.test(part)
        return self._where(tests[-1], last)

    def _where(self, test: Node, node: Node) -> Value | None:
        """What `node` is where `test` holds, as far as that asks for a class."""
        tests = [t for t in (test[ITEMS] if test[KIND] == "and" else (test,)) if _asks_for_class(t)]
        if not tests:
            return self.value(node)
        outside, self.env = self.env, dict(self.env)
        keys = {dotted(t[2][0]) for t in tests}
        for part in tests:
            if not holds_awaitable(self.value(part[2][0])):
                self._narrow_by_class(part[2][0], part[2][1], truth=True)
        value = self.value(node)
        learned = {n: v for n, v in self.env.items() if n not in keys and outside.get(n) is not v}
        self.env = outside
        self.env.update(learned)
        return value

    def _narrow_by_class(self, node: Node, classes: Node, *, truth: bool) -> None:
        key = dotted(node)
        if not key:
            if truth and node[KIND] == "call":
                self._asks_for_result(self.value(node), classes, node)
            return
        value = self.value(node)
        if type(value) is Coroutine and value.site is not None and not value.site.sure:
            self._known.add(value.site)  # it was only believed to be one, and whoever asks for a class knows better
            self._learn(key, None)
        elif truth:
            self._asks_for_result(value, classes, node)
        if truth:
            self._narrow_to_class(key, classes)
            return
        if holds_awaitable(value):
            nodes = classes[ITEMS] if classes[KIND] == "tuple" else (classes,)
            if any(last_name(n) in _AWAITABLE_TYPES for n in nodes):
                self.known(value)
                self._learn(key, union([m for m in members_of(value) if not is_awaitable(m)]))
        elif isinstance(value, Union):
            excluded = [self.value(n) for n in (classes[ITEMS] if classes[KIND] == "tuple" else (classes,))]
            remaining = [m for m in value.members if not any(self._is_of(m, cls) for cls in excluded)]
            if remaining and len(remaining) < len(value.members):
                self._learn(key, union(remaining))

    def _narrow_by_attribute(self, node: Node, name: Node, *, truth: bool) -> None:
        """`hasattr(x, "__await__")`: where the answer does not fit what `x` is declared to be, it is something else."""
        key = dotted(node)
        if not key or name[:2] != ("const", "str") or len(name) != 3:
            return
        is_of_awaitables = name[CONST_VALUE] in _AWAITABLE_DUNDERS
        for member in members_of(self.value(node)):
            has: bool | None = None
            if isinstance(member, Instance):
                has = self.program.classes.has(member.cls, name[CONST_VALUE])
            elif isinstance(member, Builtin) and is_of_awaitables:
                has = False
            if (has is True and not truth) or (has is not True and truth and is_of_awaitables):
                self._learn(key, None)
                return

    def _asks_for_result(self, value: Value | None, classes: Node, node: Node) -> None:
        """`isinstance(rows, list)` of what is surely a coroutine: its result was meant."""
        nodes = classes[ITEMS] if classes[KIND] == "tuple" else (classes,)
        if type(value) is not Coroutine or value.site is None or self.pending.get(value.site, 0) & MAYBE:
            return  # on another path it may well be what is asked for
        if not any(last_name(n) in _AWAITABLE_TYPES or self._may_be_awaitable(n) for n in nodes):
            class_names = " or ".join(f"`{last_name(n)}`" for n in nodes if last_name(n))
            words = f"`isinstance`, and {class_names or 'what it asks for'} is no awaitable"
            self.misuse(value, "argument", _at_of(node), taker=Taker(words, "wants no awaitable", "isinstance"))

    def _may_be_awaitable(self, node: Node) -> bool:
        """Whether a class of the project, which `isinstance` asks for, has an `__await__`, or may inherit one."""
        value = self.value(node)
        if not isinstance(value, ClassObject) or not isinstance(value.cls, Class):
            return False
        ancestors = [cls for cls in self.program.classes.order(value.cls) if isinstance(cls, Class)]
        named = {word for cls in ancestors for base in cls.facts.bases for word in words_of(base)}
        return not named.isdisjoint(_AWAITABLE_TYPES) or self.program.classes.has(value.cls, "__await__") is True

    def _is_of(self, value: Value | None, cls: Value | None) -> bool:
        if isinstance(cls, FunctionValue):
            return isinstance(value, Builtin) and cls.function.qualname == f"builtins.{value.name}"
        if not isinstance(value, Instance) or not isinstance(cls, ClassObject):
            return False
        if value.cls is cls.cls:
            return True
        return isinstance(value.cls, Class) and cls.cls in self.program.classes.order(value.cls)

    def _learn(self, key: str, value: Value | None) -> None:
        """What a name, or an attribute of one, stands for on this path."""
        self._knows_attributes = self._knows_attributes or "." in key
        self.env[key] = value

    def _narrow_to_async(self, node: Node) -> None:
        """On the path where `iscoroutinefunction(f)` is true, calling `f` gives a coroutine."""
        key = dotted(node).removesuffix(".__call__")
        if key and not isinstance(self.value(node), FunctionValue | ClassObject):
            how = f"`{callee_text(node)}` was asked, and is a coroutine function"
            self._learn(key, CallableType(Coroutine(None, lambda: None), how))

    def _narrow_to_other(self, node: Node) -> None:
        """On the path where `f` was asked, calling it gives no coroutine, whatever its class says."""
        key = dotted(node).removesuffix(".__call__")
        if key:
            self._learn(key, CallableType(None))

    def on_attr(self, node: Node) -> Value | None:
        if self._knows_attributes:
            key = dotted(node)
            if key in self.env:
                return self.env[key]
        return super().on_attr(node)

    def _forget_attributes(self, name: str) -> None:
        for key in [k for k in self.env if k == name or k.startswith(f"{name}.")]:
            del self.env[key]

    def _narrow_to_class(self, name: str, classes: Node) -> None:
        nodes = classes[ITEMS] if classes[KIND] == "tuple" else (classes,)
        instances: list[Value | None] = []
        for node in nodes:
            value = self.value(node)
            if isinstance(value, ClassObject):
                why = (f"`{name}` is {OF_CLASS} (checked with `isinstance`)", self.module.path, self.inside.facts.at[0])
                instances.append(self.program.types.instance(value.cls, (), why))
            elif isinstance(value, FunctionValue) and value.function.qualname.startswith("builtins."):
                instances.append(Builtin(value.function.name))
            else:
                instances.append(None)
        current = self.env.get(name)
        if holds_awaitable(current):
            is_guess = any(
                awaitable.site is not None and awaitable.site.by_siblings for awaitable in awaitables(current)
            )
            if is_guess or any(last_name(n) in _AWAITABLE_TYPES for n in nodes):
                self.known(current)  # whoever says what it is knows better than its siblings do
                return
            for awaitable in awaitables(current):
                if awaitable.site in self.pending:  # what is of that class is no awaitable: none is held on this path
                    self.pending[awaitable.site] = (self.pending[awaitable.site] & ~PENDING) | MAYBE
        if "." not in name or None not in instances:
            self._learn(name, union(instances) if None not in instances else None)

    def _narrow_none(self, name: str, *, is_none: bool) -> None:
        value = self.env.get(name)
        if value is None:
            return
        if is_none:
            for awaitable in awaitables(value):  # there is none on this path
                if awaitable.site is not None and awaitable.site in self.pending:
                    self.pending[awaitable.site] |= MAYBE
                    if isinstance(value, Union):
                        self.pending[awaitable.site] &= ~PENDING
        elif isinstance(value, Union):
            self.env[name] = union([m for m in value.members if not isinstance(m, Nothing)])


def asks_for_mode(test: Node) -> bool:
    """Whether a condition is `is_sync()`, `self.is_async`, `not use_async` or `mode == "async"`."""
    if test[KIND] == "not":
        return asks_for_mode(test[VALUE])
    if test[KIND] in {"and", "or"}:
        return any(map(asks_for_mode, test[ITEMS]))
    if test[KIND] == "compare" and len(test[COMPARE_OPS]) == 1:
        compared = test[COMPARE_OTHERS][0]
        return compared[:2] == ("const", "str") and len(compared) == 3 and compared[CONST_VALUE] in {"sync", "async"}
    return _MODE.search(last_name(test[CALL_FUNC] if test[KIND] == "call" else test)) is not None


def arms_by_color(node: Node) -> tuple[Node, Node] | None:
    """`await f(x) if waits(f) else f(x)`: the arm that awaits and the other, chosen by a question about `f`."""
    test = node[TEST][VALUE] if node[TEST][KIND] == "not" else node[TEST]
    asked = {callee_text(argument) for argument in test[CALL_ARGS]} if test[KIND] == "call" else set()
    for awaited, plain in ((node[BODY], node[ORELSE]), (node[ORELSE], node[BODY])):
        if awaited[KIND] == "await" and awaited[VALUE][KIND] == plain[KIND] == "call":
            callees = {callee_text(call[CALL_FUNC]) for call in (awaited[VALUE], plain)}
            if len(callees) == 1 and callees <= asked:
                return awaited, plain
    return None


def asks_for_method(test: Node) -> bool:
    """Whether a condition is `iscoroutinefunction(self.start)`."""
    return (
        test[KIND] == "call"
        and last_name(test[CALL_FUNC]) in ASKS_FOR_FUNCTION
        and bool(test[CALL_ARGS])
        and test[CALL_ARGS][0][KIND] == "attr"
    )


def _asked_of(test: Node) -> str:
    """`callback` in `iscoroutinefunction(callback)` and in `iscoroutinefunction(callback.__call__)`; else nothing."""
    is_asked = test[KIND] == "call" and len(test[CALL_ARGS]) == 1 and last_name(test[CALL_FUNC]) in ASKS_FOR_FUNCTION
    return dotted(test[2][0]).removesuffix(".__call__") if is_asked else ""


def _asks_for_color(test: Node) -> bool:
    """Whether a condition is `iscoroutinefunction(self.predict)`, or that it is not."""
    test = test[VALUE] if test[KIND] == "not" else test
    return test[KIND] == "call" and last_name(test[CALL_FUNC]) in ASKS_FOR_FUNCTION


def _asks_for_class(test: Node) -> bool:
    """Whether a condition is `isinstance(x, Store)`."""
    return test[KIND] == "call" and test[CALL_FUNC] == ("name", "isinstance") and len(test[CALL_ARGS]) == 2
