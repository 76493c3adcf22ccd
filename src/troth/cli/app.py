"""Knows which commands there are and carries one of them out.

Only the module of the command that was asked for is imported. A new command is a module with a `COMMAND` and one line
in `COMMANDS`; a test holds the summaries here and in the modules together.
"""

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from typing import NoReturn, cast

from troth import __version__
from troth.cli.command import Command
from troth.cli.exit import Exit
from troth.errors import InternalError, MisuseError, RunError

__all__ = ["COMMANDS", "load", "parser_of", "run"]

COMMANDS: dict[str, tuple[str, str]] = {
    "init": ("troth.cli.init", "write a first workflow that runs"),
    "validate": ("troth.cli.validate", "check workflows without running them"),
    "run": ("troth.cli.run", "run a workflow durably"),
    "runs": ("troth.cli.runs", "look at runs and go on with them"),
    "completion": ("troth.cli.completion", "print the completion script for a shell"),
}

_HEAD = """usage: troth COMMAND [options]

Finds calls that silently never happen, repairs them, and keeps them from happening at run time.

commands:
"""

_TAIL = """
options:
  -h, --help     show this help; `troth COMMAND --help` shows the command's own, with examples
  -V, --version  show the version

exit codes: 0 done and clean; 1 findings, or a run that failed; 2 wrong use or bad input; 3 our own bug; 130 Ctrl-C
"""


class _Parser(argparse.ArgumentParser):
    """argparse, but wrong use comes out as `MisuseError`, so that there is one way out of the program."""

    def error(self, message: str) -> NoReturn:
        raise MisuseError(f"{self.prog}: {message}\nNothing was done.\n`{self.prog} --help` shows how it is used.")


def overview() -> str:
    """The text of `troth --help`, made without importing any command."""
    width = max(map(len, COMMANDS))
    rows = [f"  {name:<{width}}  {summary}" for name, (_, summary) in COMMANDS.items()]
    return _HEAD + "\n".join(rows) + "\n" + _TAIL


def load(name: str) -> Command:
    """Import the module of the command `name`."""
    module = importlib.import_module(COMMANDS[name][0])
    return cast("Command", module.COMMAND)


def parser_of(name: str, command: Command) -> argparse.ArgumentParser:
    """The argument parser of one command, with its examples at the end of the help."""
    examples = "\n".join(f"  {example.line}\n      {example.says}" for example in command.examples)
    parser = _Parser(
        prog=f"troth {name}",
        description=command.description,
        epilog=f"examples:\n{examples}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    command.add_arguments(parser)
    return parser


def run(argv: Sequence[str]) -> int:
    """Carry out one command line and return its exit code; every way out of the program passes here."""
    try:
        try:
            code = _dispatch(argv)
        finally:
            sys.stdout.flush()
    except MisuseError as problem:
        return _fail(problem, Exit.MISUSE)
    except RunError as problem:
        return _fail(problem, Exit.FOUND)
    except KeyboardInterrupt:
        sys.stderr.write("\nInterrupted.\n")
        return Exit.INTERRUPTED
    except BrokenPipeError:
        return _reader_left()
    except SystemExit as end:  # argparse's own way out after --help
        return end.code if isinstance(end.code, int) else Exit.CLEAN
    except (Exception, InternalError) as bug:  # noqa: BLE001 -- the last door: nothing may leave without a report
        from troth.cli.crash import report

        sys.stderr.write(report(bug, argv) + "\n")
        return Exit.BUG
    return code


def _dispatch(argv: Sequence[str]) -> int:
    if not argv:
        sys.stderr.write(overview())
        return Exit.MISUSE
    name, *rest = argv
    if name in ("-h", "--help", "help"):
        if rest and rest[0] in COMMANDS:
            return _dispatch([rest[0], "--help"])
        sys.stdout.write(overview())
        return Exit.CLEAN
    if name in ("-V", "--version"):
        print(f"troth {__version__}")
        return Exit.CLEAN
    if name not in COMMANDS:
        raise MisuseError(_unknown(name))
    command = load(name)
    return command.run(parser_of(name, command).parse_args(rest))


def _unknown(name: str) -> str:
    near = get_close_matches(name, COMMANDS, n=1, cutoff=0.7)
    advice = f"Did you mean `troth {near[0]}`?" if near else "`troth --help` lists the commands."
    what = f"There is no option `{name}` here." if name.startswith("-") else f"There is no command {name!r}."
    return f"{what}\nNothing was done.\n{advice}"


def _fail(problem: Exception, code: Exit) -> int:
    sys.stderr.write(f"{problem}\n")
    return code


def _reader_left() -> int:
    """The reader of our output went away (`| head`): that is its right, and no failure of ours.

    What was going to be printed has nowhere to go, so stdout is pointed at nothing before Python flushes it at exit.
    """
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
    return Exit.CLEAN
