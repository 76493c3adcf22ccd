"""The conversations of one store: opens them, lets one runner at a time at each, and closes them all."""

import asyncio
import itertools
import logging
import os
import sys
import threading
import time
import uuid
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Self

from troth.color import Color
from troth.errors import MisuseError, RunError
from troth.runtime.agents.method_color import StepMethod, decide
from troth.runtime.arguments import check_path
from troth.runtime.conversations import living_runs, log
from troth.runtime.conversations.callbacks import Callback, checked
from troth.runtime.conversations.conversation import Conversation
from troth.runtime.conversations.drivers import SAY, ConversationRun, adrive, start_thread
from troth.runtime.conversations.entries import Beginning, Entries, Gate
from troth.runtime.conversations.errors import AlreadyRunning, ConversationClosed, TooManyRuns
from troth.runtime.conversations.late_writes import LateWrites
from troth.runtime.conversations.log import stream_of
from troth.runtime.conversations.pending_entries import Row
from troth.runtime.conversations.shared_state import SharedState, tell_in_task
from troth.runtime.conversations.state_machine import End
from troth.runtime.engine.background_loop import BackgroundLoop
from troth.runtime.store import Event, LeaseLostError, Store, StoreError, Transaction, commit_point, open_store
from troth.runtime.store.aread import aread
from troth.runtime.store.identity import Owner, lives_here, new_owner, retire

__all__ = ["Conversations"]

_log = logging.getLogger("troth.conversation")

ENROLL = commit_point("conversation.enroll", "who runs conversations in this process")
BEAT = commit_point("conversation.beat", "that this process still lives")
RETIRE = commit_point("conversation.retire", "that this process runs no conversations any more")
OPEN = commit_point("conversation.open", "a new conversation, before anybody gets hold of it")
RUN_START = commit_point("conversation.start", "the lease of a run, its start, and the end of one that was cut off")


class Conversations:
    """The conversations kept in one store, or in the file at a path. Close them in the end, or use `with`.

    At most `max_concurrent_runs` run in this process at once. One more is refused rather than kept waiting: a caller
    that is refused can say so, one that waits cannot.
    """

    def __init__(self, store: Store | str | os.PathLike[str], *, max_concurrent_runs: int = 100) -> None:
        if not _is_count(max_concurrent_runs, 1):
            raise MisuseError(
                f"`max_concurrent_runs` is {max_concurrent_runs!r}, so that nothing could ever run.\nGive 1 or more."
            )
        if not hasattr(store, "commit"):
            check_path("store", store)
        self._owns_store = isinstance(store, str | os.PathLike)
        self.store: Store = open_store(store) if isinstance(store, str | os.PathLike) else store
        self._limit = max_concurrent_runs
        self._lock = threading.Lock()
        self._running: set[ConversationRun] = set()
        self.late = LateWrites(self.store)
        self._states: weakref.WeakValueDictionary[str, SharedState] = weakref.WeakValueDictionary()
        self._background = BackgroundLoop("troth-conversations")
        self._closed_ones: weakref.WeakSet[Conversation] = weakref.WeakSet()
        self._is_closed = False
        self._owner = new_owner(self.store.clock())
        self._pid = os.getpid()
        self.store.commit(ENROLL, lambda tx: tx.enroll(self._owner))
        self._stop_beating = self.store.chore(self.store.beat_every, self._beat)

    def open(
        self,
        agent: object,
        conversation_id: str | None = None,
        *,
        on_event: Sequence[Callback] = (),
        gate: Gate | None = None,
    ) -> Conversation:
        """Open a conversation with `agent`: a new one, or one of which the store knows.

        The agent's color and the callbacks are checked here; what could fail silently later is refused now. `gate` is
        asked before anything is said, and before a run begins.
        """
        shared, way, callbacks = self._checked(agent, conversation_id, on_event)
        cursor = self.store.last_event(stream_of(shared.id))
        if cursor == 0:
            cursor = self.store.commit(OPEN, self._opening(agent, shared, way))
        return self._handle(shared, agent, way, gate, callbacks, cursor)

    async def aopen(
        self,
        agent: object,
        conversation_id: str | None = None,
        *,
        on_event: Sequence[Callback] = (),
        gate: Gate | None = None,
    ) -> Conversation:
        """`open` for a loop."""
        shared, way, callbacks = self._checked(agent, conversation_id, on_event)
        cursor = await aread(self.store, lambda: self.store.last_event(stream_of(shared.id)))
        if cursor == 0:
            cursor = await self.store.acommit(OPEN, self._opening(agent, shared, way))
        return self._handle(shared, agent, way, gate, callbacks, cursor)

    def _checked(
        self, agent: object, conversation_id: str | None, on_event: Sequence[Callback]
    ) -> tuple[SharedState, StepMethod, tuple[Callback, ...]]:
        self._check_usable()
        _check_id(conversation_id)
        way, callbacks = decide(agent), checked(on_event)
        return self._state_of(conversation_id or uuid.uuid4().hex), way, callbacks

    def new_handle(self, agent: object, way: StepMethod, conversation_id: str) -> Conversation:
        """A handle of a conversation that nobody has opened yet; `start` opens it, with a `Beginning` that is new.

        `way` is what `decide` has said of the agent, so that this costs next to nothing.
        """
        self._check_usable()
        return Conversation(self, self._state_of(conversation_id), agent, way, None)

    def _opening(self, agent: object, shared: SharedState, way: StepMethod) -> Callable[[Transaction], int]:
        """The commit that opens a conversation, unless somebody has been quicker; answers its last entry."""
        stream = stream_of(shared.id)

        def work(tx: Transaction) -> int:
            return tx.last_event(stream) or tx.append_event(stream, *_opened(agent, way), self.store.clock())

        return work

    def _handle(
        self,
        shared: SharedState,
        agent: object,
        way: StepMethod,
        gate: Gate | None,
        callbacks: tuple[Callback, ...],
        cursor: int,
    ) -> Conversation:
        conversation = Conversation(self, shared, agent, way, gate)
        if callbacks:
            conversation._listen(callbacks, cursor)
        return conversation

    def _state_of(self, conversation_id: str) -> SharedState:
        with self._lock:
            shared = self._states.get(conversation_id)
            if shared is None:
                shared = self._states[conversation_id] = SharedState(conversation_id)
            return shared

    # Runs

    @staticmethod
    def resource(conversation_id: str) -> str:
        """The lease that a run of the conversation holds."""
        return stream_of(conversation_id)

    def is_running(self, conversation_id: str, run_id: str) -> bool:
        """Whether somebody living carries out its open run `run_id`, here or elsewhere."""
        return living_runs.is_run_by(self.store.holder(self.resource(conversation_id)), run_id, self.store.is_alive)

    def begin(
        self,
        conversation: Conversation,
        entry: str,
        color: Color,
        max_steps: int,
        beginning: Beginning | None = None,
    ) -> ConversationRun:
        """Take the lease and write down that a run has started; raises `AlreadyRunning` at once if one is under way."""
        handle = self._reserve(conversation, color, max_steps)
        try:
            if beginning is None or not beginning.is_new:
                conversation.look()  # so that little of the log is left to be read inside of the commit
            self._started(handle, self.store.commit(RUN_START, self._start(handle, entry, beginning)))
        except BaseException as problem:
            self._withdraw(handle, problem)
            raise
        return handle

    async def abegin(
        self,
        conversation: Conversation,
        entry: str,
        color: Color,
        max_steps: int,
        beginning: Beginning | None = None,
    ) -> ConversationRun:
        """`begin` for a loop."""
        handle = self._reserve(conversation, color, max_steps)
        try:
            if beginning is None or not beginning.is_new:
                await aread(self.store, conversation.look)
            is_large = beginning is not None and beginning.is_large
            work = self._start(handle, entry, beginning)
            self._started(handle, await self.store.acommit(RUN_START, work, is_large=is_large))
        except BaseException as problem:
            self._withdraw(handle, problem)
            raise
        return handle

    def _started(self, handle: ConversationRun, events: Sequence[Event]) -> None:
        handle.started_at = events[-1].seq
        handle.remember(events)
        handle.shared.run = handle
        handle.conversation._note(events)
        handle.shared.tell(events)

    def _withdraw(self, handle: ConversationRun, problem: BaseException) -> None:
        """Whoever asked for the run has gone while its start was being written: end it, if it was written."""
        handle.is_withdrawn = True
        if handle.conversation._gate is not None:
            handle.conversation._gate.after_refusal()
        if not isinstance(problem, Exception):
            handle.end_at_once(problem)
        self.finished(handle)

    def check_over(self, handle: ConversationRun) -> None:
        """End a run that nobody could carry out: there was no thread for it, or no loop."""
        if not handle.done.is_set():
            handle.end_at_once(sys.exception() or RunError("no process was running it"))
            self.finished(handle)

    def carry_out(self, handle: ConversationRun, *, here: bool = False) -> None:
        """Let a run that has begun go on in the background: on a thread, on our own loop, or on the loop `here`."""

        def over(_: End | None, problem: BaseException | None) -> None:
            if problem is not None:
                # Its words may be what somebody said to the agent. They are in the log of the conversation.
                _log.error("The run of %r in the background ended: %s", handle.conversation.id, type(problem).__name__)

        async def work() -> None:
            try:
                await adrive(handle)
            except Exception as problem:  # noqa: BLE001 - it is in the log, and nobody waits here
                over(None, problem)

        try:
            if handle.color is Color.SYNC:
                start_thread(handle, over)
            else:
                settle = self._background.settle_here if here else self._background.settle
                settle(work, f"troth-run-{handle.conversation.id}", partial(self.check_over, handle))
        except BaseException:
            self.check_over(handle)
            raise

    def write_without_waiting(self, run: ConversationRun) -> None:
        """Write what a run has pending if that needs no waiting; otherwise as soon as it can be."""
        work = Entries(run.conversation, run)
        try:
            written = self.store.commit_at_once(work)
        except LeaseLostError:
            return
        except StoreError:
            work.take_back()
            written = None
        if written is None:
            self.late.add(SAY, work, run.written_late)
        else:
            run.conversation._tell(written[0])

    def _reserve(self, conversation: Conversation, color: Color, max_steps: int) -> ConversationRun:
        self.check_open(conversation)
        if not _is_count(max_steps, 0):
            raise MisuseError(f"`max_steps` is {max_steps!r}; it is a number of steps. Nothing was started.")
        handle = ConversationRun(self, conversation, uuid.uuid4().hex, color, max_steps)
        with self._lock:
            if len(self._running) >= self._limit:
                raise TooManyRuns(
                    f"{len(self._running)} conversations are running, which is the limit of this runtime.\n"
                    f"The run of {conversation.id!r} was not started; what was sent to it is safe in its log.\n"
                    "Run it again when another has ended, or raise `max_concurrent_runs`."
                )
            self._running.add(handle)
        living_runs.add(handle)
        return handle

    def _start(
        self, handle: ConversationRun, entry: str, beginning: Beginning | None
    ) -> Callable[[Transaction], list[Event]]:
        conversation = handle.conversation
        first = beginning or Beginning()
        stream, resource = stream_of(conversation.id), self.resource(conversation.id)
        if conversation._gate is not None:
            conversation._gate.before([*(kind for kind, _ in first.rows), log.STARTED])

        def work(tx: Transaction) -> list[Event]:
            if handle.is_withdrawn:
                raise _WithdrawnError
            if first.work is not None:
                first.work(tx)
            now = self.store.clock()
            is_first = first.is_new and tx.last_event(stream) == 0
            cut_off = None if is_first else conversation.look_inside(tx).open_run
            holder = tx.claim(resource, self._owner.id, handle.run_id, now)
            if holder is not None:
                if cut_off is None or living_runs.is_run_by(holder, cut_off, self.store.is_alive):
                    raise _already_running(conversation.id, holder)
                tx.release(resource, cut_off)  # it was left behind in this process by a run that is over
                tx.claim(resource, self._owner.id, handle.run_id, now)
            if conversation._gate is not None:
                conversation._gate.inside(tx, [*first.rows, (log.STARTED, {"run": handle.run_id})], now)
            rows = [] if cut_off is None else self._end_of(cut_off)
            if is_first:
                rows = [_opened(conversation.agent, conversation.way)]
            start = {
                "run": handle.run_id,
                "entry": entry,
                "way": handle.color.value,
                "because": conversation.way.because,
                "pid": os.getpid(),
            }
            entries = [*rows, *first.rows, (log.STARTED, start)]
            numbers = itertools.count(tx.append_events(stream, entries, now))
            return [
                Event(0, stream, number, kind, payload, now)
                for number, (kind, payload) in zip(numbers, entries, strict=False)
            ]

        return work

    def _end_of(self, cut_off: str) -> list[Row]:
        """What is written of a run that the log has as open, and that nobody carries out."""
        unwritten = self.late.rows_of(cut_off)
        if unwritten is not None:
            return unwritten
        payload = {"run": cut_off, "outcome": "interrupted", "by": "its process died, or lost its lease"}
        return [(log.ENDED, payload)]

    def finished(self, handle: ConversationRun) -> None:
        """The run is over: another one may start."""
        if handle.shared.run is handle:
            handle.shared.run = None
        living_runs.discard(handle)
        with self._lock:
            self._running.discard(handle)
        handle.over()
        self.tell_between_runs(handle.shared)  # what came in after the run had told the last of its own

    def tell_between_runs(self, shared: SharedState) -> None:
        """Call callbacks while nothing runs: sync ones here, async ones on the loop of this thread, else on our own."""
        for callbacks in shared.listeners():
            if callbacks.is_sync:
                callbacks.drain()
            elif callbacks.has_news and not self._is_closed:
                if asyncio._get_running_loop() is not None:
                    tell_in_task(callbacks, shared.id, shared.is_idle)
                else:
                    telling = partial(callbacks.adrain, shared.is_idle)
                    self._background.settle(telling, f"troth-callbacks-{shared.id}")

    # The end

    def check_open(self, conversation: Conversation) -> None:
        """Refuse work on what was closed."""
        self._check_usable()
        run = conversation._current
        if conversation in self._closed_ones and (run is None or run.conversation is not conversation):
            raise ConversationClosed(
                f"The conversation {conversation.id!r} was closed in this process.\nNothing was written.\nOpen it "
                "again by its id."
            )

    def _check_usable(self) -> None:
        if self._is_closed or self._pid != os.getpid():
            why = "were closed" if self._is_closed else "belong to the process that this one was forked from"
            raise ConversationClosed(f"These conversations {why}.\nNothing was written.\nCreate `Conversations` again.")

    def close_one(self, conversation: Conversation, timeout: float) -> list[str]:
        """End the run that was begun through this handle, within `timeout` seconds; answers what was abandoned."""
        self._closed_ones.add(conversation)
        run = conversation._current
        return [] if run is None or run.conversation is not conversation else self._end([run], timeout)

    def close(self, timeout: float = 5.0) -> list[str]:
        """End all runs within `timeout` seconds and let go of everything; the answer names what was abandoned.

        May be called twice. On a loop use `aclose`: a loop that waits here cannot end what runs on it.
        """
        if self._is_closed:
            return []
        with self._lock:
            running = list(self._running)
        unfinished = self._end(running, timeout)
        self._is_closed = True
        self._background.close()
        self._let_go()
        return unfinished

    async def aclose(self, timeout: float = 5.0) -> list[str]:
        """`close` for a loop."""
        if self._is_closed:
            return []
        with self._lock:
            running = list(self._running)
        unfinished = await asyncio.to_thread(self._end, running, timeout)  # waiting blocks a thread, not this loop
        self._is_closed = True
        await asyncio.to_thread(self._background.close)
        await asyncio.to_thread(self._let_go)
        return unfinished

    def _end(self, handles: Sequence[ConversationRun], timeout: float) -> list[str]:
        for handle in handles:
            handle.stop()
        deadline = time.monotonic() + timeout
        unfinished = []
        for handle in handles:
            is_own_thread = handle.is_here()  # waiting for oneself would last forever
            if is_own_thread or not handle.done.wait(max(0.0, deadline - time.monotonic())):
                unfinished.append(_abandoned(handle))
        return unfinished

    def _let_go(self) -> None:
        self._stop_beating()
        try:
            self.late.write_all()
            self.store.commit(RETIRE, lambda tx: tx.retire(self._owner.id))
        finally:
            retire(self._owner)  # what cannot be written now is told by this: an owner that does not live holds nothing
            if self._owns_store:
                self.store.close()

    def _beat(self) -> None:
        self.store.commit(BEAT, lambda tx: tx.beat(self._owner.id, self.store.clock()))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _abandoned(handle: ConversationRun) -> str:
    thread = handle.thread.name if handle.thread is not None else "no thread yet"
    return f"conversation {handle.conversation.id}: step {handle.step} on {thread}"


class _WithdrawnError(Exception):
    """The start of a run that nobody wants any more: nothing of it is written."""


def _already_running(conversation_id: str, holder: Owner) -> AlreadyRunning:
    where = "this process" if lives_here(holder) else f"process {holder.pid}"
    return AlreadyRunning(
        f"The conversation {conversation_id!r} is already running, in {where}.\n"
        "A second run would answer twice, so it was not started; the first run sees what was sent.\n"
        "Wait for it, or stop it with `interrupt()`."
    )


def _opened(agent: object, way: StepMethod) -> tuple[str, dict[str, Any]]:
    """The first entry of a conversation with `agent`."""
    kind = type(agent)
    return log.OPENED, {"agent": f"{kind.__module__}.{kind.__qualname__}", "way": way.color.value}


def _is_count(number: object, least: int) -> bool:
    return isinstance(number, int) and number >= least


def _check_id(conversation_id: object) -> None:
    if conversation_id is not None and not isinstance(conversation_id, str):
        raise MisuseError(f"The id of a conversation is a string, not {conversation_id!r}. Nothing was opened.")
