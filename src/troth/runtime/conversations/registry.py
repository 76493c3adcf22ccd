"""Knows the conversations of one store: opens them, lets one runner at a time at each, and closes them all."""

import asyncio
import os
import threading
import time
import uuid
import weakref
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Self

from troth.color import Color
from troth.errors import MisuseError
from troth.runtime.conversations import log
from troth.runtime.conversations.callbacks import Callback
from troth.runtime.conversations.conversation import Conversation
from troth.runtime.conversations.drive import RunHandle
from troth.runtime.conversations.errors import AlreadyRunning, ConversationClosed, TooManyRuns
from troth.runtime.conversations.log import stream_of
from troth.runtime.store import SqliteStore, Store, commit_point
from troth.runtime.store.identity import BEAT_EVERY, is_alive, new_owner, retire

__all__ = ["Conversations"]

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
        self._owns_store = isinstance(store, str | os.PathLike)
        self.store: Store = SqliteStore(store) if isinstance(store, str | os.PathLike) else store
        self._limit = max_concurrent_runs
        self._lock = threading.Lock()
        self._running: set[RunHandle] = set()
        self._closed_ones: weakref.WeakSet[Conversation] = weakref.WeakSet()
        self._is_closed = False
        self._owner = new_owner(self.store.clock())
        self._pid = os.getpid()
        self.store.commit(ENROLL, lambda tx: tx.enroll(self._owner))
        self._stop_beating = self.store.chore(BEAT_EVERY, self._beat)

    def open(
        self, agent: object, conversation_id: str | None = None, *, on_event: Sequence[Callback] = ()
    ) -> Conversation:
        """Open a conversation with `agent`: a new one, or one of which the store knows.

        The agent's color and the callbacks are checked here; what could fail silently later is refused now.
        """
        self._check_usable()
        _check_id(conversation_id)
        conversation = Conversation(self, conversation_id or uuid.uuid4().hex, agent, on_event)
        stream = stream_of(conversation.id)
        kind = type(agent)
        who = {"agent": f"{kind.__module__}.{kind.__qualname__}", "way": conversation.way.color.value}

        def work(tx: Any) -> None:
            if self.store.last_event(stream) == 0:
                tx.append_event(stream, log.OPENED, who, self.store.clock())

        self.store.commit(OPEN, work)
        return conversation

    # Runs

    @staticmethod
    def resource(conversation_id: str) -> str:
        """The lease that a run of the conversation holds."""
        return stream_of(conversation_id)

    def is_held(self, conversation_id: str) -> bool:
        """Whether somebody living runs it, here or elsewhere."""
        holder = self.store.holder(self.resource(conversation_id))
        return holder is not None and is_alive(holder, self.store.clock())

    def begin(self, conversation: Conversation, entry: str, color: Color, max_steps: int) -> RunHandle:
        """Take the lease and write down that a run has started; raises `AlreadyRunning` at once if one is under way."""
        handle = self._reserve(conversation, color, max_steps)
        try:
            self.store.commit(RUN_START, self._start(handle, entry))
        except BaseException:
            self._free(handle)
            raise
        conversation._current = handle
        return handle

    async def abegin(self, conversation: Conversation, entry: str, color: Color, max_steps: int) -> RunHandle:
        """`begin` for a loop."""
        handle = self._reserve(conversation, color, max_steps)
        try:
            await asyncio.shield(self.store.acommit(RUN_START, self._start(handle, entry)))
        except asyncio.CancelledError:
            self._free(handle)
            self._undo_start(handle)
            raise
        except BaseException:
            self._free(handle)
            raise
        conversation._current = handle
        return handle

    def _undo_start(self, handle: RunHandle) -> None:
        """Whoever asked for the run was cancelled while its start was being written: end it, if it was written."""
        if self.is_held(handle.conversation.id):
            from troth.runtime.conversations.drive import RUN_END
            from troth.runtime.conversations.log import Status
            from troth.runtime.store import LeaseLostError

            try:
                self.store.commit(RUN_END, handle.ending(Status.CANCELLED, None, None))
            except LeaseLostError:
                return  # somebody else's run

    def _reserve(self, conversation: Conversation, color: Color, max_steps: int) -> RunHandle:
        self.check_open(conversation)
        if not _is_count(max_steps, 0):
            raise MisuseError(f"`max_steps` is {max_steps!r}; it is a number of steps. Nothing was started.")
        handle = RunHandle(self, conversation, uuid.uuid4().hex, color, max_steps)
        with self._lock:
            if len(self._running) >= self._limit:
                raise TooManyRuns(
                    f"{len(self._running)} conversations are running, which is the limit of this runtime.\n"
                    f"The run of {conversation.id!r} was not started; what was sent to it is safe in its log.\n"
                    "Run it again when another has ended, or raise `max_concurrent_runs`."
                )
            self._running.add(handle)
        return handle

    def _free(self, handle: RunHandle) -> None:
        with self._lock:
            self._running.discard(handle)

    def _start(self, handle: RunHandle, entry: str) -> Callable[[Any], None]:
        conversation = handle.conversation
        stream, resource = stream_of(conversation.id), self.resource(conversation.id)

        def work(tx: Any) -> None:
            now = self.store.clock()
            holder = tx.claim(resource, self._owner.id, handle.run_id, now)
            if holder is not None:
                where = "this process" if holder.id == self._owner.id else f"process {holder.pid}"
                raise AlreadyRunning(
                    f"The conversation {conversation.id!r} is already running, in {where}.\n"
                    "A second run would answer twice, so it was not started; what was sent is seen by the first.\n"
                    "Wait for it, or stop it with `interrupt()`."
                )
            cut_off = conversation.look().open_run
            if cut_off is not None:
                payload = {"run": cut_off, "outcome": "interrupted", "by": "its process died, or lost its lease"}
                tx.append_event(stream, log.ENDED, payload, now)
            start = {
                "run": handle.run_id,
                "entry": entry,
                "way": handle.color.value,
                "because": conversation.way.because,
                "pid": os.getpid(),
            }
            tx.append_event(stream, log.STARTED, start, now)

        return work

    def finished(self, handle: RunHandle) -> None:
        """The run is over: another one may start."""
        if handle.conversation._current is handle:
            handle.conversation._current = None
        self._free(handle)
        handle.done.set()

    # The end

    def check_open(self, conversation: Conversation) -> None:
        """Refuse work on what was closed."""
        self._check_usable()
        if conversation in self._closed_ones and conversation._current is None:
            raise ConversationClosed(
                f"The conversation {conversation.id!r} was closed here.\nNothing was written.\nOpen it anew by its id."
            )

    def _check_usable(self) -> None:
        if self._is_closed or self._pid != os.getpid():
            why = "were closed" if self._is_closed else "belong to the process that forked this one"
            raise ConversationClosed(f"These conversations {why}.\nNothing was written.\nMake `Conversations` anew.")

    def close_one(self, conversation: Conversation, timeout: float) -> list[str]:
        """End the run of one conversation within `timeout` seconds; the answer names what was abandoned."""
        self._closed_ones.add(conversation)
        handle = conversation._current
        return [] if handle is None else self._end([handle], timeout)

    def close(self, timeout: float = 5.0) -> list[str]:
        """End all runs within `timeout` seconds and let go of everything; the answer names what was abandoned.

        May be called twice. On a loop use `aclose`: a loop that waits here cannot end what runs on it.
        """
        if self._is_closed:
            return []
        with self._lock:
            running = list(self._running)
        left = self._end(running, timeout)
        self._let_go()
        return left

    async def aclose(self, timeout: float = 5.0) -> list[str]:
        """`close` for a loop."""
        if self._is_closed:
            return []
        with self._lock:
            running = list(self._running)
        left = await asyncio.to_thread(self._end, running, timeout)  # waiting blocks a thread, not this loop
        self._let_go()
        return left

    def _end(self, handles: Sequence[RunHandle], timeout: float) -> list[str]:
        for handle in handles:
            handle.stop()
        deadline = time.monotonic() + timeout
        left = []
        for handle in handles:
            here = handle.is_here()  # waiting for oneself would last for ever
            if here or not handle.done.wait(max(0.0, deadline - time.monotonic())):
                left.append(_abandoned(handle))
        return left

    def _let_go(self) -> None:
        self._is_closed = True
        self._stop_beating()
        self.store.commit(RETIRE, lambda tx: tx.retire(self._owner.id))
        retire(self._owner)
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


def _abandoned(handle: RunHandle) -> str:
    thread = handle.thread.name if handle.thread is not None else "no thread yet"
    return f"conversation {handle.conversation.id}: step {handle.step} on {thread}"


def _is_count(number: object, least: int) -> bool:
    return isinstance(number, int) and number >= least


def _check_id(conversation_id: object) -> None:
    if conversation_id is not None and not isinstance(conversation_id, str):
        raise MisuseError(f"The id of a conversation is a text, and {conversation_id!r} is none. Nothing was opened.")
