"""Write control characters as escapes: a file's name or its text must not give a terminal orders."""

import re

__all__ = ["in_one_line", "one_column_each", "printable"]

_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def printable(text: str) -> str:
    """`text` with every control character but line breaks and tabs as an escape: `ESC` is a backslash and `x1b`."""
    return _CONTROLS.sub(_escaped, text)


def in_one_line(text: str) -> str:
    """The same with line breaks and tabs as escapes, too: the name of a file must not begin a line of the report."""
    return printable(text).replace("\n", "\\n").replace("\t", "\\t")


def _escaped(control: "re.Match[str]") -> str:
    return f"\\x{ord(control[0]):02x}"


def one_column_each(text: str) -> str:
    """The same with a question mark for each of them, so that what stands below it stays in its column."""
    return _CONTROLS.sub("?", text)
