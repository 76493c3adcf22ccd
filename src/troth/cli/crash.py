"""Knows how to report a bug of our own: a few lines to paste, the whole traceback in a file."""

import os
import platform
import sys
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path

from troth import __version__
from troth.cli.switches import switch
from troth.errors import MisuseError

__all__ = ["report"]


def report(error: BaseException, argv: Sequence[str]) -> str:
    """Write the traceback of `error` to a file of its own and return the text for stderr."""
    trace = "".join(traceback.format_exception(error))
    compiled = ", compiled" if "troth__mypyc" in sys.modules else ""
    facts = f"troth {__version__}{compiled}, Python {platform.python_version()}, {platform.system()}"
    command = " ".join(["troth", *argv])
    frames = traceback.extract_tb(error.__traceback__)
    place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "an unknown place"
    lines = [
        "Troth made a mistake of its own; your files are as they were before the step that failed.",
        f"  {type(error).__name__} at {place}: {str(error)[:200]}",
        f"  {facts}; command: {command}",
    ]
    try:
        handle, name = tempfile.mkstemp(prefix="troth-crash-", suffix=".txt")
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(f"{facts}\n{command}\n\n{trace}")
        lines.append(f"The whole traceback is in {name}")
    except OSError as problem:
        lines.append(f"The traceback could not be written to a file ({problem}); TROTH_DEBUG=1 shows it here.")
    lines.append("Please paste these lines into a report. TROTH_DEBUG=1 shows the traceback at once.")
    if _debugging():
        lines.insert(0, trace.rstrip())
    return "\n".join(lines)


def _debugging() -> bool:
    try:
        return switch("TROTH_DEBUG")
    except MisuseError as problem:  # the report must not fail over a badly written switch
        sys.stderr.write(f"{problem}\n")
        return True
