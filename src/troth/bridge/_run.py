"""How sync code runs async code wherever it stands."""

import asyncio
import contextlib
import sys
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar, TypeVarTuple, cast, overload

from troth.bridge._crossing.blocked import BlockedLoop, endless, name_of
from troth.bridge._crossing.context import bring_back, take_along
from troth.bridge._crossing.handoff import within
from troth.bridge._crossing.home import run_at_home
from troth.bridge._crossing.strategy import Choice, Explanation, Way, choose, record
from troth.bridge._crossing.to_coroutine import check_seconds, close_refused, to_coroutine
from troth.bridge._crossing.trio_sender import trio_sender
from troth.bridge._errors import BlockedLoopError, InterpreterExitError, RunTimeoutError
from troth.bridge._loops.drive import drive, outcome
from troth.bridge._loops.leftovers import settle
from troth.bridge._loops.loop import ThreadLoop
from troth.bridge._loops.loop_pool import lease, release
from troth.bridge._loops.other_loop import note_other_loop
from troth.bridge._where import caller

__all__ = ["go", "refuse_blocking", "run", "run_on"]

T = TypeVar("T")
Args = TypeVarTuple("Args")


@overload
def run(
    work: Awaitable[T],
    /,
    *,
    timeout: float | None = None,
    strict: bool = False,
    deadlock_after: float | None = None,
) -> T: ...
@overload
def run(
    work: Callable[[*Args], Awaitable[T]],
    /,
    *args: *Args,
    timeout: float | None = None,
    strict: bool = False,
    deadlock_after: float | None = None,
) -> T: ...
def run(
    work: object,
    /,
    *args: object,
    timeout: float | None = None,
    strict: bool = False,
    deadlock_after: float | None = None,
) -> object:
    """Run `work(*args)`, or the coroutine `work`, from sync code and return what it returns.

    Where it runs depends on where the call stands, and `bridge.explain()` says so: on a loop of this thread that is
    used again, on the loop that sent this worker thread, or, where a loop already runs in this thread, on a second
    loop stacked on it. No thread is started and nothing is patched. Context variables go in and changes come back.

    Inside a running loop that loop is blocked until the call returns: its timers do not fire, its tasks do not move,
    and cancelling the task that called does nothing. This is reported after a second at the caller's line, and refused
    at once with `strict=True`. A wait that provably cannot end is a DeadlockError; where other threads are alive it
    cannot be proved, and `deadlock_after=` says how many seconds of nothing happening are proof enough.

    `timeout=` cancels the coroutine after so many seconds, waits for its `finally` blocks and raises RunTimeoutError.
    Ctrl-C does the same and raises KeyboardInterrupt. Every exception of the coroutine comes out as itself.
    """
    if timeout is not None or deadlock_after is not None:
        check_seconds(work, "bridge.run", timeout=timeout, deadlock_after=deadlock_after)
    choice = choose()
    record(choice)
    if choice.explanation.blocks_loop:
        if strict:
            raise refuse_blocking(work, choice.explanation)
        if _is_pending_below(work):
            raise endless(work, "It is a future of that very loop.")
    elif choice.explanation.way is Way.REFUSED:
        close_refused(work)
        raise InterpreterExitError(
            f"`bridge.run` cannot run `{name_of(work)}`: {choice.explanation.because}.\nIt was not started. Run it "
            "earlier: from a `with` block, or from a function registered with `atexit`."
        )
    return go(choice, to_coroutine(work, args, "bridge.run"), timeout, deadlock_after)


def go(choice: Choice, work: Coroutine[Any, Any, T], timeout: float | None, deadlock_after: float | None) -> T:
    """Run `work` the way that was chosen."""
    if choice.home is not None:
        return run_at_home(choice.home, work, timeout, deadlock_after)
    if choice.explanation.way is Way.GREENBACK:
        limited = work if timeout is None else within(work, timeout)
        try:
            return cast("T", sys.modules["greenback"].await_(limited))
        except Exception as error:
            note_other_loop(error)
            raise
    return run_on(lease(), work, timeout, deadlock_after, blocks_loop=choice.explanation.blocks_loop)


def run_on(
    loop: ThreadLoop,
    work: Coroutine[Any, Any, T],
    timeout: float | None,
    deadlock_after: float | None,
    *,
    blocks_loop: bool,
) -> T:
    """Run `work` on a loop that was leased for it, and release that."""
    context = take_along("asyncio")
    task: asyncio.Task[T] = loop.create_main_task(work, context)
    limit = None if timeout is None else _Limit(loop, task, timeout)
    try:
        drive(loop, task, task.cancel, BlockedLoop(work, loop, deadlock_after) if blocks_loop else trio_sender())
        if limit is not None and limit.has_fired and task.cancelled():
            raise RunTimeoutError(f"`{name_of(work)}` gave no result in {timeout} s, and was cancelled.")
        return cast("T", outcome(task))
    finally:
        if limit is not None:
            limit.lift()
        if not task.done():
            _give_up(loop, task, work)
        elif loop.spawned:
            settle(loop)
        release(loop)
        bring_back(context)
        del task, work  # an exception on its way out holds this frame, and would hold itself through the task


def _give_up(loop: ThreadLoop, task: asyncio.Task[Any], work: Coroutine[Any, Any, Any]) -> None:
    """After a second Ctrl-C: close the coroutine where it stands, and the loop, on which nobody shall meet it again."""
    with contextlib.suppress(RuntimeError):  # a coroutine may refuse even that
        work.close()
    task._log_destroy_pending = False  # type: ignore[attr-defined]  # it is: on purpose
    loop.close()


def _is_pending_below(work: object) -> bool:
    return isinstance(work, asyncio.Future) and not work.done() and work.get_loop() is asyncio._get_running_loop()


class _Limit:
    """Cancels a task after a time."""

    def __init__(self, loop: asyncio.AbstractEventLoop, task: asyncio.Task[Any], seconds: float) -> None:
        self.has_fired = False
        self._task = task
        self._timer = loop.call_later(seconds, self._fire)

    def _fire(self) -> None:
        self.has_fired = True
        self._task.cancel()

    def lift(self) -> None:
        self._timer.cancel()
        del self._task


def refuse_blocking(work: object, explanation: Explanation) -> BlockedLoopError:
    """Close what was to run, and say why it does not."""
    close_refused(work)
    return BlockedLoopError(
        f"`{name_of(work)}` was not started: `strict=True`, and {explanation.because}.\n"
        f"  called at {caller(sys._getframe())}\n"
        "Await it instead, or run the sync code in a worker thread with `await bridge.call(...)`."
    )
