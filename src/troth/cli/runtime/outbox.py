"""Look at what is owed to whom, and act on it: list, show, replay, ack."""

import argparse
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from troth.cli.command import Command, Example
from troth.cli.exit import Exit
from troth.cli.pipe import say, say_json
from troth.cli.stores import add_store, existing
from troth.errors import MisuseError

if TYPE_CHECKING:
    from troth.runtime.assemble import Runtime
    from troth.runtime.store.promise_records import DeliveryRecord

__all__ = ["COMMAND"]

Verb = Callable[["Runtime", argparse.Namespace], int]
_STATES = ("due", "leased", "stored", "delivered", "expired", "dead")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verbs of `troth outbox`, each with its own arguments."""
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    for name, (says, declare, _) in _VERBS.items():
        verb = verbs.add_parser(name, help=says, description=f"{says[0].upper()}{says[1:]}.", allow_abbrev=False)
        declare(verb)
        add_store(verb)


def run(args: argparse.Namespace) -> int:
    """Do what the verb says, on a store that is there already."""
    with existing(args) as runtime:
        return _VERBS[args.verb][2](runtime, args)


def _declare_list(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--state", metavar="STATE", help=f"only deliveries in this state: {', '.join(_STATES)}")
    parser.add_argument("--session", metavar="ID", help="only deliveries of this session")
    parser.add_argument("--limit", type=int, default=100, metavar="N", help="the oldest N deliveries (default: 100)")


def _declare_delivery(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("delivery", metavar="ID", help="the delivery, or the promise whose end it tells")


def _declare_replay(parser: argparse.ArgumentParser) -> None:
    _declare_delivery(parser)
    parser.add_argument("--channel", metavar="NAME", help="send it through this channel instead")


def _list(runtime: "Runtime", args: argparse.Namespace) -> int:
    from troth.runtime.store.promise_records import DeliveryState

    if args.state is not None and args.state not in _STATES:
        raise MisuseError(f"There is no state {args.state!r} of a delivery. There are {', '.join(_STATES)}.")
    if args.limit < 1:
        raise MisuseError(f"`--limit {args.limit}` would list nothing; give 1 or more.")
    states = None if args.state is None else [DeliveryState(args.state)]
    records = runtime.outbox.list(states=states, session=args.session, limit=args.limit)
    counts = runtime.outbox.counts()
    if args.json:
        incidents = [
            {"number": incident.number, "kind": incident.kind, "at": incident.at, **incident.details}
            for incident in runtime.outbox.incidents()
        ]
        say_json(
            {"deliveries": [_as_json(record) for record in records], "counts": counts._asdict(), "incidents": incidents}
        )
        return Exit.CLEAN
    say([_line(record) for record in records] or ["Nothing is owed."])
    ends = f"{counts.delivered} delivered + {counts.stored} stored + {counts.expired} expired + {counts.dead} dead"
    say([f"{counts.promised} promised = {ends}"])
    return Exit.CLEAN


def _find(runtime: "Runtime", word: str) -> "DeliveryRecord":
    """The delivery that is meant: itself, or the one that tells the end of a promise."""
    if runtime.store.promises.delivery(word) is None and runtime.store.promises.find(word) is not None:
        record = runtime.store.promises.delivery(f"{word}-done-1")
        if record is None:
            raise MisuseError(f"The work of the promise {word!r} is under way, so there is nothing to deliver yet.")
        return record
    return runtime.outbox.find(word)


def _show(runtime: "Runtime", args: argparse.Namespace) -> int:
    record = _find(runtime, args.delivery)
    delivery = runtime.outbox.read(record.id)
    if args.json:
        say_json({**_as_json(record), "text": delivery.text, "data": delivery.data})
        return Exit.CLEAN
    lines = [_line(record), f"  promise  {record.promise}", f"  age      {delivery.age:.0f} s"]
    if record.problem:
        lines.append(f"  problem  {record.problem}")
    if record.receipt:
        lines.append(f"  receipt  {record.receipt}")
    say([*lines, "", delivery.text])
    return Exit.CLEAN


def _replay(runtime: "Runtime", args: argparse.Namespace) -> int:
    record = _find(runtime, args.delivery)
    runtime.outbox.replay(record.id, channel=args.channel)
    return _confirm(runtime, record.id, args, "is owed once more")


def _ack(runtime: "Runtime", args: argparse.Namespace) -> int:
    record = _find(runtime, args.delivery)
    is_new = runtime.outbox.ack(record.id, by="troth outbox ack")
    return _confirm(runtime, record.id, args, "is delivered" if is_new else "was over before")


def _confirm(runtime: "Runtime", delivery: str, args: argparse.Namespace, says: str) -> int:
    if args.json:
        say_json(_as_json(runtime.outbox.find(delivery)))
    else:
        say([f"{delivery} {says}"])
    return Exit.CLEAN


def _as_json(record: "DeliveryRecord") -> dict[str, Any]:
    names = ("id", "promise", "session", "kind", "count", "state", "channel", "attempt", "due_at", "receipt", "problem")
    return {name: getattr(record, name) for name in (*names, "created_at", "finished_at")}


def _line(record: "DeliveryRecord") -> str:
    moment = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(record.created_at))
    tried = f", tried {record.attempt} times" if record.attempt > 1 else ""
    return f"{record.id}  {record.state}{tried}  session {record.session}  via {record.channel or '-'}  {moment}"


_VERBS: dict[str, tuple[str, Callable[[argparse.ArgumentParser], None], Verb]] = {
    "list": ("list what is owed, and what was given up", _declare_list, _list),
    "show": ("show one delivery, with what it tells", _declare_delivery, _show),
    "replay": ("owe a dead or delivered delivery once more", _declare_replay, _replay),
    "ack": ("say that a delivery reached its receiver", _declare_delivery, _ack),
}

COMMAND = Command(
    summary="look at results that are owed",
    description="Looks at the deliveries that a store keeps: what is owed to whom, and what became of it.",
    examples=(
        Example("troth outbox list", "what is owed, and what was given up, with the counts"),
        Example("troth outbox list --state dead --json", "what was given up, for a machine"),
    ),
    add_arguments=add_arguments,
    run=run,
)
