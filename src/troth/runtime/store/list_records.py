"""The values that lists of a store give: pages with a cursor, light rows of what there is, counts, and what changed.

A row of a list has what a list shows, and not what can be large: no inputs, no results, the beginning of a message.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

__all__ = [
    "ConversationItem",
    "DeliveryItem",
    "OpenWaitItem",
    "Page",
    "PromiseItem",
    "RunItem",
    "SearchHit",
    "SessionItem",
    "StateChange",
    "StateChanges",
    "StoreCounts",
    "changes_topic",
]

T = TypeVar("T")

changes_topic = "changes"
"""What is published when something has come into another state: a run, a conversation, a session, a delivery."""


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A page of a list, the newest first. `next` is the cursor of the page after it; None where there is none.

    A cursor is text without a meaning for others. It stays good while the store grows: what is new comes before the
    first page. A page can be short, or empty, and still have a `next`: where a filter has to look at each row, it looks
    at so many and no more.
    """

    items: Sequence[T]
    next: str | None = None

    def __iter__(self) -> Iterator[T]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


class RunItem(NamedTuple):
    """One run in a list. `state` is the word for it, as in `rolled back`; `damaged` if it cannot be read."""

    id: str
    state: str
    decision: str
    """The name that its decision is registered under."""
    label: str | None
    """The name of its workflow."""
    created_at: float
    updated_at: float
    finished_at: float | None
    waiting_for: str | None
    wake_at: float | None
    error_type: str | None
    error: str | None
    """The message of what it failed with; the beginning of it where it is long."""
    parent: str | None
    forked_from: str | None
    is_cancel_requested: bool
    session: str | None
    """The governed session that carries it out; None where none does."""
    agent: str | None
    """The member of that session for whom it goes on."""


class OpenWaitItem(NamedTuple):
    """One thing that a run waits for: the signal, since when, until when, and what was noted with it, as JSON text."""

    run: str
    signal: str
    at: float
    until: float | None
    note: str | None


@dataclass(frozen=True, slots=True)
class ConversationItem:
    """One conversation in a list. `title` is the beginning of the first message that was sent in it."""

    id: str
    state: str
    agent: str
    title: str | None
    opened_at: float
    changed_at: float
    """When it was opened, when its last run began, or when that ended."""


@dataclass(frozen=True, slots=True)
class SessionItem:
    """One governed session in a list. `present` counts who is in it now."""

    id: str
    state: str
    creator: str
    created_at: float
    ends_at: float
    ended_at: float | None
    present: int


@dataclass(frozen=True, slots=True)
class DeliveryItem:
    """One delivery in a list. `channel` is the one it goes to, or went to; `meant_for` the one it was promised for."""

    id: str
    state: str
    promise: str
    title: str
    work: str
    session: str
    kind: str
    count: int
    channel: str | None
    meant_for: str | None
    attempt: int
    due_at: float | None
    problem: str | None
    receipt: str | None
    created_at: float
    updated_at: float
    finished_at: float | None


@dataclass(frozen=True, slots=True)
class PromiseItem:
    """One promise in a list: `open`, `done`, `failed`, `cancelled` or `expired`. A job is a promise whose work is that.

    `delivery` is where the delivery of its end stands; None while its work is under way.
    """

    id: str
    state: str
    session: str
    work: str
    subject: str
    title: str
    channel: str | None
    delivery: str | None
    created_at: float
    settled_at: float | None
    expires_at: float | None
    expired_at: float | None


@dataclass(frozen=True, slots=True)
class StateChange:
    """That something came into a state. `id` orders all changes of a store; `thing` is the id of what changed.

    `kind` is `run`, `conversation`, `session`, `member` (then `thing` is the session), `kill`, `ask` or `delivery`. Of
    a run `family` is how the name of its decision begins, as in `workflow:`; empty for everything else.
    """

    id: int
    at: float
    kind: str
    family: str
    thing: str
    word: str


@dataclass(frozen=True, slots=True)
class StateChanges:
    """Changes after a cursor, in order. `first` is the oldest that is kept, `last` the newest there is.

    Where `first` is above the cursor + 1, those between are not kept any more: look at the lists again.
    """

    items: Sequence[StateChange]
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class StoreCounts:
    """How many there are in each state, by its word; no word with 0. They add up with the lists.

    `asks` and `kills` are those that are open: acts that wait for a person, kills of which it is not known what came.
    """

    runs: Mapping[str, int]
    conversations: Mapping[str, int]
    sessions: Mapping[str, int]
    deliveries: Mapping[str, int]
    asks: int
    kills: int


@dataclass(frozen=True, slots=True)
class SearchHit:
    """Something that a search found: its kind, its id, when, and the piece of text that matches."""

    kind: str
    id: str
    at: float
    text: str
