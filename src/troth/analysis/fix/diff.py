"""Show a change of a file as a unified diff that `git apply` and `patch` take."""

import os
from collections.abc import Iterator
from difflib import diff_bytes, unified_diff

from troth.analysis.edits.write import Change

__all__ = ["diff"]


def diff(change: Change) -> Iterator[bytes]:
    """The lines of the diff in the bytes of the file, each with its own line ending: a patch knows no encodings."""
    path = os.fsencode(change.path)
    for line in diff_bytes(unified_diff, _lines(change.before), _lines(change.after), b"a/" + path, b"b/" + path):
        if line.endswith(b"\n"):
            yield line
        else:
            yield line + b"\n"
            yield b"\\ No newline at end of file\n"


def _lines(data: bytes) -> list[bytes]:
    # splitlines would also split at a lone carriage return, which is an ordinary character of a line for git
    lines = data.split(b"\n")
    return [*(line + b"\n" for line in lines[:-1]), *([lines[-1]] if lines[-1] else [])]
