"""The loops that belong to a thread, and when they are closed.

A thread's first `run` makes a loop, later ones use it again, and a `run` inside a `run` takes the next: the same
depth always gets the same loop, so a client made in one call works in the next. They are closed when the thread
ends, in the thread, and those of the main thread when the interpreter exits.
"""

import asyncio
import atexit
import os
import threading

from troth.bridge._loop import ThreadLoop, is_exiting

__all__ = ["lease", "lease_again", "release"]

_KEPT = 8  # loops a thread keeps for its next calls; a deeper recursion closes what it opened
_CLOSING_TIME = 2.0  # seconds that cancelled leftovers get; a task that refuses to end must not keep a program from it


class _Idle:
    """The loops of one thread that are not running now, the outermost last."""

    def __init__(self) -> None:
        self.pid = os.getpid()
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


def lease() -> ThreadLoop:
    """Take this thread's next loop that is not running."""
    idle = _LOCAL.idle
    if idle.pid != os.getpid():
        idle.close()  # closes the copies only; see `ThreadLoop.close`
        idle = _LOCAL.idle = _Idle()
    while idle.loops:
        loop = idle.loops.pop()
        if not loop.is_closed():  # by the user's own coroutine
            return loop
    return ThreadLoop()


def lease_again(loop: ThreadLoop) -> bool:
    """Take a certain loop of this thread; False if it is running, is closed or belongs to another thread."""
    idle = _LOCAL.idle
    if idle.pid != os.getpid() or loop.is_closed() or loop not in idle.loops:
        return False
    idle.loops.remove(loop)
    return True


def release(loop: ThreadLoop) -> None:
    """Give a loop back to this thread. At interpreter exit nobody comes back for it, so it is closed."""
    idle = _LOCAL.idle
    if loop.residents or (len(idle.loops) < _KEPT and not is_exiting()):
        idle.loops.append(loop)
    elif not loop.is_closed():
        _close(loop)


def _close(loop: ThreadLoop) -> None:
    """End what was left on the loop, its generators first to last, and close it."""
    if loop.is_closed():
        return
    if loop._pid == os.getpid():
        left = (*loop.spawned, *loop.residents)
        for task in left:
            task.cancel()
        outer = asyncio._get_running_loop()  # a thread may end inside somebody's loop, for all we know
        asyncio._set_running_loop(None)
        try:
            if left:
                loop.run_until_complete(asyncio.wait(left, timeout=_CLOSING_TIME))
            loop.run_until_complete(loop.shutdown_asyncgens())
        finally:
            asyncio._set_running_loop(outer)
            loop.close()
    else:
        loop.close()


@atexit.register
def _close_main_loops() -> None:
    _LOCAL.idle.close()
