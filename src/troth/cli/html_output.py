"""Write an HTML page to a file, or to stdout, for commands that show something with `--html`."""

import argparse
import sys
from pathlib import Path

from troth.cli.pipe import say
from troth.errors import MisuseError

__all__ = ["add_html", "write_page"]


def add_html(parser: "argparse.ArgumentParser | argparse._MutuallyExclusiveGroup") -> None:
    """Declare `--html`."""
    parser.add_argument("--html", metavar="FILE", help="write a self-contained HTML page; `-` prints it")


def write_page(name: str, text: str) -> None:
    """Write the page, and say where; `-` prints it."""
    if name == "-":
        if hasattr(sys.stdout, "reconfigure"):
            sys.stdout.reconfigure(encoding="utf-8")  # as the page itself says
        say([text])
        return
    try:
        Path(name).write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as problem:
        raise MisuseError(
            f"The page cannot be written to {name!r}: {problem.strerror}. Name another file; `--html -` prints it."
        ) from None
    say([f"wrote {name}"])
