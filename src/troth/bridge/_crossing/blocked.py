"""What is said and done when a caller's loop stays blocked by a call that waits on top of it."""

import asyncio
import sys
import time
from types import CoroutineType

from troth.bridge._errors import BlockedLoopWarning, DeadlockError
from troth.bridge._report import warn_at_caller
from troth.bridge._threads.waiting_threads import anybody_else_awake
from troth.bridge._where import caller, is_machinery

__all__ = ["PATIENCE", "BlockedLoop", "endless", "name_of", "report", "waits_at"]

PATIENCE = 1.0  # seconds a loop may be blocked before its user is told
_GLANCE = 0.5  # seconds between two looks after that
_SLACK = 0.01  # seconds by which a sleep may be shorter than was asked for


class BlockedLoop:
    """Watches an inner loop for the sake of the one below it, which cannot turn until the inner one is done."""

    __slots__ = ("_deadlock_after", "_is_reported", "_loop", "_report_at", "_work", "next_look", "starved_for")

    def __init__(self, work: object, loop: asyncio.AbstractEventLoop, deadlock_after: float | None) -> None:
        self._work = work
        self._loop = loop
        self._deadlock_after = deadlock_after
        self._is_reported = False
        self.starved_for = 0.0
        now = time.monotonic()
        self._report_at = now + PATIENCE
        self.next_look = self._report_at if deadlock_after is None else now + min(PATIENCE, deadlock_after)

    def look(self) -> None:
        now = time.monotonic()
        self.next_look = min(self._report_at, now + _GLANCE) if now < self._report_at else now + _GLANCE
        is_starved = self.starved_for > 0
        if is_starved and now >= self._report_at and not self._can_be_woken():
            raise endless(self._work, "No timer, no I/O and no other thread is left that could wake it.")
        if self._deadlock_after is not None and self.starved_for > self._deadlock_after - _SLACK:
            raise endless(self._work, f"Nothing has come for {self.starved_for:.1f} s, and no timer or I/O is pending.")
        if not self._is_reported and now >= self._report_at:
            self._is_reported = True
            report(self._work, is_starved=is_starved)

    def _can_be_woken(self) -> bool:
        return anybody_else_awake() or bool(getattr(self._loop, "_signal_handlers", None))


def report(work: object, *, is_starved: bool) -> None:
    """Say that the caller's loop has been blocked for a second, at the caller's line."""
    doubt = (
        " It waits with no timer or I/O behind it: if it waits for something on the blocked loop, it never ends; "
        "`deadlock_after=` makes that an error."
        if is_starved
        else ""
    )
    warn_at_caller(
        sys._getframe(),
        f"waiting for `{name_of(work)}` has blocked the event loop of this thread for a second, and nothing else can "
        f"run on it until then.{doubt} Await it instead, or send the sync code to a worker thread with "
        "`await bridge.call(...)`; `strict=True` refuses such a call.",
        BlockedLoopWarning,
    )


def endless(work: object, evidence: str) -> DeadlockError:
    """Name both sides of a wait that does not end."""
    return DeadlockError(
        f"`{name_of(work)}` waits for something that cannot happen while this call blocks the event loop below it.\n"
        f"  it waits at       {waits_at(work)}\n"
        f"  the loop waits at {caller(sys._getframe())}\n"
        f"{evidence} It was given up. Await it instead, or run the sync code in a worker thread with "
        "`await bridge.call(...)`."
    )


def waits_at(work: object) -> str:
    """Give the innermost line of a suspended coroutine that is its author's, as `file:line`."""
    theirs = innermost = None
    step: object = work
    while isinstance(step, CoroutineType) and step.cr_frame is not None:
        innermost = f"{step.cr_frame.f_code.co_filename}:{step.cr_frame.f_lineno}"
        if not is_machinery(step.cr_frame):
            theirs = innermost
        step = step.cr_await
    return theirs or innermost or "an unknown place"


def name_of(work: object) -> str:
    """Name a coroutine, or whatever else is awaited, as its author would."""
    name = getattr(work, "__qualname__", None)
    return name if isinstance(name, str) else type(work).__qualname__
