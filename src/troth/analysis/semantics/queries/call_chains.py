"""Decide whether a sync function leads to a certain kind of call, and by what way.

Color is not the only thing that a caller inherits: whoever calls a function that blocks, blocks. The question goes from
the caller down, and every function is looked through once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from troth.analysis.findings import Reason
from troth.analysis.incremental.project_queries import part
from troth.analysis.semantics.infer.call_graph import names_of
from troth.analysis.semantics.infer.virtual_dispatch import overridden_otherwise
from troth.analysis.semantics.queries.unconditional_calls import always_called
from troth.analysis.semantics.symbols import Function
from troth.analysis.semantics.values import FunctionValue, members_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, MutableMapping

    from troth.analysis.facts.model import FileFacts
    from troth.analysis.semantics.infer.call_graph import Call
    from troth.analysis.semantics.program import Program

__all__ = ["Chains", "Link", "chains_of", "plain_target"]

_LONGEST = 8  # links of a chain; longer ones tell a reader nothing


class Link(NamedTuple):
    """A call on the way, and the rest of the way; `rest` is None at the call that all is about."""

    call: Call
    rest: Link | None

    @property
    def end(self) -> Call:
        """The call that all is about."""
        return self.call if self.rest is None else self.rest.end

    @property
    def length(self) -> int:
        """How many calls the way has."""
        return 1 if self.rest is None else 1 + self.rest.length

    def reasons(self) -> tuple[Reason, ...]:
        """The way in words, one place each."""
        path = self.call.caller.module.path
        reason = Reason(f"`{self.call.caller.qualname}` calls `{self.call.text}`", path, self.call.at[0])
        return (reason,) if self.rest is None else (reason, *self.rest.reasons())


def plain_target(call: Call, program: Program | None = None) -> Function | None:
    """The one sync function of the project that the call runs, here and now; None for anything else.

    With the `program` given, a method that a subclass overrides is nobody's in particular.
    """
    members = members_of(call.callee)
    if len(members) != 1 or not isinstance(members[0], FunctionValue):
        return None
    function = members[0].function
    if (
        program is not None
        and isinstance(function, Function)
        and overridden_otherwise(program, function, members[0].receiver)
    ):
        return None
    if not isinstance(function, Function) or function.is_async or function.is_generator or function.facts.decorators:
        return None
    return function


class Chains:
    """The ways from async functions of the asked files to calls of one kind."""

    def __init__(
        self,
        program: Program,
        kind: str,
        ends: Iterable[str],
        is_end: Callable[[Call], bool],
        *,
        stops: Callable[[Function], bool],
        on_any_receiver: Collection[str] = (),
        up_to: Collection[str] = (),
        cells: bool = False,
    ) -> None:
        """`kind` is what to call them by; `ends` are the full names of the calls it is about.

        `stops` tells functions that see to it themselves.

        Of the names in `on_any_receiver` every call may be one. Only calls that a function always makes lead on; with
        `up_to`, only those before its first way out of such a kind. With `cells`, the cells of a notebook count as an
        async function, which a loop runs.
        """
        self._program = program
        self._kind = kind
        self._ends = frozenset(ends)
        self._is_end = is_end
        self._stops = stops
        self._on_any_receiver = frozenset(on_any_receiver)
        self._up_to = up_to
        self._cells = cells
        self._ways: MutableMapping[Function, Link | None] = program.answers()
        self._packages_of_all: set[str] | None = None
        self._packages: dict[str, set[str]] = {}  # the packages that have such a call, by its last name
        for end in self._ends:
            self._packages.setdefault(end.rpartition(".")[2], set()).add(end.partition(".")[0])

    def _may_end(self, function: Function) -> bool:
        """Whether the function itself may make such a call, as far as names and imports tell."""
        for callee in function.facts.calls:
            last = callee.rpartition(".")[2]
            packages = self._packages.get(last)
            if last in self._on_any_receiver:
                return True
            if packages is None:
                continue
            scope = self._program.glance.scope(function, callee)
            value = None if scope is None else self._program.glance.value(function, callee, scope)
            if value is None:
                imported = function.module.packages if scope is None else self._imported
                if not packages.isdisjoint(imported):
                    return True
            elif any(name in self._ends for name in names_of(value)):
                return True
        return False

    @property
    def _imported(self) -> set[str]:
        mentions = self._program.said("imported packages")  # asked each time, for whoever notes what is read
        if self._packages_of_all is None:
            self._packages_of_all = {package for packages in mentions.values() for package in packages}
        return self._packages_of_all

    def _async_functions(self, calling: Collection[str]) -> Iterator[Function]:
        """The async functions of the asked files that call something of these last names."""
        for function in self._program.calling.asked_naming(calling):
            if function.is_async and (function.index or self._cells):
                yield function

    def direct(self) -> Iterator[Call]:
        """The calls of that kind that stand in an async function itself."""
        for function in self._async_functions({*self._on_any_receiver, *self._packages}):
            if not self._may_end(function):
                continue
            for call in self._program.calling.of(function):
                if self._is_end(call):
                    yield call

    def indirect(self) -> Iterator[Link]:
        """The calls in async functions that lead to one of that kind, with the way from the call on."""
        reaching = self._program.names_found(f"reaching {self._kind}")
        for function in self._async_functions(reaching):
            if not self._leads_on(function, _LONGEST) or self._stops(function):
                continue
            for call in self._program.calling.of(function):
                target = plain_target(call, self._program)
                way = None if target is None else self._way(target, _LONGEST)
                if way is not None:
                    yield Link(call, way)

    def _leads_on(self, function: Function, left: int) -> bool:
        """Whether the function may call something from which there is a way on."""
        reaching = self._program.names_found(f"reaching {self._kind}")
        for callee in function.facts.calls:
            if callee.rpartition(".")[2] in reaching:
                meant = _meant(self._program, function, callee)
                if meant is None or any(
                    function.key in reaching and self._way(function, left) is not None for function in meant
                ):
                    return True
        return False

    def reach(self) -> set[str]:
        """The sync functions that lead to such a call, as far as can be told at a glance, and their names."""
        functions: set[Function] = set()
        todo: list[Function] = []
        for name in sorted({*self._on_any_receiver, *self._packages}):
            for function in self._program.index.plain_callers(name):
                if function not in functions and self._may_end(function) and not self._stops(function):
                    functions.add(function)
                    todo.append(function)
        names: set[str] = set()
        while todo:
            target = todo.pop()
            callers = _callers(self._program, target.name)
            calling = callers.of.get(target, [])
            if target.name not in names:
                names.add(target.name)
                calling = [*calling, *callers.of_some]
            for function in calling:
                if function not in functions and not self._stops(function):
                    functions.add(function)
                    todo.append(function)
        return {candidate.name for candidate in functions} | {candidate.key for candidate in functions}

    def _way(self, function: Function, left: int) -> Link | None:
        if function in self._ways:
            return self._ways[function]
        self._ways[function] = None  # while it is being found out: a circle leads nowhere
        if left == 0 or function.is_generator or self._stops(function):
            return None
        if not self._may_end(function) and not self._leads_on(function, left - 1):
            return None
        shortest: Link | None = None
        always = always_called(function.facts, up_to=self._up_to)
        for call in self._program.calling.of(function):
            if call.at not in always:
                continue
            if self._is_end(call):
                shortest = Link(call, None)
                break
            target = plain_target(call, self._program)
            way = None if target is None else self._way(target, left - 1)
            if way is not None and (shortest is None or way.length + 1 < shortest.length):
                shortest = Link(call, way)
        self._ways[function] = shortest
        return shortest


class _Callers(NamedTuple):
    """The sync functions that call something of one name."""

    of: dict[Function, list[Function]]
    of_some: list[Function]  # where a glance cannot tell whom they call


def _callers(program: Program, name: str) -> _Callers:
    """Who calls what of that name; each caller is looked at once, however many functions are called so."""
    answers: MutableMapping[str, _Callers] = program.answers_to("sync callers")
    if name not in answers:
        callers = _Callers({}, [])
        for function in program.index.plain_callers(name):
            for callee in function.facts.calls:
                if callee.rpartition(".")[2] == name:
                    meant = _meant(program, function, callee)
                    if meant is None:
                        callers.of_some.append(function)
                    else:
                        for caller in meant:
                            callers.of.setdefault(caller, []).append(function)
        answers[name] = callers
    return answers[name]


def _meant(program: Program, function: Function, callee: str) -> list[Function] | None:
    """Which functions of its name a callee stands for; None where a glance cannot tell."""
    scope = program.glance.scope(function, callee)
    if scope is None:
        return None
    name = callee.rpartition(".")[2]
    functions = [
        member.function
        for member in members_of(program.glance.value(function, callee, scope))
        if isinstance(member, FunctionValue)
    ]
    return [candidate for candidate in functions if isinstance(candidate, Function) and candidate.name == name]


@part("imported packages")
def _packages_in(file: FileFacts) -> frozenset[str]:
    return frozenset(imported.module.partition(".")[0] for imported in file.imports if not imported.level)


def chains_of(program: Program, kind: str, make: Callable[[], Chains]) -> Chains:
    """Those of a kind, made once for a program: what is found for one file serves the next."""
    answer = program.chains.get(kind)
    if answer is None:
        answer = program.chains[kind] = make()
    return answer
