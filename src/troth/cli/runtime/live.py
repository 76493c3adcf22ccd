"""Show in a terminal what a run is at, while it goes on; in a pipe it shows nothing."""

import contextlib
import sys
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

from troth.cli.terminal import Progress

if TYPE_CHECKING:
    from troth.runtime.assemble import Runtime
    from troth.runtime.workflows.record.run_events import RunEvent

__all__ = ["watched"]

_LOOK_EVERY = 0.1  # seconds


@contextlib.contextmanager
def watched(runtime: "Runtime", run_id: str, steps: int) -> Iterator[None]:
    """While the block works on `run_id`, a line on stderr tells the step it is at; wiped at the end.

    The run is carried out by the block, on its own thread, so that Ctrl-C reaches it; a second thread looks at its
    record. A run that is over within a moment shows nothing.
    """
    if not sys.stderr.isatty():
        yield
        return
    over = threading.Event()
    looking = threading.Thread(target=_look, args=(runtime, run_id, steps, over), name="troth-progress", daemon=True)
    looking.start()
    try:
        yield
    finally:
        over.set()
        looking.join(2)


def _look(runtime: "Runtime", run_id: str, steps: int, over: threading.Event) -> None:
    while runtime.engine.find(run_id) is None:
        if over.wait(0.05):
            return
    at_work: dict[str, str] = {}
    finished = 0
    cursor = 0
    with Progress(run_id, total=steps) as line:
        while not over.wait(_LOOK_EVERY):  # whoever carried it out may leave at any moment, and is not to wait for us
            for event in runtime.events(run_id, after=cursor, timeout=0):
                cursor = event.seq
                finished += _count(event, at_work)
            line.at(min(finished, steps), ", ".join(f"{place} {word}".strip() for place, word in at_work.items()))


def _count(event: "RunEvent", at_work: dict[str, str]) -> int:
    """Follow one event; answers how many steps it ends."""
    match event.what:
        case "step begun":
            at_work[event.place] = ""
        case "attempt failed":
            at_work[event.place] = f"(attempt {event.number} failed: {event.detail})"
        case "asked":
            at_work[event.place] = f"asks: {event.detail}"
        case "step ended":
            at_work.pop(event.place, None)
            return 0 if event.place.startswith("undo ") else 1
    return 0
