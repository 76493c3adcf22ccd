"""What a coroutine left behind on its loop when it ended."""

import asyncio
import sys
import time

from troth.bridge._errors import LeftoverTaskWarning
from troth.bridge._loops.hide_running_loop import hide_running_loop
from troth.bridge._loops.loop import ThreadLoop
from troth.bridge._report import warn_at_caller

__all__ = ["settle"]

_ENDING_TIME = 1.0  # seconds for what is already on its way out: generators being closed, tasks being cancelled


def settle(loop: ThreadLoop) -> None:
    """Let what is ending end, and tell the user of tasks that now stand still.

    A generator the coroutine did not exhaust is closed by a task that asyncio makes for it, and a cancelled task needs
    a turn to run its `finally`. Every other task waits for the next run in this thread, which may never come: a
    promise that silently is not kept, so it is said.
    """
    deadline = time.monotonic() + _ENDING_TIME
    while (ending := [task for task in loop.spawned if _is_ending(task)]) and (
        remaining := deadline - time.monotonic()
    ) > 0:
        aside = hide_running_loop()
        try:
            loop.run_until_complete(asyncio.wait(ending, timeout=remaining))  # one that ends may let go of the next
        finally:
            if aside is not None:
                aside.put_back()
    idle = [task for task in loop.spawned if not task.done() and task not in loop.reported]
    if not idle:
        return
    loop.reported.update(idle)
    names = ", ".join(f"`{getattr(task.get_coro(), '__qualname__', task.get_name())}`" for task in idle)
    warn_at_caller(
        sys._getframe(),
        f"the coroutine ended, but {len(idle)} of the tasks it started have not: {names}. They are suspended until the "
        "next `bridge.run` in this thread, and are cancelled when the thread ends. Await them in the coroutine, or "
        "keep a `bridge.Portal`, whose loop never stops.",
        LeftoverTaskWarning,
    )


def _is_ending(task: asyncio.Task[object]) -> bool:
    return task.cancelling() > 0 or type(task.get_coro()).__name__ == "async_generator_athrow"
