"""Find which runtime and store the commands about runs use, and which run a word on the command line means."""

import argparse
import importlib.util
import inspect
import os
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from troth.errors import MisuseError

if TYPE_CHECKING:
    from troth.runtime.assemble import Runtime
    from troth.runtime.store.list_records import RunItem

__all__ = [
    "VARIABLE",
    "add_app",
    "add_run",
    "add_store",
    "app_of",
    "existing",
    "find_run",
    "find_value",
    "is_other_store",
    "looked_into",
    "needs_yaml",
    "no_such_store",
    "opened",
    "options_of",
    "shown",
    "store_of",
]

VARIABLE = "TROTH_STORE"
ENGINE = "TROTH_ENGINE"
_DEFAULT = ".troth/runs.db"


def add_store(parser: argparse.ArgumentParser) -> None:
    """Declare `--store` and `--json`."""
    parser.add_argument(
        "--store",
        metavar="FILE",
        help=f"the file, or the `postgresql://` address, of the store (default: ${VARIABLE}, else {_DEFAULT})",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def add_app(parser: argparse.ArgumentParser) -> None:
    """Declare `--app`."""
    parser.add_argument(
        "--app",
        metavar="MODULE:NAME",
        help="the runtime to use: a `Runtime`, or a function that makes one, with its agents, tools and store",
    )


def options_of(args: argparse.Namespace) -> str:
    """What a later command about the same runs has to be given, too."""
    names = ("store", "app")
    return "".join(f" --{name} {quote(shown(getattr(args, name)))}" for name in names if getattr(args, name, None))


def shown(word: str) -> str:
    """What was typed, without a password."""
    from troth.runtime.store.open import is_address

    if not is_address(word):
        return word
    from troth.runtime.store.postgres.address import parse

    return parse(word).shown


def add_run(parser: argparse.ArgumentParser) -> None:
    """Declare the run that a command is about."""
    parser.add_argument("run", metavar="ID", help="the run: its id, the beginning of it, or `last`")


def store_of(args: argparse.Namespace) -> str | Path:
    """The file that was asked for, or the address of a database."""
    from troth.runtime.store.open import check_file_name, is_address

    store = args.store or os.environ.get(VARIABLE) or _DEFAULT
    if is_address(store):
        return store
    check_file_name(store)
    return Path(store)


def no_such_store(store: str | Path, what: str = "") -> MisuseError | None:
    """The error of a command that needs a store which is not there; nothing where it is, or where the server tells."""
    if isinstance(store, str) or store.exists():
        return None
    return MisuseError(f"There is no store {str(store)!r}{what}.\n`--store FILE` or {VARIABLE} names another.")


def opened(args: argparse.Namespace) -> "Runtime":
    """A runtime on that file. Runs of others are left alone: a command does what it was asked for."""
    if getattr(args, "app", None):
        return app_of(args)
    from troth.runtime.assemble import Runtime

    return Runtime(store_of(args), engine=os.environ.get(ENGINE) or None, recover=False, in_process=False)


def app_of(args: argparse.Namespace) -> "Runtime":
    """The runtime that `--app` names; it is closed with the command."""
    from troth.bridge import run
    from troth.runtime.assemble import Runtime

    app = find_value(args.app, "runtime")
    if not isinstance(app, Runtime) and callable(app) and not isinstance(app, type):
        app = app()
        if inspect.isawaitable(app):
            app = run(app)
    if not isinstance(app, Runtime):
        raise MisuseError(
            f"`--app {args.app}` leads to a value of type `{type(app).__name__}`. Nothing was done.\n"
            "Name a `Runtime`, or a function without arguments that returns one."
        )
    app.recover = False
    if args.store and is_other_store(args.store, app):
        app.close()
        raise MisuseError(
            f"`--store {shown(args.store)}` is not the store of the runtime of `--app {args.app}`: that is "
            f"{app.store.name!r}. Nothing was done.\nLeave `--store` out."
        )
    return app


def is_other_store(word: str, runtime: "Runtime") -> bool:
    """Whether `--store WORD` names another store than the one that a runtime has."""
    return shown(word) != runtime.store.name and Path(word).absolute() != runtime.store.path


def find_value(word: str, kind: str) -> object:
    """What `module:name` or `file.py:name` leads to; the module is looked for in the current folder first."""
    from troth.runtime.workflows.link.function_lookup import NotFound, find_value

    module, colon, name = word.rpartition(":")
    if not colon:
        raise MisuseError(f"`{word}` names no {kind}. Nothing was done.\nWrite `module:name` or `file.py:name`.")
    folder, stem = (Path(module).parent, Path(module).stem) if module.endswith(".py") else (Path.cwd(), module)
    try:
        return find_value(stem, name, folder, kind)
    except NotFound as missing:
        raise MisuseError(f"There is no {kind} `{word}`: {missing.what}. Nothing was done.\n{missing.advice}") from None


def existing(args: argparse.Namespace) -> "Runtime":
    """A runtime on a file that has to be there already."""
    store = store_of(args)
    if not getattr(args, "app", None) and isinstance(store, Path) and not store.exists():
        raise MisuseError(
            f"There is no store {str(store)!r}, so there are no runs to look at.\n"
            f"`troth run WORKFLOW` makes one; `--store FILE` or {VARIABLE} names another."
        )
    return opened(args)


def looked_into(args: argparse.Namespace) -> "Runtime":
    """`existing` for a command that only looks: it may be a file that cannot be written."""
    from troth.runtime.assemble import Runtime
    from troth.runtime.store.errors import ReadOnlyStoreError

    try:
        return existing(args)
    except ReadOnlyStoreError:
        if getattr(args, "app", None):
            raise
        return Runtime(store_of(args), recover=False, in_process=False, read_only=True)


def find_run(runtime: "Runtime", word: str) -> str:
    """The id that `word` stands for: itself, the only one that begins with it, or the newest for `last`."""
    from troth.runtime.workflows.registry import FAMILIES

    if word == "last":
        newest = runtime.lists.runs(limit=1).items
        if newest:
            return newest[0].id
    run = runtime.store.run(word)
    if run is not None and run.decision.startswith(FAMILIES):
        return word
    begins = [] if word == "last" else [item.id for item in _begin_with(runtime, word)]
    if len(begins) == 1:
        return begins[0]
    if begins:
        raise MisuseError(
            f"{word!r} matches the beginning of {len(begins)} runs: {', '.join(begins[:5])} … Give more characters."
        )
    runtime.show(word)  # says that there is none, and what is near
    return word


def _begin_with(runtime: "Runtime", word: str) -> "list[RunItem]":
    """Runs whose ids begin so, of the newest."""
    items: list[RunItem] = []
    cursor: str | None = None
    for _ in range(4):  # so many pages are looked at
        page = runtime.lists.runs(text=word, cursor=cursor, limit=1000)
        items += [item for item in page if item.id.startswith(word)]
        cursor = page.next
        if cursor is None:
            break
    return items


def needs_yaml() -> None:
    """Refuse to go on without the part that reads workflows, and say how to get it."""
    if importlib.util.find_spec("yaml") is None:
        raise MisuseError(
            "This command reads YAML, which the base install leaves out.\nNothing was done.\n"
            "Install it with `pip install 'troth[runtime]'`."
        )
