"""The exceptions Troth raises.

    TrothError
    ├── MisuseError     the call is wrong: nothing was done; change the call
    ├── RunError        the world failed: says what was done and what was not; trying again may help
    └── InternalError   we are wrong: please report it; the message says where the report lies

Each message says what happened, why it matters and what to do, in that order. Code stands in backticks, values are
shown with `!r`, places as `file:line`. Every part of Troth derives its own exceptions from one of the three branches
and keeps them beside the code that raises them.
"""

__all__ = ["InternalError", "MisuseError", "RunError", "TrothError"]


class TrothError(Exception):
    """Anything Troth raises on purpose."""


class MisuseError(TrothError):
    """The call is wrong. Nothing was started, so nothing has to be undone; the same call will fail again."""


class RunError(TrothError):
    """The world failed: a file, a process, a peer, the user's own code. The message tells what was and was not done."""


class InternalError(TrothError):
    """Troth broke one of its own promises. This is a bug in Troth, whatever the input was."""
