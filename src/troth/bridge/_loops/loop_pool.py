"""The loops that belong to a thread, and when they are closed.

A thread's first `run` makes a loop, later ones use it again, and a `run` inside a `run` takes the next: the same
depth always gets the same loop, so a client made in one call works in the next. They are closed when the thread
ends, in the thread, and those of the main thread when the interpreter exits.
"""

import asyncio
import atexit
import os
import threading
from typing import Any

from troth.bridge._loops.hide_running_loop import hide_running_loop
from troth.bridge._loops.loop import ThreadLoop

__all__ = ["lease", "lease_again", "release"]

_KEPT = 8  # loops a thread keeps for its next calls; a deeper recursion closes what it opened
_CLOSING_TIME = 2.0  # seconds that cancelled leftovers get; a task that refuses to end must not keep a program from it


class _Idle:
    """The loops of one thread that are not running now, the outermost last."""

    def __init__(self) -> None:
        self.loops: list[ThreadLoop] = []

    def close(self) -> None:
        while self.loops:
            _close(self.loops.pop())

    def __del__(self) -> None:
        self.close()


class _Local(threading.local):
    def __init__(self) -> None:
        self.idle = _Idle()


_LOCAL = _Local()
_has_exited = False


def lease() -> ThreadLoop:
    """Take this thread's next loop that is not running."""
    loops = _LOCAL.idle.loops
    while loops:
        loop = loops.pop()
        if not loop.is_closed():  # by the user's own coroutine
            return loop
    return ThreadLoop()


def lease_again(loop: ThreadLoop) -> bool:
    """Take a certain loop of this thread; False if it is running, is closed or belongs to another thread."""
    idle = _LOCAL.idle
    if loop.is_closed() or loop not in idle.loops:
        return False
    idle.loops.remove(loop)
    return True


def release(loop: ThreadLoop) -> None:
    """Give a loop back to this thread. At interpreter exit nobody comes back for it, so it is closed."""
    loops = _LOCAL.idle.loops
    if loop.is_copy or loop.is_closed():
        loop.close()
    elif loop.residents or (len(loops) < _KEPT and not _has_exited):
        loops.append(loop)
    else:
        _close(loop)


def _close(loop: ThreadLoop) -> None:
    """End what was left on the loop, tasks first, generators then, and close it."""
    if not loop.is_closed() and not loop.is_copy:
        unfinished = (*loop.spawned, *loop.residents)
        # Most have nothing left, and are not run again: at the end of a thread, asyncio would leave a trace in the
        # interpreter's record of it, which nobody clears any more (some 100 bytes a thread).
        if unfinished or loop.has_open_generators:
            _end(loop, unfinished)
    loop.close()


def _end(loop: ThreadLoop, unfinished: tuple[asyncio.Task[Any], ...]) -> None:
    for task in unfinished:
        task.cancel()
    aside = hide_running_loop()
    try:
        if unfinished:
            loop.run_until_complete(asyncio.wait(unfinished, timeout=_CLOSING_TIME))
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        if aside is not None:
            aside.put_back()


def _start_afresh() -> None:
    """In a forked child, close the copies of the parent's loops; see `ThreadLoop.close` for what that leaves alone."""
    for loop in _LOCAL.idle.loops:
        loop.close()
    _LOCAL.idle = _Idle()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_afresh)


@atexit.register
def _close_main_loops() -> None:
    """Close them before the functions that were registered earlier run; a loop those need is closed after each use."""
    global _has_exited  # noqa: PLW0603 - it happens once in a process
    _has_exited = True
    _LOCAL.idle.close()
