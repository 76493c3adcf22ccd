"""Tell what runs wait for, out of their histories: signals that nobody has sent yet, whatever else they do meanwhile.

A run's own row names one thing that it waits for, or none while another branch of it works. Each wait has its entries
in an index by run and name, so this costs what is waited for, however long the runs are.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from troth.runtime.store.list_records import OpenWaitItem
from troth.runtime.store.records import Happened

__all__ = ["list_open_waits"]

_AT_ONCE = 200  # runs that one statement asks for
_LAST = "\U0010ffff"


def list_open_waits(
    execute: Callable[..., Any], run_ids: Sequence[str], signal: str
) -> Mapping[str, Sequence[OpenWaitItem]]:
    """The open waits of each of these runs for a signal whose name begins so, the oldest first; none for other runs."""
    waits: dict[str, Sequence[OpenWaitItem]] = {}
    for first in range(0, len(run_ids), _AT_ONCE):
        some = run_ids[first : first + _AT_ONCE]
        which = f"run_id IN ({', '.join('?' * len(some))}) AND name >= ? AND name < ?"
        values = (*some, signal, signal + _LAST)
        entries = execute(
            "SELECT run_id, name, what, branch, step, at, wake_at, note FROM history "  # noqa: S608  marks alone
            f"WHERE {which} AND kind = 'wait' ORDER BY run_id, name, seq, sub",
            values,
        ).fetchall()
        if not entries:
            continue
        sent = execute(
            f"SELECT run_id, name, count(*) FROM signals WHERE {which} AND taken_by IS NULL GROUP BY run_id, name",  # noqa: S608
            values,
        ).fetchall()
        waits.update(_by_run(entries, {(run_id, name): count for run_id, name, count in sent}))
    return waits


def _by_run(entries: Sequence[Sequence[Any]], sent: Mapping[tuple[str, str], int]) -> dict[str, Sequence[OpenWaitItem]]:
    open_waits: dict[tuple[Any, ...], OpenWaitItem] = {}
    for run_id, name, what, branch, step, at, wake_at, note in entries:
        if what == Happened.WAITING:
            open_waits[run_id, name, branch, step] = OpenWaitItem(run_id, name, at, wake_at, note)
        else:
            open_waits.pop((run_id, name, branch, step), None)
    by_run: dict[str, list[OpenWaitItem]] = {}
    answered = dict(sent)
    for wait in open_waits.values():
        if answered.get((wait.run, wait.signal), 0) > 0:  # it was sent, and nobody has taken notice of it yet
            answered[wait.run, wait.signal] -= 1
        else:
            by_run.setdefault(wait.run, []).append(wait)
    return {run_id: sorted(waits, key=lambda wait: wait.at) for run_id, waits in by_run.items()}
