"""What a conducted run needs from whoever drives it. Six words, performed by two drivers."""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

from troth.runtime.engine.asks import Step
from troth.runtime.engine.cancellation import Cancellation
from troth.runtime.engine.current import CurrentStep
from troth.runtime.store import CommitPoint, Transaction

__all__ = ["Act", "Acts", "Commit", "Fan", "Invoke", "Launch", "Listen", "Pause"]


@dataclass(frozen=True, slots=True)
class Commit:
    """Keep what `work` writes; the answer is what `work` returned."""

    point: CommitPoint
    work: Callable[[Transaction], Any]


@dataclass(frozen=True, slots=True)
class Invoke:
    """Make one attempt of a step; the answer is its Outcome."""

    step: Step
    info: CurrentStep
    cancellation: Cancellation


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait until the moment `until`, or until there is news of the run since its bell had rung `seen` times."""

    seen: int
    until: float | None


@dataclass(frozen=True, slots=True)
class Fan:
    """Drive several strands at once; the answer is the list of what each returned or raised."""

    strands: "tuple[Acts, ...]"
    limit: int | None


@dataclass(frozen=True, slots=True)
class Launch:
    """Begin to work on a run that has been written down."""

    run_id: str


@dataclass(frozen=True, slots=True)
class Listen:
    """Ring the run's bell for news of `topic` too, from now on."""

    topic: str


Act = Commit | Invoke | Pause | Fan | Launch | Listen
Acts = Generator[Act, Any, Any]
