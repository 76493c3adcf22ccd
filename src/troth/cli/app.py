"""Find which commands there are, and carry one of them out.

Only the module of the command that was asked for is imported. A new command is a module with a `COMMAND` and one line
in `COMMANDS`; a test holds the summaries here and in the modules together.
"""

import argparse
import importlib
import sys
from collections.abc import Sequence
from typing import Any, NoReturn, cast

from troth import __version__
from troth.cli.command import Command
from troth.cli.environment import words_from_environment
from troth.cli.exit import Exit
from troth.cli.pipe import any_letter, open_streams, reader_left, stderr_without_reader, warn
from troth.cli.terminal import choose_color
from troth.errors import InternalError, MisuseError, RunError

__all__ = ["COMMANDS", "load", "parser_of", "run"]

COMMANDS: dict[str, tuple[str, str]] = {
    "check": ("troth.cli.analysis.check", "find calls that never happen"),
    "fix": ("troth.cli.analysis.fix", "repair what check finds"),
    "recolor": ("troth.cli.analysis.recolor", "change the color of a function or a class, with every call"),
    "explain": ("troth.cli.analysis.explain", "explain a rule, or find the calls behind a log"),
    "lsp": ("troth.cli.analysis.lsp", "serve editors: findings, repairs and reasons while you type"),
    "mutate": ("troth.cli.analysis.mutate", "plant sync/async mismatches, and measure what detects them"),
    "init": ("troth.cli.runtime.init", "write a first workflow that runs"),
    "validate": ("troth.cli.runtime.validate", "check workflows without running them"),
    "run": ("troth.cli.runtime.run", "run a workflow durably"),
    "runs": ("troth.cli.runtime.runs", "inspect and resume runs"),
    "worker": ("troth.cli.runtime.worker", "continue runs that wait, sleep or were orphaned"),
    "conversations": ("troth.cli.runtime.conversations", "show what agents received, said and did"),
    "session": ("troth.cli.runtime.session", "inspect governed sessions, and stop them or their agents"),
    "audit": ("troth.cli.runtime.audit", "show, verify and export the audit trail of sessions"),
    "store": ("troth.cli.runtime.store", "move a store to PostgreSQL, or check it for damage"),
    "chat": ("troth.cli.runtime.chat", "talk with an agent; background work reports back"),
    "serve": ("troth.cli.serve", "serve runs, conversations and promises over HTTP"),
    "keys": ("troth.cli.keys", "make, list and revoke the keys of a server"),
    "jobs": ("troth.cli.runtime.jobs", "inspect commands in the background"),
    "outbox": ("troth.cli.runtime.outbox", "show the deliveries of background results"),
    "completion": ("troth.cli.completion", "print the completion script for a shell"),
}

_HEAD = """usage: troth COMMAND [options]

Finds calls that silently never happen, repairs them, and keeps them from
happening at run time.

commands:
"""

_TAIL = """
options:
  -h, --help     show this help; `troth COMMAND --help` shows more
  -V, --version  show the version

exit codes: 0 done and clean; 1 findings, or a run that failed;
            2 wrong usage or bad input; 3 a bug in Troth;
            4 done, except for what a bug in Troth prevented; 130 Ctrl-C
"""


class _Parser(argparse.ArgumentParser):
    """argparse, but wrong use comes out as `MisuseError`, so that there is one way out of the program."""

    def parse_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> argparse.Namespace:
        """Read the arguments; where other linters have the options that are left over, say what to write instead."""
        parsed, unknown_words = self.parse_known_args(args, namespace)
        if unknown_words:
            from troth.cli.analysis.foreign_options import hint_for

            is_linter = self.prog in ("troth check", "troth fix")
            advice = (hint_for(unknown_words) if is_linter else "") or self._near_option(unknown_words)
            unknown = " ".join(unknown_words)
            raise MisuseError(f"{self.prog}: unrecognized arguments: {unknown}\nNothing was done.\n{advice}")
        return parsed

    def _near_option(self, words: Sequence[str]) -> str:
        from difflib import get_close_matches

        for word in words:
            option = word.partition("=")[0]
            near = get_close_matches(option, self._option_string_actions, n=1, cutoff=0.8)
            if near and option.startswith("--"):
                return f"Did you mean `{near[0]}`?"
        return f"`{self.prog} --help` shows its usage."

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuse what is none of the choices; where one of them is near, ask whether it is meant."""
        if action.choices is not None and value not in action.choices:
            from difflib import get_close_matches

            choices = [str(choice) for choice in action.choices]
            name = "/".join(action.option_strings) or action.metavar or action.dest
            near = get_close_matches(str(value).lower(), choices, n=1)
            advice = f"Did you mean `{near[0]}`?" if near else f"`{self.prog} --help` shows its usage."
            listed = ", ".join(map(repr, choices))
            raise MisuseError(
                f"{self.prog}: argument {name}: invalid choice: {value!r} (choose from {listed})\n"
                f"Nothing was done.\n{advice}"
            )

    def error(self, message: str) -> NoReturn:
        raise MisuseError(f"{self.prog}: {message}\nNothing was done.\n`{self.prog} --help` shows its usage.")


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
        description=_filled(command.description),
        epilog=f"examples:\n{examples}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    command.add_arguments(parser)
    parser.add_argument(
        "--color",
        choices=("auto", "always", "never"),
        default="auto",
        help="color the output (default: auto, on terminals)",
    )
    return parser


def _filled(text: str) -> str:
    """Paragraphs in lines that the terminal can show, and an eye can follow."""
    import shutil
    from textwrap import fill

    width = min(shutil.get_terminal_size().columns - 2, 110)
    return "\n\n".join(fill(paragraph, max(width, 20)) for paragraph in text.split("\n\n"))


def run(argv: Sequence[str]) -> int:
    """Carry out one command line and return its exit code; every way out of the program passes here."""
    open_streams()
    any_letter()
    with stderr_without_reader():
        return _run(argv)


def _run(argv: Sequence[str]) -> int:
    try:
        code = _dispatch(argv)
    except MisuseError as problem:
        code = _fail(problem, Exit.MISUSE)
    except RunError as problem:
        code = _fail(problem, Exit.FOUND)
    except KeyboardInterrupt:
        sys.stderr.write("\nInterrupted.\n")
        code = Exit.INTERRUPTED
    except BrokenPipeError:
        reader_left()
        code = Exit.CLEAN
    except SystemExit as end:  # argparse's own way out after --help
        code = end.code if isinstance(end.code, int) else Exit.CLEAN
    except (Exception, InternalError) as bug:  # noqa: BLE001 -- the last door: nothing may leave without a report
        from troth.cli.crash import report

        sys.stderr.write(report(bug, argv) + "\n")
        code = Exit.BUG
    try:
        sys.stdout.flush()
    except BrokenPipeError:  # the reader left (`| head`): that is its right, and what we have to say stays said
        reader_left()
    return code


def _dispatch(argv: Sequence[str]) -> int:
    if not argv:
        sys.stderr.write(overview())
        return Exit.MISUSE
    name, *words = argv
    if name in ("-h", "--help", "help"):
        if words and words[0] in COMMANDS:
            return _dispatch([words[0], "--help"])
        sys.stdout.write(overview())
        return Exit.CLEAN
    if name in ("-V", "--version"):
        print(f"troth {__version__}")
        return Exit.CLEAN
    if name not in COMMANDS:
        raise MisuseError(_unknown(name))
    command = load(name)
    parser = parser_of(name, command)
    args = parser.parse_args([*words_from_environment(parser, (*command.variables, "--color"), words), *words])
    choose_color(args.color)
    return command.run(args)


def _unknown(name: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, COMMANDS, n=1, cutoff=0.7)
    advice = f"Did you mean `troth {near[0]}`?" if near else "`troth --help` lists the commands."
    problem = f"There is no option `{name}` here." if name.startswith("-") else f"There is no command {name!r}."
    return f"{problem}\nNothing was done.\n{advice}"


def _fail(problem: Exception, code: Exit) -> int:
    warn(str(problem))
    return code
