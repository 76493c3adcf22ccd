"""What the terminal can show: color, width, and a line of progress that leaves nothing behind."""

import os
import sys
from collections.abc import Mapping
from types import TracebackType
from typing import Self, TextIO

__all__ = ["Progress", "Style", "choose_color", "output_width", "wants_color", "width_of"]

_EVERY = 25  # files are read faster than a terminal can show them
_FEW = 100  # of so few, each may be large
_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36"}


_choice = "auto"


def choose_color(choice: str) -> None:
    """Let `--color` decide for this run: `always`, `never`, or `auto` for what terminal and environment say."""
    global _choice  # noqa: PLW0603 - there is one terminal, and whoever paints asks for it
    _choice = choice


def wants_color(stream: TextIO, environ: Mapping[str, str] | None = None) -> bool:
    """Color only on a terminal that can show it; `NO_COLOR` (any value but empty) always wins over `FORCE_COLOR`."""
    if _choice != "auto":
        return _choice == "always"
    env = os.environ if environ is None else environ
    if env.get("NO_COLOR"):
        return False
    if env.get("FORCE_COLOR"):
        return True
    return env.get("TERM") != "dumb" and stream.isatty()


def width_of(stream: TextIO) -> int | None:
    """How many columns there are to fill; None where the stream is no terminal, and lines may have any length."""
    if not stream.isatty():
        return None
    import shutil  # late: most streams are no terminal

    return shutil.get_terminal_size().columns


def output_width() -> int:
    """How many columns a picture of a run or a conversation may take on stdout."""
    import shutil  # late: most commands draw nothing

    return max(60, min(shutil.get_terminal_size((80, 24)).columns, 160))


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

    def __init__(
        self, label: str, *, total: int | None = None, stream: TextIO | None = None, quiet: bool = False
    ) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._label = label
        self._total = total
        # Rewriting a line takes control codes, and whoever sets `NO_COLOR` wants none of them.
        may_move = os.environ.get("TERM") != "dumb" and not os.environ.get("NO_COLOR")
        self._shown = self._stream.isatty() and may_move and not quiet

    def __enter__(self) -> Self:
        self.at(0)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown:
            self._stream.write("\r\x1b[2K")
            self._stream.flush()

    def reading(self, count: int, total: int, path: str) -> None:
        """Show which file is read; when all are, that they are being checked."""
        if count == total:
            self._label, self._total = "checking", None
            self.at(0, f"{total:,} file{'' if total == 1 else 's'}" if total else "")
        elif count % _EVERY == 0 or total < _FEW:
            self._total = total
            self.at(count, path)

    def at(self, count: int, note: str = "") -> None:
        """Show that `count` of the total are finished."""
        if not self._shown:
            return
        of_total = f" {count}/{self._total}" if self._total is not None else ""
        line = f"{self._label}{of_total}  {note}".rstrip()
        import shutil  # late: most streams are no terminal

        width = shutil.get_terminal_size().columns - 1
        self._stream.write(f"\r\x1b[2K{line[:width]}")
        self._stream.flush()
