"""Print a shell's completion script."""

import argparse

from troth.cli.app import COMMANDS, load, parser_of
from troth.cli.command import Command, Example
from troth.cli.exit import Exit
from troth.errors import MisuseError

__all__ = ["COMMAND"]

# What stands for a path: without a word about it, a shell completes no files for a command that has a script.
_FILES = {"PATH", "FILE", "TARGET", "WORKFLOW", "CONFIG", "PATTERNS", "ENV", "MODULE:NAME"}
_FOLDERS = {"DIR", "FOLDER"}
SHELLS = ("bash", "zsh", "tcsh", "fish", "powershell")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `troth completion`."""
    parser.add_argument("shell", choices=SHELLS, help="the shell to complete for")


def run(args: argparse.Namespace) -> int:
    """Print the script for one shell; every command is imported here, and only here."""
    import shtab

    if args.shell not in shtab.SUPPORTED_SHELLS:
        raise MisuseError(
            f"The installed shtab {shtab.__version__} makes no completion script for {args.shell}.\n"
            "Nothing was printed.\nInstall a newer one: `pip install --upgrade shtab`."
        )
    whole = argparse.ArgumentParser(prog="troth")
    whole.add_argument("--version", action="version", version="")
    commands = whole.add_subparsers()
    for name in COMMANDS:
        command = load(name)
        parser = parser_of(name, command)
        _complete_paths(parser)
        commands.add_parser(name, help=command.summary, parents=[parser], add_help=False, conflict_handler="resolve")
    print(shtab.complete(whole, args.shell))
    return Exit.CLEAN


def _complete_paths(parser: argparse.ArgumentParser) -> None:
    import shtab

    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                _complete_paths(inner)
        elif action.metavar in _FILES:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
        elif action.metavar in _FOLDERS:
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]


COMMAND = Command(
    summary="print the completion script for a shell",
    description="Prints a script that completes the commands and options of troth in your shell.",
    examples=(
        Example("troth completion bash", "print the script for bash"),
        Example('eval "$(troth completion bash)"', "switch completion on in this shell"),
        Example("troth completion fish", "print the script for fish: `… | source` switches it on"),
    ),
    add_arguments=add_arguments,
    run=run,
)
