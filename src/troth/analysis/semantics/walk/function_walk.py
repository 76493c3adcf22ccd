"""Walk through a function in the order in which it runs, and find what becomes of each awaitable.

This is an abstract interpreter. Where Python has objects, the walk has values (`semantics/values.py`), or None for
what is unknown. Its state has two halves: `env`, what each name stands for, and `pending`, what may have become of
each awaitable that a name holds. An awaitable is known by its site, the call that makes it, and `pending` has a set
of flags for each site (`semantics/incident.py`), so that one state can stand for many paths.

- An expression statement throws its value away. If that is an awaitable which no name holds, it is lost here.
- An assignment binds names. From then on the site is pending, and each use changes its flags: the ledger, which this
  class derives from (`awaitable_states.py`), decides how.
- Branches are walked apart, each with a copy of the state, and joined: the flags of a site become the union of both
  sides, and a site that one side has not made is also `MAYBE`.
- A loop is walked once, and a second time if the first round changed what a name stands for; the second round begins
  with what holds before the loop or after the first round, and its incidents replace those of the first. There is no
  third round. A `for` may have no round at all, but an awaitable that its body awaits counts as awaited: loops are
  written to be entered.
- A handler of `try` begins with the values from before and after the body. Where the error struck is unknown, so
  nothing that was pending can be called lost on that path.
- A way out of the function adds the flags to `exits`. A path that ends in `raise` counts only for a site that no
  other way out holds.

At the end, `_conclude` compares the flags of each site with how it was used. Pending and never awaited means lost;
awaited on some ways out and pending on others is a finding of its own. One awaitable is lost once, however many uses
show it: the plainest kind of incident remains. Whatever is handed to somebody who may keep it counts as kept, so that
doubt ends in silence. What remains of a walk is a `Summary`; other functions ask it for the type of a result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from troth.analysis.facts.builder import TRUE
from troth.analysis.facts.fields import (
    AT,
    ATTR_BASE,
    ATTR_NAME,
    BODY,
    CALL_ARGS,
    CALL_FUNC,
    CONST_TYPE,
    ITEMS,
    KIND,
    NAME_ID,
    ORELSE,
    SCOPE_NAMES,
    TEST,
    VALUE,
    WITH_ITEMS,
)
from troth.analysis.facts.model import PARAM_NAME, declares_scope
from troth.analysis.facts.names import callee_text, dotted, last_name
from troth.analysis.facts.nodes import children, of_kind
from troth.analysis.findings import Reason
from troth.analysis.project.test_files import is_test
from troth.analysis.semantics.incident import (
    AWAITED,
    KEPT,
    MAYBE,
    PENDING,
    WEAK,
    IncidentKind,
    LossIncident,
    Misuse,
    Site,
    Taker,
)
from troth.analysis.semantics.infer.awaitables_in_value import (
    awaitables,
    holds_awaitable,
    is_awaitable,
    is_sure,
)
from troth.analysis.semantics.infer.evaluator import _at_of, is_mock
from troth.analysis.semantics.infer.framework_parameters import response_of
from troth.analysis.semantics.infer.never_awaitable import never_awaitable
from troth.analysis.semantics.resolve.call_signature import takes_arguments
from troth.analysis.semantics.resolve.library import LibraryFunction
from troth.analysis.semantics.summary import Summary
from troth.analysis.semantics.symbols import Class, Function
from troth.analysis.semantics.values import (
    NONE,
    AsyncContext,
    AsyncGenerator,
    Awaitable,
    AwaitableContext,
    Builtin,
    CallableType,
    Coroutine,
    External,
    FunctionValue,
    Instance,
    ModuleValue,
    Nothing,
    Table,
    TupleOf,
    Value,
    members_of,
    union,
)
from troth.analysis.semantics.walk.attribute_uses import uses_contents
from troth.analysis.semantics.walk.awaitable_states import State, last_part
from troth.analysis.semantics.walk.awaited_storage import is_awaited_from
from troth.analysis.semantics.walk.coroutine_sinks import looks_like_keeper
from troth.analysis.semantics.walk.narrowing import arms_by_color, asks_for_method, asks_for_mode
from troth.analysis.semantics.walk.returned_awaitables import Returning

if TYPE_CHECKING:
    from troth.analysis.facts.model import At, Node

__all__ = ["Flow"]


_OF_MOCKS = frozenset({"side_effect", "return_value"})  # what a mock is told to give does not change its color
# Misuses that raise an error, which a broad `except` would then hide.
_PROVING = frozenset(
    {
        "attribute",
        "subscript",
        "iteration",
        "arithmetic",
        "unpacking",
        "async iteration",
        "returned inside",
        "condition",
    }
)
_USING = frozenset({"attribute", "subscript", "iteration", "arithmetic", "unpacking"})
_PLAINEST = {
    kind: place
    for place, kind in enumerate(
        [
            "never awaited",
            "returned",
            "attribute",
            "subscript",
            "unpacking",
            "iteration",
            "async iteration",
            "arithmetic",
            "condition",
            "comparison",
            "text",
            "argument",
            "handed over",
            "returned inside",
        ]
    )
}
# What `gather` and `shield` are called for is to wait; a sync function may start something in an executor and go on.
_NEW_FUTURES = (".create_future", "asyncio.Future")
_LOST_WHEN_DROPPED = frozenset({"gather", "shield"})
_RUNNING = frozenset({"run_until_complete", "run_forever", "run_coroutine_threadsafe", "asyncio.run", "anyio.run"})
_FEW_OTHERS = 4  # of so many who wait, one may hand it on
_SHOWING_A_MISTAKE = frozenset({"compares it with a constant", "opens it", "wants no awaitable"})
_LOST_IN_ASYNC = frozenset({"run_in_executor", "wrap_future"})
_EXPECTING_WARNINGS = frozenset({"warns", "assertWarns", "assertWarnsRegex"})
_EXPECTING_ERRORS = frozenset({"raises", "assertRaises", "assertRaisesRegex", "RaisesGroup"}) | _EXPECTING_WARNINGS


_UNBOUND: Any = object()


class Flow(Returning):
    """One walk through one function."""

    def run(self) -> Flow:
        """Walk through the function."""
        around = self.inside.parent
        if around is not None and around.index and is_test(self.module.path):
            self._expected = _expected_around(around.body())
        self.block(self.inside.body())
        if self.alive:
            self._leave()
            if self.returns and not self.inside.is_async and _runs_a_loop(self.inside):
                self.returns.append(NONE)  # here it waits itself for what it elsewhere gives to be awaited
        self._conclude()
        return self

    def summary(self) -> Summary:
        """What remains of the walk."""
        summary = Summary()
        summary.returns = union(self.returns) if self.returns else None
        summary.yields = union(self.yields) if self.yields else None
        summary.attributes = {name: union(values) for name, values in self.attributes.items()}
        summary.bound = {name: union(values) for name, values in (self.bound or {}).items()}
        summary.incidents = tuple(self.incidents.values())
        summary.stored = [(n, v) for n, v in self.stored if holds_awaitable(v)]
        summary.returned_result = self.returned_result
        summary.keys = tuple(self.keys)
        summary.operands = tuple(self.operands.values())
        summary.calls = tuple([call for _, call in sorted(self.calls.items())])
        summary.narrowed = self.narrowed
        return summary

    # -- statements ----------------------------------------------------------------------------------------------------

    def block(self, statements: tuple[Node, ...]) -> None:
        """Walk through a list of statements."""
        for statement in statements:
            if not self.alive:
                return
            _STATEMENTS[statement[0]](self, statement)

    def _copy(self) -> State:
        return dict(self.env), dict(self.pending)

    def _restore(self, state: State) -> None:
        self.env, self.pending = state
        self.alive = True

    def _join(self, states: list[State]) -> None:
        """Go on from where several paths meet."""
        if not states:
            self.alive = False
            return
        self.alive = True
        if len(states) == 1:
            self.env, self.pending = states[0]
            return
        first = states[0][0]
        env: dict[str, Value | None] = {}
        forgotten: list[Value | None] = []  # too many to follow
        environments = [environment for environment, _ in states[1:]]
        names = set(first).union(*environments)
        for name in names:
            joined = first.get(name, _UNBOUND)
            for environment in environments:
                if environment.get(name, _UNBOUND) is not joined:
                    break
            else:
                env[name] = joined
                continue
            values = [state[0][name] for state in states if name in state[0]]
            if self._knows_attributes and "." in name and len(values) < len(states):
                continue  # learned on some of the paths only
            env[name] = union(values)
            if env[name] is None and any(map(holds_awaitable, values)):
                forgotten += values
        pending: dict[Site, int] = {}
        for site in {s for state in states for s in state[1]}:
            status = 0
            for state in states:
                status |= state[1].get(site, MAYBE)
            pending[site] = status
        self.env, self.pending = env, pending
        for value in forgotten:
            self.keep(value)

    def _leave(self) -> None:
        """A way out of the function."""
        for site, status in self.pending.items():
            self.exits[site] = self.exits.get(site, 0) | status

    def s_expr(self, statement: Node) -> None:
        expression = statement[VALUE]
        if expression[KIND] == "name":
            self._stands_alone(self.value(expression), statement)
        self._throw_away(expression)

    def _throw_away(self, node: Node) -> None:
        """The value of `node` is not used; each arm of a conditional is thrown away by itself."""
        kind = node[0]
        if kind == "ifexp":
            if arms_by_color(node) is not None:
                self.value(node)
                return
            self.test(node[TEST])
            self._throw_away(node[BODY])
            self._throw_away(node[ORELSE])
        elif kind in {"and", "or"}:
            for part in node[ITEMS][:-1]:
                self.test(part)
            self._throw_away(node[ITEMS][-1])
        else:
            value = self.value(node)
            if kind == "call":
                self._tell_by_company(node, value, "dropped")
            elif kind == "attr":
                self._stands_alone(value, node)
            if value is None or (self._expects_error and (_is_made_by_plain_function(value) or _calls_a_result(node))):
                return  # the error that is expected may well come before there is a coroutine
            if "TypeError" in self._expected and kind == "call" and self._refuses_arguments(value, node):
                return
            self._drop(value, node)

    def _refuses_arguments(self, value: Value, node: Node) -> bool:
        """Whether the call may raise the TypeError that is expected, because its arguments do not fit."""
        site = value.site if isinstance(value, Coroutine) else None
        target = site.target if site is not None else None
        if not isinstance(target, Function) or target.facts.decorators:
            return True  # what it takes is not at hand
        is_bound = target.owner is not None and not target.decorated_with("staticmethod")
        return takes_arguments(target, node, is_bound=is_bound) is not True

    def _is_for_another_version(self, node: Node, *, is_refusal: bool) -> bool:
        """`try: await bot.reload(…)`, `except AttributeError: bot.reload(…)`: in another version it is a sync one."""
        name = callee_text(node)
        return any(
            callee_text(call) == name
            for body, catches_refusal in self._tried
            if catches_refusal or not is_refusal
            for call in of_kind(body, "call")
        )

    def _drop_coroutine(self, site: Site, node: Node) -> None:
        if not self._is_for_another_version(node, is_refusal=True):
            is_own = isinstance(site.target, Function)
            self.incident("dropped", site, sure=is_own or not self._is_for_another_version(node, is_refusal=False))

    def _drop(self, value: Value, node: Node) -> None:
        if node[KIND] == "comp":
            for awaitable in awaitables(value):
                if (
                    awaitable.site is not None
                    and awaitable.site.awaitable == "coroutine"
                    and awaitable.site not in self.pending
                ):
                    self.incident("dropped in comprehension", awaitable.site)
            return
        if isinstance(value, Builtin | TupleOf | Table) and node[KIND] in {"call", "list", "tuple", "set", "dict"}:
            for awaitable in awaitables(value):
                if (
                    isinstance(awaitable, Coroutine)
                    and awaitable.site is not None
                    and awaitable.site not in self.pending
                ):
                    if node[:1] == ("call",) and _is_listed_map(node):
                        awaitable.site.is_quiet = False  # of `list(map(load, keys))` alone nobody gets anything
                    self.incident("dropped in comprehension", awaitable.site)
            return
        if not is_sure(value) or (self._is_plain_side and not self.inside.is_async):
            return
        for member in members_of(value):
            if isinstance(member, Coroutine) and member.site is not None and member.site not in self.pending:
                self._drop_coroutine(member.site, node)
            elif (
                isinstance(member, AsyncGenerator | AsyncContext)
                and member.site is not None
                and member.site not in self.pending
            ):
                self.incident(_dropped_kind(member), member.site)
            elif isinstance(member, Awaitable) and member.site is not None and member.kind == "lazy":
                self.incident("dropped", member.site)
            elif (
                isinstance(member, Awaitable)
                and member.site is not None
                and (_is_lost_when_dropped(member.site) or self._is_awaited_by_all_others(member.site))
            ):
                self.incident("dropped task", member.site, sure=False)
            elif isinstance(member, Awaitable | Instance) and self.inside.is_async and _is_new_future(node):
                self._tell_of_future(node)

    def test(self, node: Node) -> None:
        value = self.value(node)
        self.misuse(value, "condition", _at_of(node))
        if node[KIND] == "call":
            self._tell_by_company(node, value, "condition")

    def _tell_by_company(self, node: Node, value: Value | None, kind: IncidentKind) -> None:
        """Nothing is known of the callee but that all else that is asked of its object is awaited."""
        externals = tuple([member for member in members_of(value) if isinstance(member, External)])
        if self._expects_error or (value is not None and len(externals) < len(members_of(value))):
            return
        why = self.judge.unused(node, self, externals, is_tested=kind == "condition")
        if why is not None:
            site = self.site(None, node[-1], callee_text(node[1]), "coroutine", lambda: (why,), sure=False)
            if site is not None:
                site.by_siblings = True
                self.incident(kind, site)

    def _tell_of_future(self, node: Node) -> None:
        """A future that nobody holds can never be done: whoever makes one waits for it or gives it on."""
        why = Reason("a future that is not kept is never done; it is useful only where it is awaited")
        site = self.site("", node[-1], callee_text(node[1]), "future", lambda: (why,), sure=False)
        if site is not None:
            self.incident("dropped task", site, sure=False)

    def _is_awaited_by_all_others(self, site: Site) -> bool:
        """Whether a function gives a future that others wait for: here nobody hears of its errors."""
        if site.awaitable != "future" or not self.inside.is_async or not _gives_what_is_awaited(site.target):
            return False
        awaited, bare = self.judge.sites_of(last_part(site.callee))
        return awaited > 1 and awaited >= _FEW_OTHERS * (bare - 1)

    def s_assign(self, statement: Node) -> None:
        value = self.value(statement[2])
        self._arms = statement[2][KIND] in {"ifexp", "or"}
        for target in statement[1]:
            self._assign(target, value)
        if self._arms and self._has_result_beside(statement[2], value):
            for site in [awaitable.site for awaitable in awaitables(value)]:
                if site is not None and site in self.pending:
                    self.misuses.setdefault(site, []).append(Misuse("alternative", site.at, ""))
        self._arms = False

    def _has_result_beside(self, node: Node, value: Value | None) -> bool:
        """Whether an arm of `account or fetch()` or `fetch() if x else b""` is a value that nobody could await."""
        arms = node[ITEMS] if node[KIND] == "or" else node[2:4]
        if any(map(_is_literal, arms)):
            return True
        others = [m for m in members_of(value) if not isinstance(m, Nothing) and not is_awaitable(m)]
        return bool(others) and all(
            isinstance(m, Instance) and not m.guess and never_awaitable(m, self.program) for m in others
        )

    def _assign(self, target: Node, value: Value | None) -> None:
        kind = target[0]
        if kind == "name":
            self._set(target[NAME_ID], value)
        elif kind == "attr":
            base = self.value(target[ATTR_BASE])
            if type(base) is Coroutine and target[ATTR_NAME][0] != "_":
                self.misuse(base, "attribute", target[AT], target[ATTR_NAME])
            is_own = target[ATTR_BASE][KIND] == "name" and self._is_self(target[ATTR_BASE][NAME_ID])
            if is_own:
                self.attributes.setdefault(target[ATTR_NAME], []).append(value)
                if value is not None:
                    self.stored.append((target, value))
            key = dotted(target)
            if self._knows_attributes:
                self._forget_attributes(key or "?")
            if key and not is_own and target[ATTR_NAME] not in _OF_MOCKS:
                self._learn(key, value if value is not None else External("set in this function"))
            self._put_in_attribute(target, base, value, is_own=is_own)
        elif kind in {"tuple", "list"}:
            parts = self.parts(value, len(target[ITEMS]))
            if parts is not None:
                for part, item in zip(target[ITEMS], parts, strict=True):
                    self._assign(part, item)
                return
            self.misuse(value, "unpacking", None) if is_awaitable(value) else None
            item = None if is_awaitable(value) else self.iterated(value)
            for part in target[ITEMS]:
                self._assign(part[VALUE] if part[KIND] == "star" else part, item)
        elif kind == "index":
            self._assign_index(target, value)
        else:
            self.keep(value)

    def _assign_index(self, target: Node, value: Value | None) -> None:
        """What becomes of an awaitable that is put under a key."""
        _, container, key = target[:3]
        variable = container[NAME_ID] if container[KIND] == "name" else ""
        base = self.value(container)
        if type(base) is Coroutine:
            self.misuse(base, "subscript", _at_of(container))
        self.as_key(key)
        is_put = holds_awaitable(value)
        if is_put and is_awaitable(value) and self._holds_results(base):
            self.misuse(
                value, "argument", _at_of(container), f"`{callee_text(container)}`, what it holds is no awaitable"
            )
        if is_put and is_awaited_from(self.program, target):
            self.keep(value)
        elif variable in self.env and all(isinstance(member, Builtin | Table) for member in members_of(base)):
            if not is_put and isinstance(base, Table) and _has_awaitable_elsewhere(base, key):
                self.env[variable] = Table({**base.by_key, **dict.fromkeys(key[2:], value)}, (*base.values, value))
                return
            old = [held for member in members_of(base) for held in _items_of(member)]
            self.env[variable] = Builtin("dict", (Builtin("str"), union([*old, value])))
            self._hold(variable, value)
        elif not is_put:
            return
        elif (
            looks_like_keeper(callee_text(container))
            or self._fills_for_caller(container)
            or (container[KIND] == "attr" and uses_contents(self.inside, last_name(container)))
        ):
            self.keep(value)
        else:
            keeper = callee_text(container)
            self.hand_over(value, Taker(f"`{keeper}[…]`", "keeps it as an item", keeper), _at_of(container))

    def _put_in_attribute(self, target: Node, base: Value | None, value: Value | None, *, is_own: bool) -> None:
        """What becomes of an awaitable that an attribute holds from now on."""
        _, _, name, at = target
        if not is_own and is_awaitable(value) and self._is_declared_for_results(base, name):
            how = f"`{callee_text(target)}`, which is declared to be no awaitable"
            taker = Taker(how, "wants no awaitable", callee_text(target))
            self.misuse(value, "argument", at, taker=taker)
        elif (
            is_own
            or not self.inside.is_async
            or not is_awaitable(value)
            or (looks_like_keeper(name) and not name.endswith("_id"))
            or name in _OF_MOCKS
            or not (base is None or isinstance(base, Instance | ModuleValue) or _is_surely_lost(base, value))
            or is_test(self.module.path)  # a stand-in is told what to give
            or is_awaited_from(self.program, target)
        ):
            self.keep(value)
        else:
            text = callee_text(target)
            self.hand_over(value, Taker(f"`{text}`", "unknown", text), at)

    def _is_declared_for_results(self, base: Value | None, name: str) -> bool:
        """Whether an object of the project has an attribute that is annotated with what can never be awaited."""
        if not isinstance(base, Instance) or base.guess or not isinstance(base.cls, Class):
            return False
        return never_awaitable(self.program.classes.declared(base.cls, name), self.program)

    def _holds_results(self, container: Value | None) -> bool:
        """Whether a dict is declared to hold what can certainly not be awaited."""
        if not isinstance(container, Builtin) or container.name != "dict" or len(container.args) != 2:
            return False
        held = [m for m in members_of(container.args[1]) if not isinstance(m, Nothing)]
        return bool(held) and all(never_awaitable(m, self.program) for m in held)

    def _fills_for_caller(self, container: Node) -> bool:
        """Whether a sync function puts things into what it was given: it cannot await them, its caller can."""
        return (
            not self.inside.is_async
            and container[KIND] == "name"
            and any(param[PARAM_NAME] == container[NAME_ID] for param in self.inside.facts.params)
        )

    def _is_self(self, name: str) -> bool:
        function: Function | None = self.inside
        while function is not None:
            params = function.facts.params
            if function.owner is not None:
                return bool(params) and params[0][0] == name
            function = function.parent
        return False

    def _set(self, name: str, value: Value | None) -> None:
        if self._knows_attributes:
            self._forget_attributes(name)
        self.env[name] = value
        if self.bound is not None:
            self.bound.setdefault(name, []).append(value)
        if value is not None:
            if any(isinstance(m, Nothing) for m in members_of(value)):
                self._may_be_none.add(name)
            self._hold(name, value)

    def bind(self, target: Node, value: Value | None) -> None:
        if target[KIND] == "name":
            self.env[target[1]] = value
            if self.bound is not None:
                self.bound.setdefault(target[NAME_ID], []).append(value)
        else:
            super().bind(target, value)

    def s_annassign(self, statement: Node) -> None:
        _, target, annotation, node = statement
        value = None if node is None else self.value(node)
        place = (
            f"`{target[NAME_ID]}` is annotated" if target[KIND] == "name" else "it is annotated",
            self.module.path,
            _line_of(node),
        )
        declared = self.program.types.annotated(annotation, self.module, self.inside, self.inside.owner, place)
        if holds_awaitable(value) or is_mock(value):  # what it is wins over what it is said to be
            self._assign(target, value)
        elif target[KIND] == "name":
            if node is not None or declared is not None:
                self._set(target[NAME_ID], declared if declared is not None else value)
        elif node is not None:
            self._assign(target, declared if declared is not None else value)

    def s_augassign(self, statement: Node) -> None:
        value = self.value(statement[2])
        target = statement[1]
        held = self.value(target) if target[KIND] in {"name", "attr"} else None
        if (
            isinstance(held, Builtin)
            and held.name in {"list", "set"}
            and target[KIND] == "name"
            and target[NAME_ID] in self.env
        ):
            self.env[target[1]] = Builtin(held.name, (union([*held.args[:1], self.iterated(value)]),))
            self._hold(target[NAME_ID], value)
            return
        self.misuse(value, "arithmetic", _at_of(statement[2]))
        self.misuse(held, "arithmetic", _at_of(target))

    def s_return(self, statement: Node) -> None:
        value = None if statement[1] is None else self.value(statement[1])
        self.returns.append(value)
        if self._knows_mode and not self.inside.is_async:
            self.returns.append(None)  # in the other mode something else comes back
        if value is not None:
            if self.inside.is_async and not self.inside.is_generator:
                self.returned(value, statement)
            else:
                self.returned_inside(value, statement)
        elif statement[1] is not None and statement[1][KIND] in {"await", "dict", "list", "const", "fstr"}:
            self._returned_result = True
        self._leave()
        self.alive = False

    def s_if(self, statement: Node) -> None:
        test = statement[1]
        self.test(test)
        before = self._copy()
        self.narrow(test, truth=True)
        knew, self._knows_mode = self._knows_mode, self._knows_mode or asks_for_mode(test)
        self.block(statement[2])
        states = [(self.env, self.pending)] if self.alive else []
        self._restore(before)
        self.narrow(test, truth=False)
        outside, self._is_plain_side = self._is_plain_side, self._is_plain_side or asks_for_method(test)
        self.block(statement[3])
        self._is_plain_side = outside
        if self.alive:
            states.append((self.env, self.pending))
        if len(states) > 1:  # else what follows belongs to one of the sides
            self._knows_mode = knew
        self._join(states)

    def s_while(self, statement: Node) -> None:
        def head() -> None:
            self.test(statement[1])
            self.narrow(statement[1], truth=True)

        endless = statement[1] in {TRUE, ("const", "int")}
        self._loop(head, statement[2], statement[3], endless=endless)

    def s_for(self, statement: Node) -> None:
        _, is_async, target, iterable, body, orelse, at = statement
        source = self.value(iterable)
        if not is_async and type(source) is Instance:
            self.looped_over(source, iterable, at)
        item = self.iterated_async(source, _at_of(iterable)) if is_async else self.iterated(source, _at_of(iterable))
        if is_async:
            self.note_operand("async for", iterable, source, at)

        def head() -> None:
            self._assign_item(target, item)

        self._loop(head, body, orelse, endless=False)

    def _assign_item(self, target: Node, item: Value | None) -> None:
        if target[KIND] == "name":
            self.env[target[1]] = item
            if self.bound is not None:
                self.bound.setdefault(target[NAME_ID], []).append(item)
        elif target[KIND] in {"tuple", "list"}:
            self.unpack(target, item)

    def _loop(self, head: Any, body: tuple[Node, ...], orelse: tuple[Node, ...], *, endless: bool) -> None:
        entry = self._copy()
        incidents, misuses = dict(self.incidents), {s: list(m) for s, m in self.misuses.items()}
        before = dict(self.env)
        breaks, ends = self._round(head, body)
        if ends:
            self._join([(dict(e), dict(p)) for e, p in ends])
            if any(self.env.get(n) is not v for n, v in before.items() if n in self.env):
                # The next round begins with other values than this one did: what was seen is not yet all.
                self.incidents, self.misuses = incidents, misuses
                self._join([(dict(entry[0]), dict(entry[1])), (self.env, self.pending)])
                breaks, ends = self._round(head, body)
        self._awaited_in_turns(entry, ends)
        self._restore((dict(entry[0]), dict(entry[1])))
        out: list[State] = list(breaks)
        if endless:
            if not breaks:
                for _, pending in ends:
                    for site, status in pending.items():
                        self.exits[site] = self.exits.get(site, 0) | status
            # What is made after the last `break` is there when the next round breaks.
            late = (
                [end for end in ends if any(all(site not in p for _, p in breaks) for site in end[1])] if breaks else []
            )
            self._join([*out, *late])
            return
        # Zero rounds are possible, but what a loop was written for mostly happens: awaitables are as after one round.
        zero = (dict(entry[0]), {s: self._status_after(s, v, ends) for s, v in entry[1].items()})
        self._join([zero, *ends])
        self.block(orelse)
        if self.alive:
            out.append((self.env, self.pending))
        self._join(out)

    def _awaited_in_turns(self, entry: State, ends: list[State]) -> None:
        """A coroutine that was made before the loop, and that every turn awaits: the second turn raises an error."""
        for site, status in entry[1].items():
            if status != PENDING or not ends or site.awaitable != "coroutine":
                continue
            name = self.variables.get(site, "")
            if all(
                pending.get(site) == AWAITED and type(held := env.get(name)) is Coroutine and held.site is site
                for env, pending in ends
            ):
                at = self._awaits[site]
                self.incidents[at, "twice"] = LossIncident("twice", site, at, "", name, True)

    def _round(self, head: Any, body: tuple[Node, ...]) -> tuple[list[State], list[State]]:
        """Walk once through a loop: the states at its `break`s, and those at the end of the round."""
        breaks: list[State] = []
        continues: list[State] = []
        self._loops.append((breaks, continues))
        head()
        self.block(body)
        self._loops.pop()
        return breaks, [*continues, *([(self.env, self.pending)] if self.alive else [])]

    @staticmethod
    def _status_after(site: Site, status: int, ends: list[State]) -> int:
        after = 0
        for _, pending in ends:
            after |= pending.get(site, 0)
        return after or status

    def s_with(self, statement: Node) -> None:
        _, is_async, items, body, at = statement
        masked = expects_error = False
        expected = self._expected
        for place, (node, target) in enumerate(items):
            value = self.value(node)
            if self._expects_error and not is_async and isinstance(value, AsyncContext):
                self.keep(value)
                return  # the error that it raises is expected, and what follows is never reached
            self.entered_by(value, node, at, is_async=is_async)
            if is_async:
                self.note_operand("async with", node, value, at, place)
            entered = self.entered(value, is_async=is_async)
            if is_async and target is not None and (entered is None or isinstance(entered, External)):
                entered = response_of(self.program, node) or entered
            if target is not None:
                self._assign(target, entered) if not holds_awaitable(entered) else self._assign_item(target, entered)
            if target is not None and target[KIND] == "name" and not is_async:
                self.plainly_entered.add(target[NAME_ID])
            if node[KIND] == "call" and last_name(node[CALL_FUNC]) in _EXPECTING_ERRORS:
                expects_error = expects_error or last_name(node[CALL_FUNC]) not in _EXPECTING_WARNINGS
                expected |= _expected_by(node)
            if node[KIND] == "call" and last_name(node[CALL_FUNC]) == "catch_warnings":
                expected |= {"catch_warnings"}  # perhaps the mere call is on trial
            if node[KIND] == "call" and last_name(node[CALL_FUNC]) == "suppress":
                masked = any(last_name(a) in {"Exception", "BaseException"} for a in node[CALL_ARGS])
        if masked:
            self._masks.append(at[0])
        outside = self._expects_error, self._expected
        self._expects_error, self._expected = self._expects_error or expects_error, expected
        self.block(body)
        self._expects_error, self._expected = outside
        if masked:
            self._masks.pop()

    def s_try(self, statement: Node) -> None:
        _, body, handlers, orelse, final = statement
        before = self._copy()
        broad = next((h[3] for h in handlers if _is_broad(h[0]) and not _reraises(h[2])), 0)
        if broad:
            self._masks.append(broad)
        outside = self._catches_refusal
        self._catches_refusal = outside or any(_catches_type_error(h[0]) for h in handlers)
        self.block(body)
        self._catches_refusal = outside
        if broad:
            self._masks.pop()
        if self.alive:
            after: State | None = self._copy()
            self.block(orelse)
        else:
            after = None
        states: list[State] = [(self.env, self.pending)] if self.alive else []
        for types, name, handler, _line in handlers:
            env = dict(before[0])
            if after is not None:
                for key, value in after[0].items():
                    env[key] = value if key not in env or env[key] is value else union([env[key], value])
            # Where the error struck is not known: nothing that was pending can be called lost on this path.
            pending = {site: (status & ~PENDING) | MAYBE for site, status in before[1].items()}
            self._restore((env, pending))
            if name is not None:
                self.env[name] = None
            self._tried.append((body, _catches_type_error(types)))
            self.block(handler)
            self._tried.pop()
            if self.alive:
                states.append((self.env, self.pending))
        if states:
            self._join(states)
            self.block(final)
        else:
            self._restore((dict(before[0]), {site: (status & ~PENDING) | MAYBE for site, status in before[1].items()}))
            self.block(final)
            self.alive = False

    def s_raise(self, statement: Node) -> None:
        if statement[1] is not None:
            self.keep(self.value(statement[1]))
        for site, status in self.pending.items():
            self._raised[site] = self._raised.get(site, 0) | status
        self.alive = False

    def s_assert(self, statement: Node) -> None:
        self.test(statement[1])
        self.narrow(statement[1], truth=True)
        self.misuse(self.value(statement[2]), "text", None, "the message of an assert")

    def s_del(self, statement: Node) -> None:
        for target in statement[1]:
            if target[KIND] == "name":
                self.keep(self.env.get(target[NAME_ID]))  # whoever deletes an awaitable does not want it

    def s_break(self, statement: Node) -> None:
        if self._loops:
            self._loops[-1][0].append((self.env, self.pending))
        self.alive = False

    def s_continue(self, statement: Node) -> None:
        if self._loops:
            self._loops[-1][1].append((self.env, self.pending))
        self.alive = False

    def s_import(self, statement: Node) -> None:
        for local, module, name, level in statement[1]:
            if name != "*":
                self.env[local] = self.program.names.imported(self.module, module, name, level)

    def s_def(self, statement: Node) -> None:
        index = statement[1]
        function = self.module.function(index)
        for decorator in function.facts.decorators:
            self.keep(self.value(decorator))
        if function.owner is None:
            self.env.pop(function.name, None)
            if len(self.module.inner(self.inside.index).get(function.name, ())) > 1:
                self.env[function.name] = FunctionValue(function)  # of several the one that was just defined
            callables: dict[str, Value] = {n: v for n, v in self.env.items() if isinstance(v, CallableType) and v.how}
            if callables:
                self.narrowed[index] = callables
        self._capture(index)  # a method of a class inside reads the variables around it too
        if function.owner is None and declares_scope(function.facts):
            for inner in function.body():
                if inner[KIND] == "scope":
                    self.env.update(dict.fromkeys(inner[SCOPE_NAMES].split()))  # it may set them whenever it is called

    def s_class(self, statement: Node) -> None:
        saved = dict(self.env)
        self.block(statement[2])
        self.env = saved
        self.env.pop(self.module.cls(statement[1]).name, None)

    def s_match(self, statement: Node) -> None:
        subject = statement[1]
        value = self.value(subject)
        if subject[KIND] == "call":
            self.misuse(value, "comparison", subject[4])
        else:
            self.keep(value)
        before = self._copy()
        states: list[State] = []
        for matched, captures, name, guard, body in statement[2]:
            self._restore((dict(before[0]), dict(before[1])))
            for capture in captures.split():
                self.env[capture] = None
            if matched is not None:
                for bound in ([name] if name else []) + ([subject[NAME_ID]] if subject[KIND] == "name" else []):
                    self._narrow_to_class(bound, matched)
            if guard is not None:
                self.test(guard)
            self.block(body)
            if self.alive:
                states.append((self.env, self.pending))
        self._join([*states, before])

    def s_scope(self, statement: Node) -> None:
        self._globals.update(statement[1].split())

    # -- the end -------------------------------------------------------------------------------------------------------

    def _conclude(self) -> None:
        """What was bound and never awaited is lost."""
        for site, variable in self.variables.items():
            status = self.exits[site] if site in self.exits else self._raised.get(site, 0)
            misuses = self.misuses.get(site, [])
            if (site.at, "returned") in self.incidents:
                if not (site.sure and site.awaitable == "coroutine" and any(m.kind in _USING for m in misuses)):
                    continue
                del self.incidents[site.at, "returned"]  # taken for its result before it is returned
            if site in self._known:
                continue
            is_tested = bool(status & KEPT) and variable in self._may_be_none  # a test whether there is one at all
            is_iterated = site.awaitable == "generator" and status & KEPT
            broken = not is_iterated and any(
                (m.kind in _PROVING and not (m.kind == "condition" and is_tested))
                or (m.kind == "alternative" and not status & KEPT)
                or m.how in _SHOWING_A_MISTAKE
                for m in misuses
            )
            if site.awaitable == "future":
                # It runs whether it is awaited or not; only a use that takes it for its result shows a mistake.
                is_taken = any(
                    m.kind == "argument" or (m.taker is not None and m.taker.name.startswith("json.")) for m in misuses
                )
                tested = (status & WEAK or is_taken) and not isinstance(site.target, Function)
                if not status & (AWAITED | KEPT) and (broken or tested):
                    self._never_awaited(site, variable, misuses, sure=not status & WEAK)
                elif status == PENDING and self._is_awaited_by_all_others(site):
                    self._never_awaited(site, variable, misuses, sure=False)
                continue
            if not status & AWAITED and (broken or (not status & KEPT and status & (PENDING | WEAK))):
                if any(m.kind == "iteration" for m in misuses) and site.awaitable == "generator":
                    self.incident("plain for", site, variable=variable)
                    continue
                proven = broken or not status & WEAK
                if site.awaitable != "coroutine" and not proven:
                    continue
                in_dict = any(m.how == "returns it in a dict" for m in misuses)
                is_handed_over = not proven and not in_dict
                self._never_awaited(site, variable, misuses, sure=proven, is_handed_over=is_handed_over)
            elif status & PENDING and status & AWAITED and not status & (KEPT | MAYBE):
                self.incident("sometimes awaited", site, variable=variable, sure=False)

        self._tell_once()

    def _never_awaited(
        self, site: Site, variable: str, misuses: list[Misuse], *, sure: bool, is_handed_over: bool = False
    ) -> None:
        self.incident("never awaited", site, variable=variable, sure=sure)
        incident = self.incidents.get((site.at, "never awaited"))
        if incident is not None:
            incident.is_handed_over = is_handed_over
            incident.misuses = tuple(misuses)

    def _tell_once(self) -> None:
        """One awaitable is lost once, however many ways show it; the first of the kinds is the plainest."""
        best: dict[At, int] = {}
        for _, kind in self.incidents:
            if kind in _PLAINEST:
                break
        else:
            return
        for at, kind in self.incidents:
            if kind in _PLAINEST:
                best[at] = min(best.get(at, len(_PLAINEST)), _PLAINEST[kind])
        self.incidents = {
            (at, kind): incident
            for (at, kind), incident in self.incidents.items()
            if kind not in _PLAINEST or best[at] == _PLAINEST[kind]
        }


_STATEMENTS: dict[str, Any] = {
    name.removeprefix("s_"): function for name, function in vars(Flow).items() if name.startswith("s_")
}


def _dropped_kind(value: Value) -> IncidentKind:
    if isinstance(value, AsyncGenerator):
        return "dropped generator"
    return "dropped" if isinstance(value, AwaitableContext) else "dropped context"


def _is_surely_lost(base: Value, value: Value | None) -> bool:
    """Whether an object of an unknown library is given the coroutine of a function that is known."""
    return (
        isinstance(base, External)
        and isinstance(value, Coroutine)
        and value.site is not None
        and value.site.sure
        and isinstance(value.site.target, Function)
    )


def _items_of(container: Value | None) -> tuple[Value | None, ...]:
    """What a dict holds; what a loop has begun to fill is one of several."""
    if isinstance(container, Table):
        return container.values
    return container.args[-1:] if isinstance(container, Builtin) else ()


def _has_awaitable_elsewhere(table: Table, key: Node) -> bool:
    """Whether a dict holds an awaitable, and nothing yet under a constant key."""
    return (
        key[:2] == ("const", "str")
        and len(key) == len(("const", "str", "text"))
        and table.by_key.keys().isdisjoint(key[2:])
        and any(map(is_awaitable, table.values))
    )


def _is_listed_map(node: Node) -> bool:
    """`list(map(load, keys))`."""
    _, _, arguments, *_ = node
    return any(argument[:2] == ("call", ("name", "map")) for argument in arguments)


def _is_literal(node: Node) -> bool:
    """Whether a value is written out: `b""`, `[]`, and not `None`, which may stand for no awaitable."""
    return (node[KIND] == "const" and node[CONST_TYPE] != "None") or node[KIND] in {
        "fstr",
        "list",
        "dict",
        "tuple",
        "set",
    }


def _runs_a_loop(function: Function) -> bool:
    return any(call in _RUNNING or last_part(call) in _RUNNING for call in function.facts.calls)


def _is_made_by_plain_function(value: Value) -> bool:
    """Whether a sync function gives the awaitable: it may raise before it does, an `async def` cannot."""
    site = value.site if isinstance(value, Coroutine) else None
    return site is not None and not getattr(site.target, "is_async", True)


def _is_new_future(node: Node) -> bool:
    """Whether a call makes a future out of nothing: `loop.create_future()`, `asyncio.Future()`."""
    return node[KIND] == "call" and not node[CALL_ARGS] and callee_text(node[CALL_FUNC]).endswith(_NEW_FUTURES)


def _gives_what_is_awaited(target: object) -> bool:
    """Whether a function of the project, or one that its library says no more of than that, gives an awaitable."""
    return isinstance(target, Function) or (
        isinstance(target, LibraryFunction) and target.returns.startswith("collections.abc.Awaitable")
    )


def _is_lost_when_dropped(site: Site) -> bool:
    name = last_part(site.callee)
    return site.awaitable == "task" or name in _LOST_WHEN_DROPPED or (site.function.is_async and name in _LOST_IN_ASYNC)


def _is_broad(types: Node | None) -> bool:
    if types is None:
        return True
    nodes = types[ITEMS] if types[KIND] == "tuple" else (types,)
    return any(last_name(n) in {"Exception", "BaseException"} for n in nodes)


def _catches_type_error(types: Node | None) -> bool:
    """Whether a handler names the error that an async operation raises for what it has no use for."""
    nodes = () if types is None else types[ITEMS] if types[KIND] == "tuple" else (types,)
    return any(last_name(n) in {"TypeError", "AttributeError"} for n in nodes)


def _expected_around(body: tuple[Node, ...]) -> frozenset[str]:
    """The errors that a test expects of the functions inside it, which it defines before."""
    calls = (item[0] for node in of_kind(body, "with") for item in node[WITH_ITEMS])
    expecting = [call for call in calls if call[KIND] == "call" and last_name(call[CALL_FUNC]) in _EXPECTING_ERRORS]
    return frozenset().union(*map(_expected_by, expecting))


def _expected_by(node: Node) -> frozenset[str]:
    """The errors that `pytest.raises(TypeError)` or `assertRaises((A, B))` names."""
    expected = [*node[2][:1], *(value for name, value in node[3] if name in {"expected_exception", "expected_warning"})]
    return frozenset(
        last_name(part)
        for exception in expected
        for part in (exception[ITEMS] if exception[KIND] == "tuple" else (exception,))
    )


def _calls_a_result(node: Node) -> bool:
    """Whether it is `make(…)(…)`: two calls, of which the first is plain."""
    return bool(node[KIND] == "call" and node[CALL_FUNC][KIND] == "call")


def _reraises(body: tuple[Node, ...]) -> bool:
    return any(statement[KIND] == "raise" for statement in body)


def _line_of(node: Node | None) -> int:
    while node is not None:
        at = _at_of(node)
        if at is not None:
            return at[0]
        node = next(iter(children(node)), None)
    return 1
