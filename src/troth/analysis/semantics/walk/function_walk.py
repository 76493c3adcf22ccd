"""What becomes of every promise on the way through a function.

The function is walked once in the order it runs, with what each name stands for and what may have become of each
promise that a name holds. Branches are walked apart and joined; a loop is walked a second time when its first round
changed what names stand for at its beginning. Paths that end in `raise` lose nothing that matters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from troth.analysis.facts.builder import TRUE
from troth.analysis.facts.model import declares_scope
from troth.analysis.facts.names import dotted, last_name
from troth.analysis.facts.nodes import children, of_kind
from troth.analysis.findings import Reason
from troth.analysis.semantics.incident import AWAITED, KEPT, MAYBE, PENDING, WEAK, Incident, Misuse, Site
from troth.analysis.semantics.infer.awaitables_in_value import (
    holds_promise,
    is_promise,
    is_sure,
    promises,
)
from troth.analysis.semantics.infer.call_results import callee_text
from troth.analysis.semantics.infer.evaluator import WITH_A_CONSTANT, _at_of
from troth.analysis.semantics.infer.framework_parameters import response_of
from troth.analysis.semantics.resolve.library import LibraryFunction
from troth.analysis.semantics.resolve.test_files import is_test
from troth.analysis.semantics.symbols import Function
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
from troth.analysis.semantics.walk.awaitable_states import LOOKING_INSIDE, State, last_part
from troth.analysis.semantics.walk.awaited_storage import is_awaited_from
from troth.analysis.semantics.walk.coroutine_sinks import looks_like_keeper
from troth.analysis.semantics.walk.narrowing import asks_for_method, asks_for_mode
from troth.analysis.semantics.walk.returned_awaitables import Returning

if TYPE_CHECKING:
    from troth.analysis.facts.model import At, Node

__all__ = ["Flow"]


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
# What `gather` and `shield` are called for is to wait; a plain function may start something in an executor and go on.
_NEW_FUTURES = (".create_future", "asyncio.Future")
_LOST_WHEN_DROPPED = frozenset({"gather", "shield"})
_RUNNING = frozenset({"run_until_complete", "run_forever", "run_coroutine_threadsafe", "asyncio.run", "anyio.run"})
_FEW_OTHERS = 4  # of so many who wait, one may hand it on
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
            if env[name] is None and any(map(holds_promise, values)):
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
        self._throw_away(statement[1])

    def _throw_away(self, node: Node) -> None:
        """The value of `node` is not used; each arm of a conditional is thrown away by itself."""
        kind = node[0]
        if kind == "ifexp":
            self.test(node[1])
            self._throw_away(node[2])
            self._throw_away(node[3])
        elif kind in {"and", "or"}:
            for part in node[1][:-1]:
                self.test(part)
            self._throw_away(node[1][-1])
        else:
            value = self.value(node)
            if kind == "call":
                self._tell_by_company(node, value, "dropped")
            if value is None or (self._expects_error and (_is_made_by_plain_function(value) or _calls_a_result(node))):
                return  # the error that is expected may well come before there is a coroutine
            self._drop(value, node)

    def _drop(self, value: Value, node: Node) -> None:
        if node[0] == "comp":
            for promise in promises(value):
                if (
                    promise.site is not None
                    and promise.site.promise == "coroutine"
                    and promise.site not in self.pending
                ):
                    self.incident("dropped in comprehension", promise.site)
            return
        if isinstance(value, Builtin | TupleOf | Table) and node[0] in {"call", "list", "tuple", "set", "dict"}:
            for promise in promises(value):
                if isinstance(promise, Coroutine) and promise.site is not None and promise.site not in self.pending:
                    self.incident("dropped in comprehension", promise.site)
            return
        if not is_sure(value) or (self._is_plain_side and not self.inside.is_async):
            return
        for member in members_of(value):
            if isinstance(member, Coroutine) and member.site is not None and member.site not in self.pending:
                self.incident("dropped", member.site)
            elif (
                isinstance(member, AsyncGenerator | AsyncContext)
                and member.site is not None
                and member.site not in self.pending
            ):
                kind = "dropped generator" if isinstance(member, AsyncGenerator) else "dropped context"
                kind = "dropped" if isinstance(member, AwaitableContext) else kind
                self.incident(kind, member.site)
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
        if node[0] == "call":
            self._tell_by_company(node, value, "condition")

    def _tell_by_company(self, node: Node, value: Value | None, kind: str) -> None:
        """Nothing is known of the callee but that all else that is asked of its object is awaited."""
        externals = tuple([member for member in members_of(value) if isinstance(member, External)])
        if self._expects_error or (value is not None and len(externals) < len(members_of(value))):
            return
        why = self.program.judge.unused(node, self, externals, is_tested=kind == "condition")
        if why is not None:
            site = self.site(None, node[-1], callee_text(node[1]), "coroutine", lambda: (why,), sure=False)
            if site is not None:
                site.by_siblings = True
                self.incident(kind, site)

    def _tell_of_future(self, node: Node) -> None:
        """A future that nobody holds can never be done: whoever makes one waits for it or gives it on."""
        why = Reason("a future that nobody holds is never done; it makes sense only where it is awaited")
        site = self.site("", node[-1], callee_text(node[1]), "future", lambda: (why,), sure=False)
        if site is not None:
            self.incident("dropped task", site, sure=False)

    def _is_awaited_by_all_others(self, site: Site) -> bool:
        """Whether a function gives a future that others wait for: here nobody hears of its errors."""
        if site.promise != "future" or not self.inside.is_async or not _gives_what_is_awaited(site.target):
            return False
        awaited, bare = self.program.judge.sites_of(last_part(site.callee))
        return awaited > 1 and awaited >= _FEW_OTHERS * (bare - 1)

    def s_assign(self, statement: Node) -> None:
        value = self.value(statement[2])
        self._arms = statement[2][0] in {"ifexp", "or"}
        for target in statement[1]:
            self._assign(target, value)
        self._arms = False

    def _assign(self, target: Node, value: Value | None) -> None:
        kind = target[0]
        if kind == "name":
            self._set(target[1], value)
        elif kind == "attr":
            base = self.value(target[1])
            is_own = target[1][0] == "name" and self._is_self(target[1][1])
            if is_own:
                self.attributes.setdefault(target[2], []).append(value)
                if value is not None:
                    self.stored.append((target, value))
            key = dotted(target)
            if self._knows_attributes:
                self._forget_attributes(key or "?")
            if key and not is_own:
                self._learn(key, value if value is not None else External("set in this function"))
            if (
                is_own
                or not self.inside.is_async
                or not is_promise(value)
                or looks_like_keeper(target[2])
                or target[2] in {"side_effect", "return_value"}  # of a mock
                or not (base is None or isinstance(base, Instance | ModuleValue))
                or is_test(self.module.path)  # a stand-in is told what to give
                or is_awaited_from(self.program, target)
            ):
                self.keep(value)
            else:
                self.hand_over(value, f"`{callee_text(target)}`", target[3])
        elif kind in {"tuple", "list"}:
            parts = self.parts(value, len(target[1]))
            if parts is not None:
                for part, item in zip(target[1], parts, strict=True):
                    self._assign(part, item)
                return
            self.misuse(value, "unpacking", None) if is_promise(value) else None
            item = None if is_promise(value) else self.iterated(value)
            for part in target[1]:
                self._assign(part[1] if part[0] == "star" else part, item)
        elif kind == "index":
            base = self.value(target[1])
            if type(base) is Coroutine:
                self.misuse(base, "subscript", _at_of(target[1]))
            self.as_key(target[2])
            is_put = holds_promise(value)
            if is_put and is_awaited_from(self.program, target):
                self.keep(value)
            elif target[1][0] == "name" and target[1][1] in self.env and isinstance(base, Builtin | Table):
                old = base.args[-1:] if isinstance(base, Builtin) else base.values
                self.env[target[1][1]] = Builtin("dict", (Builtin("str"), union([*old, value])))
                self._hold(target[1][1], value)
            elif not is_put:
                return
            elif (
                looks_like_keeper(callee_text(target[1]))
                or self._fills_for_caller(target[1])
                or (target[1][0] == "attr" and uses_contents(self.inside, target[1][2]))
            ):
                self.keep(value)
            else:
                self.hand_over(value, f"`{callee_text(target[1])}[…]`", _at_of(target[1]))
        else:
            self.keep(value)

    def _fills_for_caller(self, container: Node) -> bool:
        """Whether a plain function puts things into what it was given: it cannot await them, its caller can."""
        return (
            not self.inside.is_async
            and container[0] == "name"
            and any(param[0] == container[1] for param in self.inside.facts.params)
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
        if target[0] == "name":
            self.env[target[1]] = value
            if self.bound is not None:
                self.bound.setdefault(target[1], []).append(value)
        else:
            super().bind(target, value)

    def s_annassign(self, statement: Node) -> None:
        _, target, annotation, node = statement
        value = None if node is None else self.value(node)
        place = (
            f"`{target[1]}` is annotated" if target[0] == "name" else "it is annotated",
            self.module.path,
            _line_of(node),
        )
        declared = self.program.types.annotated(annotation, self.module, self.inside, self.inside.owner, place)
        if holds_promise(value):
            self._assign(target, value)
        elif target[0] == "name":
            if node is not None or declared is not None:
                self._set(target[1], declared if declared is not None else value)
        elif node is not None:
            self._assign(target, declared if declared is not None else value)

    def s_augassign(self, statement: Node) -> None:
        value = self.value(statement[2])
        target = statement[1]
        held = self.value(target) if target[0] in {"name", "attr"} else None
        if isinstance(held, Builtin) and held.name in {"list", "set"} and target[0] == "name" and target[1] in self.env:
            self.env[target[1]] = Builtin(held.name, (union([*held.args[:1], self.iterated(value)]),))
            self._hold(target[1], value)
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
        elif statement[1] is not None and statement[1][0] in {"await", "dict", "list", "const", "fstr"}:
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
        if target[0] == "name":
            self.env[target[1]] = item
            if self.bound is not None:
                self.bound.setdefault(target[1], []).append(item)
        elif target[0] in {"tuple", "list"}:
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
        # Zero rounds are possible, but what a loop was written for mostly happens: promises are as after one round.
        zero = (dict(entry[0]), {s: self._status_after(s, v, ends) for s, v in entry[1].items()})
        self._join([zero, *ends])
        self.block(orelse)
        if self.alive:
            out.append((self.env, self.pending))
        self._join(out)

    def _awaited_in_turns(self, entry: State, ends: list[State]) -> None:
        """A coroutine that was made before the loop, and that every turn awaits: the second turn raises an error."""
        for site, status in entry[1].items():
            if status != PENDING or not ends or site.promise != "coroutine":
                continue
            name = self.variables.get(site, "")
            if all(
                pending.get(site) == AWAITED and type(held := env.get(name)) is Coroutine and held.site is site
                for env, pending in ends
            ):
                at = self._awaits[site]
                self.incidents[at, "twice"] = Incident("twice", site, at, "", name, True)

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
                self._assign(target, entered) if not holds_promise(entered) else self._assign_item(target, entered)
            if target is not None and target[0] == "name" and not is_async:
                self.plainly_entered.add(target[1])
            if node[0] == "call" and last_name(node[1]) in _EXPECTING_ERRORS:
                expects_error = expects_error or last_name(node[1]) not in _EXPECTING_WARNINGS
                expected |= _expected_by(node)
            if node[0] == "call" and last_name(node[1]) == "suppress":
                masked = any(last_name(a) in {"Exception", "BaseException"} for a in node[2])
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
        for _types, name, handler, _line in handlers:
            env = dict(before[0])
            if after is not None:
                for key, value in after[0].items():
                    env[key] = value if key not in env or env[key] is value else union([env[key], value])
            # Where the error struck is not known: nothing that was pending can be called lost on this path.
            pending = {site: (status & ~PENDING) | MAYBE for site, status in before[1].items()}
            self._restore((env, pending))
            if name is not None:
                self.env[name] = None
            self.block(handler)
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
            if target[0] == "name":
                self.keep(self.env.get(target[1]))  # whoever deletes a promise does not want it

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
                if inner[0] == "scope":
                    self.env.update(dict.fromkeys(inner[1].split()))  # it may set them whenever it is called

    def s_class(self, statement: Node) -> None:
        saved = dict(self.env)
        self.block(statement[2])
        self.env = saved
        self.env.pop(self.module.cls(statement[1]).name, None)

    def s_match(self, statement: Node) -> None:
        subject = statement[1]
        value = self.value(subject)
        if subject[0] == "call":
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
                for bound in ([name] if name else []) + ([subject[1]] if subject[0] == "name" else []):
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
                continue
            if site in self._known:
                continue
            is_tested = bool(status & KEPT) and variable in self._may_be_none  # a test whether there is one at all
            is_iterated = site.promise == "generator" and status & KEPT
            broken = not is_iterated and any(
                (m.kind in _PROVING and not (m.kind == "condition" and is_tested))
                or (m.kind == "comparison" and m.text == WITH_A_CONSTANT)
                or f"text:{m.text}" in LOOKING_INSIDE
                or (m.kind == "argument" and m.text.endswith("is no awaitable"))
                for m in misuses
            )
            if site.promise == "future":
                # It runs whether it is awaited or not; only a use that takes it for its result shows a mistake.
                is_taken = any(m.kind == "argument" or m.text.startswith("`json.") for m in misuses)
                tested = (status & WEAK or is_taken) and not isinstance(site.target, Function)
                if not status & (AWAITED | KEPT) and (broken or tested):
                    self._never_awaited(site, variable, misuses, sure=not status & WEAK)
                elif status == PENDING and self._is_awaited_by_all_others(site):
                    self._never_awaited(site, variable, misuses, sure=False)
                continue
            if not status & AWAITED and (broken or (not status & KEPT and status & (PENDING | WEAK))):
                if any(m.kind == "iteration" for m in misuses) and site.promise == "generator":
                    self.incident("plain for", site, variable=variable)
                    continue
                proven = broken or not status & WEAK
                if site.promise != "coroutine" and not proven:
                    continue
                in_dict = any(m.text == "a dict that is returned" for m in misuses)
                detail = "" if proven or in_dict else "handed over"
                self._never_awaited(site, variable, misuses, sure=proven, detail=detail)
            elif status & PENDING and status & AWAITED and not status & (KEPT | MAYBE):
                self.incident("sometimes awaited", site, variable=variable, sure=False)

        self._tell_once()

    def _never_awaited(self, site: Site, variable: str, misuses: list[Misuse], *, sure: bool, detail: str = "") -> None:
        self.incident("never awaited", site, variable=variable, sure=sure, detail=detail)
        incident = self.incidents.get((site.at, "never awaited"))
        if incident is not None:
            incident.more = self.program.reasons.of_misuses(site, misuses, variable)

    def _tell_once(self) -> None:
        """One promise is lost once, however many ways show it; the first of the kinds is the plainest."""
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


def _runs_a_loop(function: Function) -> bool:
    return any(call in _RUNNING or last_part(call) in _RUNNING for call in function.facts.calls)


def _is_made_by_plain_function(value: Value) -> bool:
    """Whether a plain function gives the promise: it may raise before it does, an `async def` cannot."""
    site = value.site if isinstance(value, Coroutine) else None
    return site is not None and not getattr(site.target, "is_async", True)


def _is_new_future(node: Node) -> bool:
    """Whether a call makes a future out of nothing: `loop.create_future()`, `asyncio.Future()`."""
    return node[0] == "call" and not node[2] and callee_text(node[1]).endswith(_NEW_FUTURES)


def _gives_what_is_awaited(target: object) -> bool:
    """Whether a function of the project, or one that its library says no more of than that, gives an awaitable."""
    return isinstance(target, Function) or (
        isinstance(target, LibraryFunction) and target.returns.startswith("collections.abc.Awaitable")
    )


def _is_lost_when_dropped(site: Site) -> bool:
    name = last_part(site.callee)
    return site.promise == "task" or name in _LOST_WHEN_DROPPED or (site.function.is_async and name in _LOST_IN_ASYNC)


def _is_broad(types: Node | None) -> bool:
    if types is None:
        return True
    nodes = types[1] if types[0] == "tuple" else (types,)
    return any(last_name(n) in {"Exception", "BaseException"} for n in nodes)


def _catches_type_error(types: Node | None) -> bool:
    """Whether a handler names the error that an async operation raises for what it has no use for."""
    nodes = () if types is None else types[1] if types[0] == "tuple" else (types,)
    return any(last_name(n) in {"TypeError", "AttributeError"} for n in nodes)


def _expected_around(body: tuple[Node, ...]) -> frozenset[str]:
    """The errors that a test expects of the functions inside it, which it defines before."""
    calls = (item[0] for node in of_kind(body, "with") for item in node[2])
    expecting = [call for call in calls if call[0] == "call" and last_name(call[1]) in _EXPECTING_ERRORS]
    return frozenset().union(*map(_expected_by, expecting))


def _expected_by(node: Node) -> frozenset[str]:
    """The errors that `pytest.raises(TypeError)` or `assertRaises((A, B))` names."""
    expected = [*node[2][:1], *(value for name, value in node[3] if name in {"expected_exception", "expected_warning"})]
    return frozenset(
        last_name(part)
        for exception in expected
        for part in (exception[1] if exception[0] == "tuple" else (exception,))
    )


def _calls_a_result(node: Node) -> bool:
    """Whether it is `make(…)(…)`: two calls, of which the first is plain."""
    return bool(node[0] == "call" and node[1][0] == "call")


def _reraises(body: tuple[Node, ...]) -> bool:
    return any(statement[0] == "raise" for statement in body)


def _line_of(node: Node | None) -> int:
    while node is not None:
        at = _at_of(node)
        if at is not None:
            return at[0]
        node = next(iter(children(node)), None)
    return 1
