"""Knows how to print results to a reader who may leave before the end (`| head`), or may not know every letter."""

import codecs
import contextlib
import json
import os
import sys
from collections.abc import Iterable, Iterator
from typing import TextIO

from troth.errors import RunError

__all__ = ["any_letter", "kept_for_json", "reader_left", "say", "say_json"]


def any_letter() -> None:
    """Let stdout and stderr show what their encoding does not know: our own marks in ASCII, the rest as escapes.

    A file's name can hold bytes that are no text, a step can return half a letter, and a pipe under Windows or with
    `LC_ALL=C` knows neither `✓` nor `ü`: none of it may stop us.
    """
    codecs.register_error("troth", _in_other_letters)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="troth")


def _in_other_letters(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    marks = "".join(_MARKS.get(letter, letter) for letter in text)
    return marks.encode("ascii", "backslashreplace").decode("ascii"), error.end


_MARKS = dict(zip("✓✗▶◷↻‖≈⊘↶·█░…“”→", '+x>@o|~0<-#.~"">', strict=True))


def say_json(value: object, *, indent: int | None = 2) -> bool:
    """Print a value as JSON, which every reader of JSON can read whatever the encoding of stdout is."""
    return say([json.dumps(value, indent=indent, ensure_ascii=not _is_unicode(sys.stdout.encoding))])


def _is_unicode(encoding: str | None) -> bool:
    try:
        return codecs.lookup(encoding or "ascii").name.startswith("utf")
    except LookupError:
        return False


@contextlib.contextmanager
def kept_for_json(wanted: bool) -> Iterator[None]:  # noqa: FBT001 - `kept_for_json(args.json)`
    """While the user's own code works, let what it prints go to stderr: stdout is for the JSON that a machine reads."""
    if not wanted:
        yield
        return
    stdout = sys.stdout
    sys.stdout = sys.stderr
    try:
        with _descriptor_of_stderr(stdout):
            yield
    finally:
        sys.stdout = stdout


@contextlib.contextmanager
def _descriptor_of_stderr(stdout: TextIO) -> Iterator[None]:
    """The same for programs that the code starts, and for whoever got hold of stdout before."""
    try:
        ours, theirs = stdout.fileno(), sys.stderr.fileno()
    except (OSError, ValueError, AttributeError):  # no file: a notebook, a test
        yield
        return
    stdout.flush()
    kept = os.dup(ours)
    os.dup2(theirs, ours)
    try:
        yield
    finally:
        stdout.flush()
        os.dup2(kept, ours)
        os.close(kept)


def say(lines: Iterable[str | bytes]) -> bool:
    """Print lines to stdout, bytes as they are; False if nobody is left to read them, which is no failure of ours."""
    any_letter()
    try:
        for line in lines:
            if isinstance(line, bytes):
                sys.stdout.flush()
                sys.stdout.buffer.write(line + b"\n")
            else:
                sys.stdout.write(line + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        reader_left()
        return False
    except OSError as problem:
        reader_left()
        raise RunError(
            f"The results could not be written to stdout: {problem.strerror or problem}.\n"
            "The work itself was done, and no file was changed by this.\nSend stdout to a place that can be written."
        ) from problem
    return True


def reader_left() -> None:
    """Point stdout at nothing, so that Python's flush at exit has nothing to complain about."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
