"""Report a bug of our own: a few lines to paste, the whole traceback in a file."""

import os
import platform
import sys
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from troth import __version__
from troth.cli.exit import Exit
from troth.cli.switches import switch
from troth.errors import MisuseError

if TYPE_CHECKING:
    from troth.analysis.check.prepare import Prepared
    from troth.analysis.crash import Crash

__all__ = ["incomplete", "keep_traces", "report"]


def report(error: BaseException, argv: Sequence[str]) -> str:
    """Write the traceback of `error` to a file of its own and return the text for stderr."""
    trace = "".join(traceback.format_exception(error))
    facts = _facts()
    command = " ".join(["troth", *argv])
    frames = traceback.extract_tb(error.__traceback__)
    place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "an unknown place"
    lines = [
        "Internal error in Troth; your files are as they were before the step that failed.",
        f"  {type(error).__name__} at {place}: {str(error)[:200]}",
        f"  {facts}; command: {command}",
    ]
    lines.append(_save_traceback(f"{facts}\n{command}\n\n{trace}"))
    lines.append("Please report it with these lines. TROTH_DEBUG=1 shows the traceback at once.")
    if _debugging():
        lines.insert(0, trace.rstrip())
    return "\n".join(lines)


def incomplete(crashes: "Sequence[Crash]", prepared: "Prepared") -> int:
    """Tell of exceptions that were contained, where no report does, and return the exit code."""
    from troth.analysis.crash import line_of
    from troth.analysis.report.place import shown_from

    shown = shown_from(prepared.request.cwd, prepared.root.path)
    sys.stderr.write("".join(f"{line_of(crash, shown)}\n" for crash in crashes))
    sys.stderr.write(keep_traces(crashes))
    return Exit.INCOMPLETE


def keep_traces(crashes: "Sequence[Crash]") -> str:
    """Write the tracebacks of exceptions that were contained to a file, and return the line for stderr."""
    traces = "\n".join(f"{crash.path}:{crash.line}: {crash.cost}\n{crash.trace}" for crash in crashes)
    notice = _save_traceback(f"{_facts()}\n\n{traces}")
    return f"{notice}; please attach it to a report, as `troth explain TR000` describes\n"


def _facts() -> str:
    compiled = ", compiled" if "troth__mypyc" in sys.modules else ""
    return f"troth {__version__}{compiled}, Python {platform.python_version()}, {platform.system()}"


def _save_traceback(text: str) -> str:
    try:
        handle, name = tempfile.mkstemp(prefix="troth-crash-", suffix=".txt")
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
    except OSError as problem:
        return f"The traceback could not be written to a file ({problem}); TROTH_DEBUG=1 shows it here"
    return f"The whole traceback is in {name}"


def _debugging() -> bool:
    try:
        return switch("TROTH_DEBUG")
    except MisuseError as problem:  # the report must not fail over a badly written switch
        sys.stderr.write(f"{problem}\n")
        return True
