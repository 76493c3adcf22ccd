"""Find promises that are still alive and not kept, by looking through the objects Python tracks."""

import gc
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import TYPE_CHECKING, Any

from troth.guard._describe import Coroutine

if TYPE_CHECKING:
    import asyncio

    Generator = AsyncGeneratorType[Any, Any]
else:
    Generator = AsyncGeneratorType  # subscripted at run time only from Python 3.13 on

__all__ = ["HeapScan", "abandoned", "is_unbegun", "is_unread", "take"]


_LOOKS = 8
_A_TURN = 0.02  # seconds given to other threads to take up what they have just made
_SUSPENDABLE = (CoroutineType, AsyncGeneratorType, GeneratorType)


@dataclass(slots=True)
class HeapScan:
    """What was found. It holds what it names alive: let go of it before asking the collector for anything."""

    coroutines: list[Coroutine] = field(default_factory=list)
    generators: list[Generator] = field(default_factory=list)
    pending: list["asyncio.Task[Any]"] = field(default_factory=list)
    unread: list["asyncio.Future[Any]"] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.coroutines or self.generators or self.pending or self.unread)


def take(objects: Sequence[object]) -> HeapScan:
    """Sort out of `objects` the coroutines and async generators not begun, and tasks pending or failed unread.

    Only exact types are looked at: asking `isinstance` of everything alive would run code of lazy proxies.
    """
    asyncio = sys.modules.get("asyncio")
    futures: frozenset[type] = frozenset()
    if asyncio is not None and hasattr(asyncio, "Future"):  # may be half imported
        futures = frozenset({asyncio.Task, asyncio.Future})
    watched = {CoroutineType, AsyncGeneratorType} | futures
    census = HeapScan()
    if watched.isdisjoint(map(type, objects)):  # mostly so, and said without running a line of Python per object
        return census
    for thing in [thing for thing in objects if type(thing) in watched]:
        awaitable: Any = thing
        if type(thing) is CoroutineType:
            if is_unbegun(awaitable):
                census.coroutines.append(awaitable)
        elif type(thing) is AsyncGeneratorType:
            if _is_uniterated(awaitable):
                census.generators.append(awaitable)
        elif is_unread(awaitable):
            census.unread.append(awaitable)
        elif hasattr(thing, "get_coro") and not awaitable.done() and getattr(awaitable, "_log_destroy_pending", True):
            census.pending.append(awaitable)
    return census


def is_unbegun(coroutine: Coroutine) -> bool:
    """Whether not one line of it has run, and nobody has closed it either."""
    return not coroutine.cr_running and not coroutine.cr_suspended and coroutine.cr_frame is not None


def is_unread(future: "asyncio.Future[Any]") -> bool:
    """Whether it failed and nobody has asked why; the mark is the one asyncio itself goes by."""
    return future.done() and bool(getattr(future, "_log_traceback", False))


def has_keeper(coroutine: Coroutine) -> bool:
    """Whether a task will run it, or a suspended coroutine or generator has it in a variable and may yet await it.

    Looks through every object there is: only for the few.
    """
    return any(
        getattr(type(holder), "get_coro", None) is not None or type(holder) in _SUSPENDABLE
        for holder in gc.get_referrers(coroutine)
    )


def abandoned(coroutines: Sequence[Coroutine]) -> list[Coroutine]:
    """Those of `coroutines` that nobody has begun or is about to begin.

    A function that is running in another thread does not show what it holds, so with other threads about we look
    several times: whatever is begun, or seen to be kept, even once, is not abandoned.
    """
    suspects = list(coroutines)
    for _ in range(_LOOKS):
        suspects = [coroutine for coroutine in suspects if is_unbegun(coroutine) and not has_keeper(coroutine)]
        other_threads = [thread for thread in threading.enumerate() if thread is not threading.current_thread()]
        if not suspects or all(thread.name == "troth-guard-watchdog" for thread in other_threads):
            break
        time.sleep(_A_TURN)
    return suspects


def _is_uniterated(generator: Generator) -> bool:
    frame = generator.ag_frame
    if frame is None or generator.ag_running:
        return False
    if sys.version_info >= (3, 12):
        return not generator.ag_suspended
    from opcode import opmap

    return frame.f_code.co_code[frame.f_lasti] == opmap["RETURN_GENERATOR"]
