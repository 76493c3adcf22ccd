"""Find where incidents can be written: the program's log, a file of JSON lines, or any function.

Sinks are called where the incident is noticed, mostly within a finalizer, which may run between any two steps of the
program. What is here takes no lock that the interrupted code could be holding: `logging` uses re-entrant ones, and the
file is written with one `os.write` to a descriptor opened for appending, so lines of several processes stay whole.
"""

import json
import logging
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from troth.errors import MisuseError
from troth.guard.incident import Incident

if TYPE_CHECKING:
    from _typeshed import StrPath

__all__ = ["Sink", "deliver", "json_lines", "to_logging"]

Sink = Callable[[Incident], object]

_logger = logging.getLogger("troth.guard")


def to_logging(incident: Incident) -> None:
    """Write to the logger `troth.guard`; unless the program has set up logging, that is stderr."""
    if incident.is_loss:
        _logger.error("%s [%s]", incident, incident.thread, extra={"incident": incident})
        return
    lines = "".join(f"\n    {file}:{line} in {function}" for file, line, function in incident.stack)
    _logger.warning("%s [%s]%s", incident, incident.thread, lines, extra={"incident": incident})


def json_lines(path: "StrPath") -> Sink:
    """A sink that appends one JSON object per incident to the file at `path`, which is made if it is not there."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o644)
    except OSError as problem:
        raise MisuseError(
            f"The guard's log {os.fspath(path)!r} cannot be opened: {problem.strerror}.\n"
            "The guard was not started.\nName a file in a folder that exists and is writable."
        ) from problem

    def write(incident: Incident) -> None:
        os.write(descriptor, (json.dumps(incident.to_json()) + "\n").encode())

    return write


def deliver(incident: Incident, sinks: Sequence[Sink]) -> bool:
    """Hand `incident` to every sink; true if at least one of them took it. A sink that fails is shown, never fatal."""
    deliveries = 0
    for sink in sinks:
        try:
            sink(incident)
        except Exception:  # noqa: BLE001 -- whatever a user's function raises; a finalizer has nobody to raise it to
            if sys.stderr is not None:
                sys.stderr.write(f"troth.guard: the sink {sink!r} failed; the incident was: {incident}\n")
                traceback.print_exc()
        else:
            deliveries += 1
    return deliveries > 0
