"""Remember which deliveries this process sends just now, or holds in memory."""

import threading
from dataclasses import dataclass, replace

__all__ = ["LEASE", "HeldLease", "HeldLeases"]

LEASE = 30.0
"""Seconds after which a lease is void that was not renewed."""


@dataclass(frozen=True, slots=True)
class HeldLease:
    """One delivery that is ours. `is_begun` once it is being sent, `is_accepted` once the channel holds it."""

    delivery: str
    token: str
    channel: str
    session: str
    attempt: int
    is_begun: bool = False
    is_accepted: bool = False


class HeldLeases:
    """The deliveries of one process that are leased; from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[str, HeldLease] = {}

    def add(self, lease: HeldLease) -> None:
        """It is ours from now on."""
        with self._lock:
            self._held[lease.delivery] = lease

    def accept(self, delivery: str) -> None:
        """The channel holds it in memory, unless it is acknowledged already."""
        with self._lock:
            lease = self._held.get(delivery)
            if lease is not None:
                self._held[delivery] = replace(lease, is_accepted=True)

    def begin(self, delivery: str) -> None:
        """It is being sent from now on."""
        with self._lock:
            lease = self._held.get(delivery)
            if lease is not None:
                self._held[delivery] = replace(lease, is_begun=True)

    def unsent(self) -> set[str]:
        """Those that nobody has begun to send."""
        with self._lock:
            return {lease.delivery for lease in self._held.values() if not lease.is_begun}

    def drop(self, delivery: str) -> None:
        """It is ours no more."""
        with self._lock:
            self._held.pop(delivery, None)

    def drop_lease(self, lease: HeldLease) -> None:
        """One lease is ours no more; the delivery may be leased anew already, and stays ours then."""
        with self._lock:
            held = self._held.get(lease.delivery)
            if held is not None and held.token == lease.token:
                del self._held[lease.delivery]

    def of(self, channel: str, session: str | None = None, *, accepted: bool = False) -> list[HeldLease]:
        """Those of a channel, of one session if it is named; with `accepted`, only what is held in memory."""
        with self._lock:
            return [
                lease
                for lease in self._held.values()
                if lease.channel == channel and session in (None, lease.session) and (lease.is_accepted or not accepted)
            ]

    def ids(self) -> list[str]:
        """All of them."""
        with self._lock:
            return list(self._held)
