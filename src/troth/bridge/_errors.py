"""What can go wrong when one color calls the other.

    MisuseError
    ├── NotRunnableError      (a TypeError)      there is nothing to run: no callable, or no promise of work
    ├── BlockedLoopError      (a RuntimeError)   `strict=True`, and the call would block a running loop
    ├── WrongThreadError      (a RuntimeError)   an iterator or context was carried to where its loop cannot turn
    └── PortalClosedError     (a RuntimeError)   the portal was closed before the call
    RunError
    ├── RunTimeoutError       (a TimeoutError)   `timeout=` passed; the coroutine was cancelled and has ended
    ├── DeadlockError         (a RuntimeError)   the wait can never end; the coroutine was cancelled and has ended
    ├── LoopGoneError         (a RuntimeError)   the loop that should do the work has stopped
    └── InterpreterExitError  (a RuntimeError)   the interpreter is shutting down

Each is also the built-in exception a caller would expect, so code that knows nothing of Troth can catch it.
"""

from troth.errors import MisuseError, RunError

__all__ = [
    "BlockedLoopError",
    "BlockedLoopWarning",
    "DeadlockError",
    "InterpreterExitError",
    "LeftoverTaskWarning",
    "LoopGoneError",
    "NotRunnableError",
    "PortalClosedError",
    "RunTimeoutError",
    "WrongThreadError",
]


class NotRunnableError(MisuseError, TypeError):
    """What was given cannot be called, or what came back cannot be awaited. It was closed if it was a coroutine."""


class BlockedLoopError(MisuseError, RuntimeError):
    """The call would block a running event loop, and `strict=True` forbids that. Nothing was started."""


class WrongThreadError(MisuseError, RuntimeError):
    """The iterator or context lives on a loop that cannot turn from here."""


class PortalClosedError(MisuseError, RuntimeError):
    """The portal was closed. Nothing was started."""


class RunTimeoutError(RunError, TimeoutError):
    """The time given in `timeout=` passed. The coroutine was cancelled and its `finally` blocks have run."""


class DeadlockError(RunError, RuntimeError):
    """The coroutine waits for something that the waiting caller itself holds up. It was cancelled."""


class LoopGoneError(RunError, RuntimeError):
    """The loop that was to run the coroutine stopped before the coroutine ended."""


class InterpreterExitError(RunError, RuntimeError):
    """The interpreter is shutting down, and what was asked for needs a part of it that is already gone."""


class BlockedLoopWarning(RuntimeWarning):
    """A running event loop has been blocked by `bridge` for a second."""


class LeftoverTaskWarning(RuntimeWarning):
    """`bridge.run` returned while a task its coroutine started had not ended; it stands still until the next run."""
