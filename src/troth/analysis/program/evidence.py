"""Knows what other places of the project say about a callee whose type is not known.

Two kinds of witnesses speak: definitions (every function of that name in the project is `async def`, and the name is
not one that objects of libraries commonly have) and sibling sites (the same callee, as written, is awaited elsewhere
and hardly ever used without). Both make a finding likely, never certain; where they disagree, nothing is said.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any, cast

from troth.analysis.findings import Reason
from troth.analysis.program import library
from troth.analysis.program.calls import callee_text
from troth.analysis.program.entities import Class
from troth.analysis.program.generic import GENERIC
from troth.analysis.program.library import LibraryClass
from troth.analysis.program.values import Coroutine, Value

if TYPE_CHECKING:
    from troth.analysis.facts.model import Node
    from troth.analysis.program.entities import Function
    from troth.analysis.program.evaluate import Evaluator
    from troth.analysis.program.link import Program
    from troth.analysis.program.sites import Site

__all__ = ["Evidence", "asks_for_color"]


class Evidence:
    """Counts witnesses over the whole project."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._async: Counter[str] = Counter()
        self._methods: Counter[str] = Counter()  # of the async ones, those that a class has
        self._rehearsed: Counter[str] = Counter()  # of these, the ones in tests and in functions: fakes and examples
        self._owners: dict[str, set[str]] = {}  # the classes that have them, in lower case
        self._plain: Counter[str] = Counter()
        self._overriding: dict[str, bool] = {}
        self._adding: dict[str, bool] = {}
        self._imported: dict[str, set[str]] = {}  # the libraries that a file imports
        self._places: dict[str, tuple[str, int]] = {}
        self._awaited: Counter[str] = Counter()
        self._awaited_here: Counter[tuple[str, str]] = Counter()
        self._bare: dict[str, tuple[Counter[tuple[str, str]], Counter[str]]] = {}  # calls that are not awaited, by name
        self._awaited_names: Counter[str] = Counter()
        self._awaited_places: dict[str, tuple[str, int]] = {}
        self._generators: set[str] = set()  # names of async generators: calling one gives no coroutine
        self.has_remote_objects = False  # a `__getattr__` makes async methods of any name: `await rpc.anything()`
        self.awaited_twice: set[str] = set()  # functions whose result is awaited as well

    def count(self, path: str, functions: tuple[tuple[object, ...], ...]) -> None:
        """Take in what one file says."""
        for f in functions:
            parent = cast("int", f[2])
            if f[4] & 1 and parent > 0 and functions[parent][0] == "__getattr__":  # type: ignore[operator]
                self.has_remote_objects = True
            name, flags, at, awaited = f[0], f[4], f[5], f[10]
            if flags & 1:  # type: ignore[operator]
                if flags & 2:  # type: ignore[operator]
                    self._generators.add(name)  # type: ignore[arg-type]
                self._async[name] += 1  # type: ignore[index]
                if f[3] != -1:
                    self._methods[name] += 1  # type: ignore[index]
                    if is_test(path) or parent:
                        self._rehearsed[name] += 1  # type: ignore[index]
                    owner = f[1].rpartition(".")[0].rpartition(".")[2]  # type: ignore[attr-defined]
                    self._owners.setdefault(name, set()).add(owner.lower())  # type: ignore[arg-type]
                self._places.setdefault(name, (path, at[0]))  # type: ignore[arg-type, index]
            else:
                self._plain[name] += 1  # type: ignore[index]
            for callee in awaited:  # type: ignore[attr-defined]
                if " " in callee:
                    if callee.startswith("await "):
                        self.awaited_twice.add(callee.rpartition(".")[2].rpartition(" ")[2])
                    continue
                key = _tail(callee)
                self._awaited[key] += 1
                self._awaited_here[_home(path, f, functions, callee), callee] += 1
                self._awaited_names[key.rpartition(".")[2]] += 1
                self._awaited_places.setdefault(key, (path, at[0]))  # type: ignore[index]

    def _not_awaited(self, name: str) -> tuple[Counter[tuple[str, str]], Counter[str]]:
        """How often callees of that last name are called without `await`: each where it stands, and anywhere."""
        known = self._bare.get(name)
        if known is None:
            here: Counter[tuple[str, str]] = Counter()
            anywhere: Counter[str] = Counter()
            for function in self._program.calling.functions_naming({name}):
                for callee in function.facts.calls:
                    if callee.rpartition(".")[2] == name:
                        functions = function.module.facts.functions
                        here[_home(function.module.path, function.facts, functions, callee), callee] += 1
                        anywhere[_tail(callee)] += 1
            known = self._bare[name] = (here, anywhere)
        return known

    def colors(self, name: str) -> tuple[int, int]:
        """How many definitions of that name are async, and how many are not."""
        return self._async[name], self._plain[name]

    def has_shapes(self, name: str) -> bool:
        """Whether calls of that name may give several things: plain and async definitions, or async generators too."""
        return (self._async[name] > 0 and self._plain[name] > 0) or name in self._generators

    def async_names(self) -> set[str]:
        """Names with at least one async definition, and names that are awaited somewhere."""
        return set(self._async) | {key.rpartition(".")[2] for key in self._awaited}

    def call(self, node: Node, scope: Evaluator, external: str = "") -> Value | None:
        """A promise, if the witnesses say that calling this unknown callee gives one.

        Of something that comes from a library (`external`) the definitions of the project say nothing.
        """
        callee = node[1]
        if callee[0] not in {"attr", "name"} or scope.function is None:
            return None
        text = callee_text(callee)
        if callee[0] == "attr" and callee[2] in BY_PROTOCOL:
            why = Reason(f"`{callee[2]}` gives an awaitable, whatever has it")
            return Coroutine(scope.site("", node[-1], text, "coroutine", lambda: (why,), sure=True), lambda: None)
        if callee[0] == "attr" and callee[2] in GENERIC and callee[1][1] in scope.plainly_entered:
            return None  # the file that `with open(…) as file` gives is not the one of `async with`
        path = scope.module.path
        reason = self._by_name(callee[2], path) if callee[0] == "attr" and not external else None
        if reason is not None and not self._may_be_meant(callee, scope.function):
            reason = None
        if reason is not None and self._is_used_plainly(text, scope.function):
            reason = None
        if reason is None and not external and callee[0] == "attr" and scope.function.is_async:
            reason = self._by_library(callee[2], path)
        siblings = reason is None
        if reason is None and scope.function.is_async:
            reason = self._by_siblings(text, scope.function, external)
        if reason is None or _asks_for_color(scope.function):
            return None
        site = scope.site(None, node[-1], text, "coroutine", lambda: (reason,), sure=False)
        if site is not None:
            site.by_siblings = siblings
        return Coroutine(site, lambda: None)

    def speaks_for(self, name: str, callee: str, function: Function) -> bool:
        """Whether `call` might have something to say about that callee; `name` is "" for one from a library."""
        if callee.rpartition(".")[2] in BY_PROTOCOL:
            return True
        if name and self._by_name(name, function.module.path) is not None:
            return True
        if name and function.is_async and self._by_library(name, function.module.path) is not None:
            return True
        return function.is_async and self._by_siblings(callee, function) is not None

    def is_awaited_elsewhere(self, site: Site) -> bool:
        """Whether other sites await a callee of that name."""
        return self._awaited_names[site.callee.rpartition(".")[2]] > 0

    def is_always_awaited(self, site: Site) -> bool:
        """Whether a result rather than a promise is expected at `site`.

        In `async def` the callee being known is enough: whoever wants the promise itself names it so. In a plain
        function, which cannot await, another site has to show that the callee is awaited.
        """
        name = site.callee.rpartition(".")[2]
        if site.target is None:
            return site.function.is_async and not site.by_siblings and self._awaited_names[name] > 0
        return site.function.is_async or self._awaited_names[name] > 0

    def _by_name(self, name: str, asking: str) -> Reason | None:
        if (
            name in GENERIC
            or name.startswith("__")
            or name in self._generators
            or self._is_plain_elsewhere(name, asking)
        ):
            return None
        count, plain = self.colors(name)
        telling = self._methods[name] if is_test(asking) else self._methods[name] - self._rehearsed[name]
        if not telling or plain or self._may_override_a_library(name):
            return None
        path, line = self._places[name]
        which = "the only definition" if count == 1 else f"all {count} definitions"
        verb = "is" if count == 1 else "are"
        return Reason(f"{which} of `{name}` in this project {verb} `async def`", path, line)

    def _by_library(self, name: str, asking: str) -> Reason | None:
        """The name of a method that a library which the file imports has, only as a coroutine function."""
        if name in GENERIC or len(name) < _TELLING or any(self.colors(name)) or self._is_plain_elsewhere(name, asking):
            return None
        for top in sorted(self._imported[asking]):
            if name in library.async_methods(top) and not self._program.is_older(top):
                return Reason(f"`{name}` of {top} is a coroutine function in every class that has it")
        return None

    def _is_plain_elsewhere(self, name: str, asking: str) -> bool:
        """Whether a library that the asking file imports has a plain method of that name."""
        if asking not in self._imported:
            facts = self._program.module(asking).facts
            self._imported[asking] = {i.module.partition(".")[0] for i in facts.imports if not i.level and i.module}
        return any(name in library.plain_methods(top) for top in self._imported[asking])

    def _may_override_a_library(self, name: str) -> bool:
        """Whether the only method of that name is in a `GatewayClient(AsyncClient)` of an unknown library.

        The library may well have a plain client with the same method.
        """
        if self._methods[name] != 1:
            return False
        known = self._overriding.get(name)
        if known is None:
            module = self._program.module(self._places[name][0])
            owner = next((f.owner for f in module.facts.functions if f.name == name and f.owner >= 0), -1)
            known = False
            if owner >= 0 and None in self._program.classes.order(module.cls(owner)):
                facts = module.facts.classes[owner]
                kind = _last_word(facts.name)
                known = any(_last_word(callee_text(b).rpartition(".")[2]) == kind for b in facts.bases if kind)
            self._overriding[name] = known
        return known

    def _adds_to_a_library(self, name: str) -> bool:
        """Whether the only method of that name is in a class that derives from one of a library."""
        if self._methods[name] != 1:
            return False
        known = self._adding.get(name)
        if known is None:
            module = self._program.module(self._places[name][0])
            owner = next((f.owner for f in module.facts.functions if f.name == name and f.owner >= 0), -1)
            order = self._program.classes.order(module.cls(owner)) if owner >= 0 else ()
            known = self._adding[name] = any(isinstance(one, LibraryClass) and one.name != "object" for one in order)
        return known

    def _may_be_meant(self, callee: Node, function: Function) -> bool:
        """Whether the receiver may be an object of a class of the project that has the method.

        `self` has it only through a subclass. Where the receiver's name does not fit, a plain function, or a name that
        many classes have, says too little: such a name is often that of a library's method.
        """
        name, owner = callee[2], function.class_around
        if callee[1] in {("name", "self"), ("name", "cls")}:
            return owner is not None and self._is_in_family(name, owner)
        if name == function.name:
            return False  # a wrapper that hands the call on, mostly to an object of a library
        around = "" if owner is None else owner.name.lower()
        if self._owners.get(name, set()) == {around} and callee[1][0] == "attr":
            return False
        if name.startswith("_"):
            return False  # what is private is another's own
        if self._fits(callee, around):
            return True
        if self._adds_to_a_library(name):
            return False  # other objects of the library may have it too
        return function.is_async and self._methods[name] < _MANY_DEFINITIONS

    def _is_used_plainly(self, text: str, function: Function) -> bool:
        """Whether several plain functions call the same by the same words, and nobody ever awaits it by these.

        `client.safety.run_shield(…)` all over the tests is the method of a plain client; the namesake in the project is
        what answers it on the other side.
        """
        key = _tail(text)
        if function.is_async and function.index:
            return False
        if text.count(".") < 2 or text.startswith(("self.", "cls.")):
            return False  # an object at hand rather than a part of a client
        here, anywhere = self._not_awaited(text.rpartition(".")[2])
        if anywhere[key] >= _FEWEST_PLAIN and not self._awaited[key]:
            return True
        plainly = sum(count for (_, words), count in here.items() if words == text)
        return plainly >= _FEWEST_PLAIN and not any(words == text for _, words in self._awaited_here)

    def _is_in_family(self, name: str, owner: Class) -> bool:
        """Whether a class, or a subclass of it, brings the method with it."""
        classes = self._program.classes
        family = [owner, *classes.children(owner)]
        return any(isinstance(one, Class) and name in one.methods for child in family for one in classes.order(child))

    def _fits(self, callee: Node, around: str) -> bool:
        """Whether the receiver is called like a class that has the method: `manager` and `EventManager`.

        The class around the call is hardly meant: an object seldom holds another of its kind.
        """
        base = callee[1]
        word = base[1] if base[0] == "name" else base[2] if base[0] == "attr" else ""
        plain = word.replace("_", "").lower()
        owners = self._owners.get(callee[2], set()) - {around}
        return len(plain) > 3 and any(plain in owner for owner in owners)

    def _by_siblings(self, text: str, function: Function, external: str = "") -> Reason | None:
        """Sites that call the same by the same words: in this file, or anywhere if the words are telling."""
        if "…" in text:
            return None
        path, key = function.module.path, _tail(text)
        home = _home(path, function.facts, function.module.facts.functions, text)
        if self._awaited_here[home, text] < _FEWEST_HERE and self._awaited[key] < _FEWEST_ANYWHERE:
            return None
        here, anywhere = self._not_awaited(text.rpartition(".")[2])
        awaited, bare = self._awaited_here[home, text], here[home, text]
        where = "in this file"
        is_generic = key.rpartition(".")[2] in GENERIC
        if text.rpartition(".")[0].rpartition(".")[2] in _QUEUEING:
            return None  # what a pipeline is told is done when it is executed
        if len(text.partition(".")[0]) < _SHORTEST and _is_local(text, function):
            return None  # `a.send` in another function is another `a`
        fewest = _FEWEST_OF_LOCAL if is_generic and _is_local(text, function) else _FEWEST_HERE
        if awaited < fewest or (bare - 1) * 4 > awaited:
            awaited, bare = self._awaited[key], anywhere[key]
            where = "in this project"
            fewest = _FEWEST_OF_OTHERS if text.startswith("self.") else _FEWEST_ANYWHERE
            if _ASYNC_CLASS.search(external) and text.partition(".")[2] and external.endswith(key.rpartition(".")[2]):
                fewest, is_generic = 1, False  # the class is called async, and somebody awaits this method of it
            if awaited < fewest or bare > 1 or is_generic:
                return None
        place = self._awaited_places[key]
        if where == "in this project" and _is_local(text, function):
            root = text.partition(".")[0]
            if any(i.local == root for i in self._program.module(place[0]).facts.imports):
                return None  # there it is something imported, here a variable
        return Reason(f"`{text}(…)` is awaited in {awaited} other functions {where}", *place)


# How many functions have to await the same words: two in one file know what they do; elsewhere the same words may
# mean another object, so three, and nobody who does otherwise. The `sock` whose `send` is called may even be another in
# each function of a file, unless it belongs to the module or to `self`.
BY_PROTOCOL = frozenset({"__aenter__", "__aexit__", "__anext__"})
_MANY_DEFINITIONS = 3
_ASYNC_CLASS = re.compile(r"\.(?:aio|asyncio)\.|(?:^|\.)(?:Async|Aio)[A-Z]\w*\(\)\.\w+$")
_QUEUEING = frozenset({"pipe", "pipeline", "batch"})
_SHORTEST = 3  # letters of a variable that is called the same because it is the same
_TELLING = 5  # letters; shorter names mean many things
_FEWEST_HERE = 2
_FEWEST_OF_LOCAL = 3
_FEWEST_ANYWHERE = 3
_FEWEST_PLAIN = 2
_FEWEST_OF_OTHERS = 6  # `self.client` is another object in another class


def _home(path: str, f: Any, functions: Any, callee: str) -> str:
    """The place in which the same words mean the same object: the file, or for `self` the class."""
    if not callee.startswith(("self.", "cls.")):
        return path
    while f[3] == -1 and f[2] > 0:
        f = functions[f[2]]
    return f"{path} {f[3]}"


def _is_local(text: str, function: Function) -> bool:
    """Whether the receiver is a variable of the function, not one of the module or of an object."""
    name = text.partition(".")[0]
    facts = function.module.facts
    return name not in {"self", "cls"} and not any(
        name == known for known in (*(i.local for i in facts.imports), *(v[0] for v in facts.variables))
    )


def _asks_for_color(function: Function) -> bool:
    """Whether the function itself looks at the color of what it calls; then a plain call is no accident."""
    return any(asks_for_color(callee) for callee in function.facts.calls)


def asks_for_color(callee: str) -> bool:
    """Whether a call of that name asks if something is async: `inspect.isawaitable`."""
    return callee.rpartition(".")[2] in _COLOR_QUESTIONS


_COLOR_QUESTIONS = frozenset(
    [
        "iscoroutinefunction",
        "isawaitable",
        "iscoroutine",
        "isasyncgenfunction",
        "isasyncgen",
        "is_coroutine",
        "is_async",
        "is_awaitable",
        "is_coroutine_function",
        "is_async_callable",
        "maybe_await",
        "is_coroutine_callable",
    ]
)


def is_test(path: str) -> bool:
    """Whether a file is there to test others."""
    *folders, name = path.split("/")
    return name.startswith(("test_", "conftest")) or name.endswith("_test.py") or bool({"tests", "test"} & {*folders})


def _last_word(name: str) -> str:
    """`Client` of `GatewayKernelClient`."""
    found = re.findall(r"[A-Z][a-z0-9]+", name)
    return found[-1] if len(found) > 1 else ""


def _tail(callee: str) -> str:
    """The last two names of a callee: the receiver as it is called, and the method."""
    parts = callee.split(".")
    return ".".join(parts[-2:])
