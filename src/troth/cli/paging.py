"""Show a list page by page: how much of it, where it goes on, and which moments a word on the command line means."""

import argparse
import re
import time
from datetime import datetime
from shlex import quote

from troth.cli.stores import options_of
from troth.errors import MisuseError

__all__ = ["add_page", "check_page", "following", "moment_of"]


def add_page(parser: argparse.ArgumentParser, what: str, limit: int = 20) -> None:
    """Declare how many of a list are shown, and where the page begins."""
    parser.add_argument("--limit", type=int, default=limit, metavar="N", help=f"show N {what} (default: {limit})")
    parser.add_argument("--before", metavar="CURSOR", help="continue after this cursor, which each page prints")


def check_page(args: argparse.Namespace) -> None:
    """Refuse a page that would be empty, or endless."""
    if args.limit < 1:
        raise MisuseError(f"`--limit {args.limit}` would list nothing; give 1 or more.")
    if args.limit > 1000:
        raise MisuseError(f"`--limit {args.limit}` is more than one page; give 1000 or less.")


def following(args: argparse.Namespace, command: str, cursor: str | None) -> str | None:
    """The command that shows the next page; nothing if this is the last one."""
    if cursor is None:
        return None
    typed = {"state": "state", "workflow": "workflow", "session": "session", "since": "since", "until": "until"}
    options = "".join(
        f" --{option} {quote(str(value))}"
        for name, option in {**typed, "text": "text", "limit": "limit"}.items()
        if (value := getattr(args, name, None)) is not None
    )
    return f"{command}{options}{options_of(args)} --before {quote(cursor)}"


def moment_of(option: str, text: str | None) -> float | None:
    """A moment from the command line, in seconds: a date, a time, or how long ago, as in `2h`."""
    if text is None:
        return None
    ago = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd])", text)
    if ago is not None:
        return time.time() - float(ago[1]) * {"s": 1, "m": 60, "h": 3600, "d": 86400}[ago[2]]
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        raise MisuseError(
            f"`--{option} {text}` is not a point in time. Nothing was listed.\n"
            "Write a date as in 2026-11-18, a time as in 2026-11-18T09:30, or how long ago as in 2h."
        ) from None
