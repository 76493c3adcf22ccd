"""Start work that reports back later, ask for it, wait for it, cancel it.

The row of a promise is committed before its work begins and before the caller sees the handle; the end of the work and
its delivery are written in the commit that ends the run. A kind of work that is no run is settled from outside: its
owner writes the row with `open_promise`, and calls `tx.promises.settle(kind, subject, …)` in the commit that ends it.
"""

import math
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from troth.bridge import call
from troth.errors import MisuseError
from troth.runtime.arguments import check_count, check_seconds
from troth.runtime.channels import Binding, Capability, Channel
from troth.runtime.channels.binding import resolve, turn_session
from troth.runtime.engine import Engine, ResultTimeoutError, RunFailedError
from troth.runtime.engine.errors import EngineClosedError, UnknownRunError
from troth.runtime.promises.errors import (
    ForeignPromiseError,
    NotSettledError,
    PromiseRefused,
    UnknownPromiseError,
)
from troth.runtime.promises.outbox import Outbox
from troth.runtime.promises.outcome import Inline, Pushed, Stored
from troth.runtime.promises.retention import WEEK, Retention
from troth.runtime.store import Notifier, Store, StoreError, Transaction
from troth.runtime.store.promise_records import NewPromise, PromiseRecord, promise_topic

if TYPE_CHECKING:
    from troth.runtime.tools import Tool

__all__ = ["Detach", "PreparedWork", "Preparing", "Promise", "Promises", "WorkKind"]

Detach = Literal["must", "may", "never"]
_LOOK_AGAIN = 0.25  # seconds after which somebody who waits looks whether the work can go on at all
RUN = "run"


class PreparedWork(NamedTuple):
    """A run that can be begun: everything about it was checked."""

    decision: str
    args: tuple[object, ...]
    run_id: str
    label: str | None
    title: str


class Preparing(Protocol):
    """Check what is to be done, and name the run that does it. Nothing is begun."""

    def __call__(
        self,
        work: object,
        args: tuple[object, ...],
        inputs: Mapping[str, object] | None,
        prompt: str | None,
        run_id: str,
    ) -> PreparedWork:
        """Check the work and its arguments."""


@dataclass(frozen=True, slots=True)
class WorkKind:
    """A kind of work that is no run. `cancel(subject)` asks for its end; the one who owns it settles the promise."""

    name: str
    cancel: Callable[[str], object]


@dataclass(frozen=True, slots=True)
class Promise:
    """The handle of a promise. Every verb also stands in `runtime.promises`, by id, in any process."""

    promises: "Promises"
    id: str

    def get(self) -> PromiseRecord:
        """What became of it so far."""
        return self.promises.get(self.id)

    async def aget(self) -> PromiseRecord:
        """`get` for a task."""
        return await self.promises.aget(self.id)

    def wait(self, timeout: float | None = None) -> PromiseRecord:
        """What became of it, waiting for its end."""
        return self.promises.wait(self.id, timeout)

    async def await_end(self, timeout: float | None = None) -> PromiseRecord:
        """`wait` for a task."""
        return await self.promises.await_end(self.id, timeout)

    def cancel(self) -> bool:
        """Ask for the end of the work."""
        return self.promises.cancel(self.id)

    async def acancel(self) -> bool:
        """`cancel` for a task."""
        return await self.promises.acancel(self.id)


class Promises:
    """The promises of one store, made by one runtime."""

    def __init__(
        self,
        engine: Engine,
        store: Store,
        outbox: Outbox,
        prepare: Preparing,
        default: Callable[[], Channel | None],
        retention: Retention = WEEK,
        *,
        must_bind: bool = False,
    ) -> None:
        self._engine = engine
        self._store = store
        self._outbox = outbox
        self._prepare = prepare
        self._default = default
        self._retention = retention
        self._must_bind = must_bind
        self._kinds: dict[str, WorkKind] = {}

    def register(self, kind: WorkKind) -> None:
        """Make a kind of work known that is no run."""
        self._kinds[kind.name] = kind

    # Starting

    def start(
        self,
        work: object,
        /,
        *args: object,
        inputs: Mapping[str, object] | None = None,
        prompt: str | None = None,
        detach: Detach = "may",
        promise_id: str | None = None,
        retention: Retention | float | None = WEEK,
    ) -> Pushed | Stored | Inline:
        """Start work that reports back.

        It is a workflow or a saga with `inputs`, a decision with its arguments, or an agent with a `prompt`.
        `detach="must"` raises `PromiseRefused` where the result could reach nobody later; `"may"` does the work here
        and now in that case; `"never"` always does.
        """
        _check_detach(detach)
        binding = self._binding()
        promise_id = _new_id() if promise_id is None else _checked_id(promise_id)
        prepared = self._prepare(work, args, inputs, prompt, promise_id)
        if self._is_inline(binding, detach):
            return Inline(
                self._engine.run(prepared.decision, *prepared.args, run_id=prepared.run_id, label=prepared.label)
            )
        new = self._new(promise_id, binding, RUN, prepared.run_id, prepared.title, retention)
        self._launch(new, prepared)
        return self._outcome(new, binding)

    async def astart(
        self,
        work: object,
        /,
        *args: object,
        inputs: Mapping[str, object] | None = None,
        prompt: str | None = None,
        detach: Detach = "may",
        promise_id: str | None = None,
        retention: Retention | float | None = WEEK,
    ) -> Pushed | Stored | Inline:
        """`start` for a task. The work goes on beside it, and does not end with its loop."""
        _check_detach(detach)
        binding = self._binding()
        promise_id = _new_id() if promise_id is None else _checked_id(promise_id)
        prepared = await call(self._prepare, work, args, inputs, prompt, promise_id)
        if self._is_inline(binding, detach):
            result = await self._engine.arun(
                prepared.decision, *prepared.args, run_id=prepared.run_id, label=prepared.label
            )
            return Inline(result)
        new = self._new(promise_id, binding, RUN, prepared.run_id, prepared.title, retention)
        await call(self._launch, new, prepared)
        return self._outcome(new, binding)

    def open_promise(
        self,
        tx: Transaction,
        kind: str,
        subject: str,
        title: str,
        *,
        promise_id: str,
        binding: Binding,
        retention: Retention | float | None = WEEK,
    ) -> NewPromise:
        """For work that is no run: write down its promise, in the commit that writes down the work itself.

        `binding` comes from `binding_for`, before the commit; `outcome` makes the caller's answer of both, after it.
        """
        new = self._new(promise_id, binding, kind, subject, title, retention)
        if not tx.promises.add(new):
            raise _taken(promise_id)
        return new

    def binding_for(self, detach: Detach) -> Binding | None:
        """What the caller's turn can promise. Nothing if the work is to be done here; refused if it must not be."""
        _check_detach(detach)
        binding = self._binding()
        return None if self._is_inline(binding, detach) else binding

    def outcome(self, new: NewPromise, binding: Binding) -> Pushed | Stored:
        """The caller's answer, once the promise is written and the work has begun."""
        return self._outcome(new, binding)

    def _binding(self) -> Binding:
        """What this turn is bound to, as far as this runtime can keep it."""
        self._outbox.check_usable()
        if self._must_bind and turn_session() is None:
            raise PromiseRefused(
                f"no channel is bound in the thread {threading.current_thread().name!r}, so the result has no receiver",
                "Bind the turn with `with bind(session, channel)`. A thread that Troth did not start has no context: "
                "start its work with `contextvars.copy_context().run`, or through `troth.bridge.call`.",
            )
        binding = resolve(self._default())
        if binding.capability is Capability.PUSH and (
            binding.channel is None or not self._outbox.serves(binding.channel)
        ):
            name = "?" if binding.channel is None else binding.channel.name
            because = f"the channel {name!r} is not open in this runtime; `runtime.open_channel` opens it"
            return Binding(binding.session, binding.channel, Capability.STORE, because)
        return binding

    @staticmethod
    def _is_inline(binding: Binding, detach: Detach) -> bool:
        if detach == "must" and binding.capability is Capability.NONE:
            raise PromiseRefused(
                f"nothing can be delivered to the session {binding.session!r} later ({binding.because})",
                'Start it with `detach="may"` to have it done here and now, or in a turn that is bound to a channel '
                "which can push or store.",
            )
        return detach == "never" or binding.capability is Capability.NONE

    def _new(
        self,
        promise_id: str,
        binding: Binding,
        kind: str,
        subject: str,
        title: str,
        retention: Retention | float | None,
    ) -> NewPromise:
        channel = binding.channel if binding.capability is Capability.PUSH else None
        name, home = None, None
        if channel is not None:
            name, home = channel.name, self._outbox.owner_id if channel.is_local else None
        seconds = self._retention.seconds if retention is WEEK else Retention.of(retention).seconds
        if not title.isascii():
            title = title.encode("utf-8", "backslashreplace").decode()  # half of a letter is kept by no store
        return NewPromise(promise_id, binding.session, kind, subject, title, name, home, seconds, self._store.clock())

    def _launch(self, new: NewPromise, prepared: PreparedWork) -> None:
        """Begin the run, with the promise in the commit that writes it down."""

        def write(tx: Transaction) -> None:
            if not tx.promises.add(new):
                raise _taken(new.id)

        self._engine.start(
            prepared.decision, *prepared.args, run_id=prepared.run_id, label=prepared.label, promise=write
        )

    def _outcome(self, new: NewPromise, binding: Binding) -> Pushed | Stored:
        promise = Promise(self, new.id)
        if new.channel is not None:
            return Pushed(promise, new.channel)
        usual = self._retention
        return Stored(promise, usual if usual.seconds == new.retention else Retention(new.retention), binding.because)

    # Asking

    def get(self, promise_id: str, *, session: str | None = None) -> PromiseRecord:
        """What became of a promise so far; one that has expired says since when.

        A turn of a session, or `session=`, sees only that session's promises.
        """
        record = self._store.promises.find(promise_id)
        if record is None:
            raise UnknownPromiseError(
                f"There is no promise {promise_id!r} in this store, and there never was one.\n"
                "`runtime.promises.list()` lists the promises."
            )
        asking = session if session is not None else turn_session()
        if asking not in (None, record.session):
            raise ForeignPromiseError(
                f"The promise {promise_id!r} belongs to another session than {asking!r}. Nothing was done."
            )
        return record

    async def aget(self, promise_id: str, *, session: str | None = None) -> PromiseRecord:
        """`get` for a task."""
        return await call(lambda: self.get(promise_id, session=session))

    def list(self, *, session: str | None = None, limit: int = 100) -> Sequence[PromiseRecord]:
        """Promises, the newest first; in a turn, those of its session."""
        check_count("limit", limit, least=0)
        asking = session if session is not None else turn_session()
        return self._store.promises.newest(session=asking, limit=limit)

    async def alist(self, *, session: str | None = None, limit: int = 100) -> Sequence[PromiseRecord]:
        """`list` for a task."""
        return await call(lambda: self.list(session=session, limit=limit))

    def wait(self, promise_id: str, timeout: float | None = None, *, session: str | None = None) -> PromiseRecord:
        """What became of a promise, waiting for its end. Waiting acknowledges nothing.

        Raises `NotSettledError` if it was not over in time, and `StoreError` if its end could not be written down.
        """
        check_seconds("timeout", timeout, least=-math.inf)
        deadline = None if timeout is None else time.monotonic() + timeout
        bell = Notifier()
        with self._store.listening(bell, promise_topic(promise_id)):
            while True:
                count = bell.count
                record = self.get(promise_id, session=session)
                if record.is_settled:
                    return record
                if not bell.wait(count, _patience(promise_id, deadline, timeout)):
                    self._attend(record)

    async def await_end(
        self, promise_id: str, timeout: float | None = None, *, session: str | None = None
    ) -> PromiseRecord:
        """`wait` for a task. Cancelling it only ends the waiting."""
        check_seconds("timeout", timeout, least=-math.inf)
        deadline = None if timeout is None else time.monotonic() + timeout
        bell = Notifier()
        with self._store.listening(bell, promise_topic(promise_id)):
            while True:
                count = bell.count
                record = await self.aget(promise_id, session=session)
                if record.is_settled:
                    return record
                if not await bell.await_ring(count, _patience(promise_id, deadline, timeout)):
                    await call(self._attend, record)

    def _attend(self, record: PromiseRecord) -> None:
        """Make sure that the run of a promise goes on; raises if the store does not take its end."""
        if record.work != RUN:
            return
        try:
            self._engine.result(record.subject, 0.0)
        except StoreError:
            raise
        except (ResultTimeoutError, RunFailedError, UnknownRunError, EngineClosedError, MisuseError):
            return  # under way, or just over, or carried out by somebody else: the promise's row will tell

    # Ending

    def cancel(self, promise_id: str, *, session: str | None = None) -> bool:
        """Ask for the end of the work; its promise is then delivered as cancelled. False if it was over."""
        record = self.get(promise_id, session=session)
        if record.is_settled:
            return False
        if record.work == RUN:
            return self._engine.cancel(record.subject)
        self._kind(record).cancel(record.subject)
        return True

    async def acancel(self, promise_id: str, *, session: str | None = None) -> bool:
        """`cancel` for a task."""
        return await call(lambda: self.cancel(promise_id, session=session))

    def _kind(self, record: PromiseRecord) -> WorkKind:
        try:
            return self._kinds[record.work]
        except KeyError:
            raise MisuseError(
                f"The promise {record.id!r} belongs to work of the kind {record.work!r}, of which this runtime knows "
                "nothing. It was not cancelled."
            ) from None

    def tools(self) -> "Sequence[Tool]":
        """Ready tools for an agent: delegate, look, wait, stop."""
        from troth.runtime.promises.tools import tools_for

        return tools_for(self, lambda: self._binding().session)


def _patience(promise_id: str, deadline: float | None, timeout: float | None) -> float:
    if deadline is None:
        return _LOOK_AGAIN
    remaining = deadline - time.monotonic()
    if remaining <= 0:
        raise NotSettledError(f"The promise {promise_id!r} was not settled after {timeout:g} s. Its work continues.")
    return min(remaining, _LOOK_AGAIN)


def _check_detach(detach: object) -> None:
    if detach not in ("must", "may", "never"):
        raise MisuseError(f"`detach` is {detach!r}; it can be 'must', 'may' or 'never'. Nothing was started.")


def _checked_id(promise_id: object) -> str:
    if not isinstance(promise_id, str) or not promise_id:
        raise MisuseError(f"`promise_id` is {promise_id!r}; it has to be a string, or omitted. Nothing was started.")
    return promise_id


def _taken(promise_id: str) -> MisuseError:
    return MisuseError(f"There is already a promise {promise_id!r}. Nothing was started; omit the id.")


def _new_id() -> str:
    # What is made one after the other lies on the same pages of the store: a random beginning would touch all of them.
    return f"p-{time.time_ns() // 1_000_000:011x}{os.urandom(8).hex()}"
