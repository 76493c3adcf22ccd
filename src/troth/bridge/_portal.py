"""A loop in a thread of its own, for clients that several threads share."""

import asyncio
import os
import threading
import time
import warnings
import weakref
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, Self, TypeVar, TypeVarTuple, overload

from troth.bridge._crossing.blocked import PATIENCE, endless, name_of, report
from troth.bridge._crossing.handoff import Handoff
from troth.bridge._crossing.home import Home, home_of_this_thread
from troth.bridge._crossing.strategy import choose
from troth.bridge._crossing.to_coroutine import check_seconds, close_refused, to_coroutine
from troth.bridge._crossing.trio_sender import trio_sender
from troth.bridge._errors import InterpreterExitError, LoopGoneError, PortalClosedError
from troth.bridge._loops.idle_loop import IdleLoop
from troth.bridge._loops.interrupt import catch_interrupts
from troth.bridge._loops.loop import is_exiting
from troth.bridge._loops.loop_pool import lease
from troth.bridge._loops.loop_thread import LoopThread
from troth.bridge._run import refuse_blocking, run_on
from troth.bridge._threads.waiting_threads import anybody_else_awake
from troth.bridge._where import doing

__all__ = ["Portal"]

T = TypeVar("T")
Args = TypeVarTuple("Args")


class Portal:
    """Runs coroutines of any thread on one loop, which turns in a thread of its own from the first `run` on.

    Use it for clients that several threads share, and for tasks that go on between two calls. It may be made before a
    fork: the child starts a thread of its own. It ends with `close()`, with its `with` block, when it is dropped, and
    when the interpreter exits, which it never holds up for more than some seconds.

    `loop_factory` makes the loop, `uvloop.new_event_loop` for one.
    """

    def __init__(
        self, *, loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None, name: str = "troth-portal"
    ) -> None:
        self._make_loop = loop_factory or _make_loop
        self._name = name
        self._starting = threading.Lock()
        self._engine: LoopThread | None = None
        self._is_closed = False
        _PORTALS.add(self)

    @overload
    def run(
        self,
        work: Awaitable[T],
        /,
        *,
        timeout: float | None = None,
        strict: bool = False,
        deadlock_after: float | None = None,
    ) -> T: ...
    @overload
    def run(
        self,
        work: Callable[[*Args], Awaitable[T]],
        /,
        *args: *Args,
        timeout: float | None = None,
        strict: bool = False,
        deadlock_after: float | None = None,
    ) -> T: ...
    def run(
        self,
        work: object,
        /,
        *args: object,
        timeout: float | None = None,
        strict: bool = False,
        deadlock_after: float | None = None,
    ) -> object:
        """Run `work(*args)`, or the coroutine `work`, on the portal's loop, and wait for it in this thread.

        Everything said of `bridge.run` holds: exceptions, context variables, `timeout`, Ctrl-C, and that a loop
        running in this thread is blocked meanwhile. Called from the portal's own loop, which cannot turn while it
        waits, it runs on a loop stacked on that one, as `bridge.run` does.
        """
        check_seconds(work, "Portal.run", timeout=timeout, deadlock_after=deadlock_after)
        explanation = choose().explanation
        if strict and explanation.blocks_loop:
            raise refuse_blocking(work, explanation)
        engine = self._turning(work)
        coroutine = to_coroutine(work, args, "Portal.run")
        if threading.current_thread() is engine.thread:
            return run_on(lease(), coroutine, timeout, deadlock_after, blocks_loop=explanation.blocks_loop)
        handoff = Handoff(coroutine, engine.loop, timeout)
        try:
            handoff.send()
        except RuntimeError as closed:
            coroutine.close()
            raise self._closed(work) from closed
        home = home_of_this_thread() if asyncio._get_running_loop() is None else None
        let_go = home.adopt_elsewhere(handoff.cancel) if home is not None else None
        answer = catch_interrupts(engine.loop, handoff.cancel, blocks_loop=explanation.blocks_loop)
        try:
            return handoff.outcome(partial(_Waiting, engine, coroutine, deadlock_after, explanation.blocks_loop))
        except asyncio.CancelledError as error:
            if is_exiting() and threading.current_thread().daemon:
                # The program ends, and a thread that nobody waits for ends with it: this is how one does so in silence.
                raise SystemExit from None
            if self._is_closed and not (answer is not None and answer.has_cancelled):
                raise LoopGoneError(
                    f"the portal was closed before `{name_of(work)}` ended; it was cancelled."
                ) from None
            raise _explained(error, home) from error.__cause__
        finally:
            if let_go is not None:
                let_go()
            if answer is not None:
                answer.restore()
                if answer.has_cancelled:
                    raise KeyboardInterrupt

    def close(self) -> None:
        """Cancel what still runs, let its `finally` blocks run, and end the thread. May be called more than once."""
        self._is_closed = True
        with self._starting:
            engine, self._engine = self._engine, None
        if engine is not None and not engine.stop():
            warnings.warn(
                f"a portal's thread did not end when it was closed; it is at {doing(engine.thread.ident)}. It is left "
                "behind, and does not keep the program from ending.",
                ResourceWarning,
                stacklevel=2,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _turning(self, work: object) -> LoopThread:
        engine = self._engine
        if engine is not None and engine.is_here:
            return engine
        if self._is_closed:
            raise self._closed(work)
        if is_exiting():
            close_refused(work)
            raise InterpreterExitError(
                f"`Portal.run` cannot run `{name_of(work)}`: the interpreter is shutting down, and starts no threads.\n"
                "It was not started. `bridge.run` still works in functions registered with `atexit`."
            )
        with self._starting:
            if self._engine is None or not self._engine.is_here:
                if self._engine is not None:
                    _LOST_IN_FORK.append(self._engine)
                try:
                    self._engine = LoopThread(self._make_loop, self._name)
                except BaseException:  # the caller's `loop_factory` raised, or the system has no thread left
                    close_refused(work)
                    raise
                weakref.finalize(self, self._engine.stop)
            return self._engine

    def _closed(self, work: object) -> PortalClosedError:
        close_refused(work)
        return PortalClosedError(f"the portal was closed, so `{name_of(work)}` was not started. Make a new `Portal`.")


class _Waiting:
    """What a caller thinks of while nothing comes back from the portal."""

    def __init__(
        self,
        engine: LoopThread,
        work: Coroutine[Any, Any, Any],
        deadlock_after: float | None,
        blocks_loop: bool,  # noqa: FBT001
    ) -> None:
        self._engine = engine
        self._work = work
        self._deadlock_after = deadlock_after
        self._blocks_loop = blocks_loop
        self._is_reported = False
        self._sender = trio_sender()

    def __call__(self, seconds: float) -> BaseException | None:
        if self._sender is not None:
            self._sender.look()
        if not self._engine.thread.is_alive():
            return LoopGoneError(f"the portal's thread ended before `{name_of(self._work)}` did.")
        rested = self._rested()
        if self._deadlock_after is not None and rested is not None and rested >= self._deadlock_after:
            return endless(self._work, f"The portal has been idle for {rested:.1f} s.")
        if not self._blocks_loop or seconds < PATIENCE:
            return None
        if rested is not None and not anybody_else_awake():
            return endless(self._work, "No timer, no I/O and no other thread is left that could wake it.")
        if not self._is_reported:
            self._is_reported = True
            report(self._work, is_starved=rested is not None)
        return None

    def _rested(self) -> float | None:
        loop = self._engine.loop
        if not isinstance(loop, IdleLoop) or not loop.is_resting:
            return None
        return time.monotonic() - loop.resting_since


def _explained(error: asyncio.CancelledError, home: Home | None) -> asyncio.CancelledError:
    return error if home is None else home.explain_cancellation(error)


_PORTALS: "weakref.WeakSet[Portal]" = weakref.WeakSet()
_LOST_IN_FORK: list[LoopThread] = []
"""Engines of the parent. Their loops share kernel objects with it, and closing them here would reach into it."""


def _make_loop() -> asyncio.AbstractEventLoop:
    return IdleLoop()


def _start_afresh() -> None:
    """A lock that some thread of the parent held when it forked is held forever in the child."""
    for portal in _PORTALS:
        portal._starting = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_afresh)
