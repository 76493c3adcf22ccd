"""What is remembered of a place where an awaitable is made, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

# For real, as types of fields: compiled code makes them together with the classes.
from troth.analysis.findings import Reason
from troth.analysis.semantics.symbols import Function
from troth.analysis.semantics.values import Instance, Value

if TYPE_CHECKING:
    from collections.abc import Callable

    from troth.analysis.facts.model import At, Node

__all__ = [
    "AWAITED",
    "KEPT",
    "MAYBE",
    "PENDING",
    "WEAK",
    "AwaitableKind",
    "IncidentKind",
    "KeyAsked",
    "LossIncident",
    "Misuse",
    "MisuseKind",
    "Operand",
    "Site",
    "Taker",
]

# A "task" runs whether somebody awaits it or not; a "future" (`gather`, `run_in_executor`) gives its result only so.
AwaitableKind = Literal["coroutine", "generator", "context", "task", "future", "iterable"]

# What somebody does with an awaitable that he is given.
Taking = Literal[
    "drops it",
    "shows it",  # makes text of it
    "opens it",  # looks inside a collection, and raises an error where it meets an awaitable there
    "wants no awaitable",  # is declared, or asks, to get something else
    "compares it with a constant",
    "calls it",  # wants the function, not called
    "awaits its items",  # and needs a `*` before a collection
    "keeps it as an item",  # `x[key] = promise`
    "returns it in a dict",
    "returns it",
    "iterates",
    "unknown",
]

# How an awaitable is used as if it were its result.
MisuseKind = Literal[
    "alternative",
    "argument",
    "arithmetic",
    "async iteration",
    "async with",
    "attribute",
    "comparison",
    "condition",
    "handed over",
    "iteration",
    "perhaps condition",
    "returned inside",
    "subscript",
    "text",
    "unpacking",
    "with",
]

# What rules ask for: a misuse, or an awaitable that nothing awaits.
IncidentKind = (
    MisuseKind
    | Literal[
        "awaited generator",
        "dropped",
        "dropped context",
        "dropped generator",
        "dropped in comprehension",
        "dropped task",
        "named alone",  # on a line of its own: it was to be called
        "never awaited",
        "not called",
        "plain for",
        "plain with",
        "returned",
        "sometimes awaited",
        "stored",
        "twice",
    ]
)

# What may have become of an awaitable on the paths that lead to a point; a union of these.
PENDING = 1
KEPT = 2  # handed to somebody who may keep it
AWAITED = 4
MAYBE = 8  # made on some of these paths only
WEAK = 16  # handed to somebody unknown who does not look like one that awaits


@dataclass(eq=False)
class Site:
    """A call (or an access to an async property) whose value is an awaitable."""

    function: Function  # the function the call stands in
    at: At
    callee: str  # as written
    target: Any  # what is called: a function of the project or of a library; None where only siblings speak
    awaitable: AwaitableKind
    sure: bool
    why: Callable[[], tuple[Reason, ...]]
    by_siblings: bool = False  # nothing is known of the callee but that other sites await it
    by_name: bool = False  # the callee, or the class of the receiver, is known by a name alone
    is_firm: bool = False  # and so many do that it is more than a guess
    is_quiet: bool = False  # an object that can be awaited: lost only where a use shows that its result was meant
    is_query: bool = False  # such an object that does nothing before: lost as well where it is thrown away, or tested

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """Why this is known, nearest link first. Told only when asked: most awaitables are awaited on the spot."""
        return self.why()

    @property
    def is_guess(self) -> bool:
        """Whether a name, or what other sites do, is all that speaks for it."""
        return self.by_siblings or self.by_name

    @property
    def target_name(self) -> str:
        """What is called, by its name in the program."""
        return getattr(self.target, "qualname", "") or self.callee


class Taker(NamedTuple):
    """Who is given an awaitable, or what is done with it."""

    words: str  # for messages; no decision reads them
    how: Taking
    name: str = ""  # of the callee, as tables have it


@dataclass
class Misuse:
    """A use of an awaitable that takes it for its result."""

    kind: MisuseKind
    at: At
    text: str = ""
    taker: Taker | None = None

    @property
    def how(self) -> Taking | None:
        """What its taker does with it, where there is one."""
        return None if self.taker is None else self.taker.how


@dataclass
class LossIncident:
    """An awaitable that is lost, or something near it: the raw material of rules."""

    kind: IncidentKind
    site: Site
    at: At
    detail: str = ""  # for messages; no decision reads it
    variable: str = ""
    sure: bool = True
    masked_line: int = 0  # the line of the broad `except` that would hide the error
    more: tuple[Reason, ...] = field(default=())
    taker: Taker | None = None
    is_handed_over: bool = False  # an unknown callee gets it, and may await it
    misuses: tuple[Misuse, ...] = ()  # what is done with the variable that holds the awaitable


class Operand(NamedTuple):
    """What `await`, `async for` or `async with` is given, where that may be something they refuse."""

    how: str
    node: Node
    value: Value
    at: At
    sure: bool  # no class on the way is a guess
    base: Value | None  # of which object it is an attribute


class KeyAsked(NamedTuple):
    """An object of a class is asked for a key: `x["k"]`, or by a `get` that the class lacks."""

    variable: str  # that holds the object; empty for `(await f())["k"]`
    key: str | None  # None for `get`
    base: Instance
    at: At | None  # of the attribute `get`, or of the `await`; a subscript of a variable has no place of its own
