"""Decide when an event loop is stuck, and on which line, while it still is.

A thread of its own looks at every thread's stack a few times per threshold. Where a loop is found inside a task's step
or a callback, it is sent a heartbeat (`call_soon_threadsafe`); a loop that turns answers at once. One that is still
inside a step when the threshold has passed, the heartbeat unanswered all the while, is blocked, and the stack shows by
what. An idle loop waits in its selector: it is never busy, gets no heartbeat and is left to sleep. Nothing is patched.

Which loops are at work: asyncio's own table of current tasks (uvloop uses the same tasks), and, for sync callbacks and
for Pythons where the table is gone, `BaseEventLoop._run_once` on the stack. Not seen: a sync callback on uvloop, loops
of other kinds (trio), and a C call that keeps the interpreter lock for itself, which stops this thread as well; that
one is reported as soon as the lock is free, if the loop has not turned by then.
"""

import contextvars
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from troth.guard._place import blocking_frame
from troth.guard.incident import Incident

__all__ = ["Watchdog"]

_LOOKS = 4  # looks per threshold: a block is told of at 1.25 to 1.5 times the threshold
_SHORTEST = 0.005  # below Python's own switch interval a look cannot be had on time

_alive: "weakref.WeakSet[Watchdog]" = weakref.WeakSet()


class _Pulse:
    """One heartbeat sent to one loop."""

    __slots__ = ("is_answered", "is_told", "sent")

    def __init__(self, sent: float) -> None:
        self.sent = sent
        self.is_answered = False
        self.is_told = False

    def answer(self) -> None:
        self.is_answered = True


class _Busy:
    """A loop found inside a step: where its thread stands and what it is doing."""

    __slots__ = ("context", "frame", "task", "thread", "until")

    def __init__(self, thread: int, frame: FrameType, until: FrameType, task: Any, context: object) -> None:
        self.thread = thread
        self.frame = frame
        self.until = until
        self.task = task
        self.context = context


class Watchdog:
    """Tells of every loop blocked for `threshold` seconds, once per block, from a daemon thread."""

    def __init__(
        self, threshold: float, tell: Callable[[Incident, object], object], at_each_look: Callable[[], None]
    ) -> None:
        self.threshold = threshold
        self._tell = tell
        self._at_each_look = at_each_look
        self._interval = max(threshold / _LOOKS, _SHORTEST)
        self._stop = threading.Event()
        self._pulses: dict[Any, _Pulse] = {}
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to look."""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="troth-guard-watchdog", daemon=True)
        self._thread.start()
        _alive.add(self)

    def stop(self) -> None:
        """Stop looking; returns when the thread has ended."""
        _alive.discard(self)
        self._stop.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
        self._pulses.clear()

    def _run(self) -> None:
        looked, used = time.monotonic(), time.process_time()
        while not self._stop.wait(self._interval):
            now, now_used = time.monotonic(), time.process_time()
            late = now - looked - self._interval
            if late > self._interval and now_used - used < late / 2:
                # The whole process stood still (stopped, asleep, starved by its neighbours): that time does not count.
                for pulse in self._pulses.values():
                    pulse.sent += late
            looked, used = now, now_used
            self._at_each_look()
            self._look(now)

    def _look(self, now: float) -> None:
        alive: list[Any] = []
        stuck: list[tuple[Incident, object]] = []
        busy = dict(_busy_loops())
        for loop in self._pulses.keys() - busy.keys():
            del self._pulses[loop]
        for loop, step in busy.items():
            pulse = self._pulses.get(loop)
            if pulse is None or pulse.is_answered:
                alive.append(loop)
            elif not pulse.is_told and now - pulse.sent >= self.threshold:
                pulse.is_told = True
                stuck.append((_blocked(step, now - pulse.sent), step.context))
        # Frames are let go of before anything below gives other threads a turn: the locals of a function that returns
        # meanwhile would otherwise die in this thread instead of their own.
        busy.clear()
        del busy
        for loop in alive:
            self._send(loop, now)
        for incident, context in stuck:
            self._tell(incident, context)

    def _send(self, loop: Any, now: float) -> None:
        pulse = _Pulse(now)
        try:
            loop.call_soon_threadsafe(pulse.answer)
        except RuntimeError:  # closed since we looked: a closed loop cannot be blocked
            self._pulses.pop(loop, None)
        else:
            self._pulses[loop] = pulse


def _busy_loops() -> Iterator[tuple[Any, _Busy]]:
    """Every loop that is inside a step right now, with the stack of its thread."""
    stacks = sys._current_frames()
    tasks = sys.modules.get("asyncio.tasks")
    if tasks is None:
        return
    reported: set[int] = set()
    try:
        running = list(getattr(tasks, "_current_tasks", {}).items())
    except RuntimeError:  # changed under our hands: the next look is soon
        running = []
    for loop, task in running:
        frame = getattr(task.get_coro(), "cr_frame", None)
        thread = None if frame is None else next((ident for ident, top in stacks.items() if _is_on(frame, top)), None)
        if frame is not None and thread is not None and thread not in reported:
            reported.add(thread)
            yield loop, _Busy(thread, stacks[thread], frame, task, _context_of(task, stacks[thread]))
    for thread, top in stacks.items():
        if thread not in reported and (callback := _callback_on(top)) is not None:
            loop, handle_frame = callback
            yield loop, _Busy(thread, top, handle_frame, _current_task(loop), _context_of(None, top))


def _is_on(frame: FrameType, top: FrameType | None) -> bool:
    while top is not None:
        if top is frame:
            return True
        top = top.f_back
    return False


def _callback_on(top: FrameType | None) -> tuple[Any, FrameType] | None:
    """The innermost asyncio loop on this stack, if it is inside a callback, and the frame of the callback's handle."""
    base_events, events = sys.modules.get("asyncio.base_events"), sys.modules.get("asyncio.events")
    if base_events is None or events is None:
        return None
    turning, running = base_events.BaseEventLoop._run_once.__code__, events.Handle._run.__code__
    handle_frame: FrameType | None = None
    while top is not None:
        if top.f_code is running:
            handle_frame = top
        elif top.f_code is turning:
            return None if handle_frame is None else (top.f_locals["self"], handle_frame)
        top = top.f_back
    return None


def _current_task(loop: Any) -> Any:
    asyncio = sys.modules["asyncio"]
    return asyncio.current_task(loop)


def _context_of(task: Any, top: FrameType | None) -> contextvars.Context | None:
    """The context of the step: from the task (3.12 on), else from the handle that runs it."""
    if hasattr(task, "get_context"):
        context: contextvars.Context = task.get_context()
        return context
    callback = _callback_on(top)
    return None if callback is None else getattr(callback[1].f_locals.get("self"), "_context", None)


def _blocked(step: _Busy, seconds: float) -> Incident:
    stack: list[tuple[str, int, str]] = []
    frame: FrameType | None = step.frame
    while frame is not None:
        stack.append((frame.f_code.co_filename, frame.f_lineno or 0, frame.f_code.co_qualname))
        if frame is step.until:
            break
        frame = frame.f_back
    name = next((thread.name for thread in threading.enumerate() if thread.ident == step.thread), str(step.thread))
    file, line, function = blocking_frame(stack)
    task_name = None
    if step.task is not None:
        function = getattr(step.task.get_coro(), "__qualname__", function)
        task_name = step.task.get_name()
    return Incident("blocked", function, file, line, name, time.time(), tuple(stack), task=task_name, seconds=seconds)


def _after_fork() -> None:
    for watchdog in list(_alive):  # threads do not survive a fork; the child's loops want watching as well
        watchdog._pulses.clear()
        watchdog.start()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
