"""Know which runs of conversations are alive in this process.

A lease in the store says which process runs a conversation. Whether that process still does is known only to itself: a
run whose end could not be written, or whose thread could not be started, has left its lease behind.
"""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from troth.runtime.store.identity import Owner, lives_here

if TYPE_CHECKING:
    from troth.runtime.conversations.drivers import ConversationRun

__all__ = ["add", "discard", "find", "is_run_by"]

_runs: "dict[str, ConversationRun]" = {}
os.register_at_fork(after_in_child=_runs.clear)


def add(run: "ConversationRun") -> None:
    """From now on it is alive."""
    _runs[run.run_id] = run


def discard(run: "ConversationRun") -> None:
    """It is over."""
    _runs.pop(run.run_id, None)


def find(run_id: str | None) -> "ConversationRun | None":
    """The run of that id, if it is alive in this process, whichever `Conversations` it belongs to."""
    return None if run_id is None else _runs.get(run_id)


def is_run_by(holder: Owner | None, run_id: str | None, is_alive: Callable[[Owner], bool]) -> bool:
    """Whether the one who has the lease of a conversation carries out its open run `run_id`."""
    if holder is None or not is_alive(holder):
        return False
    return not lives_here(holder) or run_id in _runs
