"""What the agents of a run have used: tokens and cost, read off the logs of their conversations.

An agent tells what a turn used with an entry `agent.usage` in its conversation: `ToolCallingAgent` does so by itself,
one of your own with `conversation.emit("usage", {"input_tokens": …, "output_tokens": …, "cost": …})`.
"""

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field

from troth.runtime.agents.model import Usage
from troth.runtime.conversations.log import stream_of
from troth.runtime.conversations.transcript import TranscriptEntry, read_transcript, used_in
from troth.runtime.store import Store

__all__ = ["SPENDING", "Meter", "Spending", "conversation_of", "talk_in", "usage_of", "used_in"]


def conversation_of(key: str) -> str:
    """The id of the conversation that the agent of a step has; `key` is the step's own."""
    return f"agent:{key}"


def usage_of(store: Store, key: str) -> Usage:
    """What the agent of the step with that key has used so far, failed attempts included."""
    stream, total, after = stream_of(conversation_of(key)), Usage(), 0
    while page := store.events(stream, after=after):
        total = sum(map(used_in, page), total)
        after = page[-1].seq
    return total


def talk_in(store: Store, key: str) -> tuple[TranscriptEntry, ...]:
    """What the agent of the step with that key was told, said and had done so far."""
    transcript = read_transcript(store, conversation_of(key))
    return () if transcript is None else transcript.entries


@dataclass(slots=True)
class Meter:
    """What each agent step of one run has used, by its place. Those at work in this process are counted as they go."""

    by_place: dict[str, Usage] = field(default_factory=dict)

    def total(self, prefix: str = "") -> Usage:
        """What the steps whose places begin with `prefix` have used together."""
        return sum((usage for place, usage in list(self.by_place.items()) if place.startswith(prefix)), Usage())


@dataclass(frozen=True, slots=True)
class Spending:
    """An agent's step at work: where it is counted, and the check that comes before each of its turns."""

    place: str
    meter: Meter
    check: Callable[[Meter], None]
    """Raises `BudgetExceededError` where nothing is left for another turn."""

    def count(self, used: Usage) -> None:
        """The step has used that much in all."""
        self.meter.by_place[self.place] = used


SPENDING: ContextVar[Spending | None] = ContextVar("troth.spending", default=None)
"""The spending of the agent's step that the calling code runs in."""
