"""How async code calls a callable of either color without blocking its loop."""

import asyncio
import inspect
import sys
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from typing import TypeVar, TypeVarTuple, cast, overload

from troth.bridge._color.classify import classify
from troth.bridge._crossing.context import bring_back, take_along
from troth.bridge._crossing.home import SenderHome, working_for
from troth.bridge._errors import InterpreterExitError, NotRunnableError
from troth.bridge._loops.other_loop import note_other_loop
from troth.bridge._threads.workers import at_work, pool
from troth.color import Color

__all__ = ["call"]

T = TypeVar("T")
Args = TypeVarTuple("Args")


@overload
async def call(fn: Callable[[*Args], Awaitable[T]], /, *args: *Args, thread: bool = True) -> T: ...
@overload
async def call(fn: Callable[[*Args], T], /, *args: *Args, thread: bool = True) -> T: ...
async def call(fn: Callable[..., object], /, *args: object, thread: bool = True) -> object:
    """Call `fn(*args)` from async code, whatever its color, and await whatever awaitable comes back.

    An async callable is called here, on the loop. A sync one runs in a worker thread, of which at most forty are at
    work at a time, with the caller's context variables; what it changes in them comes back. `thread=False` runs it
    here, for code bound to its thread (SQLite, tkinter, COM), and blocks the loop meanwhile. Keyword arguments go in
    with `functools.partial`.

    A thread cannot be stopped: cancelling the `call` cancels what the function waits for through `bridge.run`, waits
    for the function to return, and then raises `CancelledError`. What its `finally` blocks run is cancelled only if
    the `call` is cancelled again. Any exception, `SystemExit` too, arrives here as itself; only `StopIteration`, which
    no coroutine may raise, arrives as the cause of a RuntimeError.
    """
    if not callable(fn):
        verdict = classify(fn)
        if inspect.iscoroutine(fn):
            fn.close()
        raise NotRunnableError(f"`bridge.call` cannot call {fn!r}: {verdict.because}.\nNothing ran; {verdict.advice}.")
    if not thread or classify(fn).color is Color.ASYNC:
        result = fn(*args)
    elif asyncio._get_running_loop() is not None:
        result = await _in_worker(fn, args)
    else:
        result = await _in_trio_worker(fn, args)
    if not inspect.isawaitable(result):
        return result
    try:
        return await result
    except Exception as error:
        note_other_loop(error)
        raise


class _Job:
    """One call in a worker thread. Its outcome is kept, not raised: a Future refuses a StopIteration and then hangs."""

    def __init__(self, fn: Callable[..., object], args: tuple[object, ...]) -> None:
        self._fn = fn
        self._args = args
        self._value: object = None
        self._error: BaseException | None = None

    def run(self) -> None:
        try:
            self._value = self._fn(*self._args)
        except BaseException as error:  # noqa: BLE001 - raised again by `outcome`, where the caller awaits
            self._error = error

    def outcome(self, cancelled: asyncio.CancelledError | None = None) -> object:
        if cancelled is not None and isinstance(self._error, asyncio.CancelledError):
            # What reached the coroutine in the thread is this very request. An anyio scope knows it by its words, and
            # would let another one pass.
            self._error = None
            raise cancelled
        if self._error is not None:
            try:
                raise self._error
            finally:
                self._error = None  # the traceback holds this frame
        if cancelled is not None:
            if inspect.iscoroutine(self._value):
                self._value.close()
            raise cancelled
        return self._value


async def _in_worker(fn: Callable[..., object], args: tuple[object, ...]) -> object:
    loop = asyncio.get_running_loop()
    workers = pool()
    await workers.slots.take()
    context = take_along()
    home = SenderHome(loop, workers.slots)
    job = _Job(fn, args)

    def work() -> None:
        try:
            with working_for(home):
                context.run(job.run)
        finally:
            workers.slots.give_back()

    try:
        finished = loop.run_in_executor(workers.threads, at_work, work)
    except RuntimeError as refused:
        workers.slots.give_back()
        raise InterpreterExitError(
            f"`bridge.call` cannot start a worker thread for {fn!r}: the interpreter is shutting down.\n"
            "Nothing ran. Call it with `thread=False`, or before the program ends."
        ) from refused
    cancelled: asyncio.CancelledError | None = None
    try:
        await asyncio.shield(finished)
    except asyncio.CancelledError as request:
        cancelled = request
        home.cancel()
        await _until(finished, home)
    bring_back(context)
    return job.outcome(cancelled)


async def _until(finished: asyncio.Future[None], home: SenderHome) -> None:
    """Wait for a thread that cannot be stopped. Every further cancellation reaches what it then waits for."""
    anyio = sys.modules.get("anyio")
    # anyio repeats a cancellation in every turn of the loop until the task ends, except through a shield.
    with anyio.CancelScope(shield=True) if anyio is not None else nullcontext():
        while not finished.done():
            try:
                await asyncio.shield(finished)
            except asyncio.CancelledError:
                home.cancel()


async def _in_trio_worker(fn: Callable[..., object], args: tuple[object, ...]) -> object:
    """Under trio, its own worker threads and their limit do the same. No asyncio loop is there to go home to."""
    trio = sys.modules.get("trio")
    if trio is None:
        raise NotRunnableError("`bridge.call` has to be awaited on an asyncio or trio loop, and neither runs here.")
    context = take_along()
    job = _Job(fn, args)
    await cast("Awaitable[None]", trio.to_thread.run_sync(context.run, job.run))
    bring_back(context)
    return job.outcome()
