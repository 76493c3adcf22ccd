"""What objects give for names that their class does not have, but makes up: by `__getattr__`.

What it returns is the same for every name: a function that sends the name somewhere, an object to ask further, or what
another object has under that name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.facts.fields import CALL_ARGS, CALL_FUNC, KIND
from troth.analysis.incremental.project_queries import part, question
from troth.analysis.semantics.infer.awaitables_in_value import may_be_awaited
from troth.analysis.semantics.infer.identity_functions import returned
from troth.analysis.semantics.symbols import Class, Function
from troth.analysis.semantics.values import CallableType, FunctionValue, Instance, Value, members_of, union

if TYPE_CHECKING:
    from collections.abc import Collection, MutableMapping

    from troth.analysis.facts.model import FileFacts, Node
    from troth.analysis.semantics.infer.inference import Inference

__all__ = ["MadeUp", "gives_a_stand_in", "has_stand_ins"]


class MadeUp:
    """Asks `__getattr__`; what is made up is a guess, however sure its parts are."""

    def __init__(self, program: Inference) -> None:
        self._program = program
        self._makers: MutableMapping[Class, Function | None] = program.answers()
        self._asking: set[tuple[Class, str]] = set()

    @property
    def gives_awaitables(self) -> bool:
        """Whether a class of the project makes async methods up: then a name says nothing of its color."""
        return "" in self._program.names_found("made up")

    def attribute(self, base: Instance, name: str) -> Value | None:
        """What `base.name` is, where the class of `base` makes it up and it is of use for awaitables."""
        cls = base.cls
        if not isinstance(cls, Class) or name.startswith("_"):
            return None  # most of them refuse what is private
        maker = self._maker(cls)
        if maker is None:
            return None
        if (cls, name) in self._asking:
            self._program.too_early()
            return None
        self._asking.add((cls, name))
        try:
            result = self._program.calls.result(FunctionValue(maker, base))
            if result is None:
                return self._of_another(maker, cls, name)
            usable = [self._guessed(member, cls) for member in members_of(result)]
            return None if any(value is None for value in usable) else union(usable)
        finally:
            self._asking.discard((cls, name))

    def is_only(self, values: list[Value | None], name: str) -> bool:
        """Whether an attribute of one of several objects can only be made up: none of their classes has it."""
        instances = [value for value in values if isinstance(value, Instance)]
        if not any(isinstance(instance.cls, Class) and self._maker(instance.cls) is not None for instance in instances):
            return False
        return all(self._program.classes.member(instance.cls, name, instance) is None for instance in instances)

    def _maker(self, cls: Class) -> Function | None:
        if cls not in self._makers:
            holder = self._program.classes.holder(cls, "__getattr__")
            maker = None if holder is None else holder.module.function(holder.methods["__getattr__"][-1])
            self._makers[cls] = None if maker is None or maker.is_async or maker.facts.decorators else maker
        return self._makers[cls]

    def _guessed(self, value: Value | None, cls: Class) -> Value | None:
        """The same, not to be sure of; None where it has nothing to do with awaitables."""
        if isinstance(value, FunctionValue) and isinstance(value.function, Function):
            is_async = self._program.effects.of(value.function) == "coroutine"
            return FunctionValue(value.function, Instance(cls, guess=True)) if is_async else None
        if isinstance(value, CallableType):
            return value if may_be_awaited(value.result) else None
        if isinstance(value, Instance) and isinstance(value.cls, Class):
            return Instance(value.cls, value.args, value.why, guess=True)
        return None

    def _of_another(self, maker: Function, cls: Class, name: str) -> Value | None:
        """What the object has under that name to which the call is handed on: `return getattr(self._client, name)`."""
        parameter = maker.facts.params[1][0] if len(maker.facts.params) > 1 else ""
        values: list[Value | None] = []
        for node in returned(maker.body()):
            asked_of = _asked_of(node, parameter)
            if asked_of is None:
                return None
            base = self._program.static(maker.module, maker, cls).value(asked_of)
            if not isinstance(base, Instance) or base.cls is cls:
                return None
            member = self._program.classes.member(base.cls, name, Instance(base.cls, base.args, base.why, guess=True))
            if member is None:
                return None
            values.append(member)
        return union(values) if values else None


def _asked_of(node: Node, asked: str) -> Node | None:
    """`x` of `getattr(x, name)`."""
    if (
        node[KIND] != "call"
        or node[CALL_FUNC] != ("name", "getattr")
        or len(node[CALL_ARGS]) < 2
        or node[CALL_ARGS][1] != ("name", asked)
    ):
        return None
    receiver: Node = node[CALL_ARGS][0]
    return receiver


@question("made up")
def _making_awaitables(program: Inference) -> Collection[str]:
    """An empty name, where an object has async methods of any name."""
    for path, indexes in program.said("makers of attributes").items():
        module = program.module(path)
        for index in indexes:
            for member in members_of(program.made_up.attribute(Instance(module.cls(index)), _ANY)):
                is_called = isinstance(member, Instance) and program.classes.has(member.cls, "__call__") is True
                if is_called or isinstance(member, FunctionValue | CallableType):
                    return frozenset([""])
    return frozenset()


_ANY = "anything"


@part("makers of attributes")
def _makers_in(file: FileFacts) -> tuple[int, ...]:
    return tuple(f.owner for f in file.functions if f.name == "__getattr__" and f.owner >= 0)


# -- objects that stand for others: what is asked of them is found, and run, by `__getattr__` --------------------
#
# `def services(self) -> Services: return self._adapter` says what users may ask for, not what color it has: the adapter
# runs each coroutine to its end, or puts each call into one.

_MAKING_UP = ("__getattr__", "__getattribute__")
_CHANGING = frozenset(
    {
        "iscoroutinefunction",
        "run_until_complete",
        "run_coroutine_threadsafe",
        "async_to_sync",
        "sync_to_async",
        "to_thread",
    }
)


def has_stand_ins(program: Inference) -> bool:
    """Whether the project has any: then a name says little of what a sync function calls."""
    return bool(program.said("stand-ins"))


def gives_a_stand_in(program: Inference, function: Function, declared: Instance) -> bool:
    """Whether a function gives an object that only stands for one of the class that it declares."""
    return has_stand_ins(program) and any(
        isinstance(member, Instance)
        and isinstance(member.cls, Class)
        and declared.cls not in program.classes.order(member.cls)
        and any(name in member.cls.methods for name in _MAKING_UP)
        for member in members_of(program.inferred(function))
    )


@part("stand-ins")
def _changes_colors(file: FileFacts) -> bool:
    """Whether a class makes its attributes up, in a file that looks at the color of what it calls."""
    if not any(f.name in _MAKING_UP and f.owner >= 0 for f in file.functions):
        return False
    return any(callee.rpartition(".")[2] in _CHANGING for f in file.functions for callee in f.calls)
