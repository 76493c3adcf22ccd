"""Look at jobs, read what they print, and stop them: list, show, read, stop."""

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from troth.cli.command import Command, Example
from troth.cli.exit import Exit
from troth.cli.pipe import say, say_bytes, say_json
from troth.cli.stores import add_store, existing
from troth.cli.verbs import add_verbs
from troth.errors import MisuseError

if TYPE_CHECKING:
    from troth.runtime.assemble import Runtime
    from troth.runtime.jobs import JobRecord

__all__ = ["COMMAND"]

Verb = Callable[["Runtime", argparse.Namespace], int]
_PIECE = 1 << 16


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verbs of `troth jobs`, each with its own arguments."""
    add_verbs(parser, _VERBS, add_store)


def run(args: argparse.Namespace) -> int:
    """Do what the verb says, on a store that is there already."""
    with existing(args) as runtime:
        return _VERBS[args.verb][2](runtime, args)


def _declare_list(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--session", metavar="ID", help="only jobs of this session")
    parser.add_argument("--limit", type=int, default=20, metavar="N", help="the newest N jobs (default: 20)")


def _declare_job(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("job", metavar="ID", help="the job")


def _declare_read(parser: argparse.ArgumentParser) -> None:
    _declare_job(parser)
    parser.add_argument("--after", type=int, default=0, metavar="N", help="skip the first N bytes")
    parser.add_argument("--limit", type=int, metavar="N", help="print at most N bytes (default: all)")


def _list(runtime: "Runtime", args: argparse.Namespace) -> int:
    if args.limit < 1:
        raise MisuseError(f"`--limit {args.limit}` would list nothing; give 1 or more.")
    records = runtime.jobs.list(session=args.session, limit=args.limit)
    if args.json:
        say_json([_as_json(record) for record in records])
    else:
        say([_line(record) for record in records] or ["There are no jobs."])
    return Exit.CLEAN


def _show(runtime: "Runtime", args: argparse.Namespace) -> int:
    return _tell(runtime.jobs.get(args.job), args)


def _stop(runtime: "Runtime", args: argparse.Namespace) -> int:
    record = runtime.jobs.stop(args.job)
    _tell(record, args)
    return Exit.CLEAN if record.is_over else Exit.FOUND


def _tell(record: "JobRecord", args: argparse.Namespace) -> int:
    if args.json:
        say_json(_as_json(record))
        return Exit.CLEAN
    lines = [_line(record), f"  {record.text}", f"  folder   {record.cwd}"]
    if record.machine:
        lines.append(f"  machine  {record.machine}")
    if record.pid is not None and not record.is_over:
        lines.append(f"  process  {record.pid}")
    if record.watch:
        count = "1 line" if record.hits == 1 else f"{record.hits} lines"
        lines.append(f"  watch    {', '.join(map(repr, record.watch))}: {count} so far")
    say([*lines, f"  output   {record.output_bytes} bytes in {record.output_file}"])
    return Exit.CLEAN


def _read(runtime: "Runtime", args: argparse.Namespace) -> int:
    if args.limit is not None and args.limit < 1:
        raise MisuseError(f"`--limit {args.limit}` would print nothing; give 1 or more.")
    if args.json:
        output = runtime.jobs.read(args.job, args.after, limit=args.limit or _PIECE)
        say_json({**asdict(output), "note": output.note})
        return Exit.CLEAN
    after, remaining = args.after, args.limit
    while True:
        output = runtime.jobs.read(args.job, after, limit=_PIECE if remaining is None else min(remaining, _PIECE))
        if output.end == after or not say_bytes(output.text.encode(sys.stdout.encoding or "utf-8", "replace")):
            break
        remaining = None if remaining is None else remaining - (output.end - after)
        after = output.end
        if remaining is not None and remaining <= 0:
            break
    if output.is_removed:
        sys.stderr.write(f"{output.note}\n")
    unread = runtime.jobs.get(args.job).output_bytes - after
    if unread > 0:
        sys.stderr.write(f"{unread} bytes follow: `--after {after}`\n")
    return Exit.CLEAN


def _as_json(record: "JobRecord") -> dict[str, Any]:
    return asdict(record)


def _line(record: "JobRecord") -> str:
    moment = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(record.created_at))
    code = f" ({record.exit_code})" if record.exit_code is not None else ""
    command = record.command if isinstance(record.command, str) else " ".join(record.command)
    short = " ".join(command.split())
    shown = short if len(short) <= 60 else f"{short[:59]}…"
    return f"{record.id}  {record.state}{code}  session {record.session}  {moment}  {shown}"


_VERBS: dict[str, tuple[str, Callable[[argparse.ArgumentParser], None], Verb]] = {
    "list": ("list jobs, the newest first", _declare_list, _list),
    "show": ("show one job: its state, and how it ended", _declare_job, _show),
    "read": ("print the output of a job; this does not consume it", _declare_read, _read),
    "stop": ("stop a job and all processes it started", _declare_job, _stop),
}

COMMAND = Command(
    summary="inspect commands in the background",
    description="Shows the jobs in a store: commands in the background, their output and how they ended.",
    examples=(
        Example("troth jobs list", "the newest jobs, with their states"),
        Example("troth jobs read j-5f2c --after 1000", "its output, without the first 1000 bytes"),
    ),
    add_arguments=add_arguments,
    run=run,
)
