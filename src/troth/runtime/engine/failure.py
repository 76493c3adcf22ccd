"""Write down an exception so that a stranger sees what went wrong, and on which line of theirs."""

import os
import sysconfig
import threading
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import troth

__all__ = ["describe", "is_ctrl_c", "message_of"]

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
        "message": message_of(error),
        **({"details": dict(details)} if details else {}),
        **place,
        "traceback": text[-_LONGEST:].encode("utf-8", "backslashreplace").decode("utf-8"),
    }


def is_ctrl_c(error: BaseException) -> bool:
    """Whether somebody may have pressed Ctrl-C: Python tells that to the main thread, and to no other one."""
    return isinstance(error, KeyboardInterrupt) and threading.current_thread() is threading.main_thread()


def message_of(error: BaseException) -> str:
    """What an error says, as text that can be sent and kept; its own `__str__` may be broken."""
    try:
        text = str(error)
    except Exception as broken:  # noqa: BLE001  the failure is told all the same
        text = f"(its message cannot be shown: `__str__` raised {type(broken).__name__})"
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _place(error: BaseException) -> Mapping[str, str]:
    """The innermost line that is neither ours nor a library's; else the innermost that is not ours."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(_OURS)]
    if not frames:
        return {}
    own = [frame for frame in frames if not frame.filename.startswith(_LIBRARIES) and frame.filename[:1] != "<"]
    frame = (own or frames)[-1]
    return {"place": f"{frame.filename}:{frame.lineno}", "line": frame.line or "", "function": frame.name}
