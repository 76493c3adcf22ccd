"""Keep all deliveries: the channels they go through, a sweep that never ends, and the verbs for people.

    due → leased → delivered | stored | expired | dead

A delivery is a row that somebody is owed. It is written in the commit that ends the work, so there is no moment in
which a result exists and nobody is told. Each step is a compare-and-set in one commit. At any moment promised =
delivered + stored + expired + dead, where stored is all that is still pending, work under way included.

Each open channel has a `Deliverer` (`deliverer.py`): it leases what is due, sends it, and writes down the receipt,
which counts only under its lease. A sweep does the rest; it looks every half second what is due.

- It renews the leases that this process holds, so that a slow `send` is not taken for a dead one.
- It voids leases that have run out, or whose owner is dead. After the second attempt such a delivery waits longer
  each time: it may be what kills its senders. If the clock was set forward, all leases run out at once, so nothing is
  voided for two seconds, in which those who live renew theirs.
- It stores what no channel serves, and lets go of results whose retention is over. Looking for those means reading
  all that is pending, so it is done when the next one can be due, and it rests in proportion to the CPU that it took.
- It looks for work that nobody carries out, if the runtime says how.

Whoever opens a channel gets what waited for it. Whoever closes one gives back its leases in the same commit: what was
only in memory is due again. A process that dies does none of this; its leases run out, and the sweep of another
process does it instead. So a delivery can be sent twice, but is never lost in silence, and receivers tell it by its
id.
"""

import asyncio
import contextvars
import logging
import math
import os
import random
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from troth.bridge import call
from troth.errors import MisuseError
from troth.runtime.arguments import check_count
from troth.runtime.channels import Capability, Channel, Delivery
from troth.runtime.channels.binding import turn_session
from troth.runtime.channels.channel import capability_of
from troth.runtime.channels.in_process import InProcessChannel
from troth.runtime.engine.background_loop import BackgroundLoop
from troth.runtime.promises.attempt import RetryPolicy
from troth.runtime.promises.commit_points import (
    CHANNEL_CLOSE,
    CHANNEL_OPEN,
    OUTBOX_ACK,
    OUTBOX_BEAT,
    OUTBOX_ENROLL,
    OUTBOX_RENEW,
    OUTBOX_REPLAY,
    OUTBOX_RETIRE,
    OUTBOX_SWEEP,
    OUTBOX_TAKE_BACK,
)
from troth.runtime.promises.deliverer import ChannelOptions, Deliverer
from troth.runtime.promises.errors import ForeignPromiseError, UnknownDeliveryError
from troth.runtime.promises.leases import LEASE, HeldLease, HeldLeases
from troth.runtime.promises.wording import delivery_for
from troth.runtime.store import Store, StoreError, Transaction
from troth.runtime.store.identity import new_owner, retire
from troth.runtime.store.promise_records import DeliveryRecord, DeliveryState, OutboxCounts, PromiseIncident

__all__ = ["Outbox"]

log = logging.getLogger("troth.outbox")

_SWEEP = 0.5  # seconds between two sweeps
_JUMP = 5.0  # seconds by which the clock is ahead of the time that has passed, and was set forward
_LOOK_AFTER_WORK = 2.0  # seconds between two looks for work that nobody carries out
_AT_ONCE = 200  # promises that expire in one commit
_REST = 200  # what reads more the more there is pauses for so many times the CPU that it took,
_LONGEST_REST = 10.0  # at most so many seconds
_PATIENCE = 2  # attempts after which even a dead sender's delivery waits: it may be what kills its senders


class Outbox:
    """The deliveries of one store, and the channels through which this process delivers it."""

    def __init__(
        self,
        store: Store,
        *,
        policy: RetryPolicy | None = None,
        chance: random.Random | None = None,
        look_after_work: Callable[[], None] | None = None,
    ) -> None:
        self.store = store
        self.policy = policy or RetryPolicy()
        self._chance = chance or random.Random()  # noqa: S311  for jitter
        self._look_after_work = look_after_work
        self._lock = threading.Lock()
        self._deliverers: dict[str, Deliverer] = {}
        self._held = HeldLeases()
        self._home = BackgroundLoop("troth-outbox")
        self._owner = new_owner(store.clock())
        self._pid = os.getpid()
        self._is_closed = False
        self._no_look_after_work_before = self._no_look_before = 0.0
        self._expired_to, self._next_expiry = -math.inf, math.inf
        self._renewed_at = time.monotonic()
        self._clock_offset = store.clock() - self._renewed_at
        self._no_voiding_before = 0.0
        store.commit(OUTBOX_ENROLL, lambda tx: tx.enroll(self._owner))
        self._stop_beating = store.chore(store.beat_every, self._beat)
        self._begin(self._sweep_for_ever, "troth-outbox-sweep")

    def _begin(self, work: Callable[[], Any], name: str) -> None:
        """Let a task live on the outbox's own loop, bound to nothing that the caller is bound to."""
        contextvars.Context().run(self._home.settle, work, name)

    def _beat(self) -> None:
        self.store.commit(OUTBOX_BEAT, lambda tx: tx.beat(self._owner.id, self.store.clock()))

    @property
    def owner_id(self) -> str:
        """Who delivers here, as the store knows it."""
        return self._owner.id

    # Channels

    def open_channel(
        self,
        channel: Channel,
        *,
        max_age: float | None = None,
        confirm: Callable[[Delivery], Any] | None = None,
        second_route: str | None = None,
        policy: RetryPolicy | None = None,
    ) -> None:
        """Deliver through `channel` from now on, beginning with what waited for it.

        Before something older than `max_age` seconds is sent, `confirm(delivery)` is asked, sync or async; without it,
        or if it says no, the delivery stays stored. A delivery that is given up is told through `second_route`.
        `policy` says when this channel's deliveries are tried again, where that differs from the outbox's own.
        """
        self.check_usable()
        name: object = getattr(channel, "name", None)
        given: object = channel
        if not isinstance(given, Channel) or not isinstance(name, str) or not name:
            raise MisuseError(
                f"{channel!r} is not a channel with a name.\nNothing was opened: deliveries find their channel by its "
                "name, even after a restart.\n"
                'Derive a class from `Channel`, write `name = "…"` in it, and open an object of it.'
            )
        if second_route == name:
            raise MisuseError(f"The channel {name!r} cannot be its own second route. Nothing was opened.")
        can_push = capability_of(channel) is Capability.PUSH
        deliverer = Deliverer(
            self.store,
            channel,
            self._owner.id,
            ChannelOptions(max_age, confirm, second_route),
            policy or self.policy,
            self._chance,
            self._held,
        )
        with self._lock:
            if name in self._deliverers:
                raise MisuseError(f"A channel {name!r} is already open. Nothing was done; close that one first.")
            self._deliverers[name] = deliverer

        def work(tx: Transaction) -> None:
            now = self.store.clock()
            tx.enroll(self._owner)
            tx.promises.open_channel(name, self._owner.id, now)
            if can_push and not channel.is_local:
                tx.promises.revive(name, None, now)

        try:
            self.store.commit(CHANNEL_OPEN, work)
        except BaseException:
            self._deliverers.pop(name, None)
            raise
        channel.attach(self)
        self._begin(deliverer.serve, _task_of(name))

    def close_channel(self, channel: Channel | str) -> None:
        """Deliver through `channel` no more. What it held in memory is pending again, and kept for the next channel."""
        name = channel if isinstance(channel, str) else channel.name
        with self._lock:
            deliverer = self._deliverers.pop(name, None)
        if deliverer is None:
            raise MisuseError(f"No channel {name!r} is open here. Nothing was done.")
        deliverer.channel.detach(self)
        self._home.end(_task_of(name))
        self._let_go(deliverer)

    def _let_go(self, deliverer: Deliverer) -> None:
        deliverer.close()
        name = deliverer.channel.name

        def work(tx: Transaction) -> list[HeldLease]:
            # In here, because leases that were asked for before this commit are ours once it is made, and not before.
            held = self._held.of(name)
            now = self.store.clock()
            tx.promises.close_channel(name, self._owner.id)
            settled = deliverer.settle_unwritten(tx)
            for lease in [lease for lease in held if lease.delivery not in settled]:
                tx.promises.give_back(lease.delivery, lease.token, now, due_at=now, is_unsent=not lease.is_begun)
            if deliverer.home is not None:
                tx.promises.downgrade(name, "the channel was closed", now, home=deliverer.home)
            elif not tx.promises.is_served(name, now):
                tx.promises.downgrade(name, "the channel was closed", now)
            return held

        self._forget(deliverer.channel, self.store.commit(CHANNEL_CLOSE, work))

    def _forget(self, channel: Channel, held: Iterable[HeldLease]) -> None:
        for lease in held:
            self._held.drop_lease(lease)
            if isinstance(channel, InProcessChannel):
                channel.inbox.drop(lease.delivery, lease.attempt)

    def serves(self, channel: Channel) -> bool:
        """Whether this very channel is open here."""
        deliverer = self._deliverers.get(getattr(channel, "name", ""))
        return deliverer is not None and deliverer.channel is channel

    def bound(self, channel: Channel, session: str) -> None:
        """For a channel: a turn of `session` has begun on it, so what is stored for the session can be sent."""
        deliverer = self._deliverers.get(channel.name)
        if deliverer is not None:
            deliverer.begin_turn(session)

    def take_back(self, channel: Channel, session: str | None = None) -> int:
        """For a channel: what it has accepted and nobody has acknowledged is pending again. Answers how many."""
        held = self._held.of(channel.name, session, accepted=True)

        def work(tx: Transaction) -> int:
            now = self.store.clock()
            return sum(
                tx.promises.give_back(lease.delivery, lease.token, now, due_at=now, is_unsent=False) for lease in held
            )

        if not held:
            return 0
        count = self.store.commit(OUTBOX_TAKE_BACK, work)
        self._forget(channel, held)
        return count

    # Looking

    def counts(self) -> OutboxCounts:
        """How many deliveries were promised, and what became of them. `stored` is all that is still pending."""
        return self.store.promises.counts()

    async def acounts(self) -> OutboxCounts:
        """`counts` for a task."""
        return await call(self.counts)

    def list(
        self,
        *,
        states: Iterable[DeliveryState] | None = None,
        session: str | None = None,
        channel: str | None = None,
        limit: int = 100,
    ) -> Sequence[DeliveryRecord]:
        """Deliveries, the oldest first; without `states`, those that are still pending and those that are dead.

        In a turn, those of its session.
        """
        check_count("limit", limit, least=0)
        asking = session if session is not None else turn_session()
        return self.store.promises.deliveries(states=states, session=asking, channel=channel, limit=limit)

    async def alist(
        self,
        *,
        states: Iterable[DeliveryState] | None = None,
        session: str | None = None,
        channel: str | None = None,
        limit: int = 100,
    ) -> Sequence[DeliveryRecord]:
        """`list` for a task."""
        return await call(lambda: self.list(states=states, session=session, channel=channel, limit=limit))

    def find(self, delivery_id: str) -> DeliveryRecord:
        """One delivery as it is now. A turn of a session sees only that session's deliveries."""
        record = self.store.promises.delivery(delivery_id)
        if record is None:
            raise UnknownDeliveryError(
                f"There is no delivery {delivery_id!r} in this store, and there never was one.\n"
                "`troth outbox list` lists the pending ones; unfinished work has none yet."
            )
        _check_session(record, turn_session())
        return record

    async def afind(self, delivery_id: str) -> DeliveryRecord:
        """`find` for a task."""
        return await call(self.find, delivery_id)

    def read(self, delivery_id: str) -> Delivery:
        """What a delivery tells, as a channel would be given it. Reading acknowledges nothing."""
        record = self.find(delivery_id)
        promise = self.store.promises.find(record.promise)
        if promise is None:
            raise UnknownDeliveryError(f"The promise {record.promise!r} of the delivery {delivery_id!r} is gone.")
        return delivery_for(record, promise, self.store.clock())

    async def aread(self, delivery_id: str) -> Delivery:
        """`read` for a task."""
        return await call(self.read, delivery_id)

    def incidents(self, *, after: int = 0, limit: int = 1000) -> Sequence[PromiseIncident]:
        """Everything that was given up, or given up for the time being, the oldest first."""
        check_count("after", after, least=None)
        check_count("limit", limit, least=0)
        return self.store.promises.incidents(after=after, limit=limit)

    async def aincidents(self, *, after: int = 0, limit: int = 1000) -> Sequence[PromiseIncident]:
        """`incidents` for a task."""
        return await call(lambda: self.incidents(after=after, limit=limit))

    # Acting

    def ack(self, delivery_id: str, *, by: str = "ack") -> bool:
        """Say that a delivery reached its receiver. Answers whether that is news."""
        self._check_process()
        is_new = self.store.commit(OUTBOX_ACK, lambda tx: self._acknowledge(tx, delivery_id, by))
        self._acknowledged(delivery_id)
        return is_new

    async def aack(self, delivery_id: str, *, by: str = "ack") -> bool:
        """`ack` for a task. Cancelled, it may have been said all the same."""
        self._check_process()
        is_new = await self.store.acommit(OUTBOX_ACK, lambda tx: self._acknowledge(tx, delivery_id, by))
        self._acknowledged(delivery_id)
        return is_new

    def _acknowledge(self, tx: Transaction, delivery_id: str, by: str) -> bool:
        if tx.promises.delivery(delivery_id) is None:
            raise UnknownDeliveryError(f"There is no delivery {delivery_id!r} in this store. Nothing was acknowledged.")
        return tx.promises.acknowledge(delivery_id, self.store.clock(), by)

    def _acknowledged(self, delivery_id: str) -> None:
        self._held.drop(delivery_id)

    def replay(self, delivery_id: str, *, channel: str | None = None) -> None:
        """Owe a dead or delivered delivery once more, under the same id; through `channel`, if one is named.

        Also one that is stored, through a channel that is named: there was none for it, or it was the wrong one. A turn
        of a session can do so with that session's deliveries.
        """
        asking = turn_session()
        self.store.commit(OUTBOX_REPLAY, lambda tx: self._replay(tx, delivery_id, channel, asking))

    async def areplay(self, delivery_id: str, *, channel: str | None = None) -> None:
        """`replay` for a task."""
        asking = turn_session()
        await self.store.acommit(OUTBOX_REPLAY, lambda tx: self._replay(tx, delivery_id, channel, asking))

    def _replay(self, tx: Transaction, delivery_id: str, channel: str | None, asking: str | None) -> None:
        name: object = channel
        if name is not None and (not isinstance(name, str) or not name):
            raise MisuseError(f"`channel` is {name!r}; it is the name of a channel, or None. Nothing was replayed.")
        if asking is not None and (record := tx.promises.delivery(delivery_id)) is not None:
            _check_session(record, asking)
        if tx.promises.replay(delivery_id, channel, self.store.clock()):
            return
        record = tx.promises.delivery(delivery_id)
        if record is None:
            raise UnknownDeliveryError(f"There is no delivery {delivery_id!r} in this store. Nothing was replayed.")
        if record.state is DeliveryState.EXPIRED:
            since = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(record.finished_at))
            raise MisuseError(f"The delivery {delivery_id!r} has expired since {since}: its result is gone.")
        advice = "To send it through another channel, name that one (`--channel NAME`)."
        raise MisuseError(
            f"The delivery {delivery_id!r} is {record.state}, so it is already pending. Nothing was done."
            + (f"\n{advice}" if record.state is DeliveryState.STORED else "")
        )

    # The sweep

    async def _sweep_for_ever(self) -> None:
        while not self._is_closed:
            try:
                await self._sweep()
            except StoreError as error:
                log.warning("The sweep of the outbox failed; trying again: %s", error)
            except Exception:
                if self._is_closed:
                    return
                log.exception("The sweep of the outbox failed; trying again.")
            await asyncio.sleep(_SWEEP)

    async def _sweep(self) -> None:
        now = self.store.clock()
        if self._has_clock_jumped(now) or time.monotonic() - self._renewed_at > LEASE / 3:
            await self._renew()
        if time.monotonic() >= self._no_voiding_before and self.store.promises.needs_sweep(now):
            await self.store.acommit(OUTBOX_SWEEP, self._clean_up)
        await self._expire(now)
        if self._look_after_work is not None and time.monotonic() > self._no_look_after_work_before:
            took = await call(_cpu_of, self._look_after_work)
            pause = min(max(_LOOK_AFTER_WORK, _REST * took), _LONGEST_REST)
            self._no_look_after_work_before = time.monotonic() + pause

    def _has_clock_jumped(self, now: float) -> bool:
        """A clock that was set forward ends every lease at once: those who live are given the time to renew theirs."""
        offset = now - time.monotonic()
        has_jumped = offset > self._clock_offset + _JUMP
        self._clock_offset = offset
        if has_jumped:
            self._no_voiding_before = time.monotonic() + 4 * _SWEEP
        return has_jumped

    async def _expire(self, now: float) -> None:
        """Let go of results whose retention is over.

        To look for them means to read everything that is pending, so it is done when there can be one: when the next of
        those that were there expires, or one that was settled since may.
        """
        may_expire = self._expired_to + self.store.promises.shortest_retention()
        if self._expired_to <= now < min(self._next_expiry, may_expire) or time.monotonic() < self._no_look_before:
            return
        cpu_before = time.thread_time()
        expiry = self.store.promises.next_expiry()
        while expiry is not None and expiry <= now:
            await self.store.acommit(OUTBOX_SWEEP, lambda tx: tx.promises.expire(self.store.clock(), _AT_ONCE))
            expiry = self.store.promises.next_expiry()
        self._expired_to, self._next_expiry = now, math.inf if expiry is None else expiry
        self._no_look_before = time.monotonic() + min(_REST * (time.thread_time() - cpu_before), _LONGEST_REST)

    def _clean_up(self, tx: Transaction) -> None:
        now = self.store.clock()
        tx.promises.void_leases(now, self._pause_after_death)
        tx.promises.store_unserved(now)

    def _pause_after_death(self, attempt: int) -> float:
        return 0.0 if attempt <= _PATIENCE else self.policy.pause(attempt - _PATIENCE, self._chance)

    async def _renew(self) -> None:
        self._renewed_at = time.monotonic()
        ids = self._held.ids()
        if ids:
            until = self.store.clock() + LEASE
            await self.store.acommit(OUTBOX_RENEW, lambda tx: tx.promises.renew(ids, self._owner.id, until))

    # The end

    def check_usable(self) -> None:
        """Refuse whoever wants something delivered by an outbox that is closed, or belongs to another process."""
        self._check_process()
        if self._is_closed:
            raise MisuseError("This outbox is closed. Nothing was done; open a new runtime.")

    def _check_process(self) -> None:
        if self._pid != os.getpid():
            raise MisuseError(
                "This outbox belongs to the process that this one was forked from.\n"
                "Nothing was done; open a new runtime."
            )

    def close(self) -> None:
        """Close every channel and let go of the store. What is pending stays so. May be called twice."""
        if self._is_closed or self._pid != os.getpid():
            return
        self._is_closed = True
        with self._lock:
            deliverers, self._deliverers = list(self._deliverers.values()), {}
        self._home.end(*(_task_of(deliverer.channel.name) for deliverer in deliverers))
        self._home.close()
        for deliverer in deliverers:
            deliverer.channel.detach(self)
            self._let_go(deliverer)
        self._stop_beating()
        self.store.commit(OUTBOX_RETIRE, lambda tx: tx.retire(self._owner.id))
        retire(self._owner)


def _check_session(record: DeliveryRecord, asking: str | None) -> None:
    """Refuse a turn of another session than the delivery's. Outside of all turns everything is seen."""
    if asking not in (None, record.session):
        raise ForeignPromiseError(
            f"The delivery {record.id!r} belongs to another session than {asking!r}. Nothing was done.\n"
            "The program itself sees every session's, outside of all turns: in `with bind(None)`."
        )


def _task_of(channel: str) -> str:
    return f"troth-channel-{channel}"


def _cpu_of(work: Callable[[], None]) -> float:
    """Seconds of CPU that `work` takes on this thread."""
    cpu_before = time.thread_time()
    work()
    return time.thread_time() - cpu_before
