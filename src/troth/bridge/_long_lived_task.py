"""A task that lives through several calls from sync code.

An async generator or context manager is entered in one call and left in another, and many may only be left by the
task that entered them (a TaskGroup, a timeout, every cancel scope of anyio). So one task does all of it, on one loop,
and between the calls it waits for the next wish.
"""

import asyncio
import contextvars
import sys
import threading
from collections.abc import Awaitable, Callable
from typing import Any

from troth.bridge._crossing.context import bring_back, take_along
from troth.bridge._crossing.strategy import Choice, Way, choose
from troth.bridge._errors import WrongThreadError
from troth.bridge._loops.loop import ThreadLoop
from troth.bridge._loops.loop_pool import lease, lease_again
from troth.bridge._run import go, run_on

__all__ = ["LeftEarly", "LongLivedTask"]

_Wish = tuple[Callable[[], Awaitable[Any]], "asyncio.Future[Any]"]


class LeftEarly(Exception):  # noqa: N818 - no error of anybody's: it tells the facade what happened meanwhile
    """The resident was cancelled while it waited, and has said farewell. `reason` is what came of that, if it raised.

    A timeout that is entered does this when it passes, a task group when one of its tasks fails.
    """

    def __init__(self, reason: BaseException | None) -> None:
        super().__init__()
        self.reason = reason


class LongLivedTask:
    """Awaits one thing after another in one task, for callers in sync code.

    `farewell` is awaited with the cancellation if the task is cancelled before `leave` was called: by what it has
    entered, or because the loop ends with its thread or the program. It raises the cancellation unless that was meant
    for somebody inside.
    """

    def __init__(self, farewell: Callable[[asyncio.CancelledError], Awaitable[object]]) -> None:
        self._farewell = farewell
        self._choice: Choice | None = None
        self._loop: ThreadLoop | None = None
        self._thread = threading.get_ident()
        self._task: asyncio.Task[None] | None = None
        self._context: contextvars.Context | None = None
        self._wish: asyncio.Future[_Wish | None] | None = None

    @property
    def can_be_asked(self) -> bool:
        """It lives, and this is a thread it can be asked from."""
        if self._task is None or self._task.done():
            way = choose().explanation.way
            return self._choice is not None and self._choice.explanation.way is way is Way.GREENBACK
        is_shared = self._choice is not None and self._choice.home is not None
        return is_shared or threading.get_ident() == self._thread

    def ask(self, wish: Callable[[], Awaitable[Any]]) -> Any:
        """Await `wish()` in the resident task, and give or raise what comes of it; LeftEarly if it has left."""
        if self._choice is None:
            self._choice = choose()
            self._thread = threading.get_ident()
        way = self._choice.explanation.way
        if way is Way.GREENBACK:
            return sys.modules["greenback"].await_(wish())
        if self._choice.home is not None:
            if asyncio._get_running_loop() is self._choice.home.loop:
                raise self._wrong_place("the loop it lives on, which would wait for itself")
            return go(self._choice, self._visit(wish), None, None)
        return self._ask_on_thread(wish)

    def leave(self) -> None:
        """Let the task end."""
        if self._wish is None or self._task is None or self._task.done():
            return
        loop = self._task.get_loop()
        if self._choice is not None and self._choice.home is not None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(_grant, self._wish)
            return
        _grant(self._wish)
        if isinstance(loop, ThreadLoop) and lease_again(loop):
            run_on(loop, _ended(self._task), None, None, blocks_loop=False)

    def _ask_on_thread(self, wish: Callable[[], Awaitable[Any]]) -> Any:
        if threading.get_ident() != self._thread:
            raise self._wrong_place("another thread")
        if self._loop is None:
            self._loop = lease()
        elif not lease_again(self._loop):
            where = "a loop that is closed" if self._loop.is_closed() else "a coroutine on the very loop it lives on"
            raise self._wrong_place(where)
        return run_on(self._loop, self._visit(wish), None, None, blocks_loop=choose().explanation.blocks_loop)

    async def _visit(self, wish: Callable[[], Awaitable[Any]]) -> object:
        """Bring a wish to the resident task, in a task of the caller's: cancelling the caller reaches it."""
        loop = asyncio.get_running_loop()
        if self._task is None:
            self._context = take_along("asyncio")
            self._wish = loop.create_future()
            self._task = _keep(loop, self._live(), self._context)
        assert self._context is not None
        assert self._wish is not None
        if self._wish.done():
            await asyncio.wait([self._task])
            raise LeftEarly(_cancellation() if self._task.cancelled() else self._task.exception())
        for variable, value in contextvars.copy_context().items():
            self._context.run(variable.set, value)
        answer: asyncio.Future[Any] = loop.create_future()
        self._wish.set_result((wish, answer))
        try:
            while not answer.done():
                try:
                    await asyncio.shield(answer)
                except asyncio.CancelledError:
                    if answer.done():
                        break
                    self._task.cancel()
        finally:
            bring_back(self._context)
        ok, value = answer.result()
        if ok:
            return value
        try:
            raise value
        finally:
            del answer, value  # the traceback holds this frame

    async def _live(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                assert self._wish is not None
                posted = await self._wish
            except asyncio.CancelledError as posted:
                await self._farewell(posted)
                return
            if posted is None:
                return
            wish, answer = posted
            self._wish = loop.create_future()
            try:
                answer.set_result((True, await wish()))
            except BaseException as error:  # noqa: BLE001 - it belongs to the caller, who raises it
                answer.set_result((False, error))
                if isinstance(error, asyncio.CancelledError):
                    _forget_cancellation()

    def _wrong_place(self, where: str) -> WrongThreadError:
        return WrongThreadError(
            f"this iterator or context lives on a loop of the thread that first used it, and was now used from {where}."
            "\nUse it where it was opened; to share async code between threads, keep a `bridge.Portal`."
        )


def _keep(loop: asyncio.AbstractEventLoop, life: Any, context: contextvars.Context) -> asyncio.Task[None]:
    if not isinstance(loop, ThreadLoop):
        return loop.create_task(life, context=context)
    task: asyncio.Task[None] = loop.create_main_task(life, context)
    loop.residents.add(task)
    task.add_done_callback(loop.residents.discard)
    return task


def _grant(wish: "asyncio.Future[_Wish | None]") -> None:
    if not wish.done():
        wish.set_result(None)


async def _ended(task: asyncio.Task[None]) -> None:
    await asyncio.wait([task])


def _cancellation() -> asyncio.CancelledError:
    return asyncio.CancelledError("the context that was entered has been cancelled in the meantime")


def _forget_cancellation() -> None:
    """The cancellation has reached the one it was meant for; the resident itself goes on."""
    me = asyncio.current_task()
    while me is not None and me.cancelling():
        me.uncancel()
