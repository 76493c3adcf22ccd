"""Keep what the guard has told of this process lately, so that the pages can show it.

Whoever has installed the guard (`guard.install()`, `TROTH_GUARD=1`) is told in the log; this listens to the same log.
"""

import logging
from collections import deque
from typing import NamedTuple

__all__ = ["GuardLog", "GuardNote"]

_KEPT = 100


class GuardNote(NamedTuple):
    """One thing that the guard has told: a lost coroutine, a blocked loop."""

    at: float
    text: str


class GuardLog(logging.Handler):
    """The last things that the guard has told. From any thread."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.notes: deque[GuardNote] = deque(maxlen=_KEPT)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one."""
        self.notes.append(GuardNote(record.created, record.getMessage()))

    def listen(self) -> None:
        """Begin to listen."""
        logging.getLogger("troth.guard").addHandler(self)

    def stop(self) -> None:
        """Listen no more."""
        logging.getLogger("troth.guard").removeHandler(self)
