"""Declare the verbs of a command: `troth jobs list`, `troth jobs stop ID`."""

import argparse
from collections.abc import Callable, Mapping

__all__ = ["Declare", "add_verbs"]

Declare = Callable[[argparse.ArgumentParser], object]


def add_verbs(
    parser: argparse.ArgumentParser, verbs: Mapping[str, tuple[str, Declare, object]], *shared: Declare
) -> Mapping[str, argparse.ArgumentParser]:
    """Give the command its verbs, and answer the parser of each.

    Each verb has a line that says what it does, and declares its own arguments; `shared` ones are declared for all.
    """
    choices = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    parsers = {}
    for name, (summary, declare, _) in verbs.items():
        description = f"{summary[0].upper()}{summary[1:]}."
        parsers[name] = choices.add_parser(name, help=summary, description=description, allow_abbrev=False)
        for add in (declare, *shared):
            add(parsers[name])
    return parsers
