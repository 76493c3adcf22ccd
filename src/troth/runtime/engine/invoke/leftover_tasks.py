"""Find which tasks a step has left behind on a loop that stops turning when the step returns, and kept nowhere.

A step called from sync code runs on a loop of that thread. A task it began and did not wait for stands still from then
on: work that was begun and is not done. Where somebody has kept the task (a client its reader, a set of background
tasks), that is their arrangement, and `bridge` warns of it. Where nobody has, nobody can ever wait for it.
"""

import asyncio
import gc
from typing import Any

__all__ = ["end_dropped"]

_ASYNCIO = frozenset({"TaskStepMethWrapper", "TaskWakeupMethWrapper", "FutureIter"})


async def end_dropped(before: "set[asyncio.Task[Any]]") -> tuple[str, ...]:
    """End the tasks begun since `before` that nobody keeps, and name them."""
    dropped = _dropped(before)
    if not dropped:
        return ()
    for task in dropped:
        task.cancel()
    await asyncio.wait(dropped, timeout=1.0)
    return tuple(f"task {_name(task)!r} was started, and neither awaited nor kept" for task in dropped)


def _dropped(before: "set[asyncio.Task[Any]]") -> "list[asyncio.Task[Any]]":
    """Not in the coroutine above: its variables would count as somebody who keeps the task."""
    new_tasks = [task for task in asyncio.all_tasks() if task not in before]
    return [task for task in new_tasks if not _is_kept(task, new_tasks)]


def _is_kept(task: "asyncio.Task[Any]", new_tasks: "list[asyncio.Task[Any]]") -> bool:
    """Whether anybody but asyncio, and the one set in which `bridge` has all tasks of its loops, refers to `task`."""
    sets = 0
    for referrer in gc.get_referrers(task):  # a comprehension would refer to `task` itself, in a cell of its own
        if referrer is new_tasks or type(referrer).__name__ in _ASYNCIO or getattr(referrer, "__self__", None) is task:
            continue
        sets += 1
        if type(referrer) is not set or sets > 1:
            return True
    return False


def _name(task: "asyncio.Task[Any]") -> str:
    coroutine = task.get_coro()
    return str(getattr(coroutine, "__qualname__", coroutine))
