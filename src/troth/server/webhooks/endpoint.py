"""What is known of a receiver of webhooks, and how it is read back from the stream that remembers it.

Every change of a receiver is one entry of the stream `webhooks`; what a receiver is now, is a fold over it. So every
server process on the store knows the same receivers.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from troth.runtime.store import DamagedStoreError, Event

__all__ = ["STREAM", "Endpoint", "Secret", "channel_name", "fold"]

STREAM = "webhooks"


@dataclass(frozen=True, slots=True)
class Secret:
    """One secret. `until` is when it counts no more, by the store's clock; None while it is the newest."""

    value: str
    until: float | None = None

    def __repr__(self) -> str:
        return f"Secret(…, until={self.until!r})"  # a secret that is printed is a secret no more


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One receiver. Without `sessions`, it is told of everything that its owner begins over HTTP."""

    id: str
    url: str
    secrets: tuple[Secret, ...]
    owner: str
    sessions: tuple[str, ...] = ()
    description: str = ""
    created_at: float = 0.0
    disabled_at: float | None = None
    disabled_because: str | None = None
    is_configured: bool = False
    """Whether the program names it, and not the store."""

    @property
    def is_enabled(self) -> bool:
        """Whether anything is sent to it."""
        return self.disabled_at is None

    @property
    def channel(self) -> str:
        """The name of its channel."""
        return channel_name(self.id)

    def secrets_at(self, now: float) -> list[str]:
        """The secrets that count at a moment, newest first."""
        return [secret.value for secret in self.secrets if secret.until is None or secret.until > now]

    def rotated(self, secret: str, old_until: float) -> "Endpoint":
        """With a new secret; the one before it counts until then, and older ones no more."""
        (newest, *_) = self.secrets
        return replace(self, secrets=(Secret(secret), replace(newest, until=old_until)))


def channel_name(endpoint_id: str) -> str:
    """The name of a receiver's channel, by which deliveries find it after a restart."""
    return f"webhook:{endpoint_id}"


def _registered(_: Endpoint | None, payload: Mapping[str, Any], at: float) -> Endpoint:
    return Endpoint(
        id=payload["id"],
        url=payload["url"],
        secrets=(Secret(payload["secret"]),),
        owner=payload["owner"],
        sessions=tuple(payload["sessions"]),
        description=payload["description"],
        created_at=at,
    )


def _rotated(known: Endpoint | None, payload: Mapping[str, Any], _: float) -> Endpoint | None:
    return None if known is None else known.rotated(payload["secret"], payload["old_until"])


def _disabled(known: Endpoint | None, payload: Mapping[str, Any], at: float) -> Endpoint | None:
    return None if known is None else replace(known, disabled_at=at, disabled_because=payload["why"])


def _enabled(known: Endpoint | None, _: Mapping[str, Any], __: float) -> Endpoint | None:
    return None if known is None else replace(known, disabled_at=None, disabled_because=None)


def _deleted(_: Endpoint | None, __: Mapping[str, Any], ___: float) -> None:
    return None


_CHANGES: dict[str, Callable[[Endpoint | None, Mapping[str, Any], float], Endpoint | None]] = {
    "registered": _registered,
    "rotated": _rotated,
    "disabled": _disabled,
    "enabled": _enabled,
    "deleted": _deleted,
}


def fold(known: dict[str, Endpoint], event: Event) -> None:
    """Take notice of one entry of the stream."""
    change = _CHANGES.get(event.kind)
    if change is None:
        return  # of a newer Troth
    try:
        endpoint_id = event.payload["id"]
        after = change(known.get(endpoint_id), event.payload, event.at)
    except (KeyError, TypeError, ValueError) as cause:
        entry = f"entry {event.seq} of stream {event.stream!r}"
        raise DamagedStoreError(entry, f"it does not say what an entry {event.kind!r} says") from cause
    if after is None:
        known.pop(endpoint_id, None)
    else:
        known[endpoint_id] = after
