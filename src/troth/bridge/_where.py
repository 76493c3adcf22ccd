"""Where in the user's code a call stands."""

import asyncio
import os
import selectors
import socket
import sys
import threading
from types import FrameType

__all__ = ["caller", "calling_frame", "doing", "is_machinery"]

_OWN_FOLDER = os.path.dirname(__file__) + os.sep  # noqa: PTH120 - compared with `co_filename`, which is a string
_LOOP_FOLDER = os.path.dirname(asyncio.__file__) + os.sep  # noqa: PTH120
_LOOP_FILES = frozenset(module.__file__ for module in (selectors, socket, threading))  # a user may have a `socket.py`


def is_machinery(frame: FrameType) -> bool:
    """Say whether the frame belongs to the bridge or to an event loop, rather than to what runs on them."""
    name: str = frame.f_code.co_filename
    return name.startswith((_OWN_FOLDER, _LOOP_FOLDER)) or name in _LOOP_FILES


def caller(frame: FrameType | None) -> str:
    """Give the nearest line above `frame` that is neither the bridge's nor a loop's, as `file:line`."""
    return _line(calling_frame(frame))


def calling_frame(frame: FrameType | None) -> FrameType | None:
    """Find the nearest frame above that is neither the bridge's nor a loop's: whoever called the bridge."""
    while frame is not None and is_machinery(frame):
        frame = frame.f_back
    return frame


def doing(thread: int | None) -> str:
    """Give the line another thread is at now, leaving out the waiting done by loops and by the bridge."""
    frame = sys._current_frames().get(thread) if thread is not None else None
    innermost = frame
    while frame is not None and is_machinery(frame):
        frame = frame.f_back
    return _line(frame or innermost)


def _line(frame: FrameType | None) -> str:
    return "an unknown place" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"
