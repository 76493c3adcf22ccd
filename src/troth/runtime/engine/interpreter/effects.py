"""What a conducted run needs from whoever drives it. Seven words, performed by two drivers."""

from collections.abc import Callable, Generator
from typing import Any, NamedTuple

from troth.runtime.engine.cancellation import Cancellation
from troth.runtime.engine.commands import Step
from troth.runtime.engine.current_step import CurrentStep
from troth.runtime.store import CommitPoint, Transaction

__all__ = ["Commit", "Effect", "Effects", "Encode", "Fan", "Invoke", "Launch", "Listen", "Pause"]


class Commit(NamedTuple):
    """Keep what `work` writes; the answer is what `work` returned. A large one is never written on a loop's thread."""

    point: CommitPoint
    work: Callable[[Transaction], Any]
    is_large: bool = False


class Encode(NamedTuple):
    """Make the JSON of a large value, beside a loop where there is one; the answer is a `Kept`."""

    value: object
    what: str


class Invoke(NamedTuple):
    """Make one attempt of a step; the answer is its Outcome."""

    step: Step
    info: CurrentStep
    cancellation: Cancellation


class Pause(NamedTuple):
    """Wait until the moment `until`, or until there is news of the run since its bell had rung `seen` times."""

    seen: int
    until: float | None


class Fan(NamedTuple):
    """Drive several branches at once; the answer is the list of what each returned or raised."""

    branches: "tuple[Effects, ...]"
    limit: int | None


class Launch(NamedTuple):
    """Begin to work on a run that has been written down."""

    run_id: str


class Listen(NamedTuple):
    """Ring the run's bell for news of `topic` too, from now on."""

    topic: str


Effect = Commit | Encode | Invoke | Pause | Fan | Launch | Listen
Effects = Generator[Effect, Any, Any]
