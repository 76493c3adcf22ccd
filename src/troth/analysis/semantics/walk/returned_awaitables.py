"""What becomes of a promise that a function returns, by itself or inside something: handed on, or lost there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.facts.names import last_name
from troth.analysis.semantics.incident import AWAITED, PENDING, Site
from troth.analysis.semantics.infer.awaitables_in_value import (
    has_dict,
    holds_promise,
    is_future,
    is_mixed,
    is_promise,
    promises,
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
    TupleOf,
    Value,
    members_of,
)
from troth.analysis.semantics.walk.sync_use_of_async import PlainUse

if TYPE_CHECKING:
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
        if statement[1][0] in {"await", "const", "fstr", "compare", "not"} or (
            members and all(isinstance(m, Builtin) for m in members)
        ):
            self._returned_result = True
        arms = statement[1][1] if statement[1][0] == "or" else statement[1][2:4] if statement[1][0] == "ifexp" else ()
        if any(arm[0] in {"await", "const", "dict", "list", "fstr"} and arm != ("const", "None") for arm in arms):
            self._returned_result = True
        promised = [m for m in members if isinstance(m, Coroutine) or is_future(m)]
        if not promised:
            self.returned_inside(value, statement)
            return
        for member in promised:
            site: Site | None = member.site  # type: ignore[union-attr]
            is_arm = statement[1][0] in {"ifexp", "or", "and"}
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
        """A dict of results with a promise in it is hardly meant, nor a list of both; a list of promises may be."""
        if not holds_promise(value):
            return
        members = [m for m in members_of(value) if not isinstance(m, Nothing)]
        if type(value) is Coroutine and self._is_taken_for_result(value):
            self.incident("returned", value.site, sure=True)  # type: ignore[arg-type]
        if any(map(is_promise, members)) or self._is_made_for_caller(value):
            self.keep(value)
        elif self._declared_otherwise():
            for promise in promises(value):
                self.misuse(promise, "returned inside", statement[2])
        elif any(has_dict(m) for m in members):
            self.hand_over(value, "a dict that is returned", statement[2])
        elif self.inside.is_async and (any(is_mixed(m) for m in members) or self._promises_results()):
            self.hand_over(value, "a collection that is returned", statement[2])
        else:
            self.keep(value)

    def _is_taken_for_result(self, value: Coroutine) -> bool:
        """Whether a plain function returns a coroutine where it declares the result, and nobody awaits the function."""
        facts = self.inside.facts
        site = value.site
        return (
            not self.inside.is_async
            and not self.inside.is_generator
            and site is not None
            and site.sure
            and site not in self.pending
            and (
                self._is_route()
                or (
                    facts.returns is not None
                    and (not facts.decorators or self.inside.decorated_with("staticmethod", "classmethod"))
                    and not self.inside.is_abstract
                    and not self.program.counts.is_awaited(self.inside.name)
                    and self._is_declared_result()
                )
            )
        )

    def _is_route(self) -> bool:
        """Whether FastAPI calls the function in a thread, and answers with what it returns."""
        decorators = self.inside.facts.decorators
        if len(decorators) != 1 or decorators[0][0] != "call" or last_name(decorators[0][1]) not in _ROUTES:
            return False
        names = names_of(self.program.effects.decorator(self.inside, decorators[0]))
        return any(name.startswith("fastapi.") for name in names)

    def _is_made_for_caller(self, value: Value) -> bool:
        """Whether a promise in what is returned is announced, or is that of a function made on the spot for it."""
        returns = self.inside.facts.returns
        if returns is not None:
            return mentions_awaitable(returns, ("Awaitable", "Coroutine", "Future", "Task"))
        sites = [promise.site for promise in promises(value)]
        return all(
            site is not None
            and isinstance(site.target, Function)
            and site.target.parent is self.inside
            and not self.program.counts.is_awaited(site.target.name)
            for site in sites
        )

    def _promises_results(self) -> bool:
        """Whether the annotation of the result says nothing of promises, though not what its items are."""
        returns = self.inside.facts.returns
        return returns is not None and not mentions_awaitable(returns)

    def _declared_otherwise(self) -> bool:
        """Whether the annotation of the result says what its items are, and that they are no promises."""
        returns = self.inside.facts.returns
        if returns is None:
            return False
        declared = self.program.types.annotated(returns, self.module, self.inside.parent, self.inside.owner)
        members = [m for m in members_of(declared) if not isinstance(m, Nothing)]
        return bool(members) and all(
            (isinstance(m, Builtin) and bool(m.args) and never_awaitable(m.args[-1], self.program))
            or (
                isinstance(m, TupleOf)
                and self.inside.is_async  # a plain function cannot await the parts of a pair; its caller can
                and all(never_awaitable(i, self.program) for i in m.items)
            )
            for m in members
        )
