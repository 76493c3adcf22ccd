"""How a run goes, step by step: the one state machine of conversations.

It is a generator that never waits. It yields what it needs (`TakeNotice`, `TakeStep`, `Settle`) and is sent the answer;
a failure is thrown in where it happened. Two short loops drive it, one for threads and one for loops (`drivers.py`).
"""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

from troth.runtime.conversations.errors import StepLimitReached
from troth.runtime.conversations.log import State, Status

__all__ = ["Command", "End", "Settle", "TakeNotice", "TakeStep", "conversation_run"]


@dataclass(frozen=True, slots=True)
class TakeNotice:
    """Read what has come in since; the answer is the `State`."""


@dataclass(frozen=True, slots=True)
class TakeStep:
    """Let the agent take a step; the answer is what it returned, `True` for "I want another one".

    `seen` is the number of the last entry the agent can know of.
    """

    number: int
    seen: int


@dataclass(frozen=True, slots=True)
class Settle:
    """End the run, unless something came in after `seen`. The answer is whether it ended."""

    outcome: Status
    seen: int


@dataclass(frozen=True, slots=True)
class End:
    """How it ended, and with what error."""

    outcome: Status
    steps: int
    error: BaseException | None = None


Command = TakeNotice | TakeStep | Settle


class Stopped(Exception):  # noqa: N818 - thrown into the course, never out of it
    """The step in flight was stopped by `interrupt`."""


def conversation_run(max_steps: int) -> Generator[Command, Any, End]:
    """The decisions of one run."""
    wants_more = True
    steps = 0
    while True:
        state: State = yield TakeNotice()
        if state.interrupt_asked:
            return End(Status.INTERRUPTED, steps)
        if not wants_more and not state.has_news:  # there is nothing left that a pause could put off
            if (yield Settle(Status.FINISHED, state.cursor)):
                return End(Status.FINISHED, steps)
            continue
        if state.pause_asked:
            return End(Status.PAUSED, steps)
        if steps == max_steps:
            return End(
                Status.FAILED,
                steps,
                StepLimitReached(
                    f"The agent has taken {steps} steps and requests another one.\n"
                    "The run was ended; what the steps did is recorded.\n"
                    "Raise `max_steps`, or return None from `step` when there is nothing left to do."
                ),
            )
        steps += 1
        try:
            wants_more = bool((yield TakeStep(steps, state.cursor)))
        except Stopped:
            return End(Status.INTERRUPTED, steps)
