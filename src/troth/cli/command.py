"""What one command of the command line consists of."""

import argparse
from collections.abc import Callable, Sequence
from typing import NamedTuple

__all__ = ["Command", "Example"]


class Example(NamedTuple):
    """A command line that works as it stands, shown by `--help`; the tests run those that need nothing from outside."""

    line: str
    says: str


class Command(NamedTuple):
    """What a command module offers as `COMMAND`.

    `run` gets the parsed arguments and returns an exit code. It prints results to stdout and progress to stderr, and
    raises `MisuseError` for bad input (exit 2) and `RunError` for a world that failed (exit 1). `variables` are options
    that the environment may set, too.
    """

    summary: str
    description: str
    examples: Sequence[Example]
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]
    variables: Sequence[str] = ()
