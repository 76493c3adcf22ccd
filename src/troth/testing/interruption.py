"""Cancel a coroutine's task at one of its suspensions, as asyncio does, at a place of the test's choosing.

    for how in HOWS:
        for at in itertools.count(1):
            task = asyncio.create_task(interrupted(engine.arun(order, "o-1"), at, how))
            await asyncio.wait([task])
            if not task.cancelled():
                break  # it came to its end before its `at`-th suspension
            ...  # what holds now?

A cancellation that only ever comes where a test happens to sleep proves little: it is the awaits in between that leave
a lock held or a row half written.
"""

import asyncio
import types
from collections.abc import Coroutine, Generator
from typing import Any, Literal, TypeVar, get_args

from troth.errors import MisuseError

__all__ = ["HOWS", "How", "interrupted"]

T = TypeVar("T")
How = Literal["as it suspends", "as it wakes", "again and again"]
HOWS: tuple[How, ...] = get_args(How)


async def interrupted(work: Coroutine[Any, Any, T], at: int, how: How = "as it suspends") -> T:
    """Drive `work`, and cancel the task that does at its `at`-th suspension, counted from 1.

    "as it suspends" cancels what it is about to wait for; "as it wakes" comes between the answer and the waking, so
    what was waited for has happened; "again and again" cancels every later suspension as well, cleaning up included.
    """
    task = asyncio.current_task()
    if task is None:
        raise MisuseError("`interrupted` has to be awaited in a task of asyncio: it is that task which is cancelled.")
    return await _drive(work, at, how, task)


@types.coroutine
def _drive(work: Coroutine[Any, Any, T], at: int, how: How, task: "asyncio.Task[Any]") -> Generator[Any, Any, T]:
    go_on: Any = work.send
    argument: Any = None
    count = 0
    while True:
        try:
            waits_for = go_on(argument)
        except StopIteration as end:
            value: T = end.value
            return value
        count += 1
        if count == at or (count > at and how == "again and again"):
            if how == "as it wakes" and waits_for is not None:
                waits_for.add_done_callback(lambda _: task.cancel())  # before the task's own, so it is called first
            else:
                task.cancel()
        try:
            go_on, argument = work.send, (yield waits_for)
        except BaseException as error:  # noqa: BLE001  it belongs to `work`
            go_on, argument = work.throw, error
