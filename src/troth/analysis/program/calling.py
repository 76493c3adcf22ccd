"""Knows which calls a function makes: what each callee is, what is given to it, and whether it is awaited on the spot.

A function is walked for its calls only when a rule asks about it, and rules ask by the names a function mentions; most
functions of a project are never looked at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from troth.analysis.program import library
from troth.analysis.program.calls import callee_text
from troth.analysis.program.flow import Flow
from troth.analysis.program.library import LibraryFunction
from troth.analysis.program.values import ClassObject, External, FunctionValue, Instance, Value, members_of, union

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from troth.analysis.facts.model import At, Node
    from troth.analysis.program.entities import Function
    from troth.analysis.program.link import Program

__all__ = ["Call", "Calling", "names_of"]

Given = tuple[str | None, Value | None]


class Call(NamedTuple):
    """One call. `given` are its arguments in order, with the keyword where there is one."""

    caller: Function
    node: Node
    callee: Value | None
    given: tuple[Given, ...]
    is_awaited: bool

    @property
    def at(self) -> At:
        """Its place."""
        return self.node[-1]  # type: ignore[no-any-return]

    @property
    def text(self) -> str:
        """The callee as written."""
        return callee_text(self.node[1])


class _Recorder(Flow):
    """A walk that remembers calls."""

    def __init__(self, program: Program, function: Function) -> None:
        super().__init__(program, function)
        self.calls: dict[At, Call] = {}
        self._awaiting: set[At] = set()
        self._unlisted: dict[At, Value] = {}

    def on_await(self, node: Node) -> Value | None:
        if node[1][0] == "call":
            self._awaiting.add(node[1][-1])
        return super().on_await(node)

    def attribute(self, base: Value | None, name: str, at: At, base_node: Node | None = None) -> Value | None:
        found = super().attribute(base, name, at, base_node)
        if found is None and isinstance(base, Instance) and isinstance(base.cls, library.LibraryClass):
            # Its table lists what matters to color; what blocks or calls back may be known by name all the same.
            paths = [External(f"{one}.{name}") for one in library.lineage(base.cls.qualified) or (base.cls.qualified,)]
            self._unlisted[at] = union(paths) or paths[0]
        return found

    def entered(self, value: Value | None, *, is_async: bool) -> Value | None:
        found = super().entered(value, is_async=is_async)
        if found is None and isinstance(value, Instance) and isinstance(value.cls, library.LibraryClass):
            return value if library.member(value.cls.qualified, "__enter__") is None and not is_async else None
        return found

    def arguments(self, func: Value | None, node: Node, values: list[Given]) -> None:
        if func is None and node[1][0] == "attr":
            func = self._unlisted.get(node[1][3])
        is_awaited = node[-1] in self._awaiting
        known = self.calls.get(node[-1])
        if known is None or (known.callee is None and func is not None):
            self.calls[node[-1]] = Call(self.function, node, func, tuple(values), is_awaited)
        super().arguments(func, node, values)


class Calling:
    """The calls of functions, each walked once."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._known: dict[Function, tuple[Call, ...]] = {}
        self._named: frozenset[str] | None = None

    def is_named(self, name: str) -> bool:
        """Whether some function of the project calls and awaits something of that name."""
        if self._named is None:
            self._named = frozenset(
                callee.rpartition(".")[2]
                for module in self.program.own_modules()
                for facts in module.facts.functions
                for callee in facts.awaited
            )
        return name in self._named

    def of(self, function: Function) -> tuple[Call, ...]:
        """The calls that `function` makes itself, in the order of the text; those of functions inside it are theirs."""
        known = self._known.get(function)
        if known is None:
            walk = _Recorder(self.program, function)
            walk.run()
            known = self._known[function] = tuple(call for _, call in sorted(walk.calls.items()))
        return known

    def functions_naming(self, names: Iterable[str]) -> Iterator[Function]:
        """The functions of the project in which a callee's last name is one of `names`."""
        wanted = frozenset(names)
        for module in self.program.own_modules():
            for index, facts in enumerate(module.facts.functions):
                if any(c.rpartition(".")[2] in wanted for c in facts.calls) or any(
                    c.rpartition(".")[2] in wanted for c in facts.awaited
                ):
                    yield module.function(index)


def names_of(value: Value | None) -> Iterator[str]:
    """The full names under which tables may know what is called: as defined, and for a method by each ancestor."""
    for one in members_of(value):
        if isinstance(one, External):
            yield one.path
        elif isinstance(one, ClassObject) and isinstance(one.cls, library.LibraryClass):
            yield one.cls.qualified
        elif isinstance(one, FunctionValue) and isinstance(one.function, LibraryFunction):
            yield one.function.qualname
            receiver = one.receiver
            if isinstance(receiver, Instance | ClassObject) and isinstance(receiver.cls, library.LibraryClass):
                for ancestor in library.lineage(receiver.cls.qualified):
                    yield f"{ancestor}.{one.function.name}"
