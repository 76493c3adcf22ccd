"""How a loop of this thread is turned until one thing on it is done."""

import asyncio
from asyncio import base_events
from collections.abc import Callable
from functools import partial
from typing import Any

from troth.bridge._aside import Aside
from troth.bridge._interrupt import catch_interrupts
from troth.bridge._loop import ThreadLoop, Watch

__all__ = ["drive", "outcome"]


def _stop(done: asyncio.Future[Any]) -> None:
    done.get_loop().stop()


# anyio finds the task that a loop was started for by this callback, and ends its idle worker threads with it.
_STOP_LOOP: Callable[[asyncio.Future[Any]], object] = getattr(base_events, "_run_until_complete_cb", _stop)


def drive(loop: ThreadLoop, awaited: asyncio.Future[Any], cancel: Callable[[], object], watch: Watch | None) -> None:
    """Turn `loop` until `awaited` is done, whatever runs in this thread below.

    Whatever ends the turning early (Ctrl-C, a SystemExit in a callback, what `watch` raises) cancels the work with
    `cancel`, waits for its `finally` blocks, and is raised then.
    """
    aside = Aside()
    answer = catch_interrupts(partial(loop.call_soon_threadsafe, cancel))
    loop.watch(watch)
    awaited.add_done_callback(_STOP_LOOP)
    try:
        try:
            loop.run_forever()
            if not awaited.done():
                raise RuntimeError("the coroutine stopped the loop it runs on before it had ended")
        except BaseException as error:
            if awaited.done() and not awaited.cancelled() and awaited.exception() is error:
                return  # KeyboardInterrupt and SystemExit leave the loop by themselves; `outcome` raises them
            loop.watch(None)
            if not awaited.done():
                cancel()
                loop.run_forever()
            if awaited.done() and not awaited.cancelled():
                awaited.exception()  # seen: what is raised now says why it was cancelled
            raise
        if answer is not None and answer.has_cancelled:
            if not awaited.cancelled():
                awaited.exception()
            raise KeyboardInterrupt
    finally:
        if answer is not None:
            answer.restore()
        awaited.remove_done_callback(_STOP_LOOP)
        loop.watch(None)
        aside.put_back()


def outcome(done: asyncio.Future[Any]) -> Any:
    """Give the result or raise the exception: as itself, with the coroutine's frames below the caller's."""
    if done.cancelled():
        return done.result()
    error = done.exception()
    if error is None:
        return done.result()
    try:
        raise error
    finally:
        del error, done  # the traceback holds this frame, and would hold itself through it
