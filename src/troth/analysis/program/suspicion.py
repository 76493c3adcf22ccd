"""Knows which functions are worth walking through.

A walk costs as much as reading the function did. Most calls can be cleared at a glance: the name is async nowhere, or
what is called is found without knowing any local variable and is plain.
"""

from __future__ import annotations

import builtins
import sys
from typing import TYPE_CHECKING, NamedTuple

from troth.analysis.facts.model import FileFacts, without_places
from troth.analysis.facts.names import decorator_name
from troth.analysis.program import library
from troth.analysis.program.calls import SPAWNERS, callee_text
from troth.analysis.program.consumers import mentions_awaitable
from troth.analysis.program.entering import Entering, held_in, is_only_async, makers_of
from troth.analysis.program.entities import Function
from troth.analysis.program.evaluate import ASKS_FOR_FUNCTION, asks_for_function
from troth.analysis.program.evidence import is_carried
from troth.analysis.program.glance import binds, node_of
from troth.analysis.program.holding import holds_promise, is_promise, may_be_awaited
from troth.analysis.program.library import LibraryFunction
from troth.analysis.program.parts import part
from troth.analysis.program.reads import Words
from troth.analysis.program.values import (
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
from troth.analysis.program.variables import OpenError, Variables

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from troth.analysis.facts.model import ClassFacts, FunctionFacts, Node
    from troth.analysis.program.entities import Module
    from troth.analysis.program.link import Program
    from troth.analysis.program.tables import Tables

__all__ = ["Suspicion", "restored", "suspected"]

_ALWAYS = frozenset(
    {
        "create_task",
        "ensure_future",
        "gather",
        "shield",
        "run_in_executor",
        "anext",
        "__anext__",
        "__aenter__",
        "__aexit__",
        "call_next",
    }
)
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
        self.names: set[str] = set(sets["names"])
        self.returners: set[str] = set()  # plain functions that were seen to return promises
        self._coroutines: set[str] = set(sets["coroutines"])
        self._generators: set[str] = set(sets["generators"])
        self._own: set[str] = set(sets["own"])
        self._slots = sets["slots"]
        self._entering = Entering(sets["makers"], sets["holders"], program.reads)
        if program.reads is not None:
            self.names = Words(program.reads, "suspicion names", self.names)
            self.returners = Words(program.reads, "suspicion returners")
            self._coroutines = Words(program.reads, "suspicion coroutines", self._coroutines)
            self._generators = Words(program.reads, "suspicion generators", self._generators)
            self._own = Words(program.reads, "suspicion own", self._own)
        self._cleared: dict[tuple[object, str], bool] = program.answers()

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
        for callee in facts.calls:
            if callee in _INDIRECT or callee.rpartition(".")[2] in names:
                if asks_for_function(callee):
                    return True
                if not self._is_clear(function, callee):
                    if self._program.glance.scope(function, callee) is not None:
                        return True
                    left_open.append(callee)
            elif "." not in callee and not function.module.binds(callee):
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
        if facts.flags & 1 and any(param[0] == "receive" for param in facts.params):
            return True  # of ASGI
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
        if name not in self.names or (name in _OF_BUILTINS and name not in self._own):
            return True
        if name == function.name and function.is_async and None in members:
            return False  # an async method may hand the call on to the one it overrides
        return all(self._is_plain(member, name, callee_text(callee), function) for member in members)

    def _reads_promise(self, known: Variables, function: Function) -> bool:
        """Whether the function reads a property whose value is to be awaited."""
        names = {name for found in self._program.said("async properties").values() for name in found}
        for top in function.module.packages:
            names |= library.async_properties(top)
        return any(may_be_awaited(known.value(node)) for node in known.attributes if node[2] in names)

    def _takes(self, function: Function) -> bool:
        """Whether the function may take plainly, by `with` or `for`, what only `async with` or `async for` can."""
        told = self._entering.falls_on(function)
        return told is True or (told is not False and not all(self._makes_plain(function, callee) for callee in told))

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
                if param[1] is not None and _mentions(param[1], self._slot_names()):
                    return "async"
                if any(map(asks_for_function, around.facts.calls)):
                    return "async"
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
        if rest and rest.rpartition(".")[2] in _OF_BUILTINS and rest.rpartition(".")[2] not in self._own:
            return True
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

    def _is_plain(self, value: Value | None, name: str, callee: str, function: Function) -> bool:
        if value is None:
            return "." in callee and not self._program.evidence.speaks_for(name, callee, function)
        if isinstance(value, FunctionValue):
            called = value.function
            if isinstance(called, LibraryFunction):
                return (
                    not any(flag in called.flags for flag in "agmwo")
                    and called.qualname not in SPAWNERS
                    and called.name not in _ALWAYS
                )
            if self._program.effects.of(called) in {"coroutine", "generator", "context"}:
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
            return not self._program.evidence.speaks_for(name if is_carried(value.path) else "", callee, function)
        if isinstance(value, Instance):
            called_value = self._program.classes.member(value.cls, "__call__", value)
            return called_value is not None and all(
                self._is_plain(member, name, callee, function) for member in members_of(called_value)
            )
        if isinstance(value, CallableType):
            return not may_be_awaited(value.result)
        return isinstance(value, Builtin | TupleOf | Table | ModuleValue | Nothing)

    def _gives_awaitable(self, value: FunctionValue, name: str) -> bool:
        """Whether a plain function, which somebody awaits, gives an object that can be awaited."""
        if not self._program.evidence.siblings.is_awaited(name):
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


def suspected(program: Program, modules: Sequence[Module]) -> dict[str, frozenset[str]]:
    """The names that suspicion rests on, of all files: those that may make promises, and what kinds of them."""
    own = program.evidence.async_names()
    given: set[str] = set(_ALWAYS | ASKS_FOR_FUNCTION)
    coroutines = {f.name for m in modules for f in m.facts.functions if f.flags & 3 == 1}
    tops = packages_of(modules)
    for top in tops:
        in_source = program.installed_async(top)
        given |= library.async_names(top) | in_source
        coroutines |= library.async_names(top, "a") | in_source
    names = own | given
    for module in modules:
        for c in module.facts.classes:
            if _is_entered_async(c):
                names.add(c.name)
        for imported in module.facts.imports:
            if imported.name in names and imported.local != imported.name:
                names.add(imported.local)
    wrapping = {name for module in modules for name in _wrapping(module.facts)}
    for module in modules:
        for f in module.facts.functions:
            if not f.flags & 1 and any(decorator_name(d) in wrapping for d in f.decorators):
                names.add(f.name)
    for module in modules:
        for name, _, value in module.facts.variables:
            if value is not None and value[0] in {"name", "attr"} and value[1 if value[0] == "name" else 2] in names:
                names.add(name)
    slots = _async_types(modules)
    names |= _async_attributes(modules, slots)
    makers = makers_of((module.facts for module in modules), tops)
    return {
        "makers": makers,
        "holders": frozenset(name for module in modules for name in held_in(module.facts, makers)),
        "names": frozenset(names),
        "given": frozenset(given),  # by libraries, whatever the files say
        "coroutines": frozenset(coroutines),
        "generators": frozenset(f.name for m in modules for f in m.facts.functions if f.flags & 3 == 3),
        "own": frozenset(own),
        "slots": slots,
    }


def restored(program: Program, tables: Tables) -> dict[str, frozenset[str]] | None:
    """What `suspected` would find, from what it found in the last run; None where only a look at all files can tell.

    That is so when a file no longer says what many others may say as well, or says something from which more follows:
    a class, an import, a variable, a decorator.
    """
    sets = {kind: set(names) for kind, names in tables.suspected.items()}
    if not sets:
        return None
    evidence = program.evidence
    gone: set[str] = set()
    for before, now in tables.lately.values():
        old, new = (_hints(file, sets["slots"], sets["makers"]) for file in (before, now))
        if old.rest != new.rest:
            return None
        gone |= old.generators - new.generators
        for name in old.own - new.own:
            if not (evidence.colors(name)[0] or evidence.siblings.is_awaited(name)):
                gone.add(name)
        for name in old.coroutines - new.coroutines:
            if not evidence.colors(name)[0] or name in sets["generators"]:
                gone.add(name)
        if any(program.index.other_names(name) for name in new.own - old.own):
            return None
        sets["own"] |= new.own
        sets["names"] |= new.own
        sets["coroutines"] |= new.coroutines
        sets["generators"] |= new.generators
    if gone and not _is_settled(program, tables, gone, sets):
        return None
    return {kind: frozenset(names) for kind, names in sets.items()}


_MANY_GONE = 6  # names; then a look at all files takes less time than asking for each


def _is_settled(program: Program, tables: Tables, gone: Collection[str], sets: Mapping[str, set[str]]) -> bool:
    """Take names out of the sets that nobody says any more; False where only a look at all files can tell."""
    if len(gone) > _MANY_GONE or not sets["given"].isdisjoint(gone):
        return False
    changed = [_hints(now, sets["slots"], sets["makers"]) for _, now in tables.since.values()]
    for name in gone:
        others = tables.saying(name)
        if others is None:
            return False
        facts = [program.module(program.paths[number])._facts for number in others]
        hints = [*changed, *(_hints(file, sets["slots"], sets["makers"]) for file in facts)]
        if any(name in repr(one.rest) for one in hints):
            return False  # it may be under suspicion for another reason
        for kind, saying in (
            ("own", {name for one in hints if name in one.own}),
            ("names", {name for one in hints if name in one.own}),
            ("coroutines", {name for one in hints if name in one.coroutines}),
            ("generators", {name for one in hints if name in one.generators}),
        ):
            if not saying:
                sets[kind].discard(name)
    return True


class _Hints(NamedTuple):
    """What a file says that suspicion rests on; from `rest` follows more than its own names."""

    own: set[str]
    coroutines: set[str]
    generators: set[str]
    rest: object


def _hints(file: FileFacts | None, slots: Collection[str], makers: Collection[str]) -> _Hints:
    file = file or FileFacts((), (), (), (), None)
    is_known = _knows(file, slots)
    rest = (
        sorted({(i.module, i.name or "") for i in file.imports if not i.level and i.module}),
        sorted(c.name for c in file.classes if is_only_async(c)),
        sorted(held_in(file, makers)),
        sorted({(i.name, i.local) for i in file.imports if i.name is not None and i.local != i.name}),
        sorted(c.name for c in file.classes if _is_entered_async(c)),
        sorted(_wrapping(file)),
        sorted((decorator_name(d), f.name) for f in file.functions if not f.flags & 1 for d in f.decorators),
        [
            (name, without_places(value))
            for name, _, value in file.variables
            if value is not None and value[0] in _TELLING
        ],
        sorted(file.classes[f.owner].name for f in file.functions if _is_async_call(f)),
        # Annotations tell only in a file that knows one of the words.
        [without_places((c.annotations, list(_set_attributes(file, c)))) for c in file.classes] if is_known else [],
    )
    awaited = {callee.rpartition(".")[2] for f in file.functions for callee in f.awaited if " " not in callee}
    return _Hints(
        {f.name for f in file.functions if f.flags & 1} | awaited,
        {f.name for f in file.functions if f.flags & 3 == 1},
        {f.name for f in file.functions if f.flags & 3 == 3},
        rest,
    )


_TELLING = frozenset({"name", "attr", "index", "binop"})


def _is_entered_async(c: ClassFacts) -> bool:
    methods = {name for name, _ in c.methods}
    return "__aenter__" in methods and "__enter__" not in methods


def _is_async_call(f: FunctionFacts) -> bool:
    return f.name == "__call__" and bool(f.flags & 1) and f.owner >= 0


def packages_of(modules: Sequence[Module]) -> set[str]:
    """The packages that the files import from, and those that what they import comes from: FastAPI's `WebSocket`."""
    imported = {(i.module, i.name) for m in modules for i in m.facts.imports if not i.level and i.module}
    tops = {module.partition(".")[0] for module, _ in imported}
    known = {top for top in tops if top not in sys.stdlib_module_names and library.knows(top)}
    named = [f"{module}.{name}" for module, name in imported if name and module.partition(".")[0] in known]
    found = [library.find(name) for name in named]
    return tops | {one.name.partition(".")[0] for one in found if one is not None}


def _async_types(modules: Sequence[Module]) -> frozenset[str]:
    """Names of types that stand for callables that give promises: aliases, and classes with an async `__call__`."""
    words = {"Awaitable", "Coroutine"}
    for module in modules:
        for name, _, value in module.facts.variables if _knows(module.facts, words) else ():
            if value is not None and value[0] in {"index", "binop"} and _mentions(value, words):
                words.add(name)
        for f in module.facts.functions:
            if _is_async_call(f):
                words.add(module.facts.classes[f.owner].name)
    return frozenset(words)


def _async_attributes(modules: Sequence[Module], slots: frozenset[str]) -> set[str]:
    """Attributes that hold such callables, by what they are annotated with or by the parameter they are set to."""
    names: set[str] = set()
    for module in modules:
        for c in module.facts.classes if _knows(module.facts, slots) else ():
            names.update(name for name, node in c.annotations if _mentions(node, slots))
            names.update(name for name, said in _set_attributes(module.facts, c) if _mentions(said, slots))
    return names


def _set_attributes(file: FileFacts, c: ClassFacts) -> Iterator[tuple[str, Node]]:
    """The attributes that methods set, with their annotation or that of the parameter they are set to."""
    for name, index, annotation, value in c.self_attributes:
        said = annotation
        if said is None and value is not None and value[0] == "name":
            said = next((p[1] for p in file.functions[index].params if p[0] == value[1]), None)
        if said is not None:
            yield name, said


def _knows(file: FileFacts, words: Collection[str]) -> bool:
    """Whether a file has one of these words at all; one in quotes is imported, for the type checker's sake."""
    words = frozenset(words)
    return not words.isdisjoint(file.mentions) or any(i.local in words for i in file.imports)


def _mentions(node: object, words: Collection[str]) -> bool:
    """Whether an annotation has one of these words; a string is looked through as text."""
    if isinstance(node, tuple):
        return any(_mentions(part, words) for part in node if part.__class__ is not int)
    return isinstance(node, str) and (node in words or ("[" in node and any(word in node for word in words)))


def _wrapping(file: FileFacts) -> Iterator[str]:
    """The functions with an async function inside: as decorators they may make a plain function async."""
    functions = file.functions
    for f in functions:
        if f.flags & 1 and f.parent > 0:
            outer = functions[f.parent]
            yield outer.name
            if outer.parent > 0:
                yield functions[outer.parent].name
