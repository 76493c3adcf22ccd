"""Send what is due through one channel: lease, send, write down what it came to, forever.

Deliveries of one session go one after the other, the oldest first; those of several sessions at once, and one that
takes long holds up no other. A channel that fails is tried again with one delivery at a time, so that a channel which
is down wears out nobody's attempts.
"""

import asyncio
import functools
import inspect
import logging
import random
import time
import uuid
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from troth.bridge import call
from troth.color import Color
from troth.errors import MisuseError
from troth.runtime.channels import Capability, Channel, Delivery, Receipt
from troth.runtime.channels.channel import capability_of, color_of_send
from troth.runtime.engine.invoke.worker_pool import Job, WorkerPool
from troth.runtime.promises.attempt import RetryPolicy, judge
from troth.runtime.promises.commit_points import (
    CHANNEL_SEND,
    OUTBOX_LEASE,
    OUTBOX_OFFER,
    OUTBOX_RECEIPT,
    OUTBOX_SWEEP,
    OUTBOX_TAKE_BACK,
)
from troth.runtime.promises.leases import LEASE, HeldLease, HeldLeases
from troth.runtime.promises.wording import delivery_for
from troth.runtime.store import Notifier, Store, StoreError, Transaction
from troth.runtime.store.failpoints import reach
from troth.runtime.store.json_codec import keep
from troth.runtime.store.promise_records import (
    DeliveryRecord,
    DeliveryState,
    PromiseRecord,
    PromiseState,
    Settlement,
    outbox_topic,
)

__all__ = ["ChannelOptions", "Deliverer"]

log = logging.getLogger("troth.outbox")

_LOOK = 1.0  # seconds between two looks at a channel of which nobody says anything
_BATCH = 64  # deliveries that are leased together
_TOGETHER = 0.02  # seconds within which the receipts of quick deliveries are written in one commit
_LAST_MOMENT = 0.25  # seconds for a `send` that is under way when its channel is closed
_THREADS = 16  # calls of a sync `send` at a time
_MOST_STUCK = 4  # calls that have not returned in time, after which no other is made
_FRESH = 1.0  # seconds for which what was read of a promise is believed
_DOUBLINGS = 64  # of the pause after a failure; it has long been the longest one by then
_WINDOW = 1000  # deliveries that a channel may hold in memory


class Attempted(NamedTuple):
    """What one attempt came to, on its way into the store."""

    delivery: str
    token: str
    settlement: Settlement


class _Leased(NamedTuple):
    """A delivery to be sent, with its promise as it was when it was leased."""

    record: DeliveryRecord
    promise: PromiseRecord | None
    read_at: float


@dataclass(frozen=True, slots=True)
class ChannelOptions:
    """How a channel is served. `confirm` is asked before something older than `max_age` seconds is sent."""

    max_age: float | None = None
    confirm: Callable[[Delivery], Any] | None = None
    second_route: str | None = None

    def __post_init__(self) -> None:
        """Refuse what would never be looked at."""
        given: tuple[object, ...] = (self.max_age, self.confirm, self.second_route)
        age, confirm, route = given
        if age is not None and not (isinstance(age, int | float) and age >= 0):
            raise MisuseError(f"`max_age` is {age!r}; it is a number of seconds, or None. Nothing was opened.")
        if confirm is not None and (age is None or not callable(confirm)):
            raise MisuseError(
                f"`confirm` is {confirm!r}; it is a function, and only asked about what is older than `max_age`, "
                f"which is {age!r}.\nNothing was opened."
            )
        if route is not None and (not isinstance(route, str) or not route):
            raise MisuseError(f"`second_route` is {route!r}; it is the name of a channel, or None. Nothing was opened.")


@dataclass
class Deliverer:
    """Serves one channel for one owner."""

    store: Store
    channel: Channel
    owner: str
    options: ChannelOptions
    policy: RetryPolicy
    chance: random.Random
    held: HeldLeases
    bell: Notifier = field(default_factory=Notifier)
    offers: "deque[str]" = field(default_factory=deque)

    def __post_init__(self) -> None:
        self._is_async = color_of_send(self.channel) is Color.ASYNC
        # Of its own: a receiver that is slow, or never returns, takes no thread away from the other channels.
        self._workers = WorkerPool(_THREADS, abandoned_limit=_MOST_STUCK, name="troth-send")
        self._could_push = True
        self._is_closed = False
        self._is_ending = False
        self._failures = 0
        self._paused_until = 0.0
        self._unwritten: list[Attempted] = []
        self._busy: dict[str, asyncio.Task[None]] = {}
        """The sessions to which something is being sent."""
        self._clock_offset = self.store.clock() - time.monotonic()

    @property
    def home(self) -> str | None:
        """The owner to whom deliveries through this channel belong, where nobody else could use it."""
        return self.owner if self.channel.is_local else None

    def close(self) -> None:
        """Send nothing any more."""
        self._is_closed = True
        self._workers.close()

    def begin_turn(self, session: str) -> None:
        """A turn of `session` has begun on the channel: what is stored for it can be sent. From any thread."""
        self.offers.append(session)
        self.bell.ring()

    async def serve(self) -> None:
        """Send what is due, until the task is cancelled."""
        with self.store.listening(self.bell, outbox_topic):
            try:
                while (
                    not self._is_closed
                ):  # a `send` may close the runtime, and then nobody can wait for our task to end
                    count = self.bell.count
                    try:
                        pause = await self._round()
                    except StoreError as error:
                        log.warning("The channel %r could not be served: %s", self.channel.name, error)
                        pause = _LOOK
                    except Exception:
                        if self._is_closed:
                            return
                        log.exception("Serving the channel %r failed; trying again.", self.channel.name)
                        pause = _LOOK
                    if pause > 0:
                        await self.bell.await_ring(count, pause)
            finally:
                await self._end_sends()

    # One round

    async def _round(self) -> float:
        """Do what there is to do; answers for how many seconds there is nothing."""
        await self._write_unwritten()
        await self._return_strays()
        await self._notice_clock()
        if not await self._can_push():
            return _LOOK
        await self._take_offers()
        paused = self._paused_until - time.monotonic()
        room = min(_WINDOW - len(self.held.of(self.channel.name, accepted=True)), _BATCH - len(self._busy))
        if paused > 0 or room <= 0 or (self._failures > 1 and self._busy):  # the end of what is sent rings
            return min(_LOOK, paused) if paused > 0 else _LOOK
        busy = tuple(self._busy)
        due_at = self.store.promises.next_due(self.channel.name, self.owner, busy)
        now = self.store.clock()
        if due_at is None or due_at > now:
            return _LOOK if due_at is None else min(_LOOK, due_at - now)
        token = uuid.uuid4().hex
        limit = 1 if self._failures > 1 else room
        try:
            leased = await self.store.acommit(OUTBOX_LEASE, lambda tx: self._lease(tx, token, limit, busy))
        except StoreError:
            for lease in self.held.of(self.channel.name):
                if lease.token == token:
                    self.held.drop_lease(lease)
            raise
        by_session: dict[str, list[_Leased]] = {}
        for item in leased:
            by_session.setdefault(item.record.session, []).append(item)
        tasks = [self._begin(session, few, token) for session, few in by_session.items()]
        if tasks:
            await asyncio.wait(tasks, timeout=_TOGETHER)  # whoever takes longer goes on beside the next round
        return 0.0

    def _begin(self, session: str, items: "Sequence[_Leased]", token: str) -> "asyncio.Task[None]":
        """Send to one session, beside what else is sent."""
        task = asyncio.create_task(self._send_all(items, token), name=f"troth-send-{self.channel.name}")
        self._busy[session] = task
        task.add_done_callback(functools.partial(self._sent, session))
        return task

    def _sent(self, session: str, task: "asyncio.Task[None]") -> None:
        """Nothing is sent to a session any more. What it has left behind is returned in the next round."""
        del self._busy[session]
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._paused_until = time.monotonic() + _LOOK
            if isinstance(error, StoreError):
                log.warning("The channel %r could not be served: %s", self.channel.name, error)
            elif not self._is_closed:
                log.error("Sending through %r failed; it is tried again.", self.channel.name, exc_info=error)
        self.bell.ring()

    async def _end_sends(self) -> None:
        """Nobody serves the channel any more: end what is being sent, and wait for that.

        A `send` that is under way is given a moment to return, and nothing is sent after it: one that is cut off may
        have happened, and would happen again.
        """
        self._is_ending = True
        tasks = list(self._busy.values())
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=_LAST_MOMENT)
            for task in late:
                task.cancel()
            await asyncio.wait(tasks)

    def _lease(self, tx: Transaction, token: str, limit: int, busy: Collection[str]) -> "list[_Leased]":
        now, read_at = self.store.clock(), time.monotonic()
        records = tx.promises.lease(
            self.channel.name, self.owner, token, now, until=now + LEASE, limit=limit, due_before=now, besides=busy
        )
        for record in records:
            # Here, and not by whoever awaits the commit: a task that is cancelled meanwhile would leave the lease to
            # nobody, and the delivery to wait for its end although the channel is back.
            self.held.add(HeldLease(record.id, token, self.channel.name, record.session, record.attempt))
        return [_Leased(record, tx.promises.find(record.promise), read_at) for record in records]

    async def _notice_clock(self) -> None:
        """A clock that was set back would make everything wait that is to be tried again."""
        offset = self.store.clock() - time.monotonic()
        if offset < self._clock_offset - 1.0:
            await self.store.acommit(OUTBOX_SWEEP, lambda tx: tx.promises.hurry(self.channel.name, self.store.clock()))
        self._clock_offset = offset

    def _capability(self) -> Capability:
        try:
            return capability_of(self.channel)
        except (Exception, KeyboardInterrupt, SystemExit):
            log.exception("The capability of the channel %r cannot be read; nothing is sent.", self.channel.name)
            return Capability.NONE

    async def _can_push(self) -> bool:
        """Whether the channel can push just now. What is due is stored when it cannot, and due again when it can."""
        can_push = self._capability() is Capability.PUSH
        name = self.channel.name
        if not can_push and self.store.promises.next_due(name, self.owner) is not None:
            why = "the channel cannot push at the moment"
            await self.store.acommit(
                OUTBOX_SWEEP, lambda tx: tx.promises.downgrade(name, why, self.store.clock(), home=self.home)
            )
        if can_push and not self._could_push:
            await self.store.acommit(OUTBOX_OFFER, self._revive)
        self._could_push = can_push
        return can_push

    def _revive(self, tx: Transaction) -> int:
        return tx.promises.revive(self.channel.name, self.home, self.store.clock())

    async def _take_offers(self) -> None:
        turns = self.channel.turn_sessions()
        while self.offers:
            turns.append(self.offers.popleft())  # a turn that was over before anybody looked
        for session in dict.fromkeys(turns):
            if self.store.promises.has_stored(session):
                await self.store.acommit(
                    OUTBOX_OFFER,
                    lambda tx, session=session: tx.promises.offer(  # type: ignore[misc]
                        session, self.channel.name, self.home, self.store.clock()
                    ),
                )

    # One delivery

    async def _send_all(self, items: "Sequence[_Leased]", token: str) -> None:
        """Send one after the other. What quick ones come to is written together, what slow ones do one by one."""
        outcomes: list[Attempted] = []
        try:
            await self._send_in_order(items, token, outcomes)
        except BaseException:
            self._unwritten.extend(outcomes)  # it has happened, whoever has ended us in the middle of the next one
            raise

    async def _send_in_order(self, items: "Sequence[_Leased]", token: str, outcomes: "list[Attempted]") -> None:
        batch_start = time.monotonic()
        for number, item in enumerate(items):
            if self._is_ending:  # the leases of the rest are given back with the end of the channel
                break
            works = self._capability() is Capability.PUSH and await self._send(item, token, outcomes)
            if not works or time.monotonic() - batch_start > _TOGETHER:
                await self._write(outcomes)
                batch_start = time.monotonic()
            if not works:
                unsent = self.held.unsent()
                await self._give_back(
                    [unsent_item.record for unsent_item in items[number:] if unsent_item.record.id in unsent], token
                )
                return
        written = list(outcomes)
        outcomes.clear()
        await self._write(written)

    async def _give_back(self, records: Sequence[DeliveryRecord], token: str) -> None:
        """What was leased and not sent is due again; its attempt does not count."""

        def work(tx: Transaction) -> None:
            now = self.store.clock()
            for record in records:
                tx.promises.give_back(record.id, token, now, due_at=record.due_at or now, is_unsent=True)

        if records:
            await self.store.acommit(OUTBOX_TAKE_BACK, work)
            for record in records:
                self.held.drop(record.id)

    async def _return_strays(self) -> None:
        """Owe again what is neither sent nor held by anybody, and whose lease would be renewed forever.

        A channel or its `confirm` has cancelled the task, or the store did not take back what was not sent.
        """
        unwritten = {outcome.delivery for outcome in self._unwritten}
        strays = [
            lease
            for lease in self.held.of(self.channel.name)
            if not lease.is_accepted and lease.session not in self._busy and lease.delivery not in unwritten
        ]

        def work(tx: Transaction) -> None:
            now = self.store.clock()
            for lease in strays:
                due_at = now + self.policy.pause(lease.attempt, self.chance)
                tx.promises.give_back(lease.delivery, lease.token, now, due_at=due_at, is_unsent=not lease.is_begun)

        if strays:
            log.warning("%d deliveries through %r were interrupted; trying them again.", len(strays), self.channel.name)
            await self.store.acommit(OUTBOX_TAKE_BACK, work)
            for lease in strays:
                self.held.drop_lease(lease)

    async def _send(self, item: "_Leased", token: str, outcomes: "list[Attempted]") -> bool:
        """Send one delivery; what it came to is added to `outcomes`. Answers whether the channel itself works."""
        record, promise = item.record, item.promise
        if time.monotonic() - item.read_at > _FRESH:  # those before it took long: it may have expired since
            promise = self.store.promises.find(record.promise)
        if promise is None or promise.state is PromiseState.EXPIRED:
            self.held.drop(record.id)
            return True
        now = self.store.clock()
        delivery = delivery_for(record, promise, now)
        if self.options.max_age is not None and delivery.age > self.options.max_age and not await self._wants(delivery):
            problem = f"it is {delivery.age:.0f} s old, and the channel refused it"
            declined = Settlement(DeliveryState.STORED, problem=problem, declined_by=self.channel.name)
            self.held.begin(record.id)
            outcomes.append(Attempted(record.id, token, declined))
            return True
        self.held.begin(record.id)
        answer = await self._answer(delivery)
        settlement = judge(
            answer, record.attempt, record.first_attempt_at or now, self.store.clock(), self.policy, self.chance
        )
        if settlement is None:
            self.held.accept(record.id)
        else:
            outcomes.append(Attempted(record.id, token, settlement))
        return self._works(answer)

    def _works(self, answer: object) -> bool:
        if isinstance(answer, Receipt):
            self._failures = 0
            return True
        self._failures += 1
        if self._failures > 1:
            pause = min(self.policy.probe, 0.1 * 2.0 ** min(self._failures, _DOUBLINGS)) * self.chance.uniform(
                0.75, 1.0
            )
            self._paused_until = time.monotonic() + pause
        return False

    async def _wants(self, delivery: Delivery) -> bool:
        """Whether the receiver wants something this old; no, if nobody can be asked."""
        if self.options.confirm is None:
            return False
        try:
            return bool(await call(self.options.confirm, delivery))
        except (Exception, KeyboardInterrupt, SystemExit):
            log.exception("It is unclear whether the delivery %r is needed; it stays stored.", delivery.id)
            return False

    async def _answer(self, delivery: Delivery) -> object:
        """What `send` returned, or what it raised."""
        reach(CHANNEL_SEND.before)
        try:
            answer = await self._call(delivery)
        except Exception as error:  # noqa: BLE001  it is what the attempt came to, and is written down as that
            answer = error
        reach(CHANNEL_SEND.after)
        return answer

    async def _call(self, delivery: Delivery) -> object:
        answer: object = None
        is_called = not (self._is_async or self.channel.is_local)
        if is_called:  # with a limit of its own: the thread has to be given up, not only our waiting for it
            answer = await self._in_thread(delivery)
            if not inspect.isawaitable(answer):
                return answer
        limit = asyncio.timeout(self.policy.send_timeout)
        try:
            async with limit:
                return await self._await(lambda: answer if is_called else self.channel.send(delivery))
        except TimeoutError:
            if limit.expired():
                raise self._late() from None
            raise

    async def _await(self, send: Callable[[], object]) -> object:
        """What comes back is awaited, whatever `send` is. What it raises ends its attempt and nothing else."""
        task = asyncio.current_task()
        try:
            answer = send()
            return await answer if inspect.isawaitable(answer) else answer
        except Exception:
            raise
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError) and _is_being_cancelled():
                raise  # one that nobody asked of us ends the attempt, too
            if isinstance(error, GeneratorExit) and not _is_running(task):
                raise  # nobody awaits us any more
            return error

    def _late(self) -> TimeoutError:
        return TimeoutError(f"`send` did not return within {self.policy.send_timeout:g} s")

    async def _in_thread(self, delivery: Delivery) -> object:
        job = self._workers.submit(Job(f"send through {self.channel.name!r}", lambda: self.channel.send(delivery)))
        try:
            is_done = await job.await_done(self.policy.send_timeout)
        except asyncio.CancelledError:
            job.disown()
            raise
        if not is_done and self._workers.abandon(job):
            raise self._late()
        if job.error is not None:
            raise job.error if isinstance(job.error, Exception) else MisuseError(f"`send` raised {job.error!r}")
        return job.value

    # What it came to

    async def _write(self, unwritten: "list[Attempted]") -> None:
        """Write down what came of some attempts; the list is empty afterwards."""
        if not unwritten:
            return
        outcomes = list(unwritten)
        unwritten.clear()
        try:
            await self.store.acommit(OUTBOX_RECEIPT, lambda tx: self._settle_all(tx, outcomes))
        except StoreError as error:
            # The effects may have happened: what they came to is kept, with the leases, until the store takes it.
            log.warning("The results of %d deliveries could not be written yet: %s", len(outcomes), error)
            self._unwritten.extend(outcomes)
            return
        for outcome in outcomes:
            self.held.drop(outcome.delivery)

    async def _write_unwritten(self) -> None:
        outcomes, self._unwritten = self._unwritten, []
        await self._write(outcomes)

    def settle_unwritten(self, tx: Transaction) -> set[str]:
        """Write down what came of attempts and was not written yet; answers of which deliveries."""
        self._settle_all(tx, self._unwritten)
        return {outcome.delivery for outcome in self._unwritten}

    def _settle_all(self, tx: Transaction, outcomes: "Sequence[Attempted]") -> None:
        for outcome in outcomes:
            self._settle(tx, *outcome)

    def _settle(self, tx: Transaction, delivery: str, token: str, settlement: Settlement) -> None:
        now, rows, name = self.store.clock(), tx.promises, self.channel.name
        is_ours = rows.settle_attempt(delivery, token, settlement, now)
        if is_ours and settlement.state is DeliveryState.DELIVERED:
            return  # nearly always
        record = rows.delivery(delivery)
        if record is None or not is_ours:
            if settlement.state is DeliveryState.DELIVERED and (record is None or record.finished_at is None):
                rows.note("late", {"delivery": delivery, "channel": name, "receipt": settlement.receipt}, now)
            return
        details = {
            "delivery": delivery,
            "session": record.session,
            "channel": name,
            "attempts": record.attempt,
            "why": settlement.problem,
        }
        if settlement.declined_by is not None:
            rows.note("declined", details, now)
        if settlement.state is DeliveryState.DEAD:
            rows.note("dead", details, now)
            self._tell_second_route(tx, record, settlement, now)

    def _tell_second_route(self, tx: Transaction, record: DeliveryRecord, settlement: Settlement, now: float) -> None:
        """Tell that a delivery was given up. What tells that goes nowhere twice: two routes may name each other."""
        name, route = self.channel.name, self.options.second_route
        notice = record.data if record.kind == "summary" and isinstance(record.data, dict) else {}
        failed = [*notice.get("routes", ()), name]
        if route is None or route in failed:
            return
        given_up = notice.get("gave_up", record.id)
        text = (
            f"A result could not be delivered through {name!r} after {record.attempt} attempts "
            f"({settlement.problem}). It is kept: `troth outbox show {given_up}`."
        )
        data, _ = keep({"gave_up": given_up, "routes": failed, "why": settlement.problem}, "a notice")
        tx.promises.add_delivery(record.promise, "summary", now, text=text, data=data, channel=route)


def _is_running(task: "asyncio.Task[Any] | None") -> bool:
    """Whether this task is at work."""
    try:
        return asyncio.current_task() is task
    except RuntimeError:
        return False  # no loop runs here


def _is_being_cancelled() -> bool:
    """Whether somebody has asked this task to end."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0
