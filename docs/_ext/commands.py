"""Write the reference page of all commands and their options from the parsers that read the command line.

The page is part of the repository; `python docs/_ext/commands.py` writes it, and a test
holds it against the code.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from troth.cli import app

__all__ = ["commands_page"]

PAGE = Path(__file__).resolve().parents[1] / "reference/commands.md"
_HEAD = """# All commands and options

Every command with every option, as `--help` tells them. What a command does, with examples, stands on the page that
“more” leads to. `--help` and `--color` are options of every command.
"""
_PAGES = {  # which page tells of a command; the path is relative to `docs/reference`
    "check": "check.md",
    "fix": "fix.md",
    "recolor": "recolor.md",
    "explain": "explain.md",
    "lsp": "lsp.md",
    "mutate": "mutate.md",
    "init": "../tutorial/workflow-with-undo.md",
    "validate": "workflow-yaml.md",
    "run": "runs.md",
    "runs": "runs.md",
    "worker": "runs.md",
    "conversations": "conversations.md",
    "session": "sessions.md",
    "audit": "sessions.md",
    "outbox": "promises.md",
    "jobs": "jobs.md",
    "chat": "jobs.md",
    "serve": "server.md",
    "keys": "server.md",
    "store": "stores.md",
    "completion": "../install.md",
}
_EVERYWHERE = ("--help", "--color")
_MANY = 8  # what so many commands have in the same words is told once

_Row = tuple[str, str]


def commands_page() -> str:
    """The whole page."""
    commands = {
        title: (name, list(_rows(parser)))
        for name in app.COMMANDS
        for title, parser in _parsers(f"troth {name}", app.parser_of(name, app.load(name)))
    }
    uses = Counter(row for _, rows in commands.values() for row in rows if row[0].startswith("`-"))
    shared = [row for row, count in uses.items() if count >= _MANY]
    parts = [_HEAD, "Of many commands, and only named below:\n", _table(shared)]
    last = ""
    for title, (name, rows) in commands.items():
        if name != last:
            page = f" → [more]({_PAGES[name]})" if name in _PAGES else ""
            summary = app.COMMANDS[name][1]
            parts.append(f"## `troth {name}`\n\n{summary[:1].upper()}{summary[1:]}.{page}\n")
            last = name
        if title != f"troth {name}":
            parts.append(f"### `{title}`\n")
        own = [row for row in rows if row not in shared]
        if own:
            parts.append(_table(own))
        if also := [row[0].split(" ")[0].strip("`") for row in rows if row in shared]:
            parts.append(f"{'Also' if own else 'Options:'} {', '.join(f'`{option}`' for option in also)}.\n")
    return "\n".join(parts)


def _parsers(title: str, parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    yield title, parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, below in action.choices.items():
                yield from _parsers(f"{title} {name}", below)


def _rows(parser: argparse.ArgumentParser) -> Iterator[_Row]:
    formatter = argparse.HelpFormatter(parser.prog)
    for action in parser._actions:
        is_hidden = action.help in (None, argparse.SUPPRESS) or isinstance(action, argparse._SubParsersAction)
        if is_hidden or any(option in _EVERYWHERE for option in action.option_strings):
            continue
        values = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
        if action.choices is not None and action.metavar is None:
            values = "{" + ",".join(map(str, action.choices)) + "}"
        names = "`, `".join(action.option_strings)
        shown = values if not names else names if action.nargs == 0 else f"{names} {values}"
        yield f"`{shown}`", formatter._expand_help(action).replace("|", "\\|")


def _table(rows: list[_Row]) -> str:
    lines = [f"| {shown} | {meaning} |\n" for shown, meaning in rows]
    return "".join(["| option | meaning |\n", "|---|---|\n", *lines])


if __name__ == "__main__":
    PAGE.write_text(commands_page(), encoding="utf-8")
    sys.stdout.write(f"wrote {PAGE}\n")
