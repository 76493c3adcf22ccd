"""Print results to a reader who may leave before the end (`| head`), or may not know every letter."""

import codecs
import contextlib
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator
from typing import TextIO, cast

from troth.errors import RunError

__all__ = [
    "any_letter",
    "kept_for_json",
    "open_streams",
    "reader_left",
    "say",
    "say_bytes",
    "say_json",
    "stderr_without_reader",
    "warn",
]


def open_streams() -> None:
    """Read from nothing and write to nothing where a stream is closed (`troth check >&-`), for which Python has None.

    The descriptor is taken, too: the next file that is opened would get its number, and what a program we start prints.
    """
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is not None:
            continue
        nowhere = os.open(os.devnull, os.O_RDWR)
        if nowhere != number:
            os.dup2(nowhere, number)
            os.close(nowhere)
        setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115 - a descriptor


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


_CONTROLS = re.compile("\x1b\\[[0-9;]*m|[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_ANY_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
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
def kept_for_json(is_json: bool) -> Iterator[None]:  # noqa: FBT001 - `kept_for_json(args.json)`
    """While the user's own code works, let what it prints go to stderr: stdout is for the JSON that a machine reads."""
    if not is_json:
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
    saved = os.dup(ours)
    os.dup2(theirs, ours)
    try:
        yield
    finally:
        stdout.flush()
        os.dup2(saved, ours)
        os.close(saved)


def say(lines: Iterable[str | bytes]) -> bool:
    """Print lines to stdout, bytes as they are; False if nobody is left to read them, which is no failure of ours."""
    any_letter()
    try:
        for line in lines:
            if isinstance(line, bytes):
                sys.stdout.flush()
                sys.stdout.buffer.write(line + b"\n")
            else:
                sys.stdout.write(_for_terminal(line) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        reader_left()
        return False
    except OSError as problem:
        reader_left()
        raise RunError(
            f"The results could not be written to stdout: {problem.strerror or problem}.\n"
            "The command itself succeeded, and no file was changed by this error.\nRedirect stdout to a file or "
            "device that can be written."
        ) from problem
    return True


def say_bytes(data: bytes) -> bool:
    """Print bytes to stdout as they are, and nothing else; False if nobody is left to read them."""
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.flush()
    except BrokenPipeError:
        reader_left()
        return False
    return True


def warn(text: str) -> None:
    """Print a message to stderr, with control characters as escapes: it may quote what somebody else has written."""
    sys.stderr.write(_ANY_CONTROL.sub(_as_escape, text) + "\n")


def _for_terminal(line: str) -> str:
    """A line for stdout. On a terminal, what is no color of ours is no order to it either."""
    return _CONTROLS.sub(_as_escape, line) if sys.stdout.isatty() else line


def _as_escape(sequence: re.Match[str]) -> str:
    return sequence[0] if len(sequence[0]) > 1 else f"\\x{ord(sequence[0]):02x}"


def reader_left(stream: TextIO | None = None) -> None:
    """Point stdout, or another stream, at nothing, so that Python's flush at exit has nothing to complain about."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, (stream or sys.stdout).fileno())
    os.close(nowhere)


class _Stderr:
    """Stderr, but a reader who has left (`2>&1 | head`) stops no work: what it comes to is said by the exit code."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except BrokenPipeError:
            reader_left(self._stream)
            return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except BrokenPipeError:
            reader_left(self._stream)

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)


@contextlib.contextmanager
def stderr_without_reader() -> Iterator[None]:
    """In the block, nobody has to read stderr."""
    stderr = sys.stderr
    if stderr is not None:
        sys.stderr = cast("TextIO", _Stderr(stderr))
    try:
        yield
    finally:
        sys.stderr = stderr
