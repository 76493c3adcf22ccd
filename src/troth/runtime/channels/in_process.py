"""The channel to the program itself: an inbox, from which only what was taken out is delivered."""

import math
import time
from collections.abc import Awaitable, Callable
from typing import Any

from troth.runtime.arguments import check_seconds
from troth.runtime.channels.capability import Capability
from troth.runtime.channels.channel import Channel, Delivery, Receipt
from troth.runtime.store import Notifier

__all__ = ["InProcessChannel", "Inbox"]


class Inbox:
    """What has arrived for the program. Taking something out acknowledges it; from any thread or loop."""

    def __init__(self) -> None:
        self._waiting: dict[str, Delivery] = {}
        self._bell = Notifier()
        self.ack: Callable[[str], bool] = lambda _: True
        self.aack: Callable[[str], Awaitable[bool]] = _nothing

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, delivery: Delivery) -> None:
        """For the channel: something has arrived."""
        self._waiting[delivery.id] = delivery
        self._bell.ring()

    def drop(self, delivery_id: str, attempt: int) -> None:
        """For the channel: what came with this attempt went back to the outbox. A later one stays."""
        delivery = self._waiting.get(delivery_id)
        if delivery is not None and delivery.attempt <= attempt:
            self._waiting.pop(delivery_id, None)

    def _pop(self, session: str | None) -> Delivery | None:
        for delivery_id, delivery in list(self._waiting.items()):
            if session in (None, delivery.session) and self._waiting.pop(delivery_id, None) is not None:
                return delivery
        return None

    def take(self, timeout: float | None = None, *, session: str | None = None) -> Delivery | None:
        """The next delivery, waiting for it; nothing if `timeout` seconds brought none. Of one session, if named.

        It is acknowledged before it is given out. What somebody else has acknowledged meanwhile is left out.
        """
        check_seconds("timeout", timeout, least=-math.inf)
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            count = self._bell.count
            delivery = self._pop(session)
            if delivery is not None:
                if self._acknowledged(delivery):
                    return delivery
                continue
            remaining = None if deadline is None else max(0.0, deadline - time.monotonic())
            if remaining == 0.0 or not self._bell.wait(count, remaining):
                return None

    def _acknowledged(self, delivery: Delivery) -> bool:
        try:
            return self.ack(delivery.id)
        except BaseException:
            self.put(delivery)
            raise

    async def atake(self, timeout: float | None = None, *, session: str | None = None) -> Delivery | None:
        """`take` for a task. Cancelled in the middle of an acknowledgement, it may have taken something out."""
        check_seconds("timeout", timeout, least=-math.inf)
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            count = self._bell.count
            delivery = self._pop(session)
            if delivery is not None:
                try:
                    is_ours = await self.aack(delivery.id)
                except Exception:
                    self.put(delivery)
                    raise
                if is_ours:
                    return delivery
                continue
            remaining = None if deadline is None else max(0.0, deadline - time.monotonic())
            if remaining == 0.0 or not await self._bell.await_ring(count, remaining):
                return None


async def _nothing(_: str) -> bool:
    return True


class InProcessChannel(Channel):
    """Puts deliveries into `inbox`, for the program that the runtime is part of."""

    name = "in-process"
    capability = Capability.PUSH
    is_local = True

    def __init__(self) -> None:
        self.inbox = Inbox()

    def send(self, delivery: Delivery) -> Receipt:
        """Put it into the inbox; it is delivered when somebody takes it out."""
        self.inbox.put(delivery)
        return Receipt.accepted()

    def attach(self, outbox: Any) -> None:
        """Acknowledge through this outbox."""
        super().attach(outbox)
        self.inbox.ack = lambda delivery_id: bool(outbox.ack(delivery_id, by=self.name))
        self.inbox.aack = lambda delivery_id: outbox.aack(delivery_id, by=self.name)
