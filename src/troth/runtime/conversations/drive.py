"""Knows how to carry a run through on a thread and on a loop: two short loops around one course.

A sync agent's run, its steps and its callbacks are all on one thread; an async agent's are all on one loop.
"""

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from troth.bridge import run as bridge_run
from troth.color import Color
from troth.runtime.conversations import log
from troth.runtime.conversations.callbacks import Callbacks
from troth.runtime.conversations.course import Ask, End, Settle, Step, Stopped, TakeNotice, course
from troth.runtime.conversations.errors import AgentExitError
from troth.runtime.conversations.log import State, Status, stream_of
from troth.runtime.conversations.tokens import Gatherer
from troth.runtime.store import Event, commit_point

if TYPE_CHECKING:
    from troth.runtime.conversations.conversation import Conversation
    from troth.runtime.conversations.registry import Conversations

__all__ = ["RunHandle", "adrive", "drive", "in_thread"]

STEP_DONE = commit_point("conversation.step", "a step's end, and what the agent had seen")
RUN_END = commit_point("conversation.end", "a run's end and the lease given back")


class _NewsError(Exception):
    """Something came in between looking and ending; nothing of the ending is written."""


class RunHandle:
    """One run while it lasts."""

    def __init__(
        self, home: "Conversations", conversation: "Conversation", run_id: str, color: Color, max_steps: int
    ) -> None:
        self.home = home
        self.conversation = conversation
        self.run_id = run_id
        self.color = color
        self.max_steps = max_steps
        self.step = 0
        self.thread: threading.Thread | None = None
        self.is_stopping = False
        self.is_cancelled = False
        self.done = threading.Event()
        self.tokens = Gatherer(lambda text: conversation._append(log.TOKENS, {"text": text}))
        self.callbacks = Callbacks(conversation._callbacks, self._callback_failed)
        self._ended = False
        self._is_over = False
        self._calling_back = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[Any] | None = None
        self._news: asyncio.Event | None = None

    # From any thread

    def stop(self) -> None:
        """End as soon as can be: an async step is cancelled, a sync one may look at `is_interrupted`."""
        self.is_stopping = True
        loop, task = self._loop, self._task
        if loop is not None and task is not None and not loop.is_closed():
            loop.call_soon_threadsafe(task.cancel)

    def is_here(self) -> bool:
        """Whether this thread is the run's own."""
        return self.thread is threading.current_thread()

    def callbacks_now(self) -> None:
        """On the run's thread: let the callbacks hear. On a loop that is left to the task that waits for it."""
        if self._news is not None:
            self._news.set()
        elif self.color is Color.SYNC and not self._calling_back:
            self._calling_back = True
            try:
                self.callbacks.drain()
            finally:
                self._calling_back = False

    # What the course asks for

    def notice(self) -> State:
        """What the log tells now, with what was asked of this very run."""
        from dataclasses import replace

        state = self.conversation.look()
        return replace(state, interrupt_asked=True) if self.is_stopping else state

    def step_done(self, step: Step, *, wants_more: bool) -> tuple[Any, Callable[[Any], Event]]:
        """The commit that records a step."""
        payload = {"run": self.run_id, "step": step.number, "seen": step.seen, "more": wants_more}
        return STEP_DONE, self._entry(log.STEPPED, payload)

    def ending(self, outcome: Status, error: BaseException | None, seen: int | None) -> Callable[[Any], Event]:
        """The commit that ends the run; with `seen`, only if nothing came in after that."""
        payload: dict[str, Any] = {"run": self.run_id, "outcome": outcome.value, "steps": self.step}
        if error is not None:
            payload["error"] = {"type": type(error).__qualname__, "message": str(error)}
        write = self._entry(log.ENDED, payload)

        def work(tx: Any) -> Event:
            event = write(tx)
            if seen is not None and event.seq != seen + 1:
                raise _NewsError
            tx.release(self.home.resource(self.conversation.id), self.run_id)
            return event

        return work

    def ended(self, event: Event) -> None:
        """The run is over, and it is written."""
        self._ended = True
        self.callbacks.tell(event)

    def _entry(self, kind: str, payload: dict[str, Any]) -> Callable[[Any], Event]:
        stream = stream_of(self.conversation.id)

        def work(tx: Any) -> Event:
            tx.hold(self.home.resource(self.conversation.id), self.run_id)
            now = self.home.store.clock()
            return Event(0, stream, tx.append_event(stream, kind, payload, now), kind, payload, now)

        return work

    def _callback_failed(self, name: str, problem: BaseException) -> None:
        payload = {"callback": name, "error": {"type": type(problem).__qualname__, "message": str(problem)}}
        self.conversation._append(log.CALLBACK_FAILED, payload)


def _outcome(handle: RunHandle, problem: BaseException) -> Status:
    if handle.is_cancelled or isinstance(problem, asyncio.CancelledError):
        return Status.CANCELLED
    return Status.INTERRUPTED if isinstance(problem, KeyboardInterrupt) else Status.FAILED


def _final(handle: RunHandle, end: End) -> End:
    """An end that was asked for by cancelling is told as that."""
    if handle.is_cancelled and end.outcome is Status.INTERRUPTED:
        return End(Status.CANCELLED, end.steps, end.error)
    return end


# On a thread


def drive(handle: RunHandle) -> End:
    """Carry the run through on this thread."""
    handle.thread = threading.current_thread()
    store = handle.home.store
    try:
        try:
            end = _final(handle, _follow(handle))
            if not handle._ended:
                handle.ended(store.commit(RUN_END, handle.ending(end.outcome, end.error, None)))
        except BaseException as problem:
            if not handle._ended:
                handle.ended(store.commit(RUN_END, handle.ending(_outcome(handle, problem), problem, None)))
            raise
        finally:
            handle.callbacks_now()
    finally:
        handle.home.finished(handle)
    if end.error is not None:
        raise end.error
    return end


def _follow(handle: RunHandle) -> End:
    run = course(handle.max_steps)
    answer: Any = None
    while True:
        try:
            ask = run.send(answer)
        except StopIteration as done:
            return cast("End", done.value)
        answer = _perform(handle, ask)


def _perform(handle: RunHandle, ask: Ask) -> Any:
    match ask:
        case TakeNotice():
            handle.callbacks_now()
            return handle.notice()
        case Settle(outcome, seen):
            try:
                handle.ended(handle.home.store.commit(RUN_END, handle.ending(outcome, None, seen)))
            except _NewsError:
                return False
            return True
        case Step(number):
            handle.step = number
            try:
                result = cast("Any", handle.conversation.agent).step(handle.conversation)
                if inspect.isawaitable(result):
                    result = bridge_run(_await(result))
            finally:
                handle.tokens.flush()
            handle.callbacks.tell(handle.home.store.commit(*handle.step_done(ask, wants_more=bool(result))))
            handle.callbacks_now()
            return result


async def _await(thing: Any) -> Any:
    return await thing


# On a loop


async def adrive(handle: RunHandle) -> End:
    """Carry the run through on this loop."""
    handle.thread = threading.current_thread()
    handle._loop = asyncio.get_running_loop()
    handle._news = asyncio.Event()
    teller = asyncio.create_task(_keep_telling(handle), name=f"troth-callbacks-{handle.conversation.id}")
    store = handle.home.store
    try:
        try:
            end = _final(handle, await _afollow(handle))
            if not handle._ended:
                handle.ended(await store.acommit(RUN_END, handle.ending(end.outcome, end.error, None)))
        except BaseException as problem:
            if not handle._ended:
                # not awaited: a cancelled task must not be kept from ending, and the end must not be lost
                handle.ended(store.commit(RUN_END, handle.ending(_outcome(handle, problem), problem, None)))
            raise
        finally:
            handle._is_over = True
            handle.callbacks_now()
            await teller  # not cancelled: a callback in the middle of its event would lose it
    finally:
        handle.home.finished(handle)
    if end.error is not None:
        raise end.error
    return end


async def _keep_telling(handle: RunHandle) -> None:
    news = cast("asyncio.Event", handle._news)
    while True:
        await news.wait()
        news.clear()
        await handle.callbacks.adrain()
        if handle._is_over and not news.is_set():
            return


async def _afollow(handle: RunHandle) -> End:
    run = course(handle.max_steps)
    answer: Any = None
    problem: Stopped | None = None
    while True:
        try:
            ask = run.send(answer) if problem is None else run.throw(problem)
        except StopIteration as done:
            return cast("End", done.value)
        problem = None
        try:
            answer = await _aperform(handle, ask)
        except Stopped as stopped:
            problem = stopped


async def _aperform(handle: RunHandle, ask: Ask) -> Any:
    match ask:
        case TakeNotice():
            return handle.notice()
        case Settle(outcome, seen):
            try:
                handle.ended(await handle.home.store.acommit(RUN_END, handle.ending(outcome, None, seen)))
            except _NewsError:
                return False
            return True
        case Step(number):
            handle.step = number
            try:
                result = await _astep(handle)
            finally:
                handle.tokens.flush()
            point, work = handle.step_done(ask, wants_more=bool(result))
            handle.callbacks.tell(await handle.home.store.acommit(point, work))
            handle.callbacks_now()
            return result


async def _astep(handle: RunHandle) -> Any:
    """Take one async step in a task of its own, so that `interrupt` can end it without ending whoever waits."""
    task = asyncio.create_task(_guarded(handle), name=f"troth-step-{handle.conversation.id}")
    handle._task = task
    if handle.is_stopping:
        task.cancel()
    try:
        result = await task
    except asyncio.CancelledError:
        me = asyncio.current_task()
        if handle.is_stopping and not (me is not None and me.cancelling()):
            raise Stopped from None
        raise
    finally:
        handle._task = None
    if isinstance(result, _Left):
        raise result.how
    return result


class _Left:
    """A Ctrl-C that fell into the step. Raised in its task it would tear down the loop before the run could end."""

    def __init__(self, how: BaseException) -> None:
        self.how = how


async def _guarded(handle: RunHandle) -> Any:
    try:
        return await cast("Any", handle.conversation.agent).astep(handle.conversation)
    except KeyboardInterrupt as leaving:
        return _Left(leaving)
    except SystemExit as leaving:
        raise AgentExitError(
            f"A step of the conversation {handle.conversation.id!r} raised `SystemExit({leaving.code!r})`.\n"
            "The run was ended; the loop it ran on was kept alive.\nRaise an exception of your own instead."
        ) from leaving


# A sync agent for a loop


async def in_thread(handle: RunHandle) -> End:
    """Carry the run of a sync agent through on one thread of its own; this loop stays free."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[End] = loop.create_future()
    context = contextvars.copy_context()

    def settle(end: End | None, problem: BaseException | None) -> None:
        if future.done():
            return  # whoever waited was cancelled; how the run ended is in the log
        if problem is not None:
            future.set_exception(problem)
        elif end is not None:
            future.set_result(end)

    def work() -> None:
        end: End | None = None
        problem: BaseException | None = None
        try:
            end = context.run(drive, handle)
        except SystemExit as leaving:
            problem = AgentExitError(
                f"A step of the conversation {handle.conversation.id!r} raised `SystemExit({leaving.code!r})`.\n"
                "The run was ended; the process was kept alive.\nRaise an exception of your own instead."
            )
            problem.__cause__ = leaving
        except BaseException as other:  # noqa: BLE001 - handed to whoever waits
            problem = RuntimeError("the step raised StopIteration") if isinstance(other, StopIteration) else other
            if problem is not other:
                problem.__cause__ = other
        try:
            loop.call_soon_threadsafe(settle, end, problem)
        except RuntimeError:
            return  # that loop is closed, so nobody waits there any more; how the run ended is in the log

    threading.Thread(target=work, name=f"troth-run-{handle.conversation.id}", daemon=True).start()
    try:
        return await future
    except asyncio.CancelledError:
        if not handle.done.is_set():
            handle.is_cancelled = True
            handle.stop()
        raise
