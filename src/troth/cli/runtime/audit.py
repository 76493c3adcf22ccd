"""Show, verify and export the audit trail of sessions."""

import argparse
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from troth.cli.command import Command, Example
from troth.cli.exit import Exit
from troth.cli.pipe import say, say_json
from troth.cli.stores import add_store, no_such_store, store_of
from troth.cli.verbs import add_verbs

if TYPE_CHECKING:
    from troth.runtime.store import Store
    from troth.runtime.store.rows.sessions import AuditRow

__all__ = ["COMMAND"]

Verb = Callable[["Store", argparse.Namespace], int]
_PAGE = 1000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verbs of `troth audit`, each with its own arguments."""
    add_verbs(parser, _VERBS, add_store)


def run(args: argparse.Namespace) -> int:
    """Do what the verb says. Nothing is written, and no key is made."""
    from troth.runtime.store import open_store

    where = store_of(args)
    if (missing := no_such_store(where)) is not None:
        raise missing
    with open_store(where) as store:
        return _VERBS[args.verb][2](store, args)


def _declare_entries(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--session", metavar="ID", help="only entries of this session")
    parser.add_argument("--after", type=int, default=0, metavar="N", help="only entries that follow number N")


def _entries(store: "Store", args: argparse.Namespace) -> Iterator["AuditRow"]:
    after: int = args.after
    while page := store.read_sessions(
        lambda rows, after=after: rows.audit(after=after, limit=_PAGE, session=args.session)  # type: ignore[misc]
    ):
        yield from page
        after = page[-1].seq


def _json(row: "AuditRow") -> dict[str, Any]:
    fields = row._asdict()
    return {**fields, "data": json.loads(row.data), "digest": row.digest.hex(), "mac": row.mac.hex()}


def _show(store: "Store", args: argparse.Namespace) -> int:
    if args.json:
        say_json([_json(row) for row in _entries(store, args)])
        return Exit.CLEAN
    is_empty = True
    for row in _entries(store, args):
        is_empty = False
        at = datetime.fromtimestamp(row.at, UTC).strftime("%Y-%m-%d %H:%M:%S")
        if not say([f"{row.seq:>6}  {at}  {row.session[:12]:<12}  {row.agent or '-'}  {row.kind}  {row.data}"]):
            break
    if is_empty:
        say(["No entries."])
    return Exit.CLEAN


def _declare_verify(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--anchor", metavar="FILE", help="the anchor's file (default: the one in the user's state folder)"
    )


def _verify(store: "Store", args: argparse.Namespace) -> int:
    from troth.runtime.sessions.audit.anchor import Anchor
    from troth.runtime.sessions.audit.key import find_key
    from troth.runtime.sessions.audit.verify import verify_trail

    anchor = Anchor.file(args.anchor) if args.anchor else Anchor.of_store(store.path)
    verdict = verify_trail(store, find_key(make=False), anchor)
    if args.json:
        say_json(
            {
                "verdict": verdict.word,
                "entries": verdict.entries,
                "problem": verdict.problem,
                "entry": verdict.entry,
                "unknown_keys": list(verdict.unknown_keys),
            }
        )
    else:
        say([str(verdict)])
    return Exit.CLEAN if verdict.is_valid else Exit.FOUND


def _declare_export(parser: argparse.ArgumentParser) -> None:
    _declare_entries(parser)
    parser.add_argument("--jsonl", action="store_true", help="one entry per line, instead of one list")


def _export(store: "Store", args: argparse.Namespace) -> int:
    if args.jsonl:
        for row in _entries(store, args):
            if not say([json.dumps(_json(row))]):
                break
    else:
        say_json([_json(row) for row in _entries(store, args)])
    return Exit.CLEAN


_VERBS: dict[str, tuple[str, Callable[[argparse.ArgumentParser], None], Verb]] = {
    "show": ("show what was done, in order", _declare_entries, _show),
    "verify": ("verify that no entry was changed or is missing", _declare_verify, _verify),
    "export": ("print every entry as JSON, with its digest and MAC", _declare_export, _export),
}

COMMAND = Command(
    summary="show, verify and export the audit trail of sessions",
    description="Show, verify and export the audit trail of sessions. `verify` exits with 1 unless the trail is valid.",
    examples=[
        Example("troth audit verify", "whether anything was changed or is missing"),
        Example("troth audit export --jsonl", "every entry, one per line"),
    ],
    add_arguments=add_arguments,
    run=run,
)
