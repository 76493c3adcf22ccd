"""Carry on runs that wait, sleep or were left by a process that died, until somebody ends the worker."""

import argparse
import contextlib
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from troth.cli.command import Command, Example
from troth.cli.exit import Exit
from troth.cli.pipe import say, say_json, warn
from troth.cli.stores import add_app, add_store, opened
from troth.errors import MisuseError

if TYPE_CHECKING:
    from troth.runtime.assemble import Runtime
    from troth.runtime.workflows.execute.worker import WorkerNews
    from troth.runtime.workflows.record.report import RunWord

__all__ = ["COMMAND"]

_LOOK_EVERY = 0.25  # seconds
_LOOK_AGAIN = 1.0  # seconds, while the store is away


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `troth worker`."""
    end = parser.add_mutually_exclusive_group()
    end.add_argument(
        "--once", action="store_true", help="process the current runs until each has ended or waits, then exit"
    )
    end.add_argument("--idle", type=float, metavar="SECONDS", help="exit after this many seconds without work")
    add_store(parser)
    add_app(parser)


def run(args: argparse.Namespace) -> int:
    """Look for runs that nobody carries out, again and again; SIGTERM and Ctrl-C let go of all of them."""
    if args.idle is not None and not 0 <= args.idle < float("inf"):
        raise MisuseError(f"`--idle {args.idle:g}` is not a duration; give a number of seconds.")
    with opened(args) as runtime, _stopping() as stop:
        _work(runtime, args, stop)
    if stop.signal is not None and not args.json:
        sys.stderr.write("The worker was stopped. Its unfinished runs are recorded; the next worker resumes them.\n")
    return Exit.INTERRUPTED if stop.signal == signal.SIGINT else Exit.CLEAN


class _Stop:
    """Set when the worker is to end; `signal` says by which signal."""

    def __init__(self) -> None:
        self.event = threading.Event()
        self.signal: int | None = None

    def __call__(self, number: int, _: object) -> None:
        self.signal = number
        self.event.set()


@contextlib.contextmanager
def _stopping() -> Iterator[_Stop]:
    """While the block runs, a first SIGTERM or Ctrl-C asks for the end; a second one ends the process at once."""
    stop = _Stop()
    before: dict[int, Any] = {}

    def first(number: int, frame: object) -> None:
        stop(number, frame)
        for signum, handler in before.items():
            signal.signal(signum, handler)

    if threading.current_thread() is threading.main_thread():
        before = {signum: signal.signal(signum, first) for signum in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stop
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)


def _work(runtime: "Runtime", args: argparse.Namespace, stop: _Stop) -> None:
    from troth.runtime.store import DamagedStoreError, StoreError

    worker = runtime.worker()
    if not args.json and not args.once:
        sys.stderr.write(f"Continuing runs of {runtime.store.name!r}. Ctrl-C ends the worker.\n")
    untold: deque[WorkerNews] = deque()
    is_first, is_away = True, False
    busy_at = time.monotonic()
    while not stop.event.is_set():
        try:
            news = worker.look(take=is_first or not args.once)
            is_first = False
            untold.extend(news)
            while untold:
                _tell(runtime, untold[0], args)
                untold.popleft()
            is_idle = (args.once or args.idle is not None) and worker.is_idle
        except StoreError as away:
            if args.once or not runtime.store.is_shared or isinstance(away, DamagedStoreError):
                raise
            if not is_away:
                _tell_away(away, args)
            is_away = True
            stop.event.wait(_LOOK_AGAIN)
            continue
        if is_away:
            _tell_back(args)
        is_away = False
        now = time.monotonic()
        if news or not is_idle:
            busy_at = now
        if is_idle and (args.once or now - busy_at >= args.idle):
            return
        stop.event.wait(_LOOK_EVERY)


def _tell_away(away: Exception, args: argparse.Namespace) -> None:
    """Say once that the database cannot be asked. It may be away for hours; the worker needs no restart."""
    if args.json:
        say_json({"run": None, "what": "away", "state": None, "why": str(away)}, indent=None)
    else:
        warn(f"! The worker cannot look for runs, and tries again until it can:\n{away}")


def _tell_back(args: argparse.Namespace) -> None:
    if args.json:
        say_json({"run": None, "what": "back", "state": None, "why": ""}, indent=None)
    else:
        warn("The worker looks for runs again.")


def _ending(runtime: "Runtime", run_id: str) -> "RunWord | None":
    """The word for how a run ended; those of other decisions than workflows have no word of their own."""
    from troth.runtime.workflows.record.report import RunWord
    from troth.runtime.workflows.registry import is_workflow

    run = runtime.engine.find(run_id)
    if run is None:
        return None
    return runtime.show(run_id).state if is_workflow(run) else RunWord(run.state.value)


def _tell(runtime: "Runtime", news: "WorkerNews", args: argparse.Namespace) -> None:
    from troth.runtime.workflows.render.words import RUN_MARKS

    state = None if news.what != "over" else _ending(runtime, news.run_id)
    if args.json:
        say_json({"run": news.run_id, "what": news.what, "state": state, "why": news.why}, indent=None)
    elif state is not None:
        say([f"{RUN_MARKS[state]} {state}  {news.run_id}"])
    elif news.what == "resumed":
        say([f"▶ resumed   {news.run_id}"])
    else:
        warn(f"! {news.run_id} cannot be resumed here:\n{news.why}")


COMMAND = Command(
    summary="continue runs that wait, sleep or were orphaned",
    description=(
        "Continues every run in the store that is not over and that no process is running: one that sleeps, waits\n"
        "for an answer, was interrupted, or whose process died. Several workers may share a store: each run is\n"
        "executed by one of them. SIGTERM and Ctrl-C stop a worker; the next one resumes its unfinished runs."
    ),
    examples=(
        Example("troth worker", "until Ctrl-C or SIGTERM"),
        Example("troth worker --app shop:runtime", "with the agents and tools of a runtime in Python"),
        Example("troth worker --once", "resume what can run now, for a script or cron"),
        Example("troth worker --idle 60 --json", "until there is no work for a minute; one line of JSON per event"),
    ),
    add_arguments=add_arguments,
    run=run,
)
