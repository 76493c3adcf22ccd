"""Find which functions are worth walking through.

A walk costs as much as reading the function did. Most calls can be cleared at a glance: the name is async nowhere, or
what is called is found without knowing any local variable and is plain.
"""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING

from troth.analysis.facts.model import FileFacts
from troth.analysis.facts.names import decorator_name
from troth.analysis.incremental.dependencies import Words
from troth.analysis.incremental.project_queries import part
from troth.analysis.semantics.evidence.callee_evidence import is_carried
from troth.analysis.semantics.evidence.color_checks import asks_for_function
from troth.analysis.semantics.infer.call_results import SPAWNERS, callee_text
from troth.analysis.semantics.infer.flow_insensitive import OpenError, Variables
from troth.analysis.semantics.infer.pytest_fixtures import takes_fixtures
from troth.analysis.semantics.infer.quick_resolve import binds, node_of
from troth.analysis.semantics.queries.callback_colors import calling_makes_a_coroutine
from troth.analysis.semantics.resolve import library
from troth.analysis.semantics.resolve.library import LibraryFunction
from troth.analysis.semantics.symbols import Function
from troth.analysis.semantics.values import (
    Builtin,
    CallableType,
    ClassObject,
    External,
    FunctionValue,
    Instance,
    ModuleValue,
    Nothing,
    Table,
    TupleOf,
    Value,
    members_of,
)
from troth.analysis.semantics.walk.async_only_objects import Entering
from troth.analysis.semantics.walk.awaitables_in_value import holds_promise, is_promise, may_be_awaited
from troth.analysis.semantics.walk.coroutine_sinks import mentions_awaitable
from troth.analysis.semantics.walk.prefilter_names import ALWAYS, mentions_one

if TYPE_CHECKING:
    from collections.abc import Mapping, MutableMapping, MutableSet

    from troth.analysis.facts.model import Node
    from troth.analysis.semantics.program import Program

__all__ = ["Suspicion"]

_WAITING_FOR = frozenset({"wait_for", "shield", "gather"})  # they may be given a function that nobody called
_AWAITABLES = ("Awaitable", "Coro", "Future", "Task")  # words of annotations
_BUILTINS = frozenset(dir(builtins))
_INDIRECT = frozenset({"[]", "()"})  # calls of what a table holds, or of what another call gives


# Methods of strings, lists, dicts and paths that hardly any library has in another color.
_OF_BUILTINS = frozenset(
    [
        "append",
        "extend",
        "keys",
        "values",
        "items",
        "join",
        "split",
        "rsplit",
        "splitlines",
        "strip",
        "lstrip",
        "rstrip",
        "lower",
        "upper",
        "title",
        "startswith",
        "endswith",
        "replace",
        "encode",
        "decode",
        "format",
        "setdefault",
        "sort",
        "reverse",
        "isdigit",
        "isalpha",
        "zfill",
        "casefold",
        "partition",
        "rpartition",
        "discard",
        "write_text",
        "read_text",
        "write_bytes",
        "read_bytes",
        "mkdir",
        "exists",
        "is_file",
        "is_dir",
        "touch",
        "resolve",
        "joinpath",
        "with_suffix",
        "as_posix",
        "total_seconds",
        "isoformat",
        "strftime",
    ]
)


class Suspicion:
    """Names that may make promises, and functions that call one of them without awaiting it."""

    def __init__(self, program: Program, sets: Mapping[str, frozenset[str]]) -> None:
        """`sets` are what `suspected` found, here or in an earlier run."""
        self._program = program
        self.sets = sets
        self.names: MutableSet[str] = set(sets["names"])
        self.returners: MutableSet[str] = set()  # plain functions that were seen to return promises
        self._coroutines: MutableSet[str] = set(sets["coroutines"])
        self._generators: MutableSet[str] = set(sets["generators"])
        self._own: MutableSet[str] = set(sets["own"])
        self._slots = sets["slots"]
        self._entering = Entering(sets["makers"], sets["holders"], program.reads)
        if program.reads is not None:
            self.names = Words(program.reads, "suspicion names", self.names)
            self.returners = Words(program.reads, "suspicion returners")
            self._coroutines = Words(program.reads, "suspicion coroutines", self._coroutines)
            self._generators = Words(program.reads, "suspicion generators", self._generators)
            self._own = Words(program.reads, "suspicion own", self._own)
        self._cleared: MutableMapping[tuple[object, str], bool] = program.answers()
        self._properties: set[str] | None = None

    def _slot_names(self) -> frozenset[str]:
        if self._program.reads is not None:
            self._program.reads.log.append(("suspicion slots",))
        return self._slots

    def falls_on(self, function: Function) -> bool:
        """Whether `function` may lose a promise."""
        facts = function.facts
        names = self.names
        left_open: list[str] = []
        variables: list[str] = []
        is_any_async = bool(facts.flags & 1) and self._program.made_up.gives_promises
        for callee in facts.calls:
            if callee in _INDIRECT or callee.rpartition(".")[2] in names or (is_any_async and "." in callee):
                if asks_for_function(callee):
                    return True
                if not self._is_clear(function, callee):
                    if self._program.glance.scope(function, callee) is not None:
                        return True
                    left_open.append(callee)
            elif "." not in callee and (not function.module.binds(callee) or _is_fixture(function, callee)):
                slot = self._slot(function, callee)
                if slot == "async":
                    return True
                if slot == "variable":
                    variables.append(callee)
        for callee in facts.awaited:
            last = callee.rpartition(".")[2]
            if " " in callee:
                if last.rpartition(" ")[2] in self._coroutines and not self._is_taken_rightly(function, callee):
                    return True
            elif last in _WAITING_FOR or (
                last in self._generators
                and (left_open or last not in self._coroutines)
                and not self._is_awaited_rightly(function, callee)
            ):
                return True
        if facts.flags & 1 and (
            "send" in facts.calls
            or any(param[0] == "receive" for param in facts.params)
            or "receive" in function.module.inner(function.index)
        ):
            return True  # of ASGI
        if facts.flags & 1 and self._program.company.is_kept_by(function):
            return True
        if "for await" in facts.taken:
            return True  # an async generator that is written as if it were a plain one
        takes = self._takes(function)
        if not (left_open or variables or takes):
            return False
        return not self._is_clear_by_variables(function, left_open, variables, takes=takes)

    def _is_taken_rightly(self, function: Function, taken: str) -> bool:
        """Whether what `async with` or `async for` takes ("with f", "for f") is no coroutine."""
        how, _, callee = taken.partition(" ")
        if self._is_clear(function, callee):
            return True
        members = self._program.glance.alternatives(function, callee) if how != "await" else None
        return members is not None and all(
            isinstance(one, FunctionValue) and not self._gives_coroutine(one) for one in members
        )

    def _is_awaited_rightly(self, function: Function, callee: str) -> bool:
        """Whether what is awaited, of which some namesake is an async generator, is none."""
        members = self._program.glance.alternatives(function, callee)
        return members is not None and all(
            isinstance(one, FunctionValue) and self._gives_coroutine(one) for one in members
        )

    def _gives_coroutine(self, value: FunctionValue) -> bool:
        called = value.function
        if isinstance(called, LibraryFunction):
            return "a" in called.flags
        return self._program.effects.of(called) not in {"context", "generator"}

    def _is_clear_by_variables(
        self, function: Function, callees: list[str], variables: list[str], *, takes: bool
    ) -> bool:
        """Whether all that its variables may hold makes no promise of what a glance left open, nor of anything else.

        `variables` are called under a name that is async nowhere: only what is known to be async makes a promise.
        """
        try:
            known = self._program.glance.variables(function)
            return (
                all(
                    self._is_plain(member, callee.rpartition(".")[2], callee, function)
                    for callee in callees
                    if callee not in _INDIRECT and callee[0] != "?"
                    for member in members_of(known.value(node_of(callee)))
                )
                and all(
                    member is None or self._is_plain(member, name, name, function)
                    for name in variables
                    for member in members_of(known.value(("name", name)))
                )
                and all(self._is_clear_unnamed(known, node, function) for node in known.unnamed)
                and not (takes and any(self._is_for_async(known.value(node)) for node in known.taken))
                and not self._reads_promise(known, function)
                and (function.is_async or not any(may_be_awaited(known.value(node)) for node in known.returned))
            )
        except (OpenError, RecursionError):
            return False

    def _is_clear_unnamed(self, known: Variables, callee: Node, function: Function) -> bool:
        """The same of a callee that begins with no name: `load().get`, `handlers[kind]`."""
        members = members_of(known.value(callee))
        if callee[0] != "attr":
            return all(member is None or self._is_plain(member, "", "", function) for member in members)
        name = callee[2]
        if name in _OF_BUILTINS and name not in self._own:
            return True
        if name not in self.names and not (function.is_async and self._program.made_up.gives_promises):
            return True
        if name == function.name and function.is_async and None in members:
            return False  # an async method may hand the call on to the one it overrides
        return all(self._is_plain(member, name, callee_text(callee), function) for member in members)

    def _reads_promise(self, known: Variables, function: Function) -> bool:
        """Whether the function reads a property whose value is to be awaited."""
        said = self._program.said("async properties")  # asked each time, for whoever notes what is read
        if self._properties is None:
            self._properties = {name for found in said.values() for name in found}
        names = [self._properties, *(library.async_properties(top) for top in function.module.packages)]
        return any(
            may_be_awaited(known.value(node)) for node in known.attributes if any(node[2] in some for some in names)
        )

    def _takes(self, function: Function) -> bool:
        """Whether the function may take plainly, by `with` or `for`, what only `async with` or `async for` can."""
        makers = self._entering.taken_by(function)
        return makers is None or not all(self._makes_plain(function, callee) for callee in makers)

    def _makes_plain(self, function: Function, callee: str) -> bool:
        """Whether what `callee` gives is seen at a glance to be something else."""
        root = callee.partition(".")[0]
        if root in _BUILTINS and root not in function.module.bindings and not binds(function, root):
            return True
        scope = self._program.glance.scope(function, callee)
        if scope is None:
            return False
        for member in members_of(self._program.glance.value(function, callee, scope)):
            if isinstance(member, ClassObject):
                made: Value | None = Instance(member.cls)
            elif isinstance(member, FunctionValue):
                made = self._program.calls.result(member)
            else:
                return False
            if self._is_for_async(made):
                return False
        return True

    def _is_for_async(self, value: Value | None) -> bool:
        """Whether something that `with` or `for` takes can only be taken by `async with` or `async for`."""
        classes = self._program.classes
        return any(
            is_promise(member)
            or (
                isinstance(member, Instance)
                and (classes.is_only_async(member.cls, "__aenter__") or classes.is_only_async(member.cls, "__aiter__"))
            )
            for member in members_of(value)
        )

    def _slot(self, function: Function, name: str) -> str:
        """What is called by a name that no module binds: a "variable", or an "async" slot.

        That is a parameter, here or around, which is a callable that gives promises, or was asked if it is one.
        """
        around: Function | None = function
        while around is not None:
            param = around.params.get(name)
            if param is not None:
                if param[1] is not None and mentions_one(param[1], self._slot_names()):
                    return "async"
                if any(map(asks_for_function, around.facts.calls)):
                    return "async"
                if takes_fixtures(around):
                    made = self._program.fixtures.value(around, name)
                    return "async" if calling_makes_a_coroutine(self._program, made) else ""
                is_wrapped = around is not function and self._program.passed.wrapped(around, name) is not None
                return "async" if is_wrapped else ""
            if name in around.module.inner(around.index) or any(
                name == imported.local for imported in around.module.imports_in(around.index)
            ):
                return ""
            around = around.parent
        return "variable" if name not in _BUILTINS and function.index > 0 else ""

    def _is_clear(self, function: Function, callee: str) -> bool:
        root, _, rest = callee.partition(".")
        if rest and self._is_of_builtins(rest.rpartition(".")[2], function):
            return True
        if function.origins.get(root) == "getattr()":
            return False  # which attribute it is, a glance does not see
        if (
            not rest
            and root in _BUILTINS
            and root != "anext"
            and root not in function.module.bindings
            and not binds(function, root)
        ):
            return True
        scope = self._program.glance.scope(function, callee)
        if scope is None:
            return False
        if rest and scope is function.module and isinstance(function.module.bindings[root][-1], Function):
            return False  # hardly an attribute of the function of that name: a variable that is called so too
        key = (scope, callee)
        if key not in self._cleared:
            value = self._program.glance.value(function, callee, scope)
            name = callee.rpartition(".")[2]
            self._cleared[key] = all(self._is_plain(member, name, callee, function) for member in members_of(value))
        return self._cleared[key]

    def _is_of_builtins(self, name: str, function: Function) -> bool:
        """Whether a method is known by its name: neither the project nor a library of the file has it as async."""
        return (
            name in _OF_BUILTINS
            and name not in self._own
            and not any(name in library.async_names(top) for top in function.module.packages)
        )

    def _is_plain(self, value: Value | None, name: str, callee: str, function: Function) -> bool:
        if value is None:
            return "." in callee and not self._program.evidence.speaks_for(name, callee, function)
        if isinstance(value, FunctionValue):
            called = value.function
            if isinstance(called, LibraryFunction):
                return (
                    not any(flag in called.flags for flag in "agmwo")
                    and called.qualname not in SPAWNERS
                    and called.name not in ALWAYS
                )
            effect = self._program.effects.of(called)
            if effect in {"coroutine", "generator", "context"}:
                return False
            if effect == "unknown" and self._program.evidence.decorated(called, function) is not None:
                return False
            if called.is_abstract and self._program.evidence.colors(called.name)[0]:
                return False  # those who implement it may have made it async
            if self._program.evidence.speaks_for("", callee, function) or self._gives_awaitable(value, name):
                return False  # what a plain function gives may be awaitable all the same
            returns = called.facts.returns
            if name in self.returners and (called.is_abstract or holds_promise(self._program.calls.result(value))):
                return False
            return returns is None or not mentions_awaitable(returns, _AWAITABLES)
        if isinstance(value, ClassObject):
            return self._program.classes.has(value.cls, "__await__") is not True
        if isinstance(value, External):
            evidence = self._program.evidence
            own = name if is_carried(value.path) or evidence.is_met_again(value.path, callee) else ""
            return not evidence.speaks_for(own, callee, function, value.path)
        if isinstance(value, Instance):
            if any(isinstance(one, CallableType) and may_be_awaited(one.result) for one in value.args):
                return False  # `Method[Callable[…, Awaitable[bool]]]` stands for such a callable
            called_value = self._program.classes.member(value.cls, "__call__", value)
            return called_value is not None and all(
                self._is_plain(member, name, callee, function) for member in members_of(called_value)
            )
        if isinstance(value, CallableType):
            return not may_be_awaited(value.result)
        return isinstance(value, Builtin | TupleOf | Table | ModuleValue | Nothing)

    def _gives_awaitable(self, value: FunctionValue, name: str) -> bool:
        """Whether a plain function, which somebody awaits, gives an object that can be awaited."""
        if not (self._program.evidence.siblings.is_awaited(name) or self._program.made_up.gives_promises):
            return False
        made = self._program.calls.result(value)
        return isinstance(made, Instance) and self._program.classes.has(made.cls, "__await__") is True

    def grow(self, names: set[str]) -> bool:
        """These plain functions return promises: whoever calls them is suspect too. False where that was known."""
        if names <= self.returners:
            return False
        self.names |= names
        self.returners |= names
        self._cleared.clear()
        return True


def _is_fixture(function: Function, name: str) -> bool:
    """Whether a name is a parameter that pytest fills, here or around, with what a function of that name gives."""
    around: Function | None = function
    while around is not None:
        if name in around.params:
            return takes_fixtures(around)
        around = around.parent
    return False


_PROPERTIES = frozenset({"property", "cached_property", "hybrid_property", "async_cached_property", "async_property"})


@part("async properties")
def _async_properties(file: FileFacts) -> frozenset[str]:
    return frozenset(
        f.name
        for f in file.functions
        if f.decorators
        and f.owner != -1
        and (f.flags & 1 or (f.returns is not None and mentions_awaitable(f.returns)))
        and any(decorator_name(one) in _PROPERTIES for one in f.decorators)
    )
