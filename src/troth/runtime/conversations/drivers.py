"""Carry a run through on a thread and on a loop: two short loops around one course.

A sync agent's run, its steps and its callbacks are all on one thread; an async agent's are all on one loop.
"""

import asyncio
import contextlib
import contextvars
import inspect
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from troth.bridge import run as bridge_run
from troth.color import Color
from troth.errors import RunError
from troth.runtime.agents.history import NOTHING_SAID, HistoryFold
from troth.runtime.agents.step_thread import STEP_THREAD, StepThread
from troth.runtime.channels.binding import in_conversation
from troth.runtime.conversations import log
from troth.runtime.conversations.callbacks import Callbacks
from troth.runtime.conversations.entries import Entries, NewsError, RunEntries
from troth.runtime.conversations.errors import AgentExitError
from troth.runtime.conversations.log import State, Status
from troth.runtime.conversations.pending_entries import PATIENCE, PendingEntries
from troth.runtime.conversations.shared_state import tell_in_task
from troth.runtime.conversations.state_machine import (
    Command,
    End,
    Settle,
    Stopped,
    TakeNotice,
    TakeStep,
    conversation_run,
)
from troth.runtime.store import Event, LeaseLostError, StoreError, commit_point
from troth.runtime.store.aread import aread
from troth.runtime.tools.perform import ToolInterrupted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from troth.runtime.conversations.conversation import Conversation
    from troth.runtime.conversations.registry import Conversations

__all__ = ["ConversationRun", "adrive", "drive", "in_thread", "start_thread"]

logger = logging.getLogger("troth.conversation")

SAY = commit_point("conversation.say", "one entry of a conversation's log", is_append=True)
STEP_DONE = commit_point("conversation.step", "a step's end, and what the agent had seen", is_append=True)
RUN_END = commit_point("conversation.end", "a run's end and the lease given back")

_REMEMBERED = 200  # entries of a run that are kept in memory
_GRACE = 1.0  # seconds in which a callback on a loop may come to the end of its events; guessed

IN_STEP: "contextvars.ContextVar[ConversationRun | None]" = contextvars.ContextVar(
    "troth.conversation_step", default=None
)
"""The run whose agent the calling code belongs to, while the agent takes a step."""


class ConversationRun:
    """One run while it lasts."""

    def __init__(
        self, home: "Conversations", conversation: "Conversation", run_id: str, color: Color, max_steps: int
    ) -> None:
        self.home = home
        self.conversation = conversation
        self.shared = conversation._shared
        self.run_id = run_id
        self.color = color
        self.max_steps = max_steps
        self.started_at = 0
        """The number of its `run.started` in the log."""
        self.step = 0
        self.thread: threading.Thread | None = None
        self.is_withdrawn = False
        """Whoever asked for it has gone before its start was written; it is not to be."""
        self.is_stopping = False
        self.is_cancelled = False
        self.is_ended = False
        """Its end is written, or will be: it writes nothing more."""
        self.written: list[Event] | None = []
        """What this process has written of it, from its beginning on; None once that is too much to remember."""
        self.done = threading.Event()
        self._waiters: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = []
        self._readers: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = []
        self.pending = PendingEntries()
        self.began_at: int | None = None
        """The number of the last entry that there was when the step under way began; None before the first one."""
        self.seen = 0
        """The number of the last entry that the agent can have read in its step."""
        self.talk: HistoryFold | None = None
        """The talk so far, from the first moment on that somebody asks for it."""
        self.knows_all = False
        """Whether the log had nothing, at the last commit of this process, that was not taken notice of."""
        self.history = NOTHING_SAID
        """The talk as it was when the step began."""
        self._end: End | None = None  # as far as it is decided
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[Any] | None = None
        self._writing: asyncio.Task[None] | None = None
        self._is_timed = False
        self._telling: set[asyncio.Task[None]] = set()
        self._step_thread = StepThread(f"troth-run-{conversation.id}")

    # From any thread

    def stop(self) -> None:
        """End as soon as can be: an async step is cancelled, a sync one may look at `is_interrupted`."""
        self.is_stopping = True
        loop, task = self._loop, self._task
        if loop is not None and task is not None:
            with contextlib.suppress(RuntimeError):  # that loop is closed, and the task with it
                loop.call_soon_threadsafe(task.cancel)

    def remember(self, events: "Sequence[Event]") -> None:
        """Keep what was written, so that whoever waits for the end has not to read all of it again."""
        if self.written is not None:
            self.written += events
            if len(self.written) > _REMEMBERED:
                self.written = None
        if self._readers:
            self._tell_readers()

    def _tell_readers(self) -> None:
        readers, self._readers = self._readers, []
        for loop, reader in readers:
            _on_loop(loop, partial(_resolve, reader))

    async def await_written(self, count: int, timeout: float) -> bool:
        """Wait until more than `count` entries of it are remembered. False if that may never be, or takes longer."""
        loop = asyncio.get_running_loop()
        reader = loop, loop.create_future()
        self._readers.append(reader)  # before the look: whoever writes on another thread notices one or the other
        try:
            if self.written is not None and len(self.written) <= count and not self.done.is_set():
                async with asyncio.timeout(timeout):
                    await reader[1]
        except TimeoutError:
            return False
        finally:
            with contextlib.suppress(ValueError):  # it was told
                self._readers.remove(reader)
        return self.written is not None and len(self.written) > count

    async def await_over(self) -> None:
        """Wait until nothing of it goes on in this process. Cancelling this cancels no run."""
        loop = asyncio.get_running_loop()
        waiter = loop, loop.create_future()
        self._waiters.append(waiter)
        if not self.done.is_set():  # looked at after the waiter can be seen: one of both notices the other
            await waiter[1]

    def is_here(self) -> bool:
        """Whether this thread is the run's own."""
        return self.thread is threading.current_thread() or self._step_thread.is_here()

    def write_soon(self) -> None:
        """Write what is pending; on a thread now, for a loop without waiting."""
        loop = self._loop
        if loop is None:
            self.conversation._write(SAY, Entries(self.conversation, self))
        else:
            _on_loop(loop, self._write_here)

    def write_later(self) -> None:
        """Write what is pending after a moment, if nothing takes it along before: a model may pause for long.

        Only where the run is on a loop; on a thread nobody is there to do it while the step works.
        """
        loop = self._loop
        if loop is not None and not self._is_timed:
            self._is_timed = True
            _on_loop(loop, lambda: loop.call_later(PATIENCE, self._write_what_is_left))

    def _write_what_is_left(self) -> None:
        self._is_timed = False
        if self.pending.has_any:
            self._write_here()

    def _write_here(self) -> None:
        if self._writing is None and not self.is_ended:
            self._writing = asyncio.create_task(self._awrite(), name=f"troth-tokens-{self.conversation.id}")

    async def _awrite(self) -> None:
        try:
            await self.conversation._awrite(SAY, Entries(self.conversation, self))
        except Exception as problem:  # noqa: BLE001 - whatever the agent writes next meets it too, and raises it
            logger.debug("What is pending in %r is not written now: %s", self.conversation.id, problem)
        finally:
            self._writing = None

    # The callbacks

    def callbacks_now(self, patience: float = 0.0) -> None:
        """Let the callbacks hear: on the run's own thread, or on its loop in tasks of their own."""
        loop = self._loop
        if loop is None or self._step_thread.is_here():
            token = IN_STEP.set(None)  # what a callback reads, the agent has not read
            try:
                self.shared.drain(patience)
            finally:
                IN_STEP.reset(token)
        elif self._step_thread.is_started:
            self._step_thread.soon(self.callbacks_now)
        else:
            _on_loop(loop, self._tell_here)

    def _tell_here(self) -> None:
        for callbacks in self.shared.listeners():
            if callbacks.has_news:
                contextvars.copy_context().run(self._tell_outside_of_step, callbacks)

    def _tell_outside_of_step(self, callbacks: Callbacks) -> None:
        IN_STEP.set(None)  # what a callback reads, the agent has not read
        tell_in_task(callbacks, self.conversation.id, among=self._telling)

    async def callbacks_heard(self, patience: float | None) -> None:
        """Wait until the callbacks have heard everything, at most `patience` seconds: one may never return."""
        if self._step_thread.is_started:
            loop = asyncio.get_running_loop()
            heard: asyncio.Future[None] = loop.create_future()
            self._step_thread.soon(partial(self.callbacks_now, _GRACE))
            self._step_thread.soon(partial(_on_loop, loop, partial(_resolve, heard)))
            await asyncio.wait([heard], timeout=patience)
            is_heard = heard.done()
        else:
            is_heard = not self._telling or not (await asyncio.wait(set(self._telling), timeout=patience))[1]
            deadline = time.monotonic() + _GRACE
            for callbacks in self.shared.listeners():
                while is_heard and callbacks.has_news:  # what was sent before the run is still being told, elsewhere
                    rung = callbacks.freed.count
                    self.callbacks_now()
                    is_heard = await callbacks.freed.await_ring(rung, deadline - time.monotonic())
        if not is_heard:
            logger.warning(
                "A callback of the conversation %r has not returned %g s after the end of the run; the run no longer "
                "waits for it.",
                self.conversation.id,
                _GRACE,
            )

    # What the course asks for

    def notice(self) -> State:
        """What the log tells now, with what was asked of this very run."""
        state = self.conversation.look_for(self)
        return replace(state, interrupt_asked=True) if self.is_stopping else state

    def begin_step(self, step: TakeStep) -> None:
        """The agent is about to take a step."""
        self.step = step.number
        self.began_at = self.seen = step.seen

    def step_done(self, step: TakeStep, *, wants_more: bool) -> Entries:
        """The commit that records a step."""
        payload = {"run": self.run_id, "step": step.number, "seen": step.seen, "more": wants_more}
        return RunEntries(self, (log.STEPPED, payload))

    def ending(self, end: End, seen: int | None = None) -> RunEntries:
        """The commit that ends the run; with `seen`, only if nothing came in after that."""
        payload: dict[str, Any] = {"run": self.run_id, "outcome": end.outcome.value, "steps": self.step}
        if end.error is not None:
            payload["error"] = {"type": type(end.error).__qualname__, "message": str(end.error)}
        self._end = end
        return RunEntries(self, (log.ENDED, payload), is_end=True, seen=seen)

    @property
    def is_ending(self) -> bool:
        """Whether its end is being written, and so may be in the log already."""
        return self._end is not None

    def undecided(self) -> None:
        """It goes on: something came in."""
        self._end = None

    def ended(self, events: "Sequence[Event]") -> None:
        """The run is over, and it is written."""
        self.is_ended = True
        self.remember(events)
        self.shared.tell(events)

    def end(self, end: End, seen: int | None = None) -> None:
        """Write the end, on this thread."""
        work = self.ending(end, seen)
        try:
            self.ended(self.home.store.commit(RUN_END, work))
        except Exception:
            work.take_back()
            raise

    async def aend(self, end: End, seen: int | None = None) -> None:
        """`end` for a loop."""
        work = self.ending(end, seen)
        try:
            self.ended(await self.home.store.acommit(RUN_END, work))
        except Exception:
            work.take_back()
            raise

    # An end in spite of everything

    def end_of(self, problem: BaseException) -> End:
        """How a run ends that `problem` got in the way of."""
        if self._end is not None:
            return self._end
        if self.is_cancelled or isinstance(problem, asyncio.CancelledError):
            return End(Status.CANCELLED, self.step, problem)
        cause = problem.__cause__ if isinstance(problem, AgentExitError) else problem
        outcome = Status.INTERRUPTED if isinstance(cause, KeyboardInterrupt) else Status.FAILED
        return End(outcome, self.step, problem)

    def end_despite(self, problem: BaseException) -> None:
        """Write the end on this thread, after `problem`; if that cannot be, as soon as it can."""
        if isinstance(problem, StoreError):
            self.end_at_once(problem)  # whoever has waited for the store in vain does not wait again
            return
        end = self.end_of(problem)
        work = self.ending(end)
        try:
            self.ended(self.home.store.commit(RUN_END, work))
        except LeaseLostError:
            self.is_ended = True  # the log has gone on without it
        except BaseException as unwritten:
            self._end_later(problem, end, work)
            if not isinstance(unwritten, Exception):
                raise

    async def aend_despite(self, problem: BaseException) -> None:
        """`end_despite` for a loop. A task that was cancelled is not kept waiting."""
        if isinstance(problem, StoreError) or not isinstance(problem, Exception):
            self.end_at_once(problem)
            return
        end = self.end_of(problem)
        work = self.ending(end)
        try:
            self.ended(await self.home.store.acommit(RUN_END, work))
        except LeaseLostError:
            self.is_ended = True
        except BaseException as unwritten:
            self._end_later(problem, end, work)
            if not isinstance(unwritten, Exception):
                raise

    def end_at_once(self, problem: BaseException) -> None:
        """Write the end if that needs no waiting; otherwise as soon as it can be, by the store's own thread."""
        end = self.end_of(problem)
        work = self.ending(end)
        try:
            written = self.home.store.commit_at_once(work)
        except LeaseLostError:
            self.is_ended = True
        except Exception:  # noqa: BLE001 - the store cannot be written, which whoever commits next is told
            self._end_later(problem, end, work)
        else:
            if written is None:
                self._end_later(problem, end, work)
            else:
                self.ended(written[0])

    def _end_later(self, problem: BaseException, end: End, work: RunEntries) -> None:
        work.rows()  # takes what is pending along
        self.is_ended = True
        self.home.late.add_end(self.run_id, end, RUN_END, work, self.written_late)
        if isinstance(problem, StoreError):
            problem.add_note("The end of the run is written as soon as the store can be.")

    def written_late(self, events: "Sequence[Event]") -> None:
        """Let the callbacks hear of what the store's own thread has written, which none of them may hold."""
        self.shared.tell(events)
        if self.shared.run is not None:
            if self._loop is not None and not self.is_ended:
                self.callbacks_now()
        elif self.shared.listeners():
            name = f"troth-callbacks-{self.conversation.id}"
            threading.Thread(target=self.shared.drain, name=name, daemon=True).start()

    def over(self) -> None:
        """Nothing of it goes on any more."""
        self._step_thread.close()
        self.done.set()
        for loop, waiter in self._waiters:
            _on_loop(loop, partial(_resolve, waiter))
        self._tell_readers()


def _on_loop(loop: asyncio.AbstractEventLoop, work: Callable[[], object]) -> None:
    """Do it on `loop`: now if that runs here, else soon."""
    if asyncio._get_running_loop() is loop:
        work()
    else:
        with contextlib.suppress(RuntimeError):  # that loop is closed, so nobody is there any more
            loop.call_soon_threadsafe(work)


def _resolve(heard: "asyncio.Future[None]") -> None:
    if not heard.done():
        heard.set_result(None)


def _final(handle: ConversationRun, end: End) -> End:
    """An end that was asked for by cancelling is told as that."""
    if handle.is_cancelled and end.outcome is Status.INTERRUPTED:
        return End(Status.CANCELLED, end.steps, end.error)
    return end


# On a thread


def drive(handle: ConversationRun) -> End:
    """Carry the run through on this thread."""
    handle.thread = threading.current_thread()
    try:
        try:
            end = _final(handle, _follow(handle))
            if not handle.is_ended:
                handle.end(end)
        except BaseException as problem:
            if not handle.is_ended:
                handle.end_despite(problem)
            raise
        finally:
            handle.callbacks_now(_GRACE)
    finally:
        handle.home.finished(handle)
    if end.error is not None:
        raise end.error
    return end


def _follow(handle: ConversationRun) -> End:
    run = conversation_run(handle.max_steps)
    answer: Any = None
    while True:
        try:
            command = run.send(answer)
        except StopIteration as done:
            return cast("End", done.value)
        answer = _perform(handle, command)


def _perform(handle: ConversationRun, command: Command) -> Any:
    match command:
        case TakeNotice():
            handle.callbacks_now()
            return handle.notice()
        case Settle(outcome, seen):
            try:
                handle.end(End(outcome, handle.step), seen)
            except NewsError:
                handle.undecided()
                return False
            return True
        case TakeStep():
            handle.begin_step(command)
            token = IN_STEP.set(handle)
            try:
                with in_conversation(handle.conversation.session):
                    result = cast("Any", handle.conversation.agent).step(handle.conversation)
                    if inspect.isawaitable(result):
                        result = bridge_run(_await(result))
            except ToolInterrupted as interrupted:
                raise interrupted.cause from None
            finally:
                IN_STEP.reset(token)
            handle.conversation._write(STEP_DONE, handle.step_done(command, wants_more=bool(result)))
            return result


async def _await(thing: Any) -> Any:
    return await thing


# On a loop


async def adrive(handle: ConversationRun, *, leaves_callbacks: bool = True) -> End:
    """Carry the run through on this loop. A callback that has not returned a while after it is left to itself."""
    patience = _GRACE if leaves_callbacks else None
    handle.thread = threading.current_thread()
    handle._loop = asyncio.get_running_loop()
    try:
        try:
            end = _final(handle, await _afollow(handle))
            if not handle.is_ended:
                await handle.aend(end)
        except BaseException as problem:
            if not handle.is_ended:
                await handle.aend_despite(problem)
            if isinstance(problem, GeneratorExit):
                patience = 0.0  # its loop is gone: there is nothing left to wait on
            raise
        finally:
            if handle._writing is not None:
                handle._writing.cancel()  # the end has taken along what it would have written
            if patience != 0.0:
                handle.callbacks_now()
                await handle.callbacks_heard(patience)
    finally:
        handle.home.finished(handle)
    if end.error is not None:
        raise end.error
    return end


async def _afollow(handle: ConversationRun) -> End:
    run = conversation_run(handle.max_steps)
    answer: Any = None
    problem: Stopped | None = None
    while True:
        try:
            command = run.send(answer) if problem is None else run.throw(problem)
        except StopIteration as done:
            return cast("End", done.value)
        problem = None
        try:
            answer = await _aperform(handle, command)
        except Stopped as stopped:
            problem = stopped


async def _aperform(handle: ConversationRun, command: Command) -> Any:
    match command:
        case TakeNotice():
            return handle.notice() if handle.knows_all else await aread(handle.home.store, handle.notice)
        case Settle(outcome, seen):
            try:
                await handle.aend(End(outcome, handle.step), seen)
            except NewsError:
                handle.undecided()
                return False
            return True
        case TakeStep():
            handle.begin_step(command)
            result = await _astep(handle)
            await handle.conversation._awrite(STEP_DONE, handle.step_done(command, wants_more=bool(result)))
            return result


async def _astep(handle: ConversationRun) -> Any:
    """Take one async step in a task of its own, so that `interrupt` can end it without ending whoever waits."""
    task = asyncio.create_task(_guarded(handle), name=f"troth-step-{handle.conversation.id}")
    handle._task = task
    if handle.is_stopping:
        task.cancel()
    # After the step's task: an `astep` that forwards has then started the thread on which they are called.
    asyncio.get_running_loop().call_soon(handle.callbacks_now)
    try:
        return await task
    except asyncio.CancelledError:
        me = asyncio.current_task()
        if handle.is_stopping and not (me is not None and me.cancelling()):
            raise Stopped from None
        raise
    finally:
        handle._task = None


async def _guarded(handle: ConversationRun) -> Any:
    IN_STEP.set(handle)  # in the step's own task
    STEP_THREAD.set(handle._step_thread)
    try:
        with in_conversation(handle.conversation.session):
            return await cast("Any", handle.conversation.agent).astep(handle.conversation)
    except (KeyboardInterrupt, SystemExit) as leaving:
        raise _exit_error(handle, leaving, "the loop it ran on was kept alive") from leaving
    except ToolInterrupted as interrupted:
        raise _exit_error(handle, interrupted.cause, "the loop it ran on was kept alive") from interrupted.cause


def _exit_error(handle: ConversationRun, leaving: BaseException, what: str) -> AgentExitError:
    return AgentExitError(
        f"A step of the conversation {handle.conversation.id!r} raised `{leaving!r}`.\n"
        f"The run was ended; {what}.\nRaise an exception of your own instead."
    )


# A sync agent beside a loop, or beside everybody


def start_thread(handle: ConversationRun, over: "Callable[[End | None, BaseException | None], object]") -> None:
    """Carry the run of a sync agent through on one thread of its own. `over` hears how it ended, on that thread."""
    context = contextvars.copy_context()

    def work() -> None:
        end: End | None = None
        problem: BaseException | None = None
        try:
            end = context.run(drive, handle)
        except (KeyboardInterrupt, SystemExit) as leaving:
            problem = _exit_error(handle, leaving, "the process was kept alive")
            problem.__cause__ = leaving
        except BaseException as other:  # noqa: BLE001 - handed to whoever waits
            problem = RuntimeError("the step raised StopIteration") if isinstance(other, StopIteration) else other
            if problem is not other:
                problem.__cause__ = other
        over(end, problem)

    try:
        threading.Thread(target=work, name=f"troth-run-{handle.conversation.id}", daemon=True).start()
    except RuntimeError as refused:
        raise RunError(
            f"No thread could be started for the run of the conversation {handle.conversation.id!r}: {refused}.\n"
            "No step was taken; what was sent is safe in its log.\nRun it again when the process has fewer threads."
        ) from refused


async def in_thread(handle: ConversationRun) -> End:
    """Carry the run of a sync agent through on one thread of its own; this loop stays free."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[End] = loop.create_future()

    def settle(end: End | None, problem: BaseException | None) -> None:
        if future.done():
            return  # whoever waited was cancelled; how the run ended is in the log
        if problem is not None:
            future.set_exception(problem)
        elif end is not None:
            future.set_result(end)

    def over(end: End | None, problem: BaseException | None) -> None:
        _on_loop(loop, partial(settle, end, problem))  # if it is closed: how the run ended is in the log

    start_thread(handle, over)
    try:
        return await future
    except asyncio.CancelledError:
        if not handle.done.is_set():
            handle.is_cancelled = True
            handle.stop()
        raise
