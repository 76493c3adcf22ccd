"""What other places of the project say about a callee whose type is not known.

Two kinds of witnesses speak: definitions (every function of that name in the project is `async def`, and the name is
not one that objects of libraries commonly have) and sibling sites (the same callee, as written, is awaited elsewhere
and hardly ever used without). Both make a finding likely, never certain; where they disagree, nothing is said.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, cast

from troth.analysis.facts.names import last_name
from troth.analysis.facts.nodes import walk
from troth.analysis.findings import Reason
from troth.analysis.semantics.evidence.call_site_evidence import (
    OF_NOBODY,
    Siblings,
    is_of_async_module,
    is_queued,
    is_telling,
)
from troth.analysis.semantics.evidence.color_checks import asks_for_color_of
from troth.analysis.semantics.evidence.common_method_names import GENERIC
from troth.analysis.semantics.evidence.framework_parameters import ASYNC_BY_NAME, is_asgi_call, is_asgi_message
from troth.analysis.semantics.evidence.proxy_objects import has_stand_ins
from troth.analysis.semantics.infer.call_results import callee_text
from troth.analysis.semantics.queries.color_requirements import is_protocol
from troth.analysis.semantics.resolve import library
from troth.analysis.semantics.resolve.library import LibraryClass
from troth.analysis.semantics.resolve.library_variants import is_plain_here
from troth.analysis.semantics.resolve.test_files import is_test
from troth.analysis.semantics.symbols import Class
from troth.analysis.semantics.values import Awaitable, AwaitableObject, Coroutine, External, Instance, Value

if TYPE_CHECKING:
    from collections.abc import MutableMapping, MutableSet

    from troth.analysis.facts.model import FunctionFacts, Node
    from troth.analysis.incremental.counters import Holders
    from troth.analysis.semantics.infer.evaluator import Evaluator
    from troth.analysis.semantics.program import Program
    from troth.analysis.semantics.symbols import Function
    from troth.analysis.semantics.walk.incident import Site

__all__ = ["Evidence", "counted", "is_carried"]


class Evidence:
    """Counts witnesses over the whole project."""

    def __init__(self, program: Program | None) -> None:
        """Without a program, only what one file says can be counted."""
        if program is not None:
            self._program = program
        self._async: Counter[str] = Counter()
        self._methods: Counter[str] = Counter()  # of the async ones, those that a class has
        self._rehearsed: Counter[str] = Counter()  # of these, the ones in tests and in functions: fakes and examples
        self._owners: MutableMapping[str, set[str]] = {}  # the classes that have them, in lower case
        self._plain: Counter[str] = Counter()
        self._unread: set[str] = set()  # of these, the ones in files that could not be read
        self._overriding: MutableMapping[str, bool] = {} if program is None else program.answers()
        self._adding: MutableMapping[str, bool] = {} if program is None else program.answers()
        self._async_users: MutableMapping[tuple[str, str], bool] = {} if program is None else program.answers()
        self._derived: MutableMapping[tuple[object, str], bool] = {} if program is None else program.answers()
        self._wrapped: MutableMapping[str, bool] = {} if program is None else program.answers()
        self._bodied: MutableMapping[str, bool] = {} if program is None else program.answers()
        self._places: MutableMapping[str, tuple[str, int]] = {}
        self.siblings = Siblings(program)
        self._generators: MutableSet[str] = set()  # names of async generators: calling one gives no coroutine
        self._remote: MutableSet[str] = set()  # a `__getattr__` makes async methods of any name: `await rpc.anything()`
        self.awaited_twice: MutableSet[str] = set()  # functions whose result is awaited as well

    def count(self, path: str, functions: tuple[tuple[object, ...], ...]) -> None:
        """Take in what one file says."""
        for f in functions:
            parent = cast("int", f[2])
            if f[4] & 1 and parent > 0 and functions[parent][0] == "__getattr__":  # type: ignore[operator]
                self._remote.add("")
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
                self.siblings.count(path, f, functions, callee)

    def count_unread(self, text: str) -> None:
        """Take in what the words of a file say that could not be read: of its definitions no more than their colors."""
        for is_async, name in _DEFINITION.findall(text):
            if is_async:
                self._async[name] += 1
            else:
                self._plain[name] += 1
                self._unread.add(name)

    def holders(self) -> Holders:
        """What is counted."""
        return ((self, _COUNTED), (self.siblings, self.siblings.COUNTED))

    @property
    def has_remote_objects(self) -> bool:
        """Whether a `__getattr__` makes async methods of any name."""
        return "" in self._remote

    def _is_own_super(self, callee: Node, function: Function) -> bool:
        """Whether an async method hands the call on to the one it overrides, as others of its name do and await.

        One method alone says nothing of a base that nobody knows: it may be the plain one that was made async here.
        """
        return (
            callee[0] == "attr"
            and callee[2] == function.name
            and callee[1][:2] == ("call", ("name", "super"))
            and not callee[1][2]
            and not function.name.startswith("__")
            and any(
                other is not function and f"?.{function.name}" in other.facts.awaited
                for other in self._program.calling.functions_named(function.name)
            )
        )

    def colors(self, name: str) -> tuple[int, int]:
        """How many definitions of that name are async, and how many are not."""
        return self._async[name], self._plain[name]

    def is_plain_somewhere(self, name: str) -> bool:
        """Whether a function of that name is plain, other than a method that only declares what subclasses have.

        The interfaces of many projects are plain, and all that implements them is `async def`.
        """
        if not self._plain[name]:
            return False
        if not self._async[name] or name in self._unread:
            return True
        known = self._bodied.get(name)
        if known is None:
            known = self._bodied[name] = any(
                not (f.is_async or (f.is_abstract and f.decorated_with("abstractmethod")))
                for f in self._program.calling.functions_named(name)
            )
        return known

    def has_shapes(self, name: str) -> bool:
        """Whether calls of that name may give several things: plain and async definitions, or async generators too."""
        return (self._async[name] > 0 and self._plain[name] > 0) or name in self._generators

    def async_names(self) -> set[str]:
        """Names with at least one async definition, and names that are awaited somewhere."""
        return set(self._async) | self.siblings.awaited_names()

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
        if callee[0] == "attr" and callee[2] == "run_in_executor":
            why = Reason("`run_in_executor` of an event loop gives a future")
            return Awaitable(None, "future", scope.site("", node[-1], text, "future", lambda: (why,), sure=False))
        if scope.function.is_async and is_asgi_message(node):
            why = Reason("the `send` of ASGI, which takes messages like this one, is a coroutine function")
            return Coroutine(scope.site("", node[-1], text, "coroutine", lambda: (why,), sure=False), lambda: None)
        if _STAND_IN.search(text.rpartition(".")[0]):
            return None  # a stand-in has methods of any name, in the color that its test gave them
        if scope.function.is_async and (is_asgi_call(node) or self._is_own_super(callee, scope.function)):
            why = Reason(_ASGI_CALL if is_asgi_call(node) else _OVERRIDDEN.format(scope.function.qualname))
            return Coroutine(scope.site("", node[-1], text, "coroutine", lambda: (why,), sure=False), lambda: None)
        if callee[0] == "attr" and callee[2] in GENERIC and callee[1][1] in scope.plainly_entered:
            return None  # the file that `with open(…) as file` gives is not the one of `async with`
        path = scope.module.path
        if is_carried(external) or self.is_met_again(external, text):
            external = ""
        if not external and (self._is_nobodys(callee, scope) or self._is_given_by_default(callee, scope.function)):
            external = OF_NOBODY
        by_definition = (
            callee[0] == "attr" and not external and callee[1][1] not in scope.plainly_entered and not is_queued(text)
        )
        reason = self._by_name(callee[2], path) if by_definition else None
        if reason is not None and not self._may_be_meant(callee, scope.function):
            reason = None
        if callee[0] == "name" and scope.function.is_async and scope.function.origins.get(callee[1]) == "getattr()":
            # `close_all = getattr(hook, "close_all", None)`: a variable that is called as it is there.
            reason = self._by_name(callee[1], path)
        if reason is not None and self.siblings.is_used_plainly(text, scope.function):
            reason = None
        if reason is not None and not scope.function.is_async and has_stand_ins(self._program):
            reason = None  # a plain function may well have an object that runs the coroutines itself
        if reason is None and callee[0] == "attr" and scope.function.is_async:
            reason = self._by_library(callee[2], path, "" if self._is_of_unknown_base(external, scope) else external)
        if reason is None and callee[0] == "attr" and scope.function.is_async and self._is_async_twin(callee[2]):
            reason = Reason(f"`{callee[2]}` is how the async twin of a method is called")
        witness = None
        if reason is None and scope.function.is_async:
            whose = "" if self._is_of_unknown_base(external, scope) else external
            witness = self.siblings.speak_of(text, scope.function, whose)
            reason = witness.reason if witness is not None else None
        if reason is None or asks_for_color_of(self._program, scope.function, text):
            return None
        site = scope.site(None, node[-1], text, "coroutine", lambda: (reason,), sure=False)
        if site is not None:
            site.by_siblings, site.by_name = witness is not None, witness is None
            site.is_firm = witness is not None and witness.firm
        return Coroutine(site, lambda: None)

    def decorated(self, called: Function, asking: Function) -> Reason | None:
        """Why an `async def` under a decorator that nobody can follow is believed to give a promise all the same.

        Others await it, and hardly anybody does otherwise; nothing of that name is plain.
        """
        if not (called.is_async and asking.is_async and called.facts.decorators) or called.is_generator:
            return None
        if called.name in GENERIC or called.name in self._generators:
            return None
        effects = self._program.effects
        if self.is_plain_somewhere(called.name) or effects.may_start_it(called) or effects.may_run_it(called):
            return None
        return self.siblings.speak_of_decorated(called.name)

    def by_company(
        self, node: Node, scope: Evaluator, given: tuple[External, ...], *, is_tested: bool
    ) -> Reason | None:
        """Why an unknown callee, whose result is thrown away or tested, is believed to give a promise all the same.

        Only there: what takes the result of a method of an async object may well take it from a plain one. `given` is
        what the call gives, as far as it is known to come from a library.
        """
        callee, function = node[1], scope.function
        if callee[0] != "attr" or function is None or not function.is_async:
            return None
        text = callee_text(callee)
        if asks_for_color_of(self._program, function, text):
            return None
        if _STAND_IN.search(text.rpartition(".")[0]) or callee[1][1] in scope.plainly_entered:
            return None
        if self._is_nobodys(callee, scope) and not self._is_of_unknown_base(OF_NOBODY, scope):
            return None
        if any(library.knows(one.path.partition(".")[0]) and not is_carried(one.path) for one in given):
            return None  # what the table of a library does not say is not so
        if self._is_plain_elsewhere(callee[2], scope.module.path):
            return None
        return self._program.company.speak_of(text, function, is_tested=is_tested)

    def is_met_again(self, external: str, text: str) -> bool:
        """Whether an object of the project is met again behind one of a library: `Context.get().app.token_manager`.

        It is called like a class of the project that has the method.
        """
        if not _BEHIND.search(external) or library.knows(external.partition(".")[0]):
            return False
        receiver, name = external.split(".")[-2:]
        return is_telling(f"{receiver}.{name}") and self._fits(receiver, name, "") and text.endswith(f".{name}")

    def _is_nobodys(self, callee: Node, scope: Evaluator) -> bool:
        """Whether the receiver is known, and neither its class nor one that derives from it has the method.

        It comes from a base of which nothing is known, or is set from outside: namesakes in other classes say nothing.
        """
        if callee[0] != "attr" or scope.unmet is None or scope.unmet[0] != callee[3]:
            return False
        base, name = scope.unmet[1], callee[2]
        if base.guess or callee[1] in {("name", "self"), ("name", "cls")} or self._may_have_more(base, name, scope):
            return False
        key = (base.cls, name)
        known = self._derived.get(key)
        if known is None:
            classes = self._program.classes
            owners = [f.owner for f in self._program.calling.functions_named(name) if f.owner is not None]
            known = self._derived[key] = (isinstance(base.cls, Class) and classes.may_be_given(base.cls, name)) or any(
                base.cls in classes.order(one) for owner in owners for one in (owner, *classes.children(owner))
            )
        return not known

    def _may_have_more(self, base: Instance, name: str, scope: Evaluator) -> bool:
        """Whether the object may well have what its class lacks: a protocol says the least, and `hasattr` asks."""
        if isinstance(base.cls, Class) and is_protocol(base.cls):
            return True
        function = scope.function
        if function is None or "hasattr" not in function.facts.calls:
            return False
        said = self._program.text(function.module.path).cut(*function.facts.at)
        return re.search(rf"""\bhasattr\([^()]+,\s*["']{re.escape(name)}["']\s*\)""", said) is not None

    def _is_of_unknown_base(self, external: str, scope: Evaluator) -> bool:
        """Whether only a base that nobody knows can bring the method with it: that of a library the file imports."""
        base = scope.unmet[1].cls if external == OF_NOBODY and scope.unmet is not None else None
        return isinstance(base, Class) and None in self._program.classes.order(base)

    def _is_given_by_default(self, callee: Node, function: Function) -> bool:
        """Whether the receiver is a parameter with something of a library for a default: `trio.TASK_STATUS_IGNORED`."""
        if callee[0] != "attr" or callee[1][0] != "name":
            return False
        param = function.params.get(callee[1][1])
        if param is None or param[1] is not None or param[2] is None or param[2][0] != "attr":
            return False
        default = self._program.static(function.module, function.parent).value(param[2])
        return isinstance(default, External) or (
            isinstance(default, Instance) and isinstance(default.cls, LibraryClass)
        )

    def awaitable_object(self, instance: Instance, node: Node, scope: Evaluator, target: Function | None) -> Value:
        """An object with `__await__`, which may do its work by itself.

        It is lost where the other sites show that it is to be awaited, or where a use shows that its result was meant.
        """
        if scope.function is None or not scope.function.is_async or node[1][0] not in {"attr", "name"}:
            return instance
        text = callee_text(node[1])
        is_own = isinstance(instance.cls, Class)
        witness = self.siblings.speak_of(text, scope.function, "" if is_own else instance.cls.name)
        if witness is None and target is not None:
            witness = self.siblings.speak_of_method(target.name)
        if witness is not None and self.siblings.is_left_alone(text.rpartition(".")[2]):
            witness = None
        is_query = not is_own and _is_query(instance)
        if asks_for_color_of(self._program, scope.function, text) or not (
            witness or is_query or _gives_something_else(instance)
        ):
            return instance
        why = Reason(f"it gives a `{instance.cls.name}`, which is to be awaited")
        reason = why if witness is None else witness.reason
        site = scope.site(None if witness else target, node[-1], text, "coroutine", lambda: (reason,), sure=False)
        if site is not None:
            site.by_siblings, site.is_firm = witness is not None, witness is not None and witness.firm
            site.is_quiet = witness is None
            site.is_query = is_query
        return AwaitableObject(site, lambda: scope.awaited(instance), instance)

    def speaks_for(self, name: str, callee: str, function: Function, external: str = "") -> bool:
        """Whether `call` might have something to say about that callee; `name` is "" for one from a library."""
        if callee.rpartition(".")[2] in {*BY_PROTOCOL, "run_in_executor"}:
            return True
        if name and self._by_name(name, function.module.path) is not None:
            return True
        last = callee.rpartition(".")[2]
        if "." in callee and function.is_async and self._is_async_twin(last):
            return True
        if "." in callee and function.is_async and self._by_library(last, function.module.path) is not None:
            return True
        if not function.is_async:
            return False
        external = external if is_of_async_module(external) else ""
        return self.siblings.speak_of(callee, function, external) is not None

    def is_awaited_elsewhere(self, site: Site) -> bool:
        """Whether other sites await a callee of that name."""
        return self.siblings.is_awaited(site.callee.rpartition(".")[2])

    def is_always_awaited(self, site: Site) -> bool:
        """Whether a result rather than a promise is expected at `site`.

        In `async def` the callee being known is enough: whoever wants the promise itself names it so. In a plain
        function, which cannot await, another site has to show that the callee is awaited.
        """
        name = site.callee.rpartition(".")[2]
        if site.target is None:
            return site.function.is_async and not site.by_siblings and self.siblings.is_awaited(name)
        return site.function.is_async or self.siblings.is_awaited(name)

    def _by_name(self, name: str, asking: str) -> Reason | None:
        if (
            name in GENERIC
            or name.startswith("__")
            or name in self._generators
            or self._is_plain_elsewhere(name, asking)
        ):
            return None
        count = self._async[name]
        telling = self._methods[name] if is_test(asking) else self._methods[name] - self._rehearsed[name]
        if not telling or self.is_plain_somewhere(name) or self._may_override_a_library(name) or self._is_wrapped(name):
            return None
        path, line = self._places[name]
        which = "the only definition" if count == 1 else f"all {count} definitions"
        verb = "is" if count == 1 else "are"
        return Reason(f"{which} of `{name}` in this project {verb} `async def`", path, line)

    def _is_wrapped(self, name: str) -> bool:
        """Whether a decorator makes something else of an `async def` of that name: a worker, a command, a tool."""
        known = self._wrapped.get(name)
        if known is None:
            known = self._wrapped[name] = any(
                f.is_async and f.facts.decorators and self._program.effects.of(f) != "coroutine"
                for f in self._program.calling.functions_named(name)
            )
        return known

    def _by_library(self, name: str, asking: str, external: str = "") -> Reason | None:
        """The name of a method that a library which the file imports has, only as a coroutine function.

        Of something that comes from a library, in another version than the one that is known, only that one speaks.
        """
        if name in GENERIC or len(name) < _TELLING or any(self.colors(name)) or self._is_plain_elsewhere(name, asking):
            return None
        if name.startswith("_"):
            return None  # of what is private the tables know little
        if _OF_A_CLASS.search(external):
            return None  # a class that the table leaves out has nothing async in it
        for top in [external.partition(".")[0]] if external else sorted(self._program.module(asking).packages):
            home = self._program.finder.find(top, asking)
            if home is not None and self._program.finder.name_of(home) == top:
                continue  # the project is that library, and its own files say what it has
            if name in library.async_methods(top) and not self._program.is_older(top):
                if is_plain_here(top, name, self._program.allowed):
                    return None
                if name in library.methods_of_async_twins(top) and not self._asks_for_async(top, asking):
                    continue  # it has plain clients as well, and one of these may be meant
                return Reason(f"`{name}` of {top} is a coroutine function in every class that has it")
        return None

    def _asks_for_async(self, top: str, asking: str) -> bool:
        """Whether a file has something of a package whose name says that it is async."""
        known = self._async_users.get((top, asking))
        if known is None:
            file = self._program.module(asking).facts
            imported = (f"{i.module}.{i.name or ''}" for i in file.imports if i.module.partition(".")[0] == top)
            named = (name for f in file.functions for name in (*f.calls, *f.awaited) if name.startswith(f"{top}."))
            known = any(map(library.is_called_async, (*imported, *named)))
            self._async_users[top, asking] = known
        return known

    def _is_async_twin(self, name: str) -> bool:
        """Whether a method is called as async twins are, and nothing plain in the project is called so."""
        return ASYNC_BY_NAME.match(name) is not None and not self.is_plain_somewhere(name)

    def _is_plain_elsewhere(self, name: str, asking: str) -> bool:
        """Whether a library that the asking file imports has a plain method of that name."""
        return any(name in library.plain_methods(top) for top in self._program.module(asking).packages)

    def _may_override_a_library(self, name: str) -> bool:
        """Whether the only method of that name is in a `GatewayClient(AsyncClient)` of an unknown library.

        The library may well have a plain client with the same method.
        """
        if self._methods[name] != 1:
            return False
        known = self._overriding.get(name)
        if known is None:
            module = self._program.module(self._places[name][0])
            methods = self._program.calling.functions_named(name)
            owner = next((f.owner for f in methods if f.module is module and f.owner is not None), None)
            known = False
            if owner is not None and None in self._program.classes.order(owner):
                facts = owner.facts
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
            return owner is not None and (self.is_in_family(name, owner) or self._is_mixed_in(owner, function))
        if name.endswith("_async") and not name.startswith("_"):
            return function.is_async  # whoever has one that is called so, and is no library's, has an async one
        if name == function.name:  # a wrapper that hands the call on, mostly to an object of a library
            return function.is_async and _is_one_of_several(callee[1], function)
        around = "" if owner is None else owner.name.lower()
        if self._owners.get(name, set()) == {around} and (
            callee[1][0] == "attr"
            or (callee[1][0] == "name" and self._is_made_elsewhere(function.origins.get(callee[1][1], "")))
        ):
            return False
        if name.startswith("_"):
            return False  # what is private is another's own
        if self._fits(last_name(callee[1]), name, around):
            return True
        if self._adds_to_a_library(name):
            return False  # other objects of the library may have it too
        return function.is_async and self._methods[name] - self._rehearsed[name] < _MANY_DEFINITIONS

    def _is_made_elsewhere(self, origin: str) -> bool:
        """Whether a variable holds what a method gives that nobody in the project defines: `wire.get_proxy()`."""
        return origin.endswith("()") and "." in origin and not any(self.colors(origin[:-2].rpartition(".")[2]))

    def _is_mixed_in(self, owner: Class, function: Function) -> bool:
        """Whether a class can only work as a part of others: all its bases are known, and nobody is seen to derive.

        What it lacks then comes from the classes beside it, `class App(*commands)`.
        """
        classes = self._program.classes
        return (
            function.is_async
            and all(
                isinstance(one, Class) or (one is not None and one.name == "object") for one in classes.order(owner)
            )
            and not any(classes.children(owner))
            and classes.has(owner, "__getattr__") is False
        )

    def is_in_family(self, name: str, owner: Class) -> bool:
        """Whether a class, or a subclass of it, brings the method with it."""
        classes = self._program.classes
        family = [owner, *classes.children(owner)]
        return any(isinstance(one, Class) and name in one.methods for child in family for one in classes.order(child))

    def _fits(self, word: str, name: str, around: str) -> bool:
        """Whether the receiver is called like a class that has the method: `manager` and `EventManager`.

        The class around the call is hardly meant: an object seldom holds another of its kind.
        """
        plain = word.replace("_", "").lower()
        owners = self._owners.get(name, set()) - {around}
        if len(owners) < _MANY_DEFINITIONS:
            return len(plain) > 3 and any(plain in owner for owner in owners)
        # Where many classes have it, `image` is no `ImageFinder`; `message_interface` may be a `MessageInterfaceUDP`.
        ends = len(plain) > 3 and any(owner.endswith(plain) for owner in owners)
        return ends or ("_" in word.strip("_") and any(owner.startswith(plain) for owner in owners))


_COUNTED = (
    "_async",
    "_methods",
    "_rehearsed",
    "_owners",
    "_plain",
    "_places",
    "_generators",
    "_remote",
    "awaited_twice",
)


def counted(path: str, functions: tuple[FunctionFacts, ...]) -> Evidence:
    """What one file alone says."""
    alone = Evidence(None)
    alone.count(path, functions)
    return alone


BY_PROTOCOL = frozenset({"__aenter__", "__aexit__", "__anext__"})
_MANY_DEFINITIONS = 3
_STAND_IN = re.compile(r"(?i)(?:^|[._])(?:mock|magicmock|stub|spy)|mock(?:$|\.)")
_ASGI_CALL = "an ASGI application is called with `scope`, `receive` and `send`"
_OVERRIDDEN = "`{}`, which overrides it, is `async def`"


_TELLING = 5  # letters; shorter names mean many things
_OF_A_CLASS = re.compile(r"(?:^|\.)[A-Z][^.()]*\.[^.]+$")  # `Api.whoami`, not `Api().whoami`


def _is_one_of_several(receiver: Node, function: Function) -> bool:
    """Whether a loop goes through the receivers: what hands a call on to many of a kind is of that kind itself."""
    return receiver[0] == "name" and any(node[0] == "for" and node[2] == receiver for node in walk(function.body()))


def _is_query(instance: Instance) -> bool:
    return isinstance(instance.cls, LibraryClass) and instance.cls.qualified.startswith(library.QUERIES)


def _gives_something_else(instance: Instance) -> bool:
    """Whether a class of the project says of itself that it stands for a result: `class Run(Awaitable[R])`."""
    if not isinstance(instance.cls, Class):
        return False
    bases = [base[1] if base[0] == "index" else base for base in instance.cls.facts.bases]
    return any(callee_text(base).rpartition(".")[2] in {"Awaitable", "Coroutine"} for base in bases)


_DEFINITION = re.compile(r"^[ \t]*(async[ \t]+)?def[ \t]+(\w+)", re.MULTILINE)
_BEHIND = re.compile(r"\)(?:\.\w+){3,}$")  # two attributes at least, and the method
_CARRIED = re.compile(r"\)\.(?:\w+\.)*(?:obj|state|ctx|user_data|bot_data|chat_data|extensions)\.\w+\.")


def is_carried(external: str) -> bool:
    """Whether an object of a library only carries what the project has put in: `typer.Context().obj.client.get`."""
    return _CARRIED.search(external) is not None


def _last_word(name: str) -> str:
    """`Client` of `GatewayKernelClient`."""
    found = re.findall(r"[A-Z][a-z0-9]+", name)
    return found[-1] if len(found) > 1 else ""
