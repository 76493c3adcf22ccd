"""How each thing is read back: questions to one open connection.

Every answer is fetched whole before a row of it is looked at. A statement that is left in the middle, because a row is
damaged, would keep its connection at what the file held then.
"""

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from troth.errors import MisuseError
from troth.runtime.store.errors import DamagedStoreError
from troth.runtime.store.identity import Owner, is_alive
from troth.runtime.store.records import Event, HistoryEntry, Recorded, RunRecord, RunState, Signal
from troth.runtime.store.rows.history import entries_of, fold
from troth.runtime.store.rows.runs import (
    EVENT,
    HISTORY,
    OWNER,
    RUN,
    SIGNAL,
    damaged_run,
    event_of,
    events_of,
    owner_of,
    run_of,
    signal_of,
)
from troth.runtime.store.sqlite.transaction import run_topic

__all__ = [
    "cancelling",
    "events_after",
    "events_of_all",
    "find_run",
    "find_runs",
    "history_after",
    "holder_of",
    "last_entry",
    "last_event",
    "living_owners",
    "open_decisions",
    "orphans",
    "recent_streams",
    "recorded",
    "signalled",
    "signals_of",
    "unheld",
]


def holder_of(connection: sqlite3.Connection, resource: str) -> Owner | None:
    """Whoever has the lease, dead or alive."""
    row = connection.execute(
        "SELECT o.id, o.machine, o.pid, o.pid_started, o.beat_at FROM leases l JOIN owners o ON o.id = l.owner "
        "WHERE l.resource = ?",
        (resource,),
    ).fetchone()
    return None if row is None else owner_of(row)


def _is_owned(connection: sqlite3.Connection, run_id: str, now: float) -> bool:
    holder = holder_of(connection, run_topic(run_id))
    return holder is not None and is_alive(holder, now)


def find_run(connection: sqlite3.Connection, run_id: str, now: float) -> RunRecord | None:
    """One run, with its state as it is now: what a dead owner left running is interrupted."""
    row = connection.execute(f"SELECT {RUN.sql} FROM runs WHERE id = ?", (run_id,)).fetchone()  # noqa: S608
    return None if row is None else run_of(row, is_owned=_is_owned(connection, run_id, now))


def find_runs(
    connection: sqlite3.Connection,
    now: float,
    *,
    states: Iterable[RunState] | None,
    decision: str | None,
    label: str | None,
    parent: str | None,
    family: str | None,
    word: str | None,
    before: tuple[float, str] | None,
    limit: int,
) -> list[RunRecord]:
    """Runs, newest first. `before` is the `(created_at, id)` of the last one of the page before.

    A run that cannot be read is among them as DAMAGED: it does not hide the others.
    """
    if limit < 1:
        return []
    wanted_states = None if states is None else set(map(_state, states))
    where = ["1"]
    values: list[Any] = []
    if wanted_states is not None and RunState.DAMAGED not in wanted_states:
        written = {RunState.RUNNING if state is RunState.INTERRUPTED else state for state in wanted_states}
        where.append(f"state IN ({', '.join('?' * len(written))})")
        values.extend(state.value for state in written)
    for column, value in (("decision", decision), ("label", label), ("parent", parent)):
        if value is not None:
            where.append(f"{column} = ?")
            values.append(value)
    if family is not None:
        where.append(_OF_FAMILY)
        values.append(family)
    if word is not None:
        if family is None:
            raise MisuseError("A search for runs by `word` also needs `family`.")
        where.append("coalesce(ending, state) = ?")
        values.append(RunState.RUNNING.value if word == RunState.INTERRUPTED else word)
        if word in _BY_LIFE:
            wanted_states = {RunState(word)}
    if word == RunState.RUNNING and before is None:
        return _at_work(connection, now, where, values, limit)
    records: list[RunRecord] = []
    words = list[str]()
    if label is not None and word is None:  # a workflow's runs lie by their word
        words = [
            name for (name,) in connection.execute("SELECT DISTINCT word FROM state_counts WHERE kind GLOB 'run/*'")
        ]
    for row in _pages(connection, where, values, before, limit, words):
        run = _run_or_damage(connection, row, now)
        if wanted_states is None or run.state in wanted_states:
            records.append(run)
            if len(records) == limit:
                break
    return records


_RUN_WORDS = "SELECT DISTINCT word FROM state_counts WHERE kind >= 'run/' AND kind < 'run0'"
_BY_LIFE = frozenset({RunState.RUNNING, RunState.INTERRUPTED})
_OF_FAMILY = "instr(decision, ':') > 0 AND substr(decision, 1, instr(decision, ':')) = ?"


def _at_work(
    connection: sqlite3.Connection, now: float, where: list[str], values: list[Any], limit: int
) -> list[RunRecord]:
    """Running runs, newest first, found by who is alive: those whose owner died may be many more."""
    alive = living_owners(connection.execute, now)
    rows = connection.execute(  # only question marks are put together here
        f"SELECT {RUN.sql} FROM leases CROSS JOIN runs ON runs.id = substr(resource, 5) "  # noqa: S608
        f"WHERE owner IN ({', '.join('?' * len(alive))}) AND substr(resource, 1, 4) = 'run:' "
        f"AND {' AND '.join(where)} ORDER BY created_at DESC, id DESC LIMIT ?",
        (*alive, *values, limit),
    ).fetchall()
    return [_run_or_damage(connection, row, now) for row in rows]


def living_owners(execute: Callable[..., sqlite3.Cursor], now: float) -> list[str]:
    """The ids of the owners who are alive."""
    owners = execute(f"SELECT {OWNER.sql} FROM owners").fetchall()  # noqa: S608
    return [owner[0] for owner in owners if type(owner[0]) is str and not _is_free(owner, now)]


def _run_or_damage(connection: sqlite3.Connection, row: tuple[Any, ...], now: float) -> RunRecord:
    try:
        return run_of(row, is_owned=row[3] != RunState.RUNNING.value or _is_owned(connection, row[0], now))
    except DamagedStoreError as damage:
        return damaged_run(row, damage)


def _state(word: RunState | str) -> RunState:
    try:
        return RunState(word)
    except ValueError:
        words = ", ".join(state.value for state in RunState)
        raise MisuseError(f"A run cannot be in the state {word!r}. The states are: {words}.") from None


def _pages(
    connection: sqlite3.Connection,
    where: list[str],
    values: list[Any],
    before: tuple[float, str] | None,
    size: int,
    words: list[str],
) -> Iterator[tuple[Any, ...]]:
    """Rows, newest first, fetched page by page: a filter by liveness may need more rows than it gives back.

    With `words`, merged from the rows of each word.
    """
    while True:
        bound = [] if before is None else ["(created_at, id) < (?, ?)"]
        conditions = [*where, *bound, *(["coalesce(ending, state) = ?"] if words else [])]
        arm = f"SELECT {RUN.sql} FROM runs WHERE {' AND '.join(conditions)}"  # noqa: S608
        arms = [(*values, *(before or ()), word) for word in words] or [(*values, *(before or ()))]
        rows = connection.execute(
            f"{' UNION ALL '.join([arm] * len(arms))} ORDER BY created_at DESC, id DESC LIMIT ?",
            (*(value for given in arms for value in given), size),
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
    return [(row[0], row[1]) for row in rows if type(row[0]) is str and _is_free(row[2:], now)]


def unheld(connection: sqlite3.Connection, prefix: str, now: float) -> list[str]:
    """The ids of runs that are not over and that nobody living holds, of decisions that begin so; oldest first."""
    rows = connection.execute(
        "SELECT r.id, o.id, o.machine, o.pid, o.pid_started, o.beat_at FROM runs r "
        "LEFT JOIN leases l ON l.resource = 'run:' || r.id LEFT JOIN owners o ON o.id = l.owner "
        "WHERE r.state IN ('running', 'waiting') AND substr(r.decision, 1, ?) = ? ORDER BY r.created_at",
        (len(prefix), prefix),
    ).fetchall()
    return [row[0] for row in rows if type(row[0]) is str and _is_free(row[1:], now)]


def open_decisions(connection: sqlite3.Connection, prefix: str) -> list[str]:
    """The decisions that begin so and have runs that are not over."""
    rows = connection.execute(
        "SELECT DISTINCT decision FROM runs WHERE state IN ('running', 'waiting') AND substr(decision, 1, ?) = ? "
        "ORDER BY decision",
        (len(prefix), prefix),
    )
    return [name for (name,) in rows if type(name) is str]


def _is_free(owner: tuple[Any, ...], now: float) -> bool:
    """Whether nobody living holds a lease. Of an owner that cannot be read nobody knows, so it is left alone."""
    if owner[0] is None:
        return True
    try:
        return not is_alive(owner_of(owner), now)
    except DamagedStoreError:
        return False


def cancelling(connection: sqlite3.Connection) -> list[str]:
    """Runs that are to be cancelled and are not over."""
    rows = connection.execute("SELECT id FROM runs WHERE cancel_requested = 1 AND state IN ('running', 'waiting')")
    return [run_id for (run_id,) in rows if type(run_id) is str]


def signalled(connection: sqlite3.Connection) -> list[str]:
    """Runs that wait although they were sent messages that nobody has taken."""
    rows = connection.execute(
        "SELECT DISTINCT r.id FROM signals s JOIN runs r ON r.id = s.run_id "
        "WHERE s.taken_by IS NULL AND r.state = 'waiting'"
    )
    return [run_id for (run_id,) in rows if type(run_id) is str]


def recorded(connection: sqlite3.Connection, run_id: str) -> Recorded:
    """The steps of a run, and those whose answers were taken back."""
    rows = connection.execute(
        f"SELECT {HISTORY.sql} FROM history WHERE run_id = ? ORDER BY seq, sub",  # noqa: S608
        (run_id,),
    ).fetchall()
    return fold(run_id, rows)


def history_after(connection: sqlite3.Connection, run_id: str, after: int, limit: int) -> list[HistoryEntry]:
    """The entries of a run's history that are shown and follow number `after`, in order."""
    rows = connection.execute(
        f"SELECT {HISTORY.sql} FROM history WHERE run_id = ? AND seq > ? AND sub = 0 ORDER BY seq LIMIT ?",  # noqa: S608
        (run_id, after, limit),
    ).fetchall()
    return entries_of(run_id, rows, after)


def last_entry(connection: sqlite3.Connection, run_id: str) -> int:
    """The number of the last entry of a run's history that is shown; 0 if there is none."""
    (last,) = connection.execute("SELECT max(seq) FROM history WHERE run_id = ?", (run_id,)).fetchone()
    return last or 0


def signals_of(connection: sqlite3.Connection, run_id: str) -> list[Signal]:
    """The messages sent to a run, oldest first."""
    rows = connection.execute(
        f"SELECT {SIGNAL.sql} FROM signals WHERE run_id = ? ORDER BY id",  # noqa: S608
        (run_id,),
    ).fetchall()
    return [signal_of(row) for row in rows]


def events_after(connection: sqlite3.Connection, stream: str, after: int, limit: int) -> list[Event]:
    """The entries of a stream that follow number `after`, in order."""
    rows = _event_rows(connection, stream, after, limit)
    if not rows and after == 0 and last_event(connection, stream):
        # Either an entry was appended since the rows were read, or a damaged index leads nowhere. Another read tells.
        # Only whoever begins to read is told of damage; to ask every time would cost too much.
        rows = _event_rows(connection, stream, after, limit)
        if not rows:
            raise DamagedStoreError(f"stream {stream!r}", "entry 1 is missing")
    if rows and rows[0][2] != after + 1:
        # Others may cut off more while this is read, but nothing before the first row that is left.
        after = max(after, min(trimmed(connection, stream), event_of(rows[0]).seq - 1))
    return events_of(rows, stream, after)


def _event_rows(connection: sqlite3.Connection, stream: str, after: int, limit: int) -> list[Any]:
    return connection.execute(
        f"SELECT {EVENT.sql} FROM events WHERE stream = ? AND seq > ? ORDER BY seq LIMIT ?",  # noqa: S608
        (stream, after, limit),
    ).fetchall()


def trimmed(connection: sqlite3.Connection, stream: str) -> int:
    """The number of the last entry that was cut off from the beginning of a stream; 0 if none was."""
    row = connection.execute("SELECT last FROM trimmed WHERE stream = ?", (stream,)).fetchone()
    return 0 if row is None else int(row[0])


def recent_streams(connection: sqlite3.Connection, prefix: str, limit: int) -> list[str]:
    """The streams whose names begin so, those that were written to last first."""
    rows = connection.execute(
        "SELECT stream FROM events WHERE stream >= ? AND stream < ? GROUP BY stream ORDER BY max(id) DESC LIMIT ?",
        (prefix, prefix[:-1] + chr(ord(prefix[-1]) + 1), limit),
    )
    return [stream for (stream,) in rows if type(stream) is str]


def events_of_all(connection: sqlite3.Connection, prefix: str, after: int, limit: int) -> list[Event]:
    """Entries of all streams whose names begin so, in the order in which they were written."""
    rows = connection.execute(
        f"SELECT {EVENT.sql} FROM events WHERE id > ? AND stream >= ? AND stream < ? ORDER BY id LIMIT ?",  # noqa: S608
        (after, prefix, prefix[:-1] + chr(ord(prefix[-1]) + 1), limit),
    ).fetchall()
    return [event_of(row) for row in rows]


def last_event(connection: sqlite3.Connection, stream: str) -> int:
    """The number of the stream's last entry; 0 if it is empty."""
    (last,) = connection.execute("SELECT max(seq) FROM events WHERE stream = ?", (stream,)).fetchone()
    return last or 0
