"""Do `troth store`: move a file into a database, and check what a store holds."""

import argparse
from collections.abc import Callable

from troth.cli.command import Command, Example
from troth.cli.exit import Exit
from troth.cli.pipe import say, say_json
from troth.cli.stores import add_store, no_such_store, store_of
from troth.cli.verbs import add_verbs
from troth.errors import MisuseError

__all__ = ["COMMAND"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verbs of `troth store`, each with its own arguments."""
    add_verbs(parser, _VERBS)


def run(args: argparse.Namespace) -> int:
    """Do what the verb says."""
    return _VERBS[args.verb][2](args)


def _declare_migrate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="the file that holds the runs now")
    parser.add_argument("target", metavar="URL", help="the target: `postgresql://user@host/database`")
    parser.add_argument("--json", action="store_true", help="print JSON")


def _migrate(args: argparse.Namespace) -> int:
    from troth.runtime.store.open import check_postgres, is_address

    if not is_address(args.target):
        raise MisuseError(
            "The target is not a database address. Nothing was moved.\nWrite `postgresql://user@host/database`."
        )
    check_postgres()
    from troth.runtime.store.postgres.address import parse
    from troth.runtime.store.postgres.move import Move, move_file

    moved, move = move_file(args.file, args.target)
    shown = parse(args.target).shown
    if args.json:
        tables = [{"table": one.table, "rows": one.rows, "digest": one.digest} for one in moved]
        say_json(
            {"store": shown, "written": move is Move.WRITTEN, "has_gone_on": move is Move.GONE_ON, "tables": tables}
        )
        return Exit.CLEAN
    rows = sum(one.rows for one in moved)
    lines = [f"{one.rows:>9,}  {one.table:<20} {one.digest}" for one in moved if one.rows]
    file = args.file
    news = {
        Move.WRITTEN: f"{rows:,} rows were moved from {file} to {shown}; counts and digests agree on both sides.",
        Move.THERE: f"All {rows:,} rows of {file} are in {shown} already; counts and digests agree.",
        Move.GONE_ON: f"All {rows:,} rows of {file} were moved to {shown} before, which has changed since. "
        "Nothing was written.",
    }
    lines.append(news[move])
    say([*lines, "The file was not changed."])
    return Exit.CLEAN


def _counted(count: int, word: str, words: str | None = None) -> str:
    return f"{count:,} {word if count == 1 else words or f'{word}s'}"


def _check(args: argparse.Namespace) -> int:
    from troth.runtime.store import open_store
    from troth.runtime.store.check import check_store

    where = store_of(args)
    if (missing := no_such_store(where)) is not None:
        raise missing
    with open_store(where) as store:
        checked = check_store(store)
        name = store.name
    if args.json:
        say_json({"store": name, "is_sound": checked.is_sound, **checked._asdict()})
    else:
        counts = (
            f"{_counted(checked.runs, 'run')}, {_counted(checked.conversations, 'conversation')}, "
            f"{_counted(checked.audit_entries, 'audit entry', 'audit entries')}"
        )
        end = "all of it can be read." if checked.is_sound else f"{_counted(len(checked.problems), 'problem')}."
        say([*checked.problems, f"{name}: {counts}; {end}"])
    return Exit.CLEAN if checked.is_sound else Exit.FOUND


_VERBS: dict[str, tuple[str, Callable[[argparse.ArgumentParser], None], Callable[[argparse.Namespace], int]]] = {
    "migrate": ("move a file into PostgreSQL, and compare both sides", _declare_migrate, _migrate),
    "check": ("read everything in a store and report damage", add_store, _check),
}

COMMAND = Command(
    summary="move a store to PostgreSQL, or check it for damage",
    description=(
        "Moves a store to PostgreSQL, or checks it for damage. `migrate` does not change the file and can be run "
        "again; "
        "`check` exits with 1 if something is damaged."
    ),
    examples=[
        Example("troth store check", "whether everything can be read"),
        Example("troth store migrate .troth/runs.db postgresql://app@db/app", "from a file to a database"),
    ],
    add_arguments=add_arguments,
    run=run,
)
