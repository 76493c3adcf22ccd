"""Knows which store the commands about runs look into, and which run is meant by a word on the command line."""

import argparse
import importlib.util
import os
from pathlib import Path
from typing import TYPE_CHECKING

from troth.errors import MisuseError

if TYPE_CHECKING:
    from troth.runtime.assemble import Runtime

__all__ = ["VARIABLE", "add_run", "add_store", "existing", "find_run", "needs_yaml", "opened", "store_path"]

VARIABLE = "TROTH_STORE"
_DEFAULT = ".troth/runs.db"


def add_store(parser: argparse.ArgumentParser) -> None:
    """Declare `--store` and `--json`."""
    parser.add_argument(
        "--store", metavar="FILE", help=f"the file that runs are kept in (default: ${VARIABLE}, else {_DEFAULT})"
    )
    parser.add_argument("--json", action="store_true", help="print JSON, for machines")


def add_run(parser: argparse.ArgumentParser) -> None:
    """Declare the run that a command is about."""
    parser.add_argument("run", metavar="ID", help="the run: its id, the beginning of it, or `last`")


def store_path(args: argparse.Namespace) -> Path:
    """The file that was asked for."""
    return Path(args.store or os.environ.get(VARIABLE) or _DEFAULT)


def opened(args: argparse.Namespace) -> "Runtime":
    """A runtime on that file. Runs of others are left alone: a command does what it was asked for."""
    from troth.runtime.assemble import Runtime

    return Runtime(store_path(args), recover=False)


def existing(args: argparse.Namespace) -> "Runtime":
    """A runtime on a file that has to be there already."""
    path = store_path(args)
    if not path.exists():
        raise MisuseError(
            f"There is no store {str(path)!r}, so there are no runs to look at.\n"
            f"`troth run WORKFLOW` makes one; `--store FILE` or {VARIABLE} names another."
        )
    return opened(args)


def find_run(runtime: "Runtime", word: str) -> str:
    """The id that `word` stands for: itself, the only one that begins with it, or the newest for `last`."""
    ids = [run.id for run in runtime.engine.list(limit=2000) if run.decision.startswith("workflow:")]
    if word == "last" and ids:
        return ids[0]
    if word in ids:
        return word
    begins = [one for one in ids if one.startswith(word)]
    if len(begins) == 1:
        return begins[0]
    if begins:
        raise MisuseError(
            f"{word!r} is the beginning of {len(begins)} runs: {', '.join(begins[:5])} … Write more of it."
        )
    runtime.show(word)  # says that there is none, and what is near
    return word


def needs_yaml() -> None:
    """Refuse to go on without the part that reads workflows, and say how to get it."""
    if importlib.util.find_spec("yaml") is None:
        raise MisuseError(
            "This command reads YAML, which the base install leaves out.\nNothing was done.\n"
            "Install it with `pip install 'troth[runtime]'`."
        )
