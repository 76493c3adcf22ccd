"""Which way a call from sync to async code goes here, and why."""

import asyncio
import sys
import threading
from dataclasses import dataclass
from enum import Enum

from troth.bridge._crossing.home import Home, home_of_this_thread

__all__ = ["Choice", "Explanation", "Way", "choose", "last_choice", "record"]


class Way(Enum):
    """Where the coroutine of `bridge.run` is run.

    OWN_LOOP   on this thread's own loop, used again by every call: no loop runs here
    STACKED    on a loop stacked on the one that runs here, in the same thread; that one is blocked meanwhile
    HOME       on the loop that sent this worker thread; this thread waits, the loop does not
    GREENBACK  in the current task itself, which greenback can suspend; nothing is blocked
    REFUSED    nowhere: the interpreter is being taken apart
    """

    OWN_LOOP = "own loop"
    STACKED = "stacked"
    HOME = "home"
    GREENBACK = "greenback"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Explanation:
    """The way a call takes, the reason for it, and whether it blocks an event loop that runs in this thread."""

    way: Way
    because: str
    blocks_loop: bool = False

    def __str__(self) -> str:
        return f"{self.way.value}: {self.because}"


@dataclass(frozen=True, slots=True)
class Choice:
    """An explanation, with what is needed to go that way."""

    explanation: Explanation
    home: Home | None = None


def _choice(way: Way, because: str, *, blocks_loop: bool = False) -> Choice:
    return Choice(Explanation(way, because, blocks_loop))


_OWN_LOOP = _choice(Way.OWN_LOOP, "no event loop runs in this thread, and none sent it here")
_ON_ASYNCIO = _choice(
    Way.STACKED, "an asyncio loop runs in this thread; it is blocked until the call returns", blocks_loop=True
)
_ON_TRIO = _choice(
    Way.STACKED,
    "trio runs in this thread, where no asyncio coroutine can run; it is blocked until the call returns",
    blocks_loop=True,
)
_IN_GREENBACK = _choice(Way.GREENBACK, "the current task has a greenback portal, so it can be suspended from sync code")
_FINALIZING = _choice(Way.REFUSED, "the interpreter is shutting down, so no loop can run reliably")


class _Local(threading.local):
    last: Explanation | None = None


_LOCAL = _Local()


def choose() -> Choice:
    """Choose the way a call goes here and now."""
    if asyncio._get_running_loop() is not None:
        return _IN_GREENBACK if _has_greenback_portal() else _ON_ASYNCIO
    if sys.is_finalizing():
        return _FINALIZING
    if "trio" in sys.modules and _is_in_trio():
        return _ON_TRIO
    home = home_of_this_thread()
    if home is not None:
        because = (
            f"{home.sender} sent this worker thread from a loop that still runs; what belongs to that loop works there"
        )
        return Choice(Explanation(Way.HOME, because), home)
    return _OWN_LOOP


def record(choice: Choice) -> None:
    """Remember the way that this thread's latest call took."""
    _LOCAL.last = choice.explanation


def last_choice() -> Explanation | None:
    """Give the way that this thread's latest call took."""
    return _LOCAL.last


def _has_greenback_portal() -> bool:
    greenback = sys.modules.get("greenback")
    has_portal = getattr(greenback, "has_portal", None)  # None while the module is being imported
    return has_portal is not None and asyncio.current_task() is not None and bool(has_portal())


def _is_in_trio() -> bool:
    trio = sys.modules.get("trio")
    if trio is None:
        return False
    in_trio_run = getattr(getattr(trio, "lowlevel", None), "in_trio_run", None)
    if in_trio_run is not None:
        return bool(in_trio_run())
    sniffio = sys.modules.get("sniffio")
    return sniffio is not None and sniffio.thread_local.name == "trio"
