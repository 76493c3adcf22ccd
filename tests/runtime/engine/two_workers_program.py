"""The program of `crash_program`, by a worker on another machine, whose store is in PostgreSQL."""

from pathlib import Path

from crash_program import on

from troth.runtime.store import identity


def program(folder):
    identity._machine = lambda: "another machine"  # nothing can be looked up there: only its heartbeat tells
    return on(Path(folder, "address").read_text(), folder)
