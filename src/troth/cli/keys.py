"""Make, list and revoke the keys of a server."""

import argparse
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from troth.cli.command import Command, Example
from troth.cli.exit import Exit
from troth.cli.pipe import say, say_json
from troth.cli.serve import needs_server
from troth.cli.stores import add_store, opened
from troth.cli.verbs import add_verbs

if TYPE_CHECKING:
    from troth.runtime.store.rows.server import KeyRow
    from troth.server.access.keys import Keys

__all__ = ["COMMAND"]

Verb = Callable[["Keys", argparse.Namespace], int]
_DAY = 86_400.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verbs of `troth keys`, each with its own arguments."""
    add_verbs(parser, _VERBS, add_store)


def run(args: argparse.Namespace) -> int:
    """Do what the verb says."""
    needs_server()
    from troth.server.access.keys import Keys

    with opened(args) as runtime:
        return _VERBS[args.verb][2](Keys(runtime.store), args)


def _declare_create(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("owner", metavar="OWNER", help="the owner of the key: it sees what keys of this owner started")
    parser.add_argument(
        "--scopes",
        default="read,run,act",
        help="comma-separated scopes: read, run, act, kill, admin (default: read,run,act)",
    )
    parser.add_argument("--name", default="", help="a label that identifies it in the list")
    parser.add_argument("--days", type=float, metavar="N", help="expire after N days (default: never)")


def _declare_list(_: argparse.ArgumentParser) -> None:
    pass


def _declare_revoke(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("key", metavar="ID", help="the id of the key, from `troth keys list`")


def _create(keys: "Keys", args: argparse.Namespace) -> int:
    lifetime = None if args.days is None else args.days * _DAY
    new = keys.create(args.owner, args.scopes.split(","), name=args.name, lifetime=lifetime)
    if args.json:
        say_json({"key": new.secret, **_as_json(new.row)})
    else:
        say([new.secret, f"  id {new.row.id}, owner {new.row.owner}, scopes {new.row.scopes}; it is not shown again"])
    return Exit.CLEAN


def _list(keys: "Keys", args: argparse.Namespace) -> int:
    rows = keys.list()
    if args.json:
        say_json([_as_json(row) for row in rows])
    else:
        say([_line(row) for row in rows] or ["There are no keys. `troth keys create OWNER` makes one."])
    return Exit.CLEAN


def _revoke(keys: "Keys", args: argparse.Namespace) -> int:
    is_new = keys.revoke(args.key)
    if args.json:
        say_json({"id": args.key, "revoked": True, "was_revoked": not is_new})
    else:
        say([f"{args.key} {'is revoked' if is_new else 'was already revoked'}"])
    return Exit.CLEAN


def _as_json(row: "KeyRow") -> dict[str, Any]:
    names = ("id", "owner", "name", "created_at", "expires_at", "revoked_at")
    return {**{name: getattr(row, name) for name in names}, "scopes": row.scopes.split()}


def _line(row: "KeyRow") -> str:
    made = time.strftime("%Y-%m-%d", time.localtime(row.created_at))
    state = "revoked" if row.revoked_at else "ends" if row.expires_at else "valid"
    if state == "ends":
        until = time.strftime("%Y-%m-%d", time.localtime(row.expires_at))
        state = f"valid until {until}" if (row.expires_at or 0.0) > time.time() else f"ended {until}"
    return f"{row.id}  {row.owner}  {row.scopes.replace(' ', ',')}  {state}  made {made}" + (
        f"  {row.name}" if row.name else ""
    )


_VERBS: dict[str, tuple[str, Callable[[argparse.ArgumentParser], None], Verb]] = {
    "create": ("make a key; it is shown once", _declare_create, _create),
    "list": ("list the keys by id, including revoked ones; the secrets are not stored", _declare_list, _list),
    "revoke": ("revoke a key, within a second", _declare_revoke, _revoke),
}

COMMAND = Command(
    summary="make, list and revoke the keys of a server",
    description="Manages the keys that clients of `troth serve` use. Only digests are stored.",
    examples=(
        Example("troth keys create shop", "a key for the owner `shop`: it may read, run and act"),
        Example("troth keys create ops --scopes admin --days 30", "a key that sees everything, for a month"),
        Example("troth keys list", "the id, owner and scopes of every key"),
    ),
    add_arguments=add_arguments,
    run=run,
)
