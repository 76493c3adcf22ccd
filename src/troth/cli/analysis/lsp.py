"""Carry out `troth lsp`."""

import argparse
import logging
import sys
from pathlib import Path

from troth.cli.command import Command, Example
from troth.cli.exit import Exit
from troth.errors import MisuseError

__all__ = ["COMMAND"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `troth lsp`."""
    add = parser.add_argument
    add("--stdio", action="store_true", help="talk to the editor over stdin and stdout (the default)")
    add("--tcp", type=int, metavar="PORT", help="listen for the editor on this local port instead")
    add("--log", type=Path, metavar="FILE", help="write a log of requests and their times; it contains no source text")
    add("--clientProcessId", dest="client", type=int, help=argparse.SUPPRESS)  # some editors pass it


def run(args: argparse.Namespace) -> int:
    """Serve one editor until it leaves."""
    try:
        import pygls  # noqa: F401 - to say what is missing, and not where
    except ModuleNotFoundError as missing:
        raise MisuseError(
            f"The language server needs {missing.name}, which is not installed.\n"
            "Nothing was started.\nInstall it with `pip install 'troth[lsp]'`."
        ) from missing
    if args.stdio and args.tcp is not None:
        raise MisuseError("`--stdio` and `--tcp` cannot be combined.\nNothing was started.\nChoose one of them.")
    if args.tcp is not None and not 0 < args.tcp < 65536:
        raise MisuseError(f"{args.tcp} is not a port.\nNothing was started.\nGive a number from 1 to 65535.")
    _log_to(args.log)
    from troth.analysis.gc_pause import hardly_collected

    with hardly_collected():
        from troth.lsp.serve import serve

    return Exit.CLEAN if serve(port=args.tcp) else Exit.FOUND


def _log_to(file: Path | None) -> None:
    """Send the log to a file, or what is worth a warning to stderr, where editors show it."""
    try:
        handler: logging.Handler = (
            logging.StreamHandler(sys.stderr) if file is None else logging.FileHandler(file, encoding="utf-8")
        )
    except OSError as problem:
        raise MisuseError(
            f"The log `{file}` cannot be written: {problem.strerror}.\nNothing was started.\nName another file."
        ) from problem
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    ours = logging.getLogger("troth.lsp")
    ours.addHandler(handler)
    ours.setLevel(logging.WARNING if file is None else logging.INFO)
    ours.propagate = False
    pygls = logging.getLogger("pygls")
    pygls.setLevel(logging.CRITICAL)  # it would write whole messages, source text and all


COMMAND = Command(
    summary="serve editors: findings, repairs and reasons while you type",
    description=(
        "A language server. An editor starts it and talks to it over stdin and stdout; it shows what `troth check`\n"
        "finds while you type, explains it, and repairs it. `pip install 'troth[lsp]'` brings what it needs."
    ),
    examples=(
        Example("troth lsp", "what an editor starts"),
        Example("troth lsp --log troth.log", "with a log that you can send"),
        Example("troth lsp --tcp 2087", "for an editor that connects to a port of this machine"),
    ),
    add_arguments=add_arguments,
    run=run,
)
