"""A thread that turns a loop until it is told to stop, and lets nothing else stop it."""

import asyncio
import os
import threading
from collections.abc import Callable
from functools import partial

from troth.bridge._loops.idle_loop import IdleLoop
from troth.bridge._threads.waiting_threads import parks_when

__all__ = ["LoopThread"]

_CLOSING_TIME = 2.0  # seconds that cancelled tasks get to end; a program must be able to exit whatever they do


class LoopThread:
    """One loop and its thread. The thread is a daemon: an exit that nobody announced does not wait for it."""

    def __init__(self, make_loop: Callable[[], asyncio.AbstractEventLoop], name: str) -> None:
        self.pid = os.getpid()
        self.loop = make_loop()
        self._is_stopping = False
        self._is_turning = threading.Lock()
        self._is_turning.acquire()
        self.thread = threading.Thread(target=self._turn, name=name, daemon=True)
        if isinstance(self.loop, IdleLoop):
            parks_when(self.thread, partial(getattr, self.loop, "is_resting"))
        self.thread.start()
        self._is_turning.acquire()

    @property
    def is_here(self) -> bool:
        """Say whether the thread exists in this process: a fork copies the object, not the thread."""
        return self.pid == os.getpid()

    def stop(self) -> bool:
        """Cancel what runs on the loop, close it and end the thread; False if something refused to end in time."""
        if not self.is_here:
            return True
        self._is_stopping = True
        if not self.loop.is_closed():
            try:
                self.loop.call_soon_threadsafe(self.loop.stop)
            except RuntimeError:  # closed between the two lines
                return True
        if threading.current_thread() is self.thread:
            return True  # it ends when the coroutine that asked for it lets go
        self.thread.join(2 * _CLOSING_TIME)
        return not self.thread.is_alive()

    def _turn(self) -> None:
        loop = self.loop
        loop.call_soon(self._is_turning.release)
        while not self._is_stopping:
            try:
                loop.run_forever()  # ends early if somebody stops the loop: it is not theirs to stop
            except (SystemExit, KeyboardInterrupt) as error:
                context = {"message": "a task on a bridge.Portal raised this; the portal continues", "exception": error}
                loop.call_exception_handler(context)
        try:
            unfinished = asyncio.all_tasks(loop)
            for task in unfinished:
                task.cancel()
            if unfinished:
                loop.run_until_complete(asyncio.wait(unfinished, timeout=_CLOSING_TIME))
            loop.run_until_complete(loop.shutdown_asyncgens())
        finally:
            loop.close()
