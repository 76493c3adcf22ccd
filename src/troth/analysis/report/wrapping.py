"""Break long lines at words, for a terminal that would break them in the middle of one."""

import re
from collections.abc import Iterator

__all__ = ["wrapped"]

_PAINT = re.compile("\x1b\\[[0-9;]*m")
_NARROWEST = 20  # columns; with fewer left for the text, breaking it makes nothing better


def wrapped(text: str, width: int | None, *, first: str = "", rest: str = "") -> Iterator[str]:
    """The lines of one paragraph: `first` before the first of them, `rest` before the others.

    A word that is longer than a line stays whole: it may be a path, to be clicked. Without a width there is one line.
    Colors take no room.
    """
    if width is None or width - max(_length(first), len(rest)) < _NARROWEST:
        yield first + text
        return
    line, length = first, _length(first)
    is_empty = True
    for word in text.split(" "):
        if not is_empty and length + 1 + _length(word) > width:
            yield line
            line, length, is_empty = rest, len(rest), True
        blank = "" if is_empty else " "
        line += blank + word
        length += len(blank) + _length(word)
        is_empty = False
    yield line


def _length(text: str) -> int:
    return len(_PAINT.sub("", text))
