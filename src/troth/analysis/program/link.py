"""Knows how to join the facts of all files into one program that can be asked questions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.facts.model import FileFacts, ImportFacts, body_of, speaks_of
from troth.analysis.findings import Span
from troth.analysis.program import library
from troth.analysis.program.attributes import collect_uses
from troth.analysis.program.calling import Calling
from troth.analysis.program.calls import Calls
from troth.analysis.program.classes import Classes
from troth.analysis.program.consumers import Consumers, looks_like_keeper, mentions_awaitable, never_awaitable
from troth.analysis.program.conventions import given_by_framework
from troth.analysis.program.effects import Effects
from troth.analysis.program.entities import Class, Function, Module
from troth.analysis.program.evaluate import OF_FUTURES, Evaluator, Plain
from troth.analysis.program.evidence import Evidence
from troth.analysis.program.flow import Flow
from troth.analysis.program.glance import Glance
from troth.analysis.program.holding import holds_promise
from troth.analysis.program.imports import ModuleFinder
from troth.analysis.program.names import Names
from troth.analysis.program.passed import Passed
from troth.analysis.program.reasons import Reasons
from troth.analysis.program.sites import AWAITED, KEPT, PENDING, Incident, KeyAsked, Site
from troth.analysis.program.suspicion import Suspicion
from troth.analysis.program.types import Types
from troth.analysis.program.values import (
    NONE,
    Awaitable,
    Builtin,
    ClassObject,
    Coroutine,
    External,
    FunctionValue,
    Instance,
    Value,
    members_of,
    union,
)
from troth.analysis.source.pins import normalized

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from troth.analysis.facts.model import At, Node, Param
    from troth.analysis.program.calling import Call
    from troth.analysis.program.installed import Installed
    from troth.analysis.program.library import LibraryClass
    from troth.analysis.source.text import Text

__all__ = ["Program", "Summary"]

_EMPTY = FileFacts((), (), (), (), None)
_DEEPEST_FLOW = 30  # functions whose results are found out inside one another; beyond it they stay unknown
_AWAITABLES = ("Awaitable", "Coroutine", "Future", "Task")
_ASKING = frozenset({"iscoroutine", "isawaitable", "isfuture", "iscoroutinefunction", "isasyncgen", "callable"})
_INJECTORS = frozenset({"Depends", "Security", "Inject", "Provide"})


class Summary:
    """What remains of a walk through a function."""

    __slots__ = (
        "attributes",
        "bound",
        "calls",
        "incidents",
        "keys",
        "narrowed",
        "returned_result",
        "returns",
        "stored",
        "yields",
    )

    def __init__(self, flow: Flow | None) -> None:
        if flow is None:
            self.returns: Value | None = None
            self.yields: Value | None = None
            self.attributes: dict[str, Value | None] = {}
            self.bound: dict[str, Value | None] = {}
            self.incidents: tuple[Incident, ...] = ()
            self.stored: list[tuple[Node, Value]] = []
            self.returned_result = False
            self.calls: tuple[Call, ...] = ()
            self.keys: tuple[KeyAsked, ...] = ()
            self.narrowed: dict[int, dict[str, Value]] = {}
            return
        self.returns = union(flow.returns) if flow.returns else None
        self.yields = union(flow.yields) if flow.yields else None
        self.attributes = {name: union(values) for name, values in flow.attributes.items()}
        self.bound = {name: union(values) for name, values in (flow.bound or {}).items()}
        self.incidents = tuple(flow.incidents.values())
        self.stored = [(n, v) for n, v in flow.stored if holds_promise(v)]
        self.returned_result = flow.returned_result
        self.keys = tuple(flow.keys)
        self.calls = tuple([call for _, call in sorted(flow.calls.items())])
        self.narrowed = flow.narrowed


class Program:
    """All facts of a project, linked on demand: nothing is looked at before a question needs it."""

    def __init__(
        self,
        paths: Sequence[str],
        source_roots: Sequence[str],
        facts_of: Callable[[str], FileFacts | None],
        text_of: Callable[[str], Text],
        cell_of: Callable[[str, int], tuple[int | None, int]] = lambda _path, _line: (None, 0),
        installed: Installed | None = None,
    ) -> None:
        self._installed = installed
        self._text_of = text_of
        self._cell_of = cell_of
        self.paths = tuple(paths)
        self._known_paths = frozenset(paths)
        self.finder = ModuleFinder(paths, source_roots)
        self.nowhere = Module("", "", _EMPTY, own=False)
        self._facts_of = facts_of
        self._modules: dict[str, Module] = {}
        self.allowed: Mapping[str, int] = {}  # the newest major versions of libraries that the project allows itself
        self._older: dict[str, bool] = {}
        self.names = Names(self)
        self.types = Types(self)
        self.classes = Classes(self)
        self.effects = Effects(self)
        self.calls = Calls(self)
        self.reasons = Reasons(self)
        self.consumers = Consumers(self)
        self.evidence = Evidence(self)
        self._imported: dict[str, bool] = {}
        self.calling = Calling(self)
        self.passed = Passed(self)
        self.glance = Glance(self)
        self._summaries: dict[Function, Summary] = {}
        self._walking: set[Function] = set()
        self._early: set[Function] = set()  # those that asked too early what their callers give
        self._again: set[Function] = set()
        self._parameters: dict[tuple[Function, str], Value | None] = {}
        self._fixtures: dict[tuple[str, str], Function | None] = {}
        self._incidents: tuple[Incident, ...] = ()
        self._walked: set[Function] = set()
        self._closing_over: set[Function] = set()  # they asked for a variable of a function that is being walked
        self._half_seen: dict[Function, int] = {}
        self._asked: tuple[str, ...] = ()
        self.asked: tuple[str, ...] = tuple(paths)  # the files that the last walk was about
        self._suspicion: Suspicion | None = None
        self.unread: frozenset[str] = frozenset()  # files whose syntax is newer than this interpreter
        self._elsewhere: dict[tuple[Class, str], Value | None] = {}
        self._by_name: dict[str, list[Class]] | None = None

    # -- modules -------------------------------------------------------------------------------------------------------

    def module(self, path: str) -> Module:
        """The module in that file."""
        found = self._modules.get(path)
        if found is None:
            facts = self._facts_of(path)
            found = self._modules[path] = Module(path, self.finder.name_of(path), facts or _EMPTY)
        return found

    def take_over(self, earlier: Program | None) -> None:
        """Go on with the modules of an earlier program, those whose facts are the same: they know nothing of others."""
        for path, module in earlier._modules.items() if earlier is not None else ():
            if module.facts is self._facts_of(path) and module.name == self.finder.name_of(path):
                self._modules[path] = module

    def own_modules(self) -> Iterator[Module]:
        """The modules of the project."""
        for path in self.paths:
            yield self.module(path)

    def installed(self, dotted: str) -> Module | None:
        """The module of an installed package, read from its source."""
        return None if self._installed is None else self._installed.module(dotted)

    # -- scopes --------------------------------------------------------------------------------------------------------

    def static(self, module: Module, function: Function | None = None, owner: Class | None = None) -> Evaluator:
        """An evaluator that looks at expressions in that scope."""
        return Plain(self, module, function, owner)

    def parameter(self, function: Function, param: Param) -> Value | None:
        """What a parameter stands for inside its function."""
        key = (function, param[0])
        if key not in self._parameters:
            self._parameters[key] = None  # while it is being found out
            self._parameters[key] = self._parameter(function, param)
        return self._parameters[key]

    def _parameter(self, function: Function, param: Param) -> Value | None:
        name, annotation, default, kind = param
        module = function.module
        owner = function.owner
        value: Value | None = None
        if annotation is not None:
            why = (f"`{name}` is annotated in `{function.qualname}`", module.path, function.facts.at[0])
            value = self.types.annotated(annotation, module, function.parent, owner, why)
        elif owner is not None and function.facts.params[0][0] == name and not function.decorated_with("staticmethod"):
            is_class = function.decorated_with("classmethod") or function.name in {"__new__", "__init_subclass__"}
            return ClassObject(owner) if is_class else Instance(owner)
        if isinstance(value, External) and value.path.startswith(("typing.", "collections.abc.")):
            value = None  # `Callable`, and nothing more
        if kind == "*":
            return Builtin("tuple", (value,))
        if kind == "**":
            return Builtin("dict", (Builtin("str"), value))
        if value is None and default is not None and default[0] == "call":
            value = self.injected((default,), module, function.parent)
        if value is None and annotation is None and _takes_fixtures(function):
            value = self._fixture_value(function, name)
        if value is None and (annotation is None or annotation == ("name", "Any")):
            value = (
                (self._as_elsewhere(owner, name) if owner is not None else None)
                or self.by_convention(name)
                or given_by_framework(function, name)
            )
        return value

    def imports(self, top_level: str) -> bool:
        """Whether some file of the project imports that library."""
        if top_level not in self._imported:
            self._imported[top_level] = any(
                not i.level and i.module.partition(".")[0] == top_level
                for module in self.own_modules()
                for i in module.facts.imports
            )
        return self._imported[top_level]

    def _as_elsewhere(self, owner: Class, name: str) -> Value | None:
        """The class that every annotated parameter of that name has in the methods of a class, where they agree."""
        key, module = (owner, name), owner.module
        if key not in self._elsewhere:
            self._elsewhere[key] = None
            found: set[Class | LibraryClass] = set()
            for index, f in enumerate(module.facts.functions):
                for param in f.params if f.owner == owner.index else ():
                    if param[0] == name and param[1] is not None and param[1] != ("name", "Any"):
                        function = module.function(index)
                        known = [m for m in members_of(self.parameter(function, param)) if m is not NONE]
                        if len(known) != 1 or not isinstance(known[0], Instance):
                            return None
                        found.add(known[0].cls)
            if len(found) == 1:
                why = (f"`{name}` is annotated so in other methods of `{owner.name}`", *owner.place)
                self._elsewhere[key] = Instance(found.pop(), (), why, guess=True)
        return self._elsewhere[key]

    def injected(self, nodes: Sequence[Node], module: Module, function: Function | None) -> Value | None:
        """What `Depends(get_store)` puts into a parameter."""
        for node in nodes:
            if node[0] != "call" or not node[2]:
                continue
            callee = node[1]
            if (callee[1] if callee[0] == "name" else callee[2] if callee[0] == "attr" else "") in _INJECTORS:
                given = self.static(module, function).value(node[2][0])
                if isinstance(given, FunctionValue):
                    return self.calls.result(given)
                if isinstance(given, ClassObject):
                    return self.types.instance(given.cls, (), None)
        return None

    def _fixture_value(self, function: Function, name: str) -> Value | None:
        fixture = self._fixture(function.module, name, function.owner)
        if fixture is None or fixture is function:
            return None
        return self.calls.result(FunctionValue(fixture, Instance(fixture.owner) if fixture.owner else None))

    def _fixture(self, module: Module, name: str, owner: Class | None) -> Function | None:
        if owner is not None and name in owner.methods:
            method = module.function(owner.methods[name][-1])
            if method.decorated_with("fixture"):
                return method
        key = (module.path, name)
        if key not in self._fixtures:
            self._fixtures[key] = self._find_fixture(module, name)
        return self._fixtures[key]

    def _find_fixture(self, module: Module, name: str) -> Function | None:
        found = self._fixture_in(module, name)
        if found is not None:
            return found
        folder = module.path.rpartition("/")[0]
        known = self._known_paths
        while True:
            path = f"{folder}/conftest.py" if folder else "conftest.py"
            if path in known and path != module.path:
                found = self._fixture_in(self.module(path), name)
                if found is not None:
                    return found
            if not folder:
                return None
            folder = folder.rpartition("/")[0]

    def _fixture_in(self, module: Module, name: str) -> Function | None:
        value = self.names.at_module(module, name) if self.names.binds(module, name) else None
        if (
            isinstance(value, FunctionValue)
            and isinstance(value.function, Function)
            and value.function.decorated_with("fixture")
        ):
            return value.function
        return None

    def by_convention(self, name: str) -> Value | None:
        """The class that an untyped `order_store` is named after, if the project has exactly one `OrderStore`."""
        words = name.strip("_")
        if "_" not in words:
            return None
        if self._by_name is None:
            self._by_name = {}
            for module in self.own_modules():
                for index, c in enumerate(module.facts.classes):
                    if c.parent == 0:
                        self._by_name.setdefault(c.name.strip("_").lower(), []).append(module.cls(index))
        found = self._by_name.get(words.replace("_", "").lower(), [])
        if len(found) != 1:
            return None
        cls = found[0]
        return Instance(cls, (), (f"`{name}` is named after it", *cls.place), guess=True)

    def imported_from(self, module: Module, binding: object) -> tuple[Module, str] | None:
        """The module and name behind an import of a name."""
        if not isinstance(binding, ImportFacts) or binding.name is None:
            return None
        target = self.names._target(module, binding.module, binding.level)
        return (target, binding.name) if isinstance(target, Module) else None

    # -- functions -----------------------------------------------------------------------------------------------------

    def summary(self, function: Function) -> Summary:
        """What a walk through `function` told; nothing while that walk is going on."""
        known = self._summaries.get(function)
        if known is not None:
            return known
        if function in self._walking or len(self._walking) > _DEEPEST_FLOW:
            return Summary(None)
        if self._half_seen.get(function, 0) >= _MOST_HALF_SEEN and _is_inside(function, self._walking):
            return Summary(None)
        self._walking.add(function)
        try:
            found = Summary(Flow(self, function).run())
        except RecursionError:  # an expression nested deeper than Python can follow: nothing is known of the function
            found = Summary(None)
        finally:
            self._walking.discard(function)
        if function in self._closing_over:
            self._closing_over.discard(function)  # the function around is still being walked: asked again after that
        elif function in self._early and function not in self._again:
            self._again.add(function)  # something it asked for was not known yet: it is walked once more
        else:
            self._summaries[function] = found
        self._early.discard(function)
        return found

    def is_walking(self, function: Function) -> bool:
        """Whether a walk through `function` is going on; who asked it now is asked again when that is over."""
        if function not in self._walking:
            return False
        self.too_early()
        return True

    def too_early(self) -> None:
        """What somebody asked for is just being found out: the walks that are going on have seen too little."""
        self._early |= self._walking

    @property
    def async_names(self) -> set[str]:
        """The names of which something async is known, in the project or in what it imports."""
        return set() if self._suspicion is None else self._suspicion.names

    def is_older(self, top: str) -> bool:
        """Whether the project asks for an older version of a library than the tables know, and never awaits near it.

        A library that has become async since is not that library.
        """
        known = self._older.get(top)
        if known is None:
            asks = [self.allowed.get(normalized(name), version) < version for name, version in library.sources(top)]
            known = self._older[top] = any(asks) and not any(
                f.awaited
                for module in self.own_modules()
                if any(one.module.partition(".")[0] == top for one in module.facts.imports if not one.level)
                for f in module.facts.functions
            )
        return known

    def inferred(self, function: Function) -> Value | None:
        """What a function returns (or yields), by its body."""
        if function.is_abstract:
            return None
        summary = self.summary(function)
        return summary.yields if function.is_generator else summary.returns

    def closure(self, function: Function, name: str) -> Value | None:
        """What a variable of an enclosing function stands for."""
        if function in self._walking:
            for inner in self._walking:
                if inner is not function and _is_inside(inner, {function}):
                    self._closing_over.add(inner)
                    self._half_seen[inner] = self._half_seen.get(inner, 0) + 1
            return None
        return self.summary(function).bound.get(name)

    def assigned_in(self, function: Function, name: str, value: Node) -> Value | None:
        """What `self.name = value` in a method assigns."""
        known = self.static(function.module, function).value(value)
        return known if known is not None else self.summary(function).attributes.get(name)

    def fate(self, function: Function, param: str) -> str:
        """What becomes of a promise given to that parameter: "lost", "handed over" to somebody unknown, or "kept"."""
        if function in self._walking or len(self._walking) > _DEEPEST_FLOW:
            return "kept"
        if any(callee.rpartition(".")[2] in _ASKING for callee in function.facts.calls):
            return "kept"  # it looks at what it is given, so it knows what to do with a promise
        self._walking.add(function)
        try:
            flow = Flow(self, function)
            flow.is_asking = True
            site = Site(function, (0, 0, 0, 0), param, None, "coroutine", True, lambda: ())
            flow.env[param] = Coroutine(site, lambda: None)
            flow.pending[site] = PENDING
            flow.variables[site] = param
            flow.run()
        except RecursionError:
            return "kept"
        finally:
            self._walking.discard(function)
        if any(m.kind in {"async with", "async iteration"} for m in flow.misuses.get(site, ())):
            return "kept"  # it wants something to enter or to loop over
        incident = flow.incidents.get(((0, 0, 0, 0), "never awaited"))
        asked = any(
            m.kind == "subscript" or (m.kind == "attribute" and m.text not in OF_FUTURES)
            for m in flow.misuses.get(site, ())
        )
        if asked and incident is not None and not _looks_before(function):
            return "lost"  # no promise has what it asks for, whatever it does with it afterwards
        if incident is None or flow.exits.get(site, 0) & (KEPT | AWAITED):
            return "kept"
        return "handed over" if incident.detail else "lost"

    def overridden_otherwise(self, function: Function, receiver: Value | None) -> bool:
        """Whether a subclass of the receiver's class gives the method another color, or makes a generator of it."""
        if not isinstance(receiver, Instance) or not isinstance(receiver.cls, Class) or function.owner is None:
            return False
        if not self.evidence.has_shapes(function.name):
            return False
        mine = self.effects.of(function)
        for child in self.classes.children(receiver.cls):
            if function.name in child.methods:
                other = child.module.function(child.methods[function.name][-1])
                if other is not function and self.effects.of(other) != mine:
                    return True
        return False

    def overridden_at_all(self, function: Function, receiver: Value | None) -> bool:
        """Whether the call might run another body than this one."""
        if not isinstance(receiver, Instance) or not isinstance(receiver.cls, Class) or function.owner is None:
            return False
        if sum(self.evidence.colors(function.name)) == 1:
            return False
        return any(function.name in child.methods for child in self.classes.children(receiver.cls))

    # -- the whole -----------------------------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Take in what all files say about names, so that walks can begin."""
        if self._suspicion is None:
            modules = list(self.own_modules())
            for module in modules:
                self.evidence.count(module.path, module.facts.functions)
            self._suspicion = Suspicion(self, modules)

    def walk(
        self, paths: Sequence[str], beyond: Mapping[str, Sequence[int]] | None = None
    ) -> tuple[set[str], dict[str, list[int]]]:
        """Walk through the suspect functions of `paths`, except those in `beyond`; `incidents` then tells what was met.

        Returned are the names of the plain functions that were found to return promises, and the functions walked.
        """
        self.prepare()
        self.asked = tuple(paths)
        assert self._suspicion is not None
        suspicion = self._suspicion
        met: list[Incident] = []
        walked: dict[str, list[int]] = {}
        returning: set[str] = set()
        skipped = {path: set(indices) for path, indices in (beyond or {}).items()}
        waiting = [
            module.function(index)
            for module in map(self.module, paths)
            for index in range(len(module.facts.functions))
            if index not in skipped.get(module.path, ())
        ]
        left = dict.fromkeys(waiting)
        while True:
            for function in waiting:
                if not suspicion.falls_on(function):
                    continue
                del left[function]
                walked.setdefault(function.module.path, []).append(function.index)
                summary = self.summary(function)
                if not function.is_async and holds_promise(summary.returns):
                    returning.add(function.name)
                met += summary.incidents
            new = returning - suspicion.returners
            if not suspicion.grow(returning):
                break
            waiting = [function for function in self.calling.functions_naming(new) if function in left]
        self._incidents = tuple(met)
        self._asked = () if beyond is not None else tuple(paths)
        self._walked = {self.module(path).function(i) for path, indices in walked.items() for i in indices}
        return returning, walked

    def learn(self, returning: set[str]) -> bool:
        """Take in that these plain functions return promises; False where that was known."""
        self.prepare()
        assert self._suspicion is not None
        return self._suspicion.grow(returning)

    def incidents(self) -> tuple[Incident, ...]:
        """Everything that went wrong with promises on the last walk."""
        return self._incidents

    def incidents_of(self, *kinds: str) -> Iterator[Incident]:
        """The incidents of these kinds."""
        for incident in self.incidents():
            if incident.kind in kinds and not incident.site.by_siblings:
                yield incident

    def incidents_by_siblings(self) -> Iterator[Incident]:
        """The incidents of which only other sites of the same callee speak."""
        for incident in self.incidents():
            if incident.site.by_siblings:
                yield incident

    def lost_by_decorators(self) -> Iterator[tuple[Function, Function]]:
        """The async functions of the last walk whose decorator drops their coroutine, with that decorator."""
        for path in self._asked:
            module = self.module(path)
            for index, f in enumerate(module.facts.functions):
                if not f.decorators or f.flags & 3 != 1:
                    continue
                function = module.function(index)
                decorator = self.effects.dropped_by(function)
                if decorator is not None:
                    yield function, decorator

    def returned_on_purpose(self, incident: Incident) -> str:
        """Whether an async function means to return a coroutine: "on purpose", "perhaps", or "" for surely not."""
        function = incident.site.function
        returns = function.facts.returns
        if returns is not None:
            declared = self.types.annotated(returns, function.module, function.parent, function.owner)
            if never_awaitable(declared, self):
                return ""
            if isinstance(declared, Coroutine | Awaitable) or mentions_awaitable(returns, _AWAITABLES):
                return "on purpose"
        if function.name in self.evidence.awaited_twice or (
            returns == ("name", "Any") and incident.site.target is None
        ):
            return "on purpose"
        if self.summary(function).returned_result:
            return ""
        return "perhaps"

    def stored_incidents(self) -> Iterator[Incident]:
        """Coroutines set as attributes that the class never awaits nor gives away."""
        for function in sorted(self._walked, key=lambda f: (f.module.path, f.index)):
            for target, value in self.summary(function).stored:
                if isinstance(value, Coroutine) and value.site is not None and not value.site.is_quiet:
                    owner = function.class_around
                    if owner is None:
                        continue
                    proven = never_awaitable(self.classes.declared(owner, target[2]), self)
                    if proven or self._attribute_is_lost(owner, target[2], in_async=function.is_async):
                        yield Incident("stored", value.site, value.site.at, "", f"self.{target[2]}", sure=proven)

    def uses_contents(self, function: Function, name: str) -> bool:
        """Whether the class around gives the contents of a collection that it keeps to anybody, or awaits them."""
        owner = function.class_around
        if owner is None:
            return False
        uses: set[str] = set()
        for f in owner.module.facts.functions:
            if f.owner == owner.index and speaks_of(f, (name,)):
                collect_uses(body_of(f), name, uses, inside=True)
        return bool(uses & {"awaited", "other"})

    def _attribute_is_lost(self, cls: Class, name: str, *, in_async: bool) -> bool:
        uses: set[str] = set()
        for module in {c.module for c in (cls, *self.classes.children(cls))}:
            for f in module.facts.functions:
                if speaks_of(f, (name,)):
                    collect_uses(body_of(f), name, uses)
        if "awaited" in uses:
            return False
        # Whoever can await and does not, and wants the promise, names it so.
        return "misused" in uses or not uses - {"assigned", "given"} or (in_async and not looks_like_keeper(name))

    # -- texts and places ----------------------------------------------------------------------------------------------

    def text(self, path: str) -> Text:
        """The text of a file."""
        return self._text_of(path)

    def span(self, path: str, at: At) -> Span:
        """A place as people count it; in a notebook within its cell."""
        text = self._text_of(path)
        line, column, end_line, end_column = at
        cell, shift = self._cell_of(path, line)
        return Span(
            path,
            line - shift,
            text.column(line, column) + 1,
            end_line - shift,
            text.column(end_line, end_column) + 1,
            cell,
        )


_MOST_HALF_SEEN = 12  # questions about an unfinished function around; then nothing is known until it is finished


def _is_inside(function: Function, others: Collection[Function]) -> bool:
    """Whether a function stands in one of the others."""
    around = function.parent
    while around is not None:
        if around in others:
            return True
        around = around.parent
    return False


def _looks_before(function: Function) -> bool:
    """Whether a function finds out what it was given before it uses it."""
    return not {"hasattr", "getattr", "callable", "isinstance", "type"}.isdisjoint(function.facts.calls)


def _takes_fixtures(function: Function) -> bool:
    return function.name.startswith("test") or function.decorated_with("fixture")
