"""How the loop running in this thread is set aside while another one runs on top of it, and put back after.

asyncio refuses to run a loop inside a loop because a callback of the outer one could then run in the middle of a
sync function. Here none can: the outer loop does not turn until the inner one has ended. What has to be hidden from
asyncio is the mark of the running loop and its current task, from sniffio the name of the running library.
"""

import asyncio
import sys
from asyncio import tasks
from typing import Any

__all__ = ["hide_running_loop"]


def hide_running_loop() -> "_Aside | None":
    """Set aside what runs in this thread; None where nothing does."""
    loop = asyncio._get_running_loop()
    sniffio = sys.modules.get("sniffio")
    return None if loop is None and sniffio is None else _Aside(loop, sniffio)


class _Aside:
    """What was running here."""

    __slots__ = ("_library", "_loop", "_sniffio", "_task")

    def __init__(self, loop: asyncio.AbstractEventLoop | None, sniffio: Any) -> None:
        self._loop = loop
        self._task: asyncio.Task[Any] | None = None
        if loop is not None:
            self._task = asyncio.current_task(loop)
            if self._task is not None:
                tasks._leave_task(loop, self._task)
            asyncio._set_running_loop(None)
        self._sniffio = sniffio
        if sniffio is not None:
            self._library = sniffio.thread_local.name
            sniffio.thread_local.name = "asyncio"

    def put_back(self) -> None:
        """Let it run again. In this order: from 3.14 on, a task can only be entered on the loop that is running."""
        if self._sniffio is not None:
            self._sniffio.thread_local.name = self._library
        if self._loop is not None:
            asyncio._set_running_loop(self._loop)
            if self._task is not None:
                tasks._enter_task(self._loop, self._task)
