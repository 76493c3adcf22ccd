"""Read a run's history: what its steps are now, and what has happened since one looked.

Entries are appended and never changed, so a step is what its entries say: the last beginning of its place that was not
taken back, and what followed it.
"""

from collections.abc import Sequence
from typing import Any

from troth.runtime.store.errors import DamagedStoreError
from troth.runtime.store.records import Attempt, HistoryEntry, Recorded, StepRecord
from troth.runtime.store.rows.runs import attempt_of, entry_of, step_of

__all__ = ["entries_of", "fold"]

_Place = tuple[str, int]
# Where things stand in the row that `step_of` reads.
_STATE, _ATTEMPT, _CODE, _RESULT, _ERROR, _STARTED, _FINISHED, _WAKE = 5, 7, 9, 11, 12, 13, 14, 15


def fold(run_id: str, rows: Sequence[Sequence[Any]]) -> Recorded:
    """The steps of a run, from all entries of its history in order. `rows` have the columns of `HISTORY`."""
    steps: dict[_Place, list[Any]] = {}
    attempts: dict[_Place, list[Attempt]] = {}
    taken_back: dict[_Place, StepRecord] = {}
    last = (0, -1)
    for (
        _, seq, sub, what, at, branch, number, name, data, kind, key, args, color, code, attempt, outcome, began_at,
        wake_at, _, done_by,
    ) in rows:  # fmt: skip
        if (seq, sub) != (last[0] + 1, 0) and (seq, sub) != (last[0], last[1] + 1):
            raise DamagedStoreError(f"run {run_id!r}", f"after entry {last[0]} of its history something is missing")
        last = seq, sub
        if branch is None:
            continue
        place = branch, number
        if what in {"begun", "waiting"}:
            # The key that a step has by itself is not kept: who did it, where, and its name tell it.
            own_key = f"{done_by or run_id}:{branch}{number}:{name}" if key is None else key
            steps[place] = [run_id, branch, number, kind, name, what, own_key, attempt or 1, args, code, color, None,
                            None, at, None, wake_at]  # fmt: skip
            continue
        step = steps.get(place)
        if step is None:
            if what == "code changed":
                continue  # told before the step that it is about starts again
            raise _no_beginning(run_id, place, what)
        match what:
            case "done":
                step[_STATE], step[_RESULT], step[_FINISHED], step[_WAKE] = what, data, at, None
            case "failed" | "cancelled":
                step[_STATE], step[_ERROR], step[_FINISHED], step[_WAKE] = what, data, at, None
            case "attempt":
                failed = (branch, number, attempt, outcome, data, began_at, at, wake_at, step[_CODE])
                attempts.setdefault(place, []).append(attempt_of(run_id, failed))
                if wake_at is not None:
                    step[_STATE], step[_WAKE] = "resting", wake_at
            case "again":
                step[_STATE], step[_ATTEMPT], step[_STARTED], step[_WAKE] = "begun", attempt, at, None
                step[_CODE] = code or step[_CODE]
            case "taken back":
                taken_back[place] = step_of(steps.pop(place), tuple(attempts.get(place, ())))
            case "code changed":
                pass
            case _:
                raise DamagedStoreError(_name(run_id, place), f"{what!r} is not an event of a step")
    whole = [step_of(step, tuple(attempts.get(place, ()))) for place, step in steps.items()]
    return Recorded(sorted(whole, key=_order), tuple(taken_back.values()))


def entries_of(run_id: str, rows: Sequence[Sequence[Any]], after: int) -> list[HistoryEntry]:
    """The entries that follow number `after`, without a gap."""
    entries = [entry_of(row) for row in rows]
    for number, entry in enumerate(entries, start=after + 1):
        if entry.seq != number:
            raise DamagedStoreError(f"run {run_id!r}", f"entry {number} of its history is missing")
    return entries


def _order(step: StepRecord) -> tuple[int, ...]:
    """`3.0/2.1/` and 4 as (3, 0, 2, 1, 4): the order in which a reader expects steps."""
    branch = step.place.branch
    return (*(int(part) for pair in branch.split("/")[:-1] for part in pair.split(".")), step.place.seq)


def _name(run_id: str, place: _Place) -> str:
    return f"step {place[0]}{place[1]} of run {run_id!r}"


def _no_beginning(run_id: str, place: _Place, what: object) -> DamagedStoreError:
    return DamagedStoreError(_name(run_id, place), f"it is {what!r} and has no beginning")
