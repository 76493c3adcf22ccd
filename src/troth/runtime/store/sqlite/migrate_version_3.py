"""Move the steps and attempts of a file of version 3 into the history of its runs.

A file of that version has each step as it was left, with the attempts that failed. The order in which things happened
is found by their times. What was forgotten when a run was resumed cannot be told any more. This is how version 4 began,
and is not changed when later versions write otherwise.
"""

import json
import re
import sqlite3
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

__all__ = ["move"]

_COLUMNS = (
    "run_id, seq, sub, what, at, branch, step, kind, name, key, args, attempt, code, color, outcome, began_at, "
    "wake_at, data, note, done_by"
)
_INSERT = f"INSERT INTO history ({_COLUMNS}) VALUES ({', '.join('?' * 20)})"  # noqa: S608
_INTERNAL = frozenset({"clock", "time left", "still needed"})
_WAITS = frozenset({"sleep", "wait", "join"})
_NOT_SHOWN = frozenset({"together", "append", "start", "join"})
_OVER = frozenset({"completed", "failed", "cancelled"})


_BUDGET = re.compile(r"^(?:.*: )?The budget of '(\w+)' for (\w+) is used up", re.MULTILINE)
_TIMEOUT = re.compile(r"did not return within (\S+) s")


class _Entry(NamedTuple):
    order: float
    is_shown: bool
    values: tuple[Any, ...]  # from `what` on


def move(connection: sqlite3.Connection) -> None:
    """Write the history of every run."""
    runs = {
        row[0]: row
        for row in connection.execute("SELECT id, decision, state, error, created_at, finished_at FROM runs")
    }
    run_rows = connection.execute("SELECT DISTINCT run_id FROM steps").fetchall()
    for run_id in [*runs, *(run_id for (run_id,) in run_rows if run_id not in runs)]:
        _move_run(connection, run_id, runs.get(run_id))


def _move_run(connection: sqlite3.Connection, run_id: Any, run: tuple[Any, ...] | None) -> None:
    steps = connection.execute(
        "SELECT branch, seq, kind, name, state, key, attempt, args, code, color, result, error, started_at, "
        "finished_at, wake_at FROM steps WHERE run_id = ?",
        (run_id,),
    ).fetchall()
    attempts: dict[tuple[Any, Any], list[tuple[Any, ...]]] = {}
    for row in connection.execute(
        "SELECT branch, seq, number, outcome, error, started_at, finished_at, next_at FROM attempts WHERE run_id = ? "
        "ORDER BY rowid",
        (run_id,),
    ):
        attempts.setdefault(row[:2], []).append(row[2:])
    is_workflow = run is not None and str(run[1]).startswith("workflow:")
    shown = _Shown(steps) if is_workflow else _Shown(())
    entries = [entry for row in steps for entry in _of_step(run_id, row, attempts.get(row[:2], []), shown)]
    entries.sort(key=lambda entry: entry.order)
    if run is not None:
        _, _, state, error, created, finished = run
        error = _with_details(error)
        first_row = ("run begun", created, *(None,) * 15)
        entries.insert(0, _Entry(0.0, True, first_row))
        if state in _OVER:
            word = _ending(str(state), steps) if is_workflow else None
            moment = created if finished is None else finished
            ended = ("run ended", moment, None, None, state, *(None,) * 6, word, None, None, error, None, None)
            entries.append(_Entry(0.0, True, ended))
            connection.execute("UPDATE runs SET ending = ?, error = ? WHERE id = ?", (word, error, run_id))
    connection.executemany(_INSERT, _numbered(run_id, entries))


def _numbered(run_id: Any, entries: Iterable[_Entry]) -> Iterator[tuple[Any, ...]]:
    seq, sub = 0, -1
    for entry in entries:
        seq, sub = (seq + 1, 0) if entry.is_shown else (seq, sub + 1)
        yield (run_id, seq, sub, *entry.values)


class _Shown:
    """Which steps of a workflow are shown, and where."""

    def __init__(self, steps: Iterable[tuple[Any, ...]]) -> None:
        self.questions: dict[str, str] = {}
        self.refused: set[str] = set()
        for row in steps:
            if row[2] == "append" and (place := _asked_at(row[7])):
                self.questions[place[0]] = place[1]
        for row in steps:
            if row[2] == "step" and row[3] in self.questions:
                self.refused.add(row[3])

    def note_of(self, row: tuple[Any, ...]) -> str | None:
        """What is shown with it beside its name."""
        kind, name = row[2], str(row[3])
        if kind == "append" and (asked_at := _asked_at(row[7])):
            return json.dumps({"place": asked_at[0]})
        if kind == "wait" and name.startswith("approve "):
            place = name.removeprefix("approve ")
            return json.dumps({"place": place, "question": self.questions.get(place, "")})
        if kind == "wait" and name.startswith("let go "):
            return json.dumps({"place": name.removeprefix("let go ")})
        return None

    def is_begin_shown(self, row: tuple[Any, ...]) -> bool:
        """Whether its beginning is."""
        kind, name = row[2], str(row[3])
        if kind == "append":
            return _asked_at(row[7]) is not None
        return not _is_internal(kind, name) and not (kind == "step" and name in self.refused)

    def is_end_shown(self, row: tuple[Any, ...]) -> bool:
        """Whether its end is."""
        kind, name = row[2], str(row[3])
        is_refused = kind == "wait" and name.removeprefix("approve ") in self.refused
        return not _is_internal(kind, name) and not is_refused


def _is_internal(kind: Any, name: str) -> bool:
    return kind in _NOT_SHOWN or (kind == "step" and (name in _INTERNAL or name.startswith("enough ")))


def _with_details(error: Any) -> Any:
    """An error with what version 3 said only in its message: the budget that is used up, the timeout that it broke."""
    try:
        record = json.loads(error)
        kind, message = record["type"], record["message"]
    except (ValueError, TypeError, KeyError):
        return error
    if kind in ("BudgetExceededError", "OverBudgetError") and (budget := _BUDGET.search(message)):
        record["details"] = {"workflow": budget[1], "limit": budget[2]}
    elif kind == "StepTimeoutError" and (timeout := _TIMEOUT.search(message)):
        record["details"] = {"timeout": float(timeout[1])}
    else:
        return error
    return json.dumps(record)


def _asked_at(args: Any) -> tuple[str, str] | None:
    """Place and question of an `append` that says that a question is asked."""
    try:
        kind, payload = json.loads(args)
        return (str(payload["place"]), str(payload["question"])) if kind == "asking" else None
    except (ValueError, TypeError, KeyError):
        return None


def _of_step(run_id: Any, row: tuple[Any, ...], attempts: list[tuple[Any, ...]], shown: _Shown) -> Iterator[_Entry]:
    branch, seq, kind, name, state, key, attempt, args, code, color, result, error, started, finished, wake_at = row
    note, done_by = shown.note_of(row), _done_by(run_id, row)
    first = min([started, *(one[3] for one in attempts if one[3] is not None)])
    order = first
    begun_row = ("waiting" if kind in _WAITS else "begun", first, branch, seq, kind, name, key, args, 1, code, color)
    yield _Entry(order, shown.is_begin_shown(row), (*begun_row, None, None, wake_at, None, note, done_by))
    for number, outcome, failure, began, ended, next_at in attempts:
        order = max(order, ended)
        failed = ("attempt", ended, branch, seq, kind, name, None, None, number, None, None, outcome, began, next_at)
        yield _Entry(
            order, next_at is not None and shown.is_end_shown(row), (*failed, _with_details(failure), None, done_by)
        )
    if attempt != 1 or started != first or (attempts and state == "begun"):
        order = max(order, started)
        again = ("again", started, branch, seq, kind, name, None, None, attempt, code, *(None,) * 6, done_by)
        yield _Entry(order, False, again)
    if state in ("done", "failed", "cancelled"):
        data = result if state == "done" else _with_details(error)
        moment = started if finished is None else finished
        settled = (state, moment, branch, seq, kind, name, None, None, attempt, *(None,) * 5, data, note, done_by)
        yield _Entry(max(order, moment), shown.is_end_shown(row), settled)


def _done_by(run_id: Any, row: tuple[Any, ...]) -> str | None:
    branch, seq, kind, name, _, key = row[:6]
    tail = f":{branch}{seq}" if kind == "append" else f":{branch}{seq}:{name}"
    if kind not in ("step", "wait", "sleep", "append") or not str(key).endswith(tail):
        return None
    doer = str(key).removesuffix(tail)
    return None if doer == run_id else doer


def _ending(state: str, steps: list[tuple[Any, ...]]) -> str | None:
    """The word for a run that was undone, as far as it can be told without its workflow."""
    undos = [row for row in steps if row[2] == "step" and str(row[3]).startswith("undo ")]
    last = max((row for row in steps if row[0] == ""), key=lambda row: row[1], default=None)
    if state != "completed" and any(row[4] == "failed" for row in undos):
        return "rollback incomplete"
    if state == "failed" and last is not None and last in undos and last[4] == "done":
        return "rolled back"
    return None
