"""Knows how each thing is read back: questions to one open connection."""

import sqlite3
from collections.abc import Iterable, Iterator
from typing import Any

from troth.errors import MisuseError
from troth.runtime.store.identity import Owner, is_alive
from troth.runtime.store.payload import read
from troth.runtime.store.records import Attempt, Event, Place, RunRecord, RunState, Signal, StepRecord, StepState
from troth.runtime.store.transaction import run_topic

__all__ = [
    "cancelling",
    "events_after",
    "find_run",
    "find_runs",
    "holder_of",
    "last_event",
    "orphans",
    "signals_of",
    "steps_of",
]

_RUN = (
    "id, decision, label, state, args, result, error, code, parent, forked_from, cancel_requested, waiting_for, "
    "wake_at, created_at, updated_at, finished_at"
)
_STEP = (
    "run_id, branch, seq, kind, name, state, key, attempt, args, code, color, result, error, started_at, finished_at, "
    "wake_at"
)


def _run(row: tuple[Any, ...], *, is_owned: bool) -> RunRecord:
    state = RunState(row[3])
    if state is RunState.RUNNING and not is_owned:
        state = RunState.INTERRUPTED
    return RunRecord(
        id=row[0],
        decision=row[1],
        label=row[2],
        state=state,
        args=tuple(read(row[4])),
        result=read(row[5]),
        error=read(row[6]),
        code=row[7],
        parent=row[8],
        forked_from=row[9],
        is_cancel_requested=bool(row[10]),
        waiting_for=row[11],
        wake_at=row[12],
        created_at=row[13],
        updated_at=row[14],
        finished_at=row[15],
    )


def holder_of(connection: sqlite3.Connection, resource: str) -> Owner | None:
    """Whoever has the lease, dead or alive."""
    row = connection.execute(
        "SELECT o.id, o.machine, o.pid, o.pid_started, o.beat_at FROM leases l JOIN owners o ON o.id = l.owner "
        "WHERE l.resource = ?",
        (resource,),
    ).fetchone()
    return None if row is None else Owner(*row)


def _is_owned(connection: sqlite3.Connection, run_id: str, now: float) -> bool:
    holder = holder_of(connection, run_topic(run_id))
    return holder is not None and is_alive(holder, now)


def find_run(connection: sqlite3.Connection, run_id: str, now: float) -> RunRecord | None:
    """One run, with its state as it is now: what a dead owner left running is interrupted."""
    row = connection.execute(f"SELECT {_RUN} FROM runs WHERE id = ?", (run_id,)).fetchone()  # noqa: S608
    return None if row is None else _run(row, is_owned=_is_owned(connection, run_id, now))


def find_runs(
    connection: sqlite3.Connection,
    now: float,
    *,
    states: Iterable[RunState] | None,
    decision: str | None,
    label: str | None,
    parent: str | None,
    before: tuple[float, str] | None,
    limit: int,
) -> list[RunRecord]:
    """Runs, newest first. `before` is the `(created_at, id)` of the last one of the page before."""
    if limit < 1:
        return []
    wanted = None if states is None else set(map(_state, states))
    where = ["1"]
    values: list[Any] = []
    if wanted is not None:
        written = {RunState.RUNNING if state is RunState.INTERRUPTED else state for state in wanted}
        where.append(f"state IN ({', '.join('?' * len(written))})")
        values.extend(state.value for state in written)
    for column, value in (("decision", decision), ("label", label), ("parent", parent)):
        if value is not None:
            where.append(f"{column} = ?")
            values.append(value)
    found: list[RunRecord] = []
    for row in _pages(connection, where, values, before, limit):
        run = _run(row, is_owned=row[3] != RunState.RUNNING.value or _is_owned(connection, row[0], now))
        if wanted is None or run.state in wanted:
            found.append(run)
            if len(found) == limit:
                break
    return found


def _state(word: RunState | str) -> RunState:
    try:
        return RunState(word)
    except ValueError:
        known = ", ".join(state.value for state in RunState)
        raise MisuseError(f"A run cannot be in the state {word!r}. Those there are: {known}.") from None


def _pages(
    connection: sqlite3.Connection, where: list[str], values: list[Any], before: tuple[float, str] | None, size: int
) -> Iterator[tuple[Any, ...]]:
    """Rows, newest first, fetched page by page: a filter by liveness may need more rows than it gives back."""
    while True:
        bound = [] if before is None else ["(created_at, id) < (?, ?)"]
        rows = connection.execute(
            f"SELECT {_RUN} FROM runs WHERE {' AND '.join([*where, *bound])} "  # noqa: S608
            "ORDER BY created_at DESC, id DESC LIMIT ?",
            (*values, *(before or ()), size),
        ).fetchall()
        yield from rows
        if len(rows) < size:
            return
        before = (rows[-1][13], rows[-1][0])


def orphans(connection: sqlite3.Connection, decisions: Iterable[str], now: float) -> list[tuple[str, str]]:
    """Runs that are not over and that nobody living holds, as (id, decision), oldest first."""
    names = list(decisions)
    rows = connection.execute(  # only question marks are put together here
        "SELECT r.id, r.decision, o.id, o.machine, o.pid, o.pid_started, o.beat_at FROM runs r "  # noqa: S608
        "LEFT JOIN leases l ON l.resource = 'run:' || r.id LEFT JOIN owners o ON o.id = l.owner "
        f"WHERE r.state IN ('running', 'waiting') AND r.decision IN ({', '.join('?' * len(names))}) "
        "ORDER BY r.created_at",
        names,
    ).fetchall()
    return [(row[0], row[1]) for row in rows if row[2] is None or not is_alive(Owner(*row[2:]), now)]


def cancelling(connection: sqlite3.Connection) -> list[str]:
    """Runs that are to be cancelled and are not over."""
    rows = connection.execute("SELECT id FROM runs WHERE cancel_requested = 1 AND state IN ('running', 'waiting')")
    return [run_id for (run_id,) in rows]


def steps_of(connection: sqlite3.Connection, run_id: str, *, with_attempts: bool) -> list[StepRecord]:
    """The steps of a run in the order in which they were asked for; branches after the step that opened them."""
    attempts: dict[tuple[str, int], list[Attempt]] = {}
    if with_attempts:
        for branch, seq, *rest in connection.execute(
            "SELECT branch, seq, number, outcome, error, started_at, finished_at, next_at FROM attempts "
            "WHERE run_id = ? ORDER BY rowid",
            (run_id,),
        ):
            number, outcome, error, started, finished, next_at = rest
            one = Attempt(number, outcome, read(error), started, finished, next_at)
            attempts.setdefault((branch, seq), []).append(one)
    rows = connection.execute(f"SELECT {_STEP} FROM steps WHERE run_id = ?", (run_id,)).fetchall()  # noqa: S608
    steps = [_step(row, tuple(attempts.get((row[1], row[2]), ()))) for row in rows]
    return sorted(steps, key=_place)


def _step(row: tuple[Any, ...], attempts: tuple[Attempt, ...]) -> StepRecord:
    run_id, branch, seq, kind, name, state, key, attempt, args, code, color, result, error, started, finished, wake = (
        row
    )
    return StepRecord(
        place=Place(run_id, branch, seq),
        kind=kind,
        name=name,
        state=StepState(state),
        key=key,
        attempt=attempt,
        args=args,
        code=code,
        color=color,
        result=read(result),
        error=read(error),
        started_at=started,
        finished_at=finished,
        wake_at=wake,
        attempts=attempts,
    )


def _place(step: StepRecord) -> tuple[int, ...]:
    """`3.0/2.1/` and 4 as (3, 0, 2, 1, 4): the order in which a reader expects steps."""
    branch = step.place.branch
    return (*(int(part) for pair in branch.split("/")[:-1] for part in pair.split(".")), step.place.seq)


def signals_of(connection: sqlite3.Connection, run_id: str) -> list[Signal]:
    """The messages sent to a run, oldest first."""
    rows = connection.execute(
        "SELECT id, run_id, name, payload, sent_at, taken_by FROM signals WHERE run_id = ? ORDER BY id", (run_id,)
    )
    return [Signal(row[0], row[1], row[2], read(row[3]), row[4], row[5]) for row in rows]


def events_after(connection: sqlite3.Connection, stream: str, after: int, limit: int) -> list[Event]:
    """The entries of a stream that follow number `after`, in order."""
    rows = connection.execute(
        "SELECT id, stream, seq, kind, payload, at FROM events WHERE stream = ? AND seq > ? ORDER BY seq LIMIT ?",
        (stream, after, limit),
    )
    return [Event(row[0], row[1], row[2], row[3], read(row[4]), row[5]) for row in rows]


def last_event(connection: sqlite3.Connection, stream: str) -> int:
    """The number of the stream's last entry; 0 if it is empty."""
    (last,) = connection.execute("SELECT max(seq) FROM events WHERE stream = ?", (stream,)).fetchone()
    return last or 0
