"""How the user is told something at their own line, without being interrupted."""

import warnings
from types import FrameType

from troth.bridge._where import calling_frame

__all__ = ["warn_at_caller"]


def warn_at_caller(frame: FrameType | None, message: str, category: type[Warning]) -> None:
    """Warn at the nearest line above `frame` that is the user's: once per line by default, as filters say."""
    frame = calling_frame(frame)
    if frame is None:
        warnings.warn(message, category, stacklevel=2)
        return
    warnings.warn_explicit(
        message,
        category,
        frame.f_code.co_filename,
        frame.f_lineno,
        frame.f_globals.get("__name__", "<unknown>"),
        frame.f_globals.setdefault("__warningregistry__", {}),
    )
