"""How a loop of this thread is turned until one thing on it is done."""

import asyncio
from asyncio import base_events
from collections.abc import Callable
from typing import Any

from troth.bridge._loops.hide_running_loop import hide_running_loop
from troth.bridge._loops.interrupt import catch_interrupts
from troth.bridge._loops.loop import ThreadLoop, Watch
from troth.bridge._loops.other_loop import note_other_loop

__all__ = ["drive", "outcome"]


def _stop(task: asyncio.Future[Any]) -> None:
    task.get_loop().stop()


# anyio finds the task that a loop was started for by this callback, and ends its idle worker threads with it.
_STOP_LOOP: Callable[[asyncio.Future[Any]], object] = getattr(base_events, "_run_until_complete_cb", _stop)


def drive(loop: ThreadLoop, awaited: asyncio.Future[Any], cancel: Callable[[], object], watch: Watch | None) -> None:
    """Turn `loop` until `awaited` is done, whatever runs in this thread below.

    Whatever ends the turning early (Ctrl-C, a SystemExit in a callback, what `watch` raises) cancels the work with
    `cancel`, waits for its `finally` blocks, and is raised then.
    """
    aside = hide_running_loop()
    answer = catch_interrupts(loop, cancel, blocks_loop=watch is not None)
    if watch is not None:
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
            if answer is None or not answer.is_final:
                _end(loop, awaited, cancel)
            raise
        if answer is not None and answer.has_cancelled:
            if not awaited.cancelled():
                awaited.exception()  # seen
            raise KeyboardInterrupt
    finally:
        if answer is not None:
            answer.restore()
        if watch is not None:
            loop.watch(None)
        if aside is not None:
            aside.put_back()
        # From 3.12 on a coroutine's frame keeps this one alive; its exception would hold itself through the task.
        del awaited, cancel, answer, watch


def _end(loop: ThreadLoop, awaited: asyncio.Future[Any], cancel: Callable[[], object]) -> None:
    """Cancel the work and wait for its `finally` blocks. What it raises now is seen, and is not what is raised."""
    if not awaited.done():
        cancel()
        loop.run_forever()
    awaited.remove_done_callback(_STOP_LOOP)
    if awaited.done() and not awaited.cancelled():
        awaited.exception()


def outcome(task: asyncio.Future[Any]) -> Any:
    """Give the result or raise the exception: as itself, with the coroutine's frames below the caller's."""
    if task.cancelled():
        return task.result()
    error = task.exception()
    if error is None:
        return task.result()
    note_other_loop(error)
    try:
        raise error
    finally:
        del error, task  # the traceback holds this frame, and would hold itself through it
