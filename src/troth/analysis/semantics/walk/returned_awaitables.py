"""What becomes of an awaitable that a function returns, by itself or inside something: handed on, or lost there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.facts.fields import CALL_FUNC, ITEMS, KIND
from troth.analysis.facts.names import last_name
from troth.analysis.semantics.incident import AWAITED, PENDING, Site, Taker
from troth.analysis.semantics.infer.awaitables_in_value import (
    awaitables,
    has_dict,
    holds_awaitable,
    is_awaitable,
    is_future,
    is_mixed,
)
from troth.analysis.semantics.infer.call_graph import names_of
from troth.analysis.semantics.infer.never_awaitable import mentions_awaitable, never_awaitable
from troth.analysis.semantics.symbols import Function
from troth.analysis.semantics.values import (
    AwaitableObject,
    Builtin,
    Coroutine,
    Instance,
    Nothing,
    Table,
    TupleOf,
    Union,
    Value,
    members_of,
)
from troth.analysis.semantics.walk.sync_use_of_async import PlainUse

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from troth.analysis.facts.model import Node

__all__ = ["Returning"]

_ROUTES = frozenset({"get", "post", "put", "patch", "delete", "options", "head", "api_route"})


class Returning(PlainUse):
    """A walk that looks at what comes back."""

    @property
    def returned_result(self) -> bool:
        """Whether some other way out returns a plain result."""
        return self._returned_result

    def returned(self, value: Value, statement: Node) -> None:
        """An async function returns that."""
        members = [m for m in members_of(value) if not isinstance(m, Nothing)]
        if statement[1][KIND] in {"await", "const", "fstr", "compare", "not"} or (
            members and all(isinstance(m, Builtin) for m in members)
        ):
            self._returned_result = True
        arms = (
            statement[1][ITEMS]
            if statement[1][KIND] == "or"
            else statement[1][2:4]
            if statement[1][KIND] == "ifexp"
            else ()
        )
        if any(arm[KIND] in {"await", "const", "dict", "list", "fstr"} and arm != ("const", "None") for arm in arms):
            self._returned_result = True
        promised = [m for m in members if isinstance(m, Coroutine) or is_future(m)]
        if not promised:
            self.returned_inside(value, statement)
            return
        for member in promised:
            site: Site | None = member.site  # type: ignore[union-attr]
            is_arm = statement[1][KIND] in {"ifexp", "or", "and"}
            if site is None or (len(promised) < len(members) and site not in self.pending and not is_arm):
                continue  # a call that may give either
            if site.is_query and member is not None and self._is_declared_otherwise(member):
                site.is_quiet = False
            if site not in self.pending or self.pending[site] & PENDING or self._must_be_result(site):
                self.incident("returned", site, variable=self.variables.get(site, ""), sure=promised == members)
        self.keep(value)

    def _must_be_result(self, site: Site) -> bool:
        """Whether what is kept elsewhere as well, and never awaited on the way, is declared to be a result here."""
        return not self.pending[site] & AWAITED and self._is_declared_result()

    def _is_declared_result(self) -> bool:
        """Whether the function is annotated to give something that can certainly not be awaited."""
        if self.inside.facts.returns is None:
            return False
        declared = self.program.types.annotated(
            self.inside.facts.returns, self.module, self.inside.parent, self.inside.owner
        )
        return never_awaitable(declared, self.program)

    def _is_declared_otherwise(self, query: Value) -> bool:
        """Whether the function is annotated to give objects of other classes than that of the query it returns."""
        returns = self.inside.facts.returns
        if returns is None or not isinstance(query, AwaitableObject):
            return False
        declared = self.program.types.annotated(returns, self.module, self.inside.parent, self.inside.owner)
        real = [m for m in members_of(declared) if not isinstance(m, Nothing)]
        return all(isinstance(m, Builtin | TupleOf | Instance) for m in real) and not any(
            isinstance(m, Instance) and m.cls is query.instance.cls for m in real
        )

    def returned_inside(self, value: Value, statement: Node) -> None:
        """A dict of results with an awaitable in it is hardly meant, nor a list of both; one of awaitables may be."""
        if not holds_awaitable(value):
            return
        members = [m for m in members_of(value) if not isinstance(m, Nothing)]
        if type(value) is Coroutine and self._is_taken_for_result(value):
            site = value.site
            assert site is not None
            self.incident("returned", site, variable=self.variables.get(site, ""), sure=True)
        if any(map(is_awaitable, members)) or self._is_made_for_caller(value) or self._is_left_open(members):
            self.keep(value)
        elif self._declared_otherwise() or (self.inside.is_async and any(map(_is_result_on_another_path, members))):
            for awaitable in awaitables(value):
                self.misuse(awaitable, "returned inside", statement[2])
        elif any(has_dict(m) for m in members):
            self.hand_over(value, Taker("a dict that is returned", "returns it in a dict"), statement[2])
        elif self.inside.is_async and (any(is_mixed(m) for m in members) or self._promises_results()):
            self.hand_over(value, Taker("a collection that is returned", "returns it"), statement[2])
        else:
            self.keep(value)

    def _is_taken_for_result(self, value: Coroutine) -> bool:
        """Whether a sync function returns a coroutine where it declares the result, and nobody awaits the function."""
        facts = self.inside.facts
        site = value.site
        return (
            not self.inside.is_async
            and not self.inside.is_generator
            and site is not None
            and site.sure
            and self.pending.get(site, PENDING) == PENDING
            and (
                self._is_route()
                or (
                    facts.returns is not None
                    and (not facts.decorators or self.inside.decorated_with("staticmethod", "classmethod"))
                    and not self.inside.is_abstract
                    and not self._may_be_awaited()
                    and self._is_declared_result()
                )
            )
        )

    def _may_be_awaited(self) -> bool:
        """Whether somebody awaits something of that name; a variable of a function that has no such name is another."""
        name = self.inside.name
        if not self.program.counts.is_awaited(name) or self.inside.parent is not None:
            return self.program.counts.is_awaited(name)
        return any(_awaits(caller, name) for caller in self.program.index.functions_naming({name}))

    def _is_route(self) -> bool:
        """Whether FastAPI calls the function in a thread, and answers with what it returns."""
        decorators = self.inside.facts.decorators
        if len(decorators) != 1 or decorators[0][KIND] != "call" or last_name(decorators[0][CALL_FUNC]) not in _ROUTES:
            return False
        names = names_of(self.program.effects.decorator(self.inside, decorators[0]))
        return any(name.startswith("fastapi.") for name in names)

    def _is_made_for_caller(self, value: Value) -> bool:
        """Whether an awaitable in what is returned is announced, or is that of a function made on the spot for it."""
        returns = self.inside.facts.returns
        if returns is not None:
            return mentions_awaitable(returns, ("Awaitable", "Coroutine", "Future", "Task"))
        sites = [awaitable.site for awaitable in awaitables(value)]
        return all(
            site is not None
            and isinstance(site.target, Function)
            and site.target.parent is self.inside
            and not self.program.counts.is_awaited(site.target.name)
            for site in sites
        )

    def _promises_results(self) -> bool:
        """Whether the annotation of the result says nothing of awaitables, though not what its items are."""
        returns = self.inside.facts.returns
        return returns is not None and not mentions_awaitable(returns)

    def _is_left_open(self, members: Iterable[Value | None]) -> bool:
        """`-> list[tuple[str, Any]]` over pairs of a key and an awaitable: the second is meant to be anything."""
        declared = [pair for member in self._declared() for pair in _tuples_in(member)]
        places = {
            place
            for member in members
            for pair in _tuples_in(member)
            for place, item in enumerate(pair)
            if is_awaitable(item)
        }
        return bool(declared and places) and all(
            place < len(pair) and pair[place] is None for pair in declared for place in places
        )

    def _declared(self) -> list[Value | None]:
        """What the annotation of the result says that comes back, but for None."""
        returns = self.inside.facts.returns
        if returns is None:
            return []
        declared = self.program.types.annotated(returns, self.module, self.inside.parent, self.inside.owner)
        return [m for m in members_of(declared) if not isinstance(m, Nothing)]

    def _declared_otherwise(self) -> bool:
        """Whether the annotation of the result says what its items are, and that they are no awaitables."""
        members = self._declared()
        return bool(members) and all(
            (isinstance(m, Builtin) and bool(m.args) and never_awaitable(m.args[-1], self.program))
            or (
                isinstance(m, TupleOf)
                and self.inside.is_async  # a sync function cannot await the parts of a pair; its caller can
                and all(never_awaitable(i, self.program) for i in m.items)
            )
            for m in members
        )


def _awaits(caller: Function, name: str) -> bool:
    """Whether a function awaits an attribute of that name, or what its file means by the name."""
    callees = (callee.rpartition(" ")[2] for callee in caller.facts.awaited)
    tails = (callee.rpartition(".")[::2] for callee in callees)
    return any(last == name and (base or name in caller.module.bindings) for base, last in tails)


def _is_result_on_another_path(value: Value | None) -> bool:
    """Whether a part of a pair is an awaitable on one path, and on another one something written out: `rows = []`."""
    return isinstance(value, TupleOf) and any(
        isinstance(item, Union)
        and any(map(is_awaitable, item.members))
        and any(
            isinstance(member, Builtin | Table | TupleOf) and not holds_awaitable(member) for member in item.members
        )
        for item in value.items
    )


def _tuples_in(value: Value | None) -> Iterator[tuple[Value | None, ...]]:
    """The parts of the tuples that a collection holds, or of the tuple that it is."""
    items = value.args[-1:] if isinstance(value, Builtin) else (value,)
    for item in items:
        yield from (member.items for member in members_of(item) if isinstance(member, TupleOf))
