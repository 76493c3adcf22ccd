"""Which threads are waiting on the bridge and so can wake nobody.

A wait can be proved endless only if no other thread is left that could end it. Threads the bridge itself keeps
(a worker without work, a caller waiting for its portal, a portal with nothing to do) are not such threads. Everybody
else is.
"""

import sys
import threading
import weakref
from collections.abc import Callable

__all__ = ["anybody_else_awake", "is_parked", "park", "parks_when", "unpark", "waits_for_me"]

# By ident, with the thread it was then: idents are used again, and a new thread is not parked because an old one was.
_PARKED: dict[int, threading.Thread] = {}
_WAITS_FOR: dict[int, int] = {}
_RESTING: "weakref.WeakKeyDictionary[threading.Thread, Callable[[], bool]]" = weakref.WeakKeyDictionary()


def park(awaited: int | None = None) -> None:
    """Say that this thread does nothing until the bridge wakes it; `awaited` is the thread it waits for."""
    _PARKED[threading.get_ident()] = threading.current_thread()
    if awaited is not None:
        _WAITS_FOR[threading.get_ident()] = awaited


def unpark() -> None:
    """Say that this thread is at work again."""
    _PARKED.pop(threading.get_ident(), None)
    _WAITS_FOR.pop(threading.get_ident(), None)


def waits_for_me(thread: int | None) -> bool:
    """Say whether `thread` waits, through however many others, for the thread that asks."""
    me = threading.get_ident()
    for _ in range(len(_WAITS_FOR) + 1):
        thread = _WAITS_FOR.get(thread) if thread is not None else None
        if thread == me:
            return True
    return False


def parks_when(thread: threading.Thread, is_resting: Callable[[], bool]) -> None:
    """Say that `thread` is parked whenever `is_resting()`: for one that rests too often to say so each time."""
    _RESTING[thread] = is_resting


def is_parked(thread: threading.Thread) -> bool:
    """Say whether `thread` does nothing until the bridge wakes it."""
    is_resting = _RESTING.get(thread)
    return is_resting() if is_resting is not None else _PARKED.get(thread.ident or 0) is thread


def anybody_else_awake() -> bool:
    """Say whether any thread but this one could still do something.

    `threading` knows the threads Python started, the interpreter the foreign ones that are inside Python code. A
    thread of an extension module that has never yet called into Python is in neither list.
    """
    me = threading.get_ident()
    threads = [thread for thread in threading.enumerate() if thread.ident != me]
    if not all(is_parked(thread) for thread in threads):
        return True
    return bool(sys._current_frames().keys() - {thread.ident for thread in threads} - {me})
