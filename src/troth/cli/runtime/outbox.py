"""Look at deliveries, and act on them: list, show, replay, ack."""

import argparse
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from troth.cli.command import Command, Example
from troth.cli.exit import Exit
from troth.cli.html_output import add_html, write_page
from troth.cli.paging import add_page, check_page, following
from troth.cli.pipe import say, say_json, warn
from troth.cli.stores import add_store, existing
from troth.cli.verbs import add_verbs
from troth.errors import MisuseError

if TYPE_CHECKING:
    from troth.runtime.assemble import Runtime
    from troth.runtime.store.list_records import DeliveryItem
    from troth.runtime.store.promise_records import DeliveryAttempt, DeliveryRecord

__all__ = ["COMMAND"]

Verb = Callable[["Runtime", argparse.Namespace], int]
_STATES = ("due", "leased", "stored", "delivered", "expired", "dead")
_PENDING_OR_DEAD = ("due", "leased", "stored", "dead")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verbs of `troth outbox`, each with its own arguments."""
    add_verbs(parser, _VERBS, add_store)


def run(args: argparse.Namespace) -> int:
    """Do what the verb says, on a store that is there already."""
    with existing(args) as runtime:
        return _VERBS[args.verb][2](runtime, args)


def _declare_list(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--state", metavar="STATE", help=f"only deliveries in this state: {', '.join(_STATES)}")
    parser.add_argument("--session", metavar="ID", help="only deliveries of this session")
    add_page(parser, "deliveries, newest promises first", limit=100)


def _declare_delivery(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("delivery", metavar="ID", help="the delivery, or the promise it reports")


def _declare_show(parser: argparse.ArgumentParser) -> None:
    _declare_delivery(parser)
    add_html(parser)


def _declare_replay(parser: argparse.ArgumentParser) -> None:
    _declare_delivery(parser)
    parser.add_argument("--channel", metavar="NAME", help="send it through this channel instead")


def _list(runtime: "Runtime", args: argparse.Namespace) -> int:
    if args.state is not None and args.state not in _STATES:
        raise MisuseError(f"There is no state {args.state!r} of a delivery. There are {', '.join(_STATES)}.")
    check_page(args)
    states = _PENDING_OR_DEAD if args.state is None else (args.state,)
    page = runtime.lists.deliveries(state=states, session=args.session, cursor=args.before, limit=args.limit)
    counts = runtime.outbox.counts()
    more = following(args, "troth outbox list", page.next)
    if args.json:
        incidents = [
            {"number": incident.number, "kind": incident.kind, "at": incident.at, **incident.details}
            for incident in runtime.outbox.incidents()
        ]
        say_json(
            {
                "deliveries": [_as_json(item) for item in page],
                "next": page.next,
                "counts": counts._asdict(),
                "incidents": incidents,
            }
        )
        return Exit.CLEAN
    say([_line(item) for item in page] or [_nothing(args, counts.stored)])
    ends = f"{counts.delivered} delivered + {counts.stored} stored + {counts.expired} expired + {counts.dead} dead"
    say([f"{counts.promised} promised = {ends}"])
    if more is not None:
        warn(f"There are more: {more}")
    return Exit.CLEAN


def _nothing(args: argparse.Namespace, open_work: int) -> str:
    """Why the list is empty: a delivery may be hidden by a filter, or belong to work that is not over."""
    if args.state is not None or args.session is not None or args.before is not None:
        return "There is no such delivery."
    if open_work:
        open_promises = (
            "1 promise is open: its result is"
            if open_work == 1
            else f"{open_work} promises are open: their results are"
        )
        return f"No delivery is pending yet. {open_promises} delivered when the work has ended."
    return "No delivery is pending."


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
    promise = runtime.store.promises.find(record.promise)
    whole = {
        **_as_json(record),
        "title": "" if promise is None else promise.title,
        "work": "" if promise is None else promise.work,
        "meant_for": None if promise is None else promise.channel,
        "attempts": [attempt._asdict() for attempt in record.attempts],
        "text": delivery.text,
        "data": delivery.data,
    }
    if args.json:
        say_json(whole)
        return Exit.CLEAN
    if args.html:
        from troth.runtime.workflows.render.record_files import delivery_file

        write_page(args.html, delivery_file(whole))
        return Exit.CLEAN
    lines = [_line(record), f"  promise  {record.promise}", f"  age      {delivery.age:.0f} s"]
    if record.problem:
        lines.append(f"  problem  {record.problem}")
    if record.receipt:
        lines.append(f"  receipt  {record.receipt}")
    lines.extend(_attempt(attempt) for attempt in record.attempts)
    say([*lines, "", delivery.text])
    return Exit.CLEAN


def _replay(runtime: "Runtime", args: argparse.Namespace) -> int:
    record = _find(runtime, args.delivery)
    runtime.outbox.replay(record.id, channel=args.channel)
    return _confirm(runtime, record.id, args, "is pending again")


def _ack(runtime: "Runtime", args: argparse.Namespace) -> int:
    record = _find(runtime, args.delivery)
    is_new = runtime.outbox.ack(record.id, by="troth outbox ack")
    return _confirm(runtime, record.id, args, "is delivered" if is_new else "was already over")


def _confirm(runtime: "Runtime", delivery: str, args: argparse.Namespace, says: str) -> int:
    if args.json:
        say_json(_as_json(runtime.outbox.find(delivery)))
    else:
        say([f"{delivery} {says}"])
    return Exit.CLEAN


def _as_json(record: "DeliveryRecord | DeliveryItem") -> dict[str, Any]:
    names = ("id", "promise", "session", "kind", "count", "state", "channel", "attempt", "due_at", "receipt", "problem")
    return {name: getattr(record, name) for name in (*names, "created_at", "finished_at")}


def _attempt(attempt: "DeliveryAttempt") -> str:
    moment = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(attempt.at))
    words = f": {attempt.words}" if attempt.words else ""
    if attempt.outcome == "acknowledged":
        return f"  acknowledged  {moment}{words}"
    return f"  attempt {attempt.number}  {moment}  {attempt.outcome} via {attempt.channel or '-'}{words}"


def _line(record: "DeliveryRecord | DeliveryItem") -> str:
    moment = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(record.created_at))
    tried = f", tried {record.attempt} times" if record.attempt > 1 else ""
    return f"{record.id}  {record.state}{tried}  session {record.session}  via {record.channel or '-'}  {moment}"


_VERBS: dict[str, tuple[str, Callable[[argparse.ArgumentParser], None], Verb]] = {
    "list": ("list what is still to be delivered, and what was given up", _declare_list, _list),
    "show": ("show one delivery and its content", _declare_show, _show),
    "replay": ("send a dead or delivered delivery again", _declare_replay, _replay),
    "ack": ("record that a delivery reached its receiver", _declare_delivery, _ack),
}

COMMAND = Command(
    summary="show the deliveries of background results",
    description="Shows the deliveries in a store: what is pending, for whom, and how each ended.",
    examples=(
        Example("troth outbox list", "what is still to be delivered, and what was given up, with counts"),
        Example("troth outbox list --state dead --json", "what was given up, as JSON"),
        Example("troth outbox show ID --html delivery.html", "one delivery as a self-contained page"),
    ),
    add_arguments=add_arguments,
    run=run,
)
