"""How each thing is read back from PostgreSQL: questions to one open connection."""

from collections.abc import Iterable, Iterator
from typing import Any

import psycopg

from troth.errors import MisuseError
from troth.runtime.store.errors import DamagedStoreError
from troth.runtime.store.identity import Owner
from troth.runtime.store.postgres import statements
from troth.runtime.store.postgres.liveness import Liveness
from troth.runtime.store.records import Event, HistoryEntry, Recorded, RunRecord, RunState, Signal
from troth.runtime.store.rows.history import entries_of, fold
from troth.runtime.store.rows.runs import damaged_run, event_of, events_of, owner_of, run_of, signal_of
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
    "trimmed",
    "unheld",
]

Connection = psycopg.Connection[Any]
_BY_LIFE = frozenset({RunState.RUNNING, RunState.INTERRUPTED})


def _rows(connection: Connection, statement: str, values: Iterable[object] = ()) -> list[tuple[Any, ...]]:
    return connection.execute(statement.encode(), tuple(values)).fetchall()


def holder_of(connection: Connection, resource: str) -> Owner | None:
    """Whoever has the lease, dead or alive."""
    rows = _rows(connection, statements.HOLDER_OF, (resource,))
    return owner_of(rows[0]) if rows else None


def living_owners(connection: Connection, liveness: Liveness) -> list[str]:
    """The ids of the owners who are alive."""
    return liveness.living(owner_of(row) for row in _rows(connection, statements.OWNERS))


def find_run(connection: Connection, run_id: str, liveness: Liveness) -> RunRecord | None:
    """One run, with its state as it is now: what a dead owner left running is interrupted."""
    rows = _rows(connection, statements.FIND_RUN, (run_id,))
    return run_of(rows[0], is_owned=_is_owned(connection, rows[0], liveness)) if rows else None


def _is_owned(connection: Connection, row: tuple[Any, ...], liveness: Liveness) -> bool:
    if row[3] != RunState.RUNNING._value_:
        return True  # nobody asks
    holder = holder_of(connection, run_topic(row[0]))
    return holder is not None and liveness.is_alive(holder)


def find_runs(
    connection: Connection,
    liveness: Liveness,
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
    """Runs, newest first. `before` is the `(created_at, id)` of the last one of the page before."""
    if limit < 1:
        return []
    wanted_states = None if states is None else set(map(_state, states))
    where = ["true"]
    values: list[Any] = []
    if wanted_states is not None and RunState.DAMAGED not in wanted_states:
        where.append("state = ANY(%s)")
        values.append(
            sorted({(RunState.RUNNING if state is RunState.INTERRUPTED else state).value for state in wanted_states})
        )
    for column, value in (("decision", decision), ("label", label), ("parent", parent)):
        if value is not None:
            where.append(f"{column} = %s")
            values.append(value)
    if family is not None:
        where.append(statements.OF_FAMILY)
        values.append(family)
    if word is not None:
        if family is None:
            raise MisuseError("A search for runs by `word` also needs `family`.")
        where.append("coalesce(ending, state) = %s")
        values.append(RunState.RUNNING.value if word == RunState.INTERRUPTED else word)
        if word in _BY_LIFE:
            wanted_states = {RunState(word)}
    if word == RunState.RUNNING and before is None:
        return _at_work(connection, liveness, where, values, limit)
    records: list[RunRecord] = []
    words = list[str]()
    if label is not None and word is None:  # a workflow's runs lie by their word
        words = [name for (name,) in _rows(connection, statements.RUN_WORDS)]
    for row in _pages(connection, where, values, before, limit, words):
        run = _run_or_damage(connection, row, liveness)
        if wanted_states is None or run.state in wanted_states:
            records.append(run)
            if len(records) == limit:
                break
    return records


def _at_work(
    connection: Connection, liveness: Liveness, where: list[str], values: list[Any], limit: int
) -> list[RunRecord]:
    """Running runs, newest first, found by who is alive: those whose owner died may be many more."""
    alive = living_owners(connection, liveness)
    statement = f"{statements.RUNS_OF_OWNERS} AND {' AND '.join(where)} {statements.NEWEST_FIRST}"
    rows = _rows(connection, statement, (alive, *values, limit))
    return [_run_or_damage(connection, row, liveness) for row in rows]


def _run_or_damage(connection: Connection, row: tuple[Any, ...], liveness: Liveness) -> RunRecord:
    try:
        return run_of(row, is_owned=_is_owned(connection, row, liveness))
    except DamagedStoreError as damage:
        return damaged_run(row, damage)


def _state(word: RunState | str) -> RunState:
    try:
        return RunState(word)
    except ValueError:
        words = ", ".join(state.value for state in RunState)
        raise MisuseError(f"A run cannot be in the state {word!r}. The states are: {words}.") from None


def _pages(
    connection: Connection,
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
        bound = [] if before is None else ["(created_at, id) < (%s, %s)"]
        conditions = [*where, *bound, *([statements.OF_WORD] if words else [])]
        arm = f"{statements.FIND_RUNS} WHERE {' AND '.join(conditions)} {statements.NEWEST_FIRST}"
        arms = [(*values, *(before or ()), word, size) for word in words]
        if arms:
            merged = " UNION ALL ".join([statements.ARM.format(arm)] * len(arms))
            every = [value for given in arms for value in given]
            rows = _rows(connection, f"{merged} {statements.NEWEST_FIRST}", (*every, size))
        else:
            rows = _rows(connection, arm, (*values, *(before or ()), size))
        yield from rows
        if len(rows) < size:
            return
        before = (rows[-1][13], rows[-1][0])


def orphans(connection: Connection, decisions: Iterable[str], living: list[str]) -> list[tuple[str, str]]:
    """Runs that are not over and that none of the `living` holds, as (id, decision), oldest first."""
    return [(row[0], row[1]) for row in _rows(connection, statements.ORPHANS, (living, list(decisions)))]


def unheld(connection: Connection, prefix: str, living: list[str]) -> list[str]:
    """The ids of runs that are not over and that none of the `living` holds, of decisions that begin so; by age."""
    return [row[0] for row in _rows(connection, statements.UNHELD, (living, len(prefix), prefix))]


def open_decisions(connection: Connection, prefix: str) -> list[str]:
    """The decisions that begin so and have runs that are not over."""
    return [row[0] for row in _rows(connection, statements.OPEN_DECISIONS, (len(prefix), prefix))]


def cancelling(connection: Connection) -> list[str]:
    """Runs that are to be cancelled and are not over."""
    return [row[0] for row in _rows(connection, statements.CANCELLING)]


def signalled(connection: Connection) -> list[str]:
    """Runs that wait although they were sent messages that nobody has taken."""
    return [row[0] for row in _rows(connection, statements.SIGNALLED)]


def recorded(connection: Connection, run_id: str) -> Recorded:
    """The steps of a run, and those whose answers were taken back."""
    return fold(run_id, _rows(connection, statements.WHOLE_HISTORY, (run_id,)))


def history_after(connection: Connection, run_id: str, after: int, limit: int) -> list[HistoryEntry]:
    """The entries of a run's history that are shown and follow number `after`, in order."""
    return entries_of(run_id, _rows(connection, statements.HISTORY_AFTER, (run_id, after, limit)), after)


def last_entry(connection: Connection, run_id: str) -> int:
    """The number of the last entry of a run's history that is shown; 0 if there is none."""
    return int(_rows(connection, statements.LAST_ENTRY, (run_id,))[0][0])


def signals_of(connection: Connection, run_id: str) -> list[Signal]:
    """The messages sent to a run, oldest first."""
    return [signal_of(row) for row in _rows(connection, statements.SIGNALS_OF, (run_id,))]


def events_after(connection: Connection, stream: str, after: int, limit: int) -> list[Event]:
    """The entries of a stream that follow number `after`, in order."""
    rows = _rows(connection, statements.EVENTS_PAGE, (stream, after, limit))
    if not rows and after == 0 and last_event(connection, stream):
        # Written between the two looks, or damaged: the second look tells.
        rows = _rows(connection, statements.EVENTS_PAGE, (stream, after, limit))
        if not rows:
            return events_of((), stream, 0, 1)
    if rows and rows[0][2] > after + 1 and trimmed(connection, stream) >= rows[0][2] - 1:
        after = rows[0][2] - 1
    return events_of(rows, stream, after)


def trimmed(connection: Connection, stream: str) -> int:
    """The number of the last entry that was cut off from the beginning of a stream; 0 if none was."""
    rows = _rows(connection, statements.TRIMMED, (stream,))
    return int(rows[0][0]) if rows else 0


def events_of_all(connection: Connection, prefix: str, after: int, up_to: int, limit: int) -> list[Event]:
    """Entries of all streams whose names begin so, up to number `up_to`, in order."""
    values = (after, up_to, prefix, prefix[:-1] + chr(ord(prefix[-1]) + 1), limit)
    return [event_of(row) for row in _rows(connection, statements.EVENTS_OF_ALL, values)]


def recent_streams(connection: Connection, prefix: str, limit: int) -> list[str]:
    """The streams whose names begin so, those that were written to last first."""
    following = prefix[:-1] + chr(ord(prefix[-1]) + 1)
    return [row[0] for row in _rows(connection, statements.RECENT_STREAMS, (prefix, following, limit))]


def last_event(connection: Connection, stream: str) -> int:
    """The number of the stream's last entry; 0 if it is empty."""
    rows = _rows(connection, statements.LAST_EVENT, (stream,))
    return int(rows[0][0]) if rows else 0
