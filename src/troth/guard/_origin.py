"""Make every thread remember where its coroutines were made.

`sys.set_coroutine_origin_tracking_depth` works on the calling thread alone. Threads started later get it as they begin
(`Thread._bootstrap`; `threading.setprofile` where that is missing). Threads that run already are reached as far as can
be: from Python 3.12 on each of them is handed a profile function that takes itself off at its first event; on 3.11
those that run an asyncio loop are reached through it. A coroutine made in a thread nobody could reach is still told,
with the line of its `def` instead of the line that made it.
"""

import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio

__all__ = ["BEGINS_IN", "Tracking"]

BEGINS_IN = __file__
"""The file that stands below every frame of a thread that was started under a guard."""


class Tracking:
    """The depth in force while guards are at work: the greatest anybody asked for, never less than a thread has."""

    def __init__(self) -> None:
        self.depth = 0
        self._before = 0
        self._bootstrap: Callable[[threading.Thread], None] | None = None
        self._profile: Any = None

    def set(self, depth: int) -> None:
        """Track to `depth` from here on; 0 puts everything back."""
        was, self.depth = self.depth, depth
        if depth and not was:
            self._before = sys.get_coroutine_origin_tracking_depth()
            self._hook_new_threads()
        if depth > was:
            self.here()
            _in_other_threads(self.here)
        elif depth < was:
            self._lower(was)
            _in_other_threads(lambda: self._lower(was))
        if was and not depth:
            self._unhook_new_threads()

    def here(self) -> None:
        """Raise the depth of this thread; more than we need (asyncio's debug mode sets 10) is left alone."""
        if sys.get_coroutine_origin_tracking_depth() < self.depth:
            sys.set_coroutine_origin_tracking_depth(self.depth)

    def _lower(self, was: int) -> None:
        if sys.get_coroutine_origin_tracking_depth() == was:  # else somebody else has set it since: theirs to undo
            sys.set_coroutine_origin_tracking_depth(max(self.depth, self._before))

    def _hook_new_threads(self) -> None:
        original: Callable[[threading.Thread], None] | None = getattr(threading.Thread, "_bootstrap", None)
        if original is None:
            self._profile = threading.getprofile()
            threading.setprofile(self._first_event)
            return
        begin: Callable[[threading.Thread], None] = original

        def _bootstrap(thread: threading.Thread) -> None:
            self.here()
            begin(thread)

        self._bootstrap = begin
        setattr(threading.Thread, "_bootstrap", _bootstrap)  # noqa: B010 -- mypy knows it as private
        self._ours = _bootstrap

    def _unhook_new_threads(self) -> None:
        if self._bootstrap is None:
            if threading.getprofile() == self._first_event:
                threading.setprofile(self._profile)
        elif getattr(threading.Thread, "_bootstrap", None) is self._ours:
            setattr(threading.Thread, "_bootstrap", self._bootstrap)  # noqa: B010
            self._bootstrap = None

    def _first_event(self, frame: FrameType, event: str, arg: object) -> None:
        sys.setprofile(self._profile)
        self.here()
        if self._profile is not None:
            self._profile(frame, event, arg)


def _in_other_threads(act: Callable[[], None]) -> None:
    """Have `act` done once in each thread that already runs, where Python has a way to do so; never waits for it."""
    if len(sys._current_frames()) < 2 or threading.getprofile() is not None or sys.getprofile() is not None:
        return  # nobody there, or a profiler is at work in these threads, which must not lose its place
    if sys.version_info >= (3, 12):

        def once(frame: FrameType, event: str, arg: object) -> None:  # noqa: ARG001
            sys.setprofile(None)
            act()

        threading.setprofile_all_threads(once)
        threading.setprofile(None)  # the call above sets the hook for new threads and for this thread as well
        sys.setprofile(None)
        return
    for loop in _loops_of_other_threads():
        try:
            loop.call_soon_threadsafe(act)
        except RuntimeError:  # closed in between: its thread has no use for it any more
            continue


_RUNS_A_LOOP = frozenset({"run_forever", "run_until_complete", "run"})


def _loops_of_other_threads() -> Iterator["asyncio.AbstractEventLoop"]:
    """The loops that run in other threads, as their stacks show them.

    A search among all objects would find every one, but takes a second in a large program and holds up all its threads.
    Only frames that run a loop are looked into: on 3.11 a frame whose locals were asked for keeps those values.
    """
    asyncio_ = sys.modules.get("asyncio")
    if asyncio_ is None:
        return
    for thread, top in sys._current_frames().items():
        frame: FrameType | None = top if thread != threading.get_ident() else None
        while frame is not None:
            if frame.f_code.co_name in _RUNS_A_LOOP:
                loop: Any = frame.f_locals.get("self")
                if isinstance(loop, asyncio_.Runner):
                    loop = getattr(loop, "_loop", None)
                elif isinstance(loop, threading.Thread):  # a loop written in C has no frame of its own
                    loop = getattr(getattr(loop, "_target", None), "__self__", None)
                if issubclass(type(loop), asyncio_.AbstractEventLoop) and loop.is_running():
                    yield loop
                    break
            frame = frame.f_back
