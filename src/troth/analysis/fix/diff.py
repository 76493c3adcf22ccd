"""Knows how to show a change of a file as a unified diff that `git apply` and `patch` take."""

from collections.abc import Iterator
from difflib import unified_diff

from troth.analysis.edits.write import Change
from troth.analysis.source.encoding import decode

__all__ = ["diff"]


def diff(change: Change) -> Iterator[str]:
    """The lines of the diff, each with its own line ending as it is in the file."""
    before, after = decode(change.before, change.path).text, decode(change.after, change.path).text
    lines = unified_diff(_lines(before), _lines(after), f"a/{change.path}", f"b/{change.path}")
    for line in lines:
        if line.endswith("\n"):
            yield line
        else:
            yield line + "\n"
            yield "\\ No newline at end of file\n"


def _lines(text: str) -> list[str]:
    # str.splitlines would also split at form feeds and the like, which are ordinary characters of a line here
    lines = text.split("\n")
    return [*(line + "\n" for line in lines[:-1]), *([lines[-1]] if lines[-1] else [])]
