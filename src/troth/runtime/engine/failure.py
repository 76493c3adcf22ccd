"""Write down an exception so that a stranger sees what went wrong, and on which line of theirs."""

import os
import sysconfig
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import troth

__all__ = ["describe"]

_OURS = tuple(str(Path(troth.__file__).parent / part) + os.sep for part in ("runtime", "bridge", "guard"))
_LIBRARIES = tuple({str(Path(sysconfig.get_path(name))) + os.sep for name in ("stdlib", "purelib", "platlib")})
_LONGEST = 20_000


def describe(error: BaseException, outcome: str = "failed") -> dict[str, Any]:
    """Type, message, the user's own line and the traceback of `error`, as JSON.

    An error that another process described, and that arrives here as its record, is described by that. What an error
    says in fields, its `troth_details`, is kept beside its message: whoever decides by it need not read a sentence.
    """
    recorded: Mapping[str, Any] | None = getattr(error, "troth_record", None)
    if recorded is not None:
        return {**recorded, "outcome": outcome}
    place = _place(error)
    details: Mapping[str, Any] | None = getattr(error, "troth_details", None)
    text = "".join(traceback.format_exception(error, limit=-20))
    return {
        "outcome": outcome,
        "type": type(error).__qualname__,
        "module": type(error).__module__,
        "message": str(error),
        **({"details": dict(details)} if details else {}),
        **place,
        "traceback": text[-_LONGEST:].encode("utf-8", "backslashreplace").decode("utf-8"),
    }


def _place(error: BaseException) -> Mapping[str, str]:
    """The innermost line that is neither ours nor a library's; else the innermost that is not ours."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(_OURS)]
    if not frames:
        return {}
    own = [frame for frame in frames if not frame.filename.startswith(_LIBRARIES) and frame.filename[:1] != "<"]
    frame = (own or frames)[-1]
    return {"place": f"{frame.filename}:{frame.lineno}", "line": frame.line or "", "function": frame.name}
