"""Knows what other places of the project say about a callee whose type is not known.

Two kinds of witnesses speak: definitions (every function of that name in the project is `async def`, and the name is
not one that objects of libraries commonly have) and sibling sites (the same callee, as written, is awaited elsewhere
and hardly ever used without). Both make a finding likely, never certain; where they disagree, nothing is said.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, cast

from troth.analysis.findings import Reason
from troth.analysis.program.calls import callee_text
from troth.analysis.program.generic import GENERIC
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
        self._places: dict[str, tuple[str, int]] = {}
        self._awaited: Counter[str] = Counter()
        self._awaited_here: Counter[tuple[str, str]] = Counter()
        self._bare_here: Counter[tuple[str, str]] = Counter()
        self._awaited_names: Counter[str] = Counter()
        self._bare: Counter[str] = Counter()
        self._awaited_places: dict[str, tuple[str, int]] = {}
        self.has_remote_objects = False  # a `__getattr__` makes async methods of any name: `await rpc.anything()`
        self.awaited_twice: set[str] = set()  # functions whose result is awaited as well

    def count(self, path: str, functions: tuple[tuple[object, ...], ...]) -> None:
        """Take in what one file says."""
        for f in functions:
            parent = cast("int", f[2])
            if f[4] & 1 and parent > 0 and functions[parent][0] == "__getattr__":  # type: ignore[operator]
                self.has_remote_objects = True
            name, flags, at, calls, awaited = f[0], f[4], f[5], f[9], f[10]
            if flags & 1:  # type: ignore[operator]
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
                self._awaited_here[path, callee] += 1
                self._awaited_names[key.rpartition(".")[2]] += 1
                self._awaited_places.setdefault(key, (path, at[0]))  # type: ignore[index]
            for callee in calls:  # type: ignore[attr-defined]
                self._bare[_tail(callee)] += 1
                self._bare_here[path, callee] += 1

    def colors(self, name: str) -> tuple[int, int]:
        """How many definitions of that name are async, and how many are not."""
        return self._async[name], self._plain[name]

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
        if callee[0] == "attr" and callee[2] in GENERIC and callee[1][1] in scope.plainly_entered:
            return None  # the file that `with open(…) as file` gives is not the one of `async with`
        path = scope.module.path
        reason = self._by_name(callee[2], path) if callee[0] == "attr" and not external else None
        if reason is not None and not scope.function.is_async and not self._fits(callee):
            reason = None
        siblings = reason is None
        if reason is None and scope.function.is_async:
            reason = self._by_siblings(text, scope.function)
        if reason is None or _asks_for_color(scope.function):
            return None
        site = scope.site(None, node[-1], text, "coroutine", lambda: (reason,), sure=False)
        if site is not None:
            site.by_siblings = siblings
        return Coroutine(site, lambda: None)

    def speaks_for(self, name: str, callee: str, function: Function) -> bool:
        """Whether `call` might have something to say about that callee; `name` is "" for one from a library."""
        if name and self._by_name(name, function.module.path) is not None:
            return True
        return function.is_async and self._by_siblings(callee, function) is not None

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
        if name in GENERIC or name.startswith("__"):
            return None
        count, plain = self.colors(name)
        telling = self._methods[name] if is_test(asking) else self._methods[name] - self._rehearsed[name]
        if not telling or plain or self._may_override_a_library(name):
            return None
        path, line = self._places[name]
        which = "the only definition" if count == 1 else f"all {count} definitions"
        verb = "is" if count == 1 else "are"
        return Reason(f"{which} of `{name}` in this project {verb} `async def`", path, line)

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

    def _fits(self, callee: Node) -> bool:
        """Whether the receiver is called like a class that has the method: `manager` and `EventManager`."""
        base = callee[1]
        word = base[1] if base[0] == "name" else base[2] if base[0] == "attr" else ""
        if word in {"self", "cls"}:
            return True
        plain = word.replace("_", "").lower()
        return len(plain) > 3 and any(plain in owner for owner in self._owners.get(callee[2], ()))

    def _by_siblings(self, text: str, function: Function) -> Reason | None:
        """Sites that call the same by the same words: in this file, or anywhere if the words are telling."""
        if "…" in text:
            return None
        path, key = function.module.path, _tail(text)
        awaited, bare = self._awaited_here[path, text], self._bare_here[path, text]
        where = "in this file"
        is_generic = key.rpartition(".")[2] in GENERIC
        fewest = _FEWEST_OF_LOCAL if is_generic and _is_local(text, function) else _FEWEST_HERE
        if awaited < fewest or (bare - 1) * 4 > awaited:
            awaited, bare = self._awaited[key], self._bare[key]
            where = "in this project"
            if awaited < _FEWEST_ANYWHERE or bare > 1 or is_generic:
                return None
        place = self._awaited_places[key]
        return Reason(f"`{text}(…)` is awaited in {awaited} other functions {where}", *place)


# How many functions have to await the same words: two in one file know what they do; elsewhere the same words may
# mean another object, so three, and nobody who does otherwise. The `sock` whose `send` is called may even be another in
# each function of a file, unless it belongs to the module or to `self`.
_FEWEST_HERE = 2
_FEWEST_OF_LOCAL = 3
_FEWEST_ANYWHERE = 3


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
