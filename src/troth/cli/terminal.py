"""Knows what the terminal can show: color, width, and a line of progress that leaves nothing behind."""

import os
import sys
from collections.abc import Mapping
from types import TracebackType
from typing import Self, TextIO

__all__ = ["Progress", "Style", "wants_color"]

_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36"}


def wants_color(stream: TextIO, environ: Mapping[str, str] | None = None) -> bool:
    """Color only on a terminal that can show it; `NO_COLOR` (any value but empty) always wins over `FORCE_COLOR`."""
    env = os.environ if environ is None else environ
    if env.get("NO_COLOR"):
        return False
    if env.get("FORCE_COLOR"):
        return True
    return env.get("TERM") != "dumb" and stream.isatty()


class Style:
    """Paints text for one stream, or leaves it as it is."""

    def __init__(self, stream: TextIO) -> None:
        self.on = wants_color(stream)

    def __call__(self, text: str, *names: str) -> str:
        """`text` in the named colors and weights."""
        if not self.on or not names:
            return text
        return f"\x1b[{';'.join(_CODES[name] for name in names)}m{text}\x1b[0m"


class Progress:
    """A line on stderr that is rewritten while work goes on and wiped when it ends.

    It shows nothing unless stderr is a terminal, so that logs and pipes stay clean.
    """

    def __init__(self, label: str, *, total: int | None = None, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._label = label
        self._total = total
        # Rewriting a line takes control codes, and whoever sets `NO_COLOR` wants none of them.
        self._shown = self._stream.isatty() and os.environ.get("TERM") != "dumb" and not os.environ.get("NO_COLOR")

    def __enter__(self) -> Self:
        self.at(0)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown:
            self._stream.write("\r\x1b[2K")
            self._stream.flush()

    def at(self, done: int, note: str = "") -> None:
        """Show that `done` of the total are done."""
        if not self._shown:
            return
        count = f" {done}/{self._total}" if self._total is not None else ""
        line = f"{self._label}{count}  {note}".rstrip()
        import shutil  # late: most streams are no terminal

        width = shutil.get_terminal_size().columns - 1
        self._stream.write(f"\r\x1b[2K{line[:width]}")
        self._stream.flush()
