"""Keep the ledger of a walk: decide what each use does to the state of an awaitable.

The evaluator finds the value of an expression and calls a method here for each use of it: an `await`, an argument, an
attribute, an index, an operand, a `yield`. There are four outcomes.

- `settle`: it is awaited. A coroutine that was surely awaited before is awaited twice, which is an incident.
- `keep`: somebody may keep it and await it, so nothing is said about it any more. This is the answer to every doubt.
- `hand_over`: it goes to somebody unknown who does not look like one that awaits. The site becomes `WEAK`; if nothing
  better happens to it before the end, the finding is likely, not certain.
- `misuse`: it is taken for its result, as in `load()["key"]`. If a name holds it, the use is noted, and the end of
  the walk decides; else it is an incident at once.

Arguments are the hard part. `arguments` asks, about in this order: is the callee a construct that says it itself
(`cast`, `isinstance`, `next`, a loop over a collection)? Does it put the awaitable into a container, which then holds
it? Does the callee drop, show or compare what it gets (`coroutine_sinks.py`, which looks into functions of the
project and into the tables of libraries)? May it await it? Else it is handed over.

Tests are full of awaitables that are misused on purpose. So what stands inside `pytest.raises(TypeError)`, or where a
warning is caught, is no incident. An object that works without being awaited (`Site.is_quiet`) is reported only where
a use shows that its result was meant. The ledger also records calls, operands and keys for the rules that ask for
them after the walk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeGuard

from troth.analysis.facts.fields import (
    AT,
    ATTR_BASE,
    ATTR_NAME,
    CALL_ARGS,
    CALL_FUNC,
    CALL_KEYWORDS,
    CONST_VALUE,
    DEF_FUNCTION,
    INDEX_BASE,
    INDEX_KEY,
    KIND,
    LAMBDA_BODY,
    NAME_ID,
    VALUE,
    WALRUS_NAME,
    WALRUS_VALUE,
)
from troth.analysis.facts.names import callee_text, dotted
from troth.analysis.facts.nodes import walk
from troth.analysis.semantics.incident import (
    AWAITED,
    KEPT,
    MAYBE,
    PENDING,
    WEAK,
    AwaitableKind,
    IncidentKind,
    KeyAsked,
    LossIncident,
    Misuse,
    MisuseKind,
    Operand,
    Site,
    Taker,
)
from troth.analysis.semantics.infer.annotations import names_async_iterator
from troth.analysis.semantics.infer.awaitables_in_value import (
    NEVER,
    as_one,
    awaitables,
    has_dict,
    holds_awaitable,
    is_awaitable,
    is_future,
    is_sure,
)
from troth.analysis.semantics.infer.call_graph import Call
from troth.analysis.semantics.infer.evaluator import WITH_A_CONSTANT, Evaluator, _at_of
from troth.analysis.semantics.infer.never_awaitable import is_harmless, mentions_awaitable, never_awaitable
from troth.analysis.semantics.resolve import library
from troth.analysis.semantics.resolve.color_checks import asks_for_color
from troth.analysis.semantics.symbols import Class, Function
from troth.analysis.semantics.values import (
    NONE,
    AsyncContext,
    AsyncGenerator,
    Awaitable,
    AwaitableContext,
    AwaitableObject,
    Builtin,
    ClassObject,
    Coroutine,
    External,
    FunctionValue,
    Instance,
    Nothing,
    Table,
    TupleOf,
    Union,
    Value,
    members_of,
    union,
)
from troth.analysis.semantics.walk.closure_uses import uses_inside
from troth.analysis.semantics.walk.data_names import takes_as_data
from troth.analysis.semantics.walk.library_callbacks import calls_what_it_gets, wants_an_awaitable
from troth.analysis.semantics.walk.sync_variants import is_of_plain_flavor

if TYPE_CHECKING:
    from collections.abc import Iterable

    from troth.analysis.facts.model import At, Node
    from troth.analysis.semantics.symbols import Module
    from troth.analysis.semantics.walk.walking import Walking

__all__ = ["LOCKS_OF_THREADS", "Ledger", "State", "last_part"]


State = tuple[dict[str, Value | None], dict[Site, int]]

_OF_DEFERREDS = frozenset({"addCallback", "addErrback", "addBoth", "addCallbacks", "add_done_callback"})
_RAISING = frozenset(
    {"attribute", "subscript", "iteration", "arithmetic", "unpacking", "async iteration", "comparison"}
)
# What shows that the result of an object was meant, and what shows it of a query besides.
_SHOWING = (_RAISING, _RAISING | {"dropped", "condition", "argument"})
# Errors that an awaitable raises where it is taken for its result, and what a mere call may raise or leave behind.
_OF_MISUSE = frozenset({"TypeError", "AttributeError", "Exception", "BaseException"})
_OF_ANY_CALL = frozenset({"TypeError", "RuntimeWarning"})
_OF_MERE_CALLS = _OF_ANY_CALL | {"catch_warnings"}
LOCKS_OF_THREADS = frozenset(
    f"threading.{name}()" for name in ("Lock", "RLock", "Semaphore", "BoundedSemaphore", "Condition")
)
_NEVER_ASYNC = (TupleOf, Table, FunctionValue)
_NEEDS_A_LOOP = frozenset({"dropped task"})
_LOOPING_BUILTINS = frozenset(
    {"list", "tuple", "set", "frozenset", "sorted", "sum", "min", "max", "any", "all", "enumerate", "iter", "reversed"}
    | {"dict"}
)
_GATHER = frozenset({"asyncio.gather", "asyncio.tasks.gather"})
_OF_COROUTINES_TOO = frozenset({"send", "throw", "close"})
_WRITTEN_KNOWINGLY = frozenset({"async with", "async iteration", "with"})
# Methods of collections of which it is known what becomes of the items.
_FOLLOWED = frozenset(
    {"append", "add", "extend", "insert", "appendleft", "extendleft", "clear", "remove", "discard", "count", "index"}
    | {"copy", "keys", "values", "items", "get", "pop", "popleft", "setdefault", "update", "sort", "reverse", "union"}
    | {"join", "format", "startswith", "endswith"}
)
_FILLING = frozenset({"append", "add", "insert", "put", "put_nowait"})
# Methods of lists, sets and dicts that loop over what they are given.
_LOOPING = frozenset({"extend", "update", "extendleft", "union", "intersection", "difference"})

# Importing them replaces each of their async methods by one that runs the loop where none runs yet.
_PLAIN_OUTSIDE = frozenset({"pyrogram", "hydrogram"})

_NEEDS_A_STAR = Taker("`asyncio.gather` inside a collection, which needs a `*`", "awaits its items", "asyncio.gather")
_CAST = Taker("`cast`, whose type is no awaitable", "wants no awaitable", "typing.cast")
_ITERATING = Taker("the code that iterates the generator", "iterates")
# Builtins that take what a collection holds one by one, and for what.
_ONE_BY_ONE: dict[str, MisuseKind] = {"any": "condition", "all": "condition", "sum": "argument"}


# Callables that call a function with what they get after it, and where it stands.
_HANDING_ON = {
    "functools.partial": 0,
    "asyncio.to_thread": 0,
    "asyncio.threads.to_thread": 0,
    "anyio.to_thread.run_sync": 0,
    "starlette.concurrency.run_in_threadpool": 0,
}


def _qualname(func: Value | None) -> str:
    if isinstance(func, FunctionValue):
        return func.function.qualname
    return func.cls.qualified if isinstance(func, ClassObject) and isinstance(func.cls, library.LibraryClass) else ""


class Ledger(Evaluator):
    """What a walk through one function knows of the awaitables it met."""

    def __init__(self, program: Walking, function: Function) -> None:
        super().__init__(program, function.module, function, None)
        self.judge = program.judge
        self.consumers = program.consumers
        self.inside = function
        self.pending: dict[Site, int] = {}
        self.alive = True
        self.incidents: dict[tuple[At, str], LossIncident] = {}
        self.sites: dict[tuple[At, str], Site] = {}
        self.variables: dict[Site, str] = {}
        self.misuses: dict[Site, list[Misuse]] = {}
        self.exits: dict[Site, int] = {}
        self.returns: list[Value | None] = []
        self.yields: list[Value | None] = []
        self.attributes: dict[str, list[Value | None]] = {}
        self.stored: list[tuple[Node, Value]] = []
        self.bound: dict[str, list[Value | None]] | None = {} if function.module.inner(function.index) else None
        self._globals: set[str] = set()
        self._may_be_none: set[str] = set()  # variables that were None, or declared so, somewhere before
        self._loops: list[tuple[list[State], list[State]]] = []  # states at `break`, at `continue`
        self._masks: list[int] = []
        self._tried: list[tuple[tuple[Node, ...], bool]] = []  # bodies whose handlers we are in; do they name TypeError
        self._expects_error = False  # inside `with pytest.raises(…)`
        self._expected: frozenset[str] = frozenset()  # the errors and warnings that are named there
        self._returned_result = False  # some path returns something that is no awaitable
        self._closures: list[Node | int] = []
        self._arms = False
        self.is_asking = False  # what becomes of a parameter, whatever it is given
        self._is_plain_side = False  # where somebody has made sure that the methods are plain
        self._knows_mode = False  # where somebody has asked whether all of this is to be plain or async
        self._awaits: dict[Site, At] = {}  # where an awaitable was awaited last
        self._raised: dict[Site, int] = {}  # what was held where an error was raised
        self._known: set[Site] = set()  # awaitables that somebody handles as what they are
        self.calls: dict[At, Call] = {}
        self.keys: list[KeyAsked] = []
        self.operands: dict[tuple[At, int], Operand] = {}
        self._catches_refusal = False  # inside a `try` that expects a TypeError
        self._awaiting: set[At] = set()
        self._unlisted: dict[At, Value] = {}
        self._knows_attributes = False  # `env` has entries such as "self.body", learned from `isinstance`
        self.narrowed: dict[int, dict[str, Value]] = {}  # what functions inside may take for granted
        self._outer: dict[str, Value | None] = {}  # names that nothing in the function binds keep their meaning

    # -- what the judge says of calls that inference cannot resolve ----------------------------------------------------

    def judged(self, node: Node, external: str = "", decorated: Function | None = None) -> Value | None:
        judge = self.judge
        value = judge.call(node, self, external)
        return judge.decorated(decorated, node, self) if value is None and decorated is not None else value

    def judged_receiver(self, node: Node, wanted: str) -> Value | None:
        return None if self.function is None else self.judge.receiver(node, self.function, wanted)

    def doubt_about(self, called: Function, node: Node, *, is_guess: bool) -> str:
        return self.judge.doubt_about(called, node, self, is_guess=is_guess)

    def awaitable_object(self, instance: Instance, node: Node, target: Function | None) -> Value:
        return self.judge.awaitable_object(instance, node, self, target)

    def site(
        self, target: Any, at: At, callee: str, awaitable: AwaitableKind, reasons: Any, *, sure: bool
    ) -> Site | None:
        if self._knows_mode and not self.inside.is_async:
            return None  # a sync function that knows of both flavors is not run in this one, or gives to who awaits
        if isinstance(target, library.LibraryFunction) and self.runs_by_itself(target.qualname):
            return None
        answer = self.sites.get((at, awaitable))
        if answer is None:
            if not self.inside.is_async and is_of_plain_flavor(self.program, self.inside):
                return None
            answer = self.sites[at, awaitable] = Site(self.inside, at, callee, target, awaitable, sure, reasons)
        return answer

    def runs_by_itself(self, qualname: str) -> bool:
        """Whether a library has made its async methods plain for code outside of a running loop, as here."""
        if self.inside.is_async:
            return False
        top = qualname.partition(".")[0]
        return top in _PLAIN_OUTSIDE or (top == "telethon" and self.module.imports_module("telethon.sync"))

    def keep(self, value: Value | None) -> None:
        if value is None or not self.pending or type(value) in NEVER:
            return
        for awaitable in awaitables(value):
            site = awaitable.site
            if site is not None and site in self.pending:
                self.pending[site] = (self.pending[site] & MAYBE) | KEPT

    def known(self, value: Value | None) -> None:
        """Somebody handles the awaitable as what it is: he enters it, steps through it, or asks for its kind.

        An attribute that he reads beside that is one the object has, and no proof that he took it for its result.
        """
        self.keep(value)
        self._known.update(awaitable.site for awaitable in awaitables(value) if awaitable.site is not None)

    def hand_over(self, value: Value | None, taker: Taker, at: At | None) -> None:
        """The value goes to somebody unknown who does not look like one that awaits it."""
        for awaitable in awaitables(value):
            site = awaitable.site
            if site is None or site.awaitable == "task":
                continue
            if self._is_made_on_the_spot(site):
                self.keep(awaitable)
                continue
            if site in self.pending:
                if not self.pending[site] & (KEPT | AWAITED):
                    self.pending[site] |= WEAK
                    self.misuses.setdefault(site, []).append(Misuse("handed over", at or site.at, taker.words, taker))
            elif isinstance(awaitable, Coroutine):
                self.incident("handed over", site, detail=taker.words, taker=taker, sure=False)

    def _is_made_on_the_spot(self, site: Site) -> bool:
        """Whether the awaitable is that of a function inside this one which nobody awaits: made for who is given it."""
        target = site.target
        return (
            isinstance(target, Function)
            and target.parent is not None
            and target.parent.index > 0
            and target.owner is None
            and not self.program.counts.is_awaited(target.name)
        )

    def _is_remade(self, function: Function) -> bool:
        """Whether a decorator may make something else of it: an async generator, as whoever loops over it expects."""
        return not all(is_harmless(self.program, function, decorator) for decorator in function.facts.decorators)

    def misuse(
        self, value: Value | None, kind: MisuseKind, at: At | None = None, text: str = "", taker: Taker | None = None
    ) -> None:
        if value is None or type(value) in NEVER:
            return
        if taker is not None:
            text = taker.words
        if isinstance(value, Union):
            real = [m for m in value.members if not isinstance(m, Nothing)]
            if len(real) < len(value.members) and kind in {"condition", "comparison"}:
                return  # asks whether there is one at all
            if not all(map(is_awaitable, real)):
                # Another path gave another value; on the path of the awaitable it is misused all the same.
                real = [m for m in real if is_awaitable(m) and m.site is not None]  # type: ignore[union-attr]
                if kind == "condition" and all(m.site in self.pending for m in real):  # type: ignore[union-attr]
                    kind = "perhaps condition"  # true or not, depending on the path
            for member in real:
                self.misuse(member, kind, at, text, taker)
            return
        if not is_awaitable(value):
            return  # a container of awaitables: what becomes of them is told by what becomes of it
        if self.expects_misuse():
            self.keep(value)
            return
        site: Site | None = value.site  # type: ignore[attr-defined]
        if site is None:
            return
        if (isinstance(value, AsyncContext) and not isinstance(value, AwaitableContext)) or (
            isinstance(value, AsyncGenerator | AsyncContext)
            and kind in {"text", "argument"}
            and not (isinstance(value, AwaitableContext) and taker is not None and taker.how == "wants no awaitable")
        ):
            self.keep(value)
            return
        # What a lambda gives may be known from its namesakes alone: then its target is a text.
        if (site.target is None or isinstance(site.target, str) or (not site.sure and kind != "async iteration")) and (
            kind in _WRITTEN_KNOWINGLY or (kind == "attribute" and text in _OF_DEFERREDS)
        ):
            self.keep(value)
            return  # whoever wrote `async with` knows what the callee gives better than its namesakes do
        if kind == "async iteration" and isinstance(site.target, Function) and self._is_remade(site.target):
            self.keep(value)
            return
        if kind == "iteration" and _is_driven_by_hand(value):
            self.keep(value)
            return
        if site in self.pending:
            self.misuses.setdefault(site, []).append(Misuse(kind, at or site.at, text, taker))
            return
        if is_future(value) and kind in {"text", "perhaps condition", "comparison"} and taker is not WITH_A_CONSTANT:
            return  # a future may be shown, looked for, and asked for whether there is one
        shown: IncidentKind = kind
        if kind == "iteration" and isinstance(value, AsyncGenerator):
            shown = "plain for"
        if kind == "condition" and site.is_quiet and self._is_always_true(value):
            site.is_quiet = False  # whoever tests what a call has just made means its result
        self.incident(shown, site, detail=text, taker=taker)

    def _is_always_true(self, value: Value) -> bool:
        """Whether an object that can be awaited has nothing by which it could ever be false."""
        cls = value.instance.cls if isinstance(value, AwaitableObject) else None
        has = self.program.classes.has
        return isinstance(cls, Class) and has(cls, "__bool__") is False and has(cls, "__len__") is False

    def incident(
        self,
        kind: IncidentKind,
        site: Site,
        *,
        detail: str = "",
        taker: Taker | None = None,
        variable: str = "",
        sure: bool = True,
    ) -> None:
        """Something is wrong with the awaitable made at `site`."""
        if site.function is not self.inside or self._is_expected(kind):
            return
        if site.is_quiet and kind not in _SHOWING[site.is_query] and not self._is_proven(site):
            return  # told of where it was made, or an object that works by itself
        sure = sure and not self._expected & _OF_MERE_CALLS  # the call itself may raise it, for its arguments
        masked = self._masks[-1] if self._masks and kind in _RAISING else 0
        self.incidents[site.at, kind] = LossIncident(
            kind, site, site.at, detail, variable, sure and site.sure, masked, (), taker
        )

    def expects_misuse(self) -> bool:
        """Whether a test expects the error that an awaitable raises where it is taken for its result."""
        return bool(self._expected & _OF_MISUSE)

    def _is_expected(self, kind: str) -> bool:
        """Whether a test expects the error that this raises, or the warning that it leaves behind."""
        if self._expected & _OF_ANY_CALL:
            return kind != "dropped" or not self.inside.is_async or "RuntimeWarning" in self._expected
        return kind in _NEEDS_A_LOOP and "RuntimeError" in self._expected

    def _is_proven(self, site: Site) -> bool:
        """Whether something was asked of an awaitable that only its result has."""
        return any(misuse.kind in _SHOWING[site.is_query] for misuse in self.misuses.get(site, ()))

    def settle(self, value: Value | None, at: At) -> None:
        for member in members_of(value):
            if isinstance(member, Coroutine) and member.site is not None:
                site = member.site
                status = self.pending.get(site)
                if status is not None:
                    if status == AWAITED and not isinstance(value, Union | AwaitableObject) and not self._expected:
                        self.incidents[at, "twice"] = LossIncident(
                            "twice", site, at, "", self.variables.get(site, ""), True
                        )
                    self.pending[site] = (status & MAYBE) | AWAITED
                    self._awaits[site] = at
            elif self._expected & _OF_ANY_CALL:
                self.keep(member)
            elif isinstance(member, AsyncGenerator) and member.site is not None and not isinstance(value, Union):
                self.incidents[at, "awaited generator"] = LossIncident("awaited generator", member.site, at)
                self.keep(member)
            elif isinstance(member, FunctionValue) and not isinstance(value, Union):
                self._awaited_function(member, at)
            elif isinstance(member, Awaitable) and member.site in self.pending:  # a future may be awaited again
                self.pending[member.site] = (self.pending[member.site] & MAYBE) | AWAITED
            else:
                self.keep(member)

    def _stands_alone(self, value: Value | None, node: Node) -> None:
        """`self.flush` on a line of its own: the call was meant.

        A function with a decorator is known to whoever decorates it, and is named to say that it is used. Others are
        told in the file that defines them: elsewhere the line may find out whether the name can be imported.
        """
        *_, at = node
        if not self.inside.index or self._expects_error or not isinstance(value, FunctionValue):
            return
        function, receiver = value.function, value.receiver
        is_method = isinstance(receiver, Instance) and not receiver.guess
        is_own = isinstance(function, Function) and function.module is self.module and not function.facts.decorators
        if is_method or (is_own and receiver is None):
            self._awaited_function(value, at, kind="named alone")

    def _awaited_function(
        self, value: FunctionValue, at: At, given_to: str = "", *, kind: IncidentKind = "not called"
    ) -> None:
        function = value.function
        is_async = (
            self.program.effects.of(function) == "coroutine"
            if isinstance(function, Function)
            else "a" in function.flags
        )
        if not is_async:
            return
        program = self.program

        def why() -> Any:
            if isinstance(function, Function):
                return program.reasons.of_own(value, function)
            return program.reasons.of_library(value, function)

        sure = not (isinstance(value.receiver, Instance) and value.receiver.guess)
        site = Site(self.inside, at, function.name, function, "coroutine", sure, why)
        self.incidents[at, kind] = LossIncident(kind, site, at, given_to)

    def on_await(self, node: Node) -> Value | None:
        awaited = node[VALUE]
        if awaited[KIND] == "call":
            self._awaiting.add(awaited[4])
        value = self.value(awaited)
        self.settle(value, node[2])
        self.note_operand("await", awaited, value, node[2])
        return self.outcome(awaited, value)

    def note_operand(self, how: str, node: Node, value: Value | None, at: At, place: int = 0) -> None:
        """Note what an async operation is given, where all that it may be is known; the last walk over it counts."""
        if value is None and how == "async with" and self._is_builtin_open(node):
            value = Builtin("context")
        real = [m for m in members_of(value) if not isinstance(m, Nothing)]
        if not real or self._catches_refusal or self.expects_misuse() or not all(map(_may_be_refused, real)):
            self.operands.pop((at, place), None)
            return
        sure = not any(isinstance(m, Instance) and m.guess for m in real)
        base = self.value(node[ATTR_BASE]) if node[KIND] == "attr" else None
        sure = sure and not any(isinstance(m, Instance) and m.guess for m in members_of(base))
        self.operands[at, place] = Operand(how, node, union(real) or real[0] or NONE, at, sure, base)

    def _is_builtin_open(self, node: Node) -> bool:
        if node[KIND] != "call" or node[CALL_FUNC] != ("name", "open"):
            return False
        opener = self.value(node[CALL_FUNC])
        return isinstance(opener, FunctionValue) and opener.function.qualname == "builtins.open"

    def on_index(self, node: Node) -> Value | None:
        base_node, index_node = node[INDEX_BASE], node[INDEX_KEY]
        base = self.value(base_node)
        self.as_key(index_node, is_read=True)
        if type(base) is Instance and index_node[:2] == ("const", "str") and len(index_node) == 3:
            if base_node[KIND] == "name":
                self.keys.append(KeyAsked(base_node[NAME_ID], index_node[CONST_VALUE], base, None))
            elif base_node[KIND] == "await":
                self.keys.append(KeyAsked("", index_node[CONST_VALUE], base, base_node[2]))
            elif base_node[KIND] == "index" and base_node[INDEX_BASE][KIND] == "name":
                self.keys.append(KeyAsked(f"{base_node[INDEX_BASE][NAME_ID]}[]", index_node[CONST_VALUE], base, None))
        return self.item(base, index_node, _at_of(base_node))

    def as_key(self, node: Node, *, is_read: bool = False) -> None:
        """A future is a key as good as any, and so is what a variable holds; a call in brackets is for its result.

        Whoever looks something up by what he has just got means its result too.
        """
        key = self.value(node)
        is_fresh = is_read and node[KIND] == "name" and type(key) is Coroutine and key.site in self.pending
        if is_future(key) or (node[KIND] in {"name", "attr"} and holds_awaitable(key) and not is_fresh):
            self.keep(key)
        else:
            self.misuse(key, "subscript", _at_of(node))

    def lacks(self, base: Instance, name: str, at: At, base_node: Node | None) -> None:
        if name == "get" and base_node is not None and base_node[KIND] in {"name", "await"}:
            if base_node[KIND] == "name" and any(
                isinstance(member, Builtin | Table) for member in members_of(self.value(base_node))
            ):
                return  # `dict | Model`: it is asked for where it is the dict
            self.keys.append(KeyAsked(base_node[NAME_ID] if base_node[KIND] == "name" else "", None, base, at))

    def unlisted(self, base: Instance, name: str, at: At) -> None:
        assert isinstance(base.cls, library.LibraryClass)
        lineage = library.lineage(base.cls.qualified) or (base.cls.qualified,)
        paths = [External(f"{value}.{name}") for value in lineage]
        self._unlisted[at] = union(paths) or paths[0]

    def arguments(self, func: Value | None, node: Node, values: list[tuple[str | None, Value | None]]) -> None:
        at = node[4]
        call_made = self.calls.get(at)
        if call_made is None or (call_made.callee is None and func is not None):
            callee = self._unlisted.get(node[1][AT]) if func is None and node[1][KIND] == "attr" else func
            self.calls[at] = Call(self.inside, node, callee, tuple(values), at in self._awaiting)
        if func is None and node[1][KIND] == "attr" and node[1][ATTR_NAME] in _OF_COROUTINES_TOO:
            self._asked_of_result(node)
        if self.pending and _takes_out(func):
            assert isinstance(func, FunctionValue)
            self.keep(func.receiver)
        for position, (name, value) in enumerate(values):
            if (
                type(value) is FunctionValue
                and not self._expected & _OF_ANY_CALL
                and wants_an_awaitable(self.calls[at], name or str(position))
            ):
                self._awaited_function(value, at, last_part(callee_text(node[1])))
            self._argument(func, node, values, position)

    def _argument(
        self, func: Value | None, node: Node, values: list[tuple[str | None, Value | None]], position: int
    ) -> None:
        """What becomes of one argument."""
        name, value = values[position]
        if value is None or type(value) in NEVER or not holds_awaitable(value):
            return
        if name in {"*", "**"} and is_awaitable(value):
            self.misuse(value, "unpacking", node[-1])
            return
        if self._is_builtin_argument(node, position, value):
            return
        if _loops_over(node, func) and is_awaitable(value):
            self.misuse(value, "iteration", node[-1])
            return
        if self._put_in_container(node, func, value):
            return
        if self._is_filled_with_results(node, func) and is_awaitable(value):
            self.hand_over(value, _callee(node), node[-1])
            return
        if is_awaitable(value) and (taker := calls_what_it_gets(self.calls[node[-1]].callee, name or str(position))):
            caller = Taker(f"`{taker}`, which wants a function to call", "calls it", taker)
            self.misuse(value, "argument", node[-1], taker=caller)
            return
        if position and _is_map(func) and not any(map(is_awaitable, members_of(value))):
            self.keep(value)  # each goes to a function, such as `loop.create_task`
            return
        if name is None and _is_gather(func) and isinstance(value, Builtin | TupleOf):
            for awaitable in awaitables(value):
                self.misuse(awaitable, "argument", node[-1], taker=_NEEDS_A_STAR)
            return
        if type(value) is AsyncGenerator and _loops_over_it(func, node, position):
            self.misuse(value, "iteration", node[-1])
            return
        dropper = self.consumers.drops(func, node, position, name) or self._handed_on(func, values, position, name)
        if dropper is not None:
            self._dropped_argument(dropper, func, node, position, name, value)
            return
        self._unjudged_argument(func, node, position, name, value)

    def _is_builtin_argument(self, node: Node, position: int, value: Value) -> bool:
        """Whether the callee is `cast`, `isinstance`, `hasattr` or `next`, which say what they do with an argument."""
        if last_part(callee_text(node[1])) == "cast" and position == 1:
            if is_awaitable(value) and self._is_cast_to_result(node):
                self.misuse(value, "argument", node[-1], taker=_CAST)
            elif type(value) is Coroutine and names_async_iterator(node[2][0]):
                self.keep(value)  # whoever writes this out knows what the callee gives better than an interface
            return True  # it gives back what it is given
        if node[1] == ("name", "isinstance"):
            return True  # what it learns is told by the branches
        if node[1] == ("name", "hasattr") and node[2][1:2] == (("const", "str", "__await__"),):
            self.keep(value)
            if node[2][0][KIND] == "name":
                self.env[node[2][0][1]] = None  # what it is, is found out at run time
            return True
        if node[1] == ("name", "next") and _is_driven_by_hand(value):
            self.keep(value)
            return True
        return False

    def _dropped_argument(
        self, dropper: Taker, func: Value | None, node: Node, position: int, name: str | None, value: Value
    ) -> None:
        """The callee is known not to await the argument."""
        if dropper.how == "opens it":
            for awaitable in awaitables(value):
                self.misuse(awaitable, "text", node[-1], taker=dropper)
        elif not any(map(is_awaitable, members_of(value))):
            if dropper.how == "drops it" and dropper.name in _ONE_BY_ONE:
                for awaitable in awaitables(value):
                    self.misuse(awaitable, _ONE_BY_ONE[dropper.name], None, taker=dropper)
            elif self.consumers.wants_results(func, position, name):
                for awaitable in awaitables(value):
                    self.misuse(awaitable, "argument", node[-1], taker=dropper)
            elif _is_mixed_dict(value) and any(map(is_awaitable, value.values)):
                self.hand_over(value, _callee(node), node[-1])
            elif not isinstance(func, FunctionValue) or isinstance(func.function, Function):
                self.keep(value)  # a collection of awaitables is given to somebody who takes collections
        else:
            kind: MisuseKind = "text" if dropper.how == "shows it" else "argument"
            self.misuse(value, kind, node[-1], taker=dropper)

    def _unjudged_argument(self, func: Value | None, node: Node, position: int, name: str | None, value: Value) -> None:
        """The callee may await the argument, keep it, or lose it."""
        by_keyword = not self.is_asking
        if not all(m is not None and _is_mixed_dict(m) for m in members_of(value)) and self.consumers.may_await(
            func, node, position, name, by_keyword=by_keyword
        ):
            if self._is_given_as_data(node, func, position, name, value):
                self.hand_over(value, _callee(node), node[-1])
                return
            self.keep(value)
            if asks_for_color(callee_text(node[1])) and position < len(node[2]) and node[2][position][KIND] == "name":
                self.env[node[2][position][1]] = None  # what it is, is found out at run time
        elif (
            node[-1] in self._awaiting and self.consumers.gives_back(func, position, name)
            if func is not None
            else (node[-1] in self._awaiting and not self._is_lost_inside(value))
            or self.consumers.is_kept_by_namesake(node, position, name)
        ):
            self.keep(value)
        else:
            self.hand_over(value, _callee(node), node[-1])

    def _is_given_as_data(self, node: Node, func: Value | None, position: int, name: str | None, value: Value) -> bool:
        """Whether a variable is given to an unknown callee by the name of what the awaitable gives.

        `message = channel.send(…)`, then `await self.handle_message(message)` or `self.messages.append(message)`: who
        wants the awaitable itself to be awaited there calls it a task or a coroutine.
        """
        if not self.inside.is_async or type(value) is not Coroutine or not (func is None or type(func) is External):
            return False
        site = value.site
        if site is None or not site.sure or not isinstance(site.target, Function | library.LibraryFunction):
            return False
        _, callee, arguments, keywords, *_ = node
        argument = dict(keywords).get(name) if name else next(iter(arguments[position:]), None)
        if argument is None or argument[:1] != ("name",):
            return False
        _, variable = argument
        return takes_as_data(callee, variable)

    def _handed_on(
        self, func: Value | None, values: list[tuple[str | None, Value | None]], position: int, name: str | None
    ) -> Taker | None:
        """Whoever gets the argument in the end: `partial(self.show, rows)` and `to_thread(show, rows)` hand it on."""
        place = _HANDING_ON.get(_qualname(func))
        if place is None or position <= place or values[place][0] is not None:
            return None
        taker = values[place][1]
        if not isinstance(taker, FunctionValue) or not isinstance(taker.function, Function):
            return None
        return self.consumers.refuses(taker, position - place - 1, name)

    def _is_cast_to_result(self, node: Node) -> bool:
        """Whether `cast(dict, load())` names a type that can certainly not be awaited."""
        written, *_ = node[2]
        if mentions_awaitable(written, ("Future",)):
            return False  # the other `Future` was meant
        return never_awaitable(self.program.types.annotated(written, self.module, self.inside), self.program)

    def _asked_of_result(self, node: Node) -> None:
        """`await channel.send("x")` of a coroutine: its own `send` cannot be awaited, nor does it begin with a text."""
        _, base, name, _ = node[1]
        is_text = (
            name == "send" and bool(node[2]) and (node[2][0][KIND] == "fstr" or node[2][0][:2] == ("const", "str"))
        )
        if node[4] not in self._awaiting and not is_text:
            return
        if base[KIND] == "name":
            held = self.env.get(base[NAME_ID])
            if type(held) is Coroutine:
                self.misuse(held, "attribute", _at_of(base), name)
        elif base[KIND] == "call":
            site = self.sites.get((base[4], "coroutine"))
            if site is not None and site not in self.pending:
                self.incident("attribute", site, detail=name)

    @staticmethod
    def _is_lost_inside(value: Value) -> bool:
        """Whether an awaitable, or a collection with one that is surely an awaitable, is given away.

        Of a collection of what may be awaitables, whoever is unknown and awaited himself may well await the items.
        """
        return any(map(is_awaitable, members_of(value))) or any(
            p.site is not None and p.site.sure for p in awaitables(value)
        )

    def _is_filled_with_results(self, node: Node, func: Value | None) -> bool:
        """`self.totals.append(…)`, where the list that an object keeps is declared to hold no awaitables."""
        callee = node[1]
        if callee[KIND] != "attr" or callee[ATTR_NAME] not in _FILLING or callee[ATTR_BASE][KIND] != "attr":
            return False
        held = func.receiver if isinstance(func, FunctionValue) else None
        if isinstance(held, Instance) and isinstance(held.cls, library.LibraryClass):
            return held.cls.name.endswith("Queue") and bool(held.args) and never_awaitable(held.args[0], self.program)
        return isinstance(held, Builtin) and bool(held.args) and never_awaitable(held.args[0], self.program)

    def _put_in_container(self, node: Node, func: Value | None, value: Value) -> bool:
        """`jobs.append(job())`: the local list now holds the awaitable."""
        callee = node[1]
        if callee[KIND] != "attr" or callee[ATTR_NAME] not in {"append", "add", "appendleft", "insert", "extend"}:
            return False
        if (
            callee[ATTR_BASE][KIND] != "name"
            or not isinstance(func, FunctionValue)
            or not isinstance(func.receiver, Builtin)
        ):
            return False
        name = callee[ATTR_BASE][NAME_ID]
        if name not in self.env:
            return False
        old = as_one(self.env[name])
        if old is None:
            return False
        new = self.iterated(value) if callee[ATTR_NAME] == "extend" else value
        held = union([*old.args[:1], new])
        self.env[name] = Builtin(old.name, (held,))
        self._hold(name, value)
        if held is None:  # too many to follow
            self.keep(old)
            self.keep(value)
        return True

    def _hold(self, variable: str, value: Value | None) -> None:
        """A variable now holds the awaitables in `value`."""
        if not holds_awaitable(value):
            return
        if variable in self._globals or self.inside.index == 0:
            self.keep(value)
            return
        if not is_sure(value) and not self._from_arms(value):
            return
        for awaitable in awaitables(value):
            site = awaitable.site
            if site is None or site in self.pending or site.function is not self.inside:
                continue
            if site.awaitable == "task":
                continue
            self.pending[site] = PENDING
            self.variables[site] = variable
            for closure in self._closures:
                if _mentions(closure, variable, self):
                    self.pending[site] = KEPT
                    self._note_uses_inside(closure, site)

    def _from_arms(self, value: Value | None) -> bool:
        """Whether the alternatives come from the arms of one expression rather than from one call."""
        return (
            isinstance(value, Union)
            and len({p.site.at for p in awaitables(value) if p.site is not None}) > 0
            and self._arms
        )

    def is_patched(self, callee: Node) -> bool:
        """Whether an attribute of the receiver was set in this function: a method may not do what its class says."""
        if not self._knows_attributes or callee[KIND] != "attr":
            return False
        root = dotted(callee[ATTR_BASE])
        return bool(root) and any(
            key.startswith(f"{root}.") and isinstance(v, External | Instance) for key, v in self.env.items()
        )

    def hands_over_patched(self, call: Node, used: Iterable[str]) -> bool:
        """`d.read = Mock()`, then `read(d)`: what a function gives that only hands on what its argument gives."""
        if not self._knows_attributes:
            return False
        roots = {dotted(argument) for argument in (*call[CALL_ARGS], *(value for _, value in call[CALL_KEYWORDS]))} - {
            ""
        }
        methods = {callee.rpartition(".")[2] for callee in used} if roots else set()
        return any(
            key.rpartition(".")[0] in roots and key.rpartition(".")[2] in methods and isinstance(v, External | Instance)
            for key, v in self.env.items()
        )

    def on_name(self, node: Node) -> Value | None:
        name = node[NAME_ID]
        if name in self.env:
            return self.env[name]
        if name not in self._outer:
            self._outer[name] = self.outer(name)
        return self._outer[name]

    # -- expressions that capture --------------------------------------------------------------------------------------

    def on_lambda(self, node: Node) -> Value | None:
        self._capture(node[LAMBDA_BODY])
        return super().on_lambda(node)

    def _capture(self, inner: Node | int) -> None:
        self._closures.append(inner)
        for site in [s for s, status in self.pending.items() if status & PENDING]:
            if _mentions(inner, self.variables.get(site, ""), self):
                self.pending[site] = KEPT
                self._note_uses_inside(inner, site)
        if self.pending:  # a collection that the closure reads may hold some as well
            for name, value in self.env.items():
                if holds_awaitable(value) and _mentions(inner, name, self):
                    self.keep(value)

    def _note_uses_inside(self, closure: Node | int, site: Site) -> None:
        """A function inside takes the awaitable for its result: `return settings["url"]`."""
        if not isinstance(closure, int) or site.awaitable != "coroutine" or not site.sure or site.target is None:
            return
        for kind, at, text in uses_inside(self.module.function(closure), self.variables[site]):
            self.misuses.setdefault(site, []).append(Misuse(kind, at, text))

    def on_yield(self, node: Node) -> Value | None:
        value = None if node[VALUE] is None else self.value(node[VALUE])
        self.yields.append(value)
        if isinstance(value, Coroutine) and self.inside.is_async and self._yields_results(value):
            self.hand_over(value, _ITERATING, value.site.at if value.site else None)
        elif self.inside.is_async and has_dict(value):
            self.hand_over(value, _ITERATING, None)
        else:
            self.keep(value)
        return None

    def on_yieldfrom(self, node: Node) -> Value | None:
        value = self.value(node[VALUE])
        if type(value) is Coroutine and not self.inside.facts.decorators:
            self.misuse(value, "iteration", _at_of(node[VALUE]))  # only `@types.coroutine` may
        else:
            self.keep(value)
        return None

    def _yields_results(self, value: Coroutine) -> bool:
        """Whether results rather than awaitables are expected of this generator."""
        if any(v is not None and not holds_awaitable(v) for v in self.yields):
            return True
        if _yields_a_result(self.inside.body()):
            return True
        returns = self.inside.facts.returns
        if returns is not None and not mentions_awaitable(returns):
            return True
        if self.inside.parent is not None and _gives_away(self.inside.parent.body(), self.inside.name):
            return False  # made for somebody who may await what he gets
        return value.site is not None and self.judge.is_awaited_elsewhere(value.site)

    def on_walrus(self, node: Node) -> Value | None:
        value = self.value(node[WALRUS_VALUE])
        self.env[node[1]] = value
        if self.bound is not None:
            self.bound.setdefault(node[WALRUS_NAME], []).append(value)
        self._hold(node[WALRUS_NAME], value)
        return value


def _may_be_refused(value: Value | None) -> bool:
    """Whether an async operation may have no use for a value of this kind."""
    kind = type(value)
    if kind is External:
        return isinstance(value, External) and value.path in LOCKS_OF_THREADS
    return kind is Builtin or kind is Instance or kind is AsyncContext or kind in _NEVER_ASYNC


def _gives_away(body: tuple[Node, ...], name: str) -> bool:
    """Whether what calling `name` gives is given to somebody as an argument."""
    calls = (node for node in walk(body) if node[KIND] == "call")
    arguments = (argument for call in calls for argument in (*call[2], *(value for _, value in call[3])))
    return any(argument[KIND] == "call" and argument[CALL_FUNC] == ("name", name) for argument in arguments)


def _yields_a_result(body: tuple[Node, ...]) -> bool:
    """Whether something that is no awaitable is yielded in `body`: a constant, or what an `await` gives."""
    yielded = (node[VALUE] for node in walk(body) if node[KIND] == "yield" and node[VALUE] is not None)
    return any(node[KIND] in {"await", "const", "fstr", "dict"} and node != ("const", "None") for node in yielded)


def _is_driven_by_hand(value: Value | None) -> bool:
    """Whether a generator of `@types.coroutine` makes it: an iterator like any other."""
    target = value.site.target if isinstance(value, Coroutine) and value.site is not None else None
    return isinstance(target, Function) and target.is_generator and not target.is_async


def _is_mixed_dict(value: Value) -> TypeGuard[Table]:
    """Whether it is a dict with an awaitable among other things: nobody unpacks that in order to await."""
    return isinstance(value, Table) and not all(map(is_awaitable, value.values))


def _takes_out(func: Value | None) -> bool:
    """Whether a method of a collection may take awaitables out of it in a way that is not followed."""
    return (
        isinstance(func, FunctionValue) and isinstance(func.receiver, Builtin) and func.function.name not in _FOLLOWED
    )


def _is_map(func: Value | None) -> bool:
    """Whether it is the builtin `map`."""
    return isinstance(func, FunctionValue) and func.function.qualname == "builtins.map"


def _loops_over_it(func: Value | None, node: Node, position: int) -> bool:
    """Whether a builtin loops over that argument: `sorted(rows())`."""
    if not isinstance(func, FunctionValue) or not isinstance(func.function, library.LibraryFunction):
        return False
    module, _, name = func.function.qualname.rpartition(".")
    if module == "builtins.str" and name == "join":
        return True
    return module == "builtins" and (
        (name in _LOOPING_BUILTINS and not position and len(node[2]) == 1)
        or (name in {"map", "filter"} and position > 0)
    )


def _is_gather(func: Value | None) -> bool:
    return isinstance(func, FunctionValue) and func.function.qualname in _GATHER


def _loops_over(node: Node, func: Value | None) -> bool:
    """Whether a method of a builtin container loops over its argument."""
    return (
        node[1][KIND] == "attr"
        and node[1][ATTR_NAME] in _LOOPING
        and isinstance(func, FunctionValue)
        and isinstance(func.receiver, Builtin)
    )


def _mentions(inner: Node | int, variable: str, flow: Ledger) -> bool:
    """Whether a closure reads `variable`."""
    if not variable:
        return False
    nodes = flow.module.function(inner).body() if isinstance(inner, int) else (inner,)
    return _reads(nodes, variable, flow.module)


def _reads(nodes: tuple[Node, ...], variable: str, module: Module) -> bool:
    for node in walk(nodes):
        if node[KIND] == "name" and node[NAME_ID] == variable:
            return True
        # A function inside the closure reads what the closure can read.
        if node[KIND] == "def" and _reads(module.function(node[DEF_FUNCTION]).body(), variable, module):
            return True
    return False


def last_part(callee: str) -> str:
    """The last name of a callee as written."""
    return callee.rpartition(".")[2]


def _callee(node: Node) -> Taker:
    """Whoever is called, of whom no more is known."""
    callee = callee_text(node[1])
    return Taker(f"`{callee}`", "unknown", callee)
