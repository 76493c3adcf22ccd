"""Find which decisions an engine can carry out, by the names under which their runs are written down."""

import functools
import inspect
from collections.abc import Callable, Generator, Iterable
from typing import Any

from troth.errors import MisuseError
from troth.runtime.engine.commands import Command, Decision
from troth.runtime.engine.errors import NotADecisionError, UnknownDecisionError

__all__ = ["DecisionRegistry"]


class DecisionRegistry:
    """A register of generator functions. A run outlives the process, so it is found again by name, not by object."""

    def __init__(self, decisions: Iterable[Decision]) -> None:
        self._by_name: dict[str, Decision] = {}
        for decision in decisions:
            self.register(decision)

    @property
    def names(self) -> list[str]:
        """Every registered name."""
        return list(self._by_name)

    def register(self, decision: Decision, name: str | None = None) -> str:
        """Make a decision known; by its own name unless another is given. Answers the name."""
        name = name or _name(decision)
        if self._by_name.get(name) is decision:
            return name
        _check(decision)
        registered = self._by_name.setdefault(name, decision)
        if registered is not decision and not _is_same(registered, decision):
            raise MisuseError(
                f"Two decisions are called {name!r}: {registered!r} and {decision!r}.\n"
                "Their runs could not be distinguished after a restart. Register one of them under another name: "
                "`engine.register(decision, 'name')`."
            )
        self._by_name[name] = decision
        return name

    def name_of(self, decision: Decision | str) -> str:
        """The name of a decision, registering it if need be."""
        if isinstance(decision, str):
            self.find(decision)
            return decision
        for name, registered in self._by_name.items():
            if registered is decision:
                return name
        return self.register(decision)

    def find(self, name: str) -> Decision:
        """The decision of that name."""
        try:
            return self._by_name[name]
        except KeyError:
            names = ", ".join(map(repr, sorted(self._by_name))) or "none"
            raise UnknownDecisionError(
                f"This engine has no decision {name!r}; it knows {names}.\n"
                "The run was not changed. Give the decision to the engine that resumes it: "
                "`Engine(…, decisions=[…])`."
            ) from None

    def check_arguments(self, name: str, args: Iterable[Any]) -> None:
        """Refuse arguments that the decision does not take: its run could neither begin nor end."""
        decision = self.find(name)
        try:
            decision(*args).close()  # calling a generator function runs nothing of it
        except TypeError as wrong:
            raise MisuseError(
                f"{wrong}.\nThe decision {name!r} was not started: it does not take these arguments."
            ) from None

    def begin(self, name: str, args: Iterable[Any]) -> Generator[Command, Any, object]:
        """The decision of that name, about to decide on `args`."""
        return self.find(name)(*args)


def _check(decision: object) -> None:
    plain = decision
    while isinstance(plain, functools.partial):
        plain = plain.func
    if inspect.isgeneratorfunction(plain) or inspect.isgeneratorfunction(getattr(type(plain), "__call__", None)):  # noqa: B004
        return
    if inspect.iscoroutinefunction(plain) or inspect.isasyncgenfunction(plain):
        why = "it is async. A decision is a plain `def` that yields what it needs; the async work goes into its steps"
    elif inspect.isgenerator(plain):
        why = "it is a generator that has already started. Pass the function and its arguments: a replay calls it again"
    elif callable(plain):
        why = "it does not yield. A decision is a `def` with `yield Step(…)` in it"
    else:
        why = "it cannot be called"
    raise NotADecisionError(f"{decision!r} is not a decision: {why}.\nNothing was started.")


def _name(decision: Callable[..., object]) -> str:
    plain: Any = decision
    while isinstance(plain, functools.partial):
        plain = plain.func
    return str(getattr(plain, "__qualname__", type(plain).__qualname__)).replace(".<locals>.", ".")


def _is_same(first: Any, second: Any) -> bool:
    """Whether two function objects are the same `def`, made again: by a factory, a reloaded module, a bound method."""
    codes = [getattr(getattr(function, "__func__", function), "__code__", None) for function in (first, second)]
    return codes[0] is not None and codes[0] == codes[1]
