"""Print changes as a diff: in color on a terminal, and byte by byte for a program that applies it."""

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from troth.cli.pipe import say
from troth.cli.terminal import Style

if TYPE_CHECKING:
    from troth.analysis.edits.write import Change

__all__ = ["say_diff"]

_COLORS = {b"-": "red", b"+": "green", b"@": "cyan"}


def say_diff(changes: "Sequence[Change]") -> None:
    """Print the diff of each change to stdout."""
    from troth.analysis.fix.diff import diff

    style = Style(sys.stdout)
    lines = ([line.removesuffix(b"\n") for line in diff(change)] for change in changes)
    if style.on or sys.stdout.isatty():
        say(line for of_file in lines for line in _readable(of_file, style))
    else:
        say(line for of_file in lines for line in of_file)


def _readable(lines: Sequence[bytes], style: Style) -> Iterator[str]:
    """The lines as text; `say` turns what would steer the terminal into escapes."""
    for number, line in enumerate(lines):
        text = line.removesuffix(b"\r").decode("utf-8", "backslashreplace")
        color = "bold" if number < 2 else _COLORS.get(line[:1])  # the names of the file, before and after
        yield style(text, *([color] if color else []))
