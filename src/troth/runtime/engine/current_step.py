"""Find which step the code that asks is running in."""

from contextvars import ContextVar
from dataclasses import dataclass

from troth.errors import MisuseError
from troth.runtime.store.json_codec import keep
from troth.runtime.store.records import Place

__all__ = ["CURRENT", "CurrentStep", "current_step"]


@dataclass(slots=True)
class CurrentStep:
    """One attempt of one step, as seen from inside it. `key` is the same for every attempt and after every crash."""

    run_id: str
    place: Place
    name: str
    key: str
    attempt: int
    started_at: float
    appended: tuple[tuple[str, str, object], ...] = ()
    losses: tuple[str, ...] = ()

    def append(self, stream: str, kind: str, payload: object = None) -> None:
        """Append an event to a stream, in the same commit as this step's result; not at all if the attempt fails."""
        keep(payload, f"event {kind!r}")
        self.appended = (*self.appended, (stream, kind, payload))


CURRENT: ContextVar[CurrentStep | None] = ContextVar("troth.current_step", default=None)


def current_step() -> CurrentStep:
    """The step that the calling code runs in: on its thread, in its task, or in a thread that got its context."""
    step = CURRENT.get()
    if step is None:
        raise MisuseError(
            "`current_step()` was called outside of a step, so there is no key to give.\n"
            "Call it in a function that a decision performs with `Step(…)`, in the same thread or task."
        )
    return step
