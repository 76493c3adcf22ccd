"""Find which line of a stack is the one a reader wants to see."""

import os
import sysconfig
from collections.abc import Iterable

from troth.guard._origin import BEGINS_IN

__all__ = ["blocking_frame", "is_stdlib", "making_frame"]

Entry = tuple[str, int, str]

_STDLIB = tuple({os.path.join(sysconfig.get_path(name), "") for name in ("stdlib", "platstdlib")})  # noqa: PTH118
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")


def _is_installed(file: str) -> bool:
    return any(part in file for part in _INSTALLED)


def is_stdlib(file: str) -> bool:
    """Whether `file` is part of Python itself (`unittest/mock.py` makes many a coroutine, and is never to blame).

    The function of the guard's in which threads begin stands in for one of Python's.
    """
    return file == BEGINS_IN or file.startswith("<frozen") or (file.startswith(_STDLIB) and not _is_installed(file))


def making_frame(origin: Iterable[Entry]) -> Entry:
    """The line that made a coroutine: the innermost one outside Python itself, or the innermost if there is none."""
    entries = tuple(origin)
    return next((entry for entry in entries if not is_stdlib(entry[0])), entries[0] if entries else ("", 0, ""))


def blocking_frame(stack: Iterable[Entry]) -> Entry:
    """The line that blocks: the innermost one of the user's own code, else of a library, else the innermost at all."""
    entries = tuple(stack)
    libraries = [entry for entry in entries if not is_stdlib(entry[0])]
    own = [entry for entry in libraries if not _is_installed(entry[0])]
    return next(iter(own or libraries or entries), ("", 0, ""))
