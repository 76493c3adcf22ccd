"""Decide who is alive across machines: by heartbeats, and on this machine also by looking at the process.

A worker that was silent for nearly its lifetime is taken for dead, by the clock of the database. One whose process is
seen to be gone, on this very machine, is dead at once. An owner of this process is alive as long as it was not retired.
"""

from collections.abc import Callable, Iterable

from troth.runtime.store.identity import Owner, is_alive, lives_here

__all__ = ["Liveness"]


class Liveness:
    """How long owners live without a heartbeat. `clock` is given only where a test has a clock of its own."""

    def __init__(self, lifetime: float, clock: Callable[[], float], *, is_database_clock: bool) -> None:
        self.lifetime = lifetime
        self._clock = clock
        self._is_database_clock = is_database_clock

    def moment(self, now: float) -> float | None:
        """What a statement is given for now: nothing, so that the database looks at its own clock."""
        return None if self._is_database_clock else now

    def is_alive(self, owner: Owner, now: float | None = None) -> bool:
        """Whether `owner` may still be at work, as far as is known here."""
        return is_alive(owner, self._clock() if now is None else now, lifetime=self.lifetime)

    def living(self, owners: Iterable[Owner]) -> list[str]:
        """The ids of those who are alive."""
        now = self._clock()
        return [owner.id for owner in owners if self.is_alive(owner, now)]

    def known(self, holder: Owner | None) -> tuple[list[str], list[str]]:
        """What is known here of a holder, whatever its heartbeat says: `[id]` if it lives, `[id]` if it is dead."""
        if holder is None:
            return [], []
        if lives_here(holder):
            return [holder.id], []
        # Asked as of its own last heartbeat, the answer is that of the process alone.
        return [], [] if is_alive(holder, holder.beat_at, lifetime=self.lifetime) else [holder.id]
