"""Where in the user's code a call stands."""

import asyncio
import os
import sys
from dataclasses import dataclass
from types import FrameType

__all__ = ["Place", "caller", "doing", "is_machinery"]

_OWN_FOLDER = os.path.dirname(__file__) + os.sep  # noqa: PTH120 - compared with `co_filename`, which is a string
_LOOP_FOLDER = os.path.dirname(asyncio.__file__) + os.sep  # noqa: PTH120


@dataclass(frozen=True, slots=True)
class Place:
    """A line of somebody's code."""

    filename: str
    line: int
    module: str

    def __str__(self) -> str:
        return f"{self.filename}:{self.line}"


def caller(frame: FrameType | None) -> Place:
    """Find the nearest line above `frame` that is not the bridge's own."""
    while frame is not None and frame.f_code.co_filename.startswith(_OWN_FOLDER):
        frame = frame.f_back
    return _place(frame)


def doing(thread: int | None) -> Place | None:
    """Find the line another thread is at now, leaving out waiting done by the standard library and the bridge."""
    frame = sys._current_frames().get(thread) if thread is not None else None
    if frame is None:
        return None
    innermost = frame
    while frame is not None and is_machinery(frame):
        frame = frame.f_back
    return _place(frame or innermost)


def is_machinery(frame: FrameType) -> bool:
    """Say whether the frame belongs to the bridge or to the event loop, rather than to what runs on them."""
    name = frame.f_code.co_filename
    return name.startswith((_OWN_FOLDER, _LOOP_FOLDER)) or name.endswith(("selectors.py", "threading.py", "socket.py"))


def _place(frame: FrameType | None) -> Place:
    if frame is None:
        return Place("<unknown>", 0, "<unknown>")
    return Place(frame.f_code.co_filename, frame.f_lineno, frame.f_globals.get("__name__", "<unknown>"))
