"""List runs: a page by state, workflow, time, session and text that reads what it shows, whatever the store holds.

Each state of a family, and each of a workflow, is a range of an index in the order of age. A page of several states is
merged from as many ranges, by the database, which stops when the page is full. Whether a run that is written as running
is at work or was interrupted is known by who lives: those at work are found by who holds them.
"""

import json
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from troth.runtime.store.list_records import Page, RunItem
from troth.runtime.store.records import RunState
from troth.runtime.store.rows.cursors import moment_cursor, read_moment
from troth.runtime.store.rows.merge import merge

__all__ = ["RunFilter", "brief_error", "count_at_work", "list_runs", "pattern"]

Execute = Callable[..., Any]

_LONG = 4000  # letters of an error that are read: type and message come before the traceback
_EXAMINED = 5000  # rows that one page looks at, where a filter has to look at each
_MESSAGE = 1000  # letters of a message
_RUNNING, _INTERRUPTED, _DAMAGED = RunState.RUNNING.value, RunState.INTERRUPTED.value, RunState.DAMAGED.value
_COLUMNS = (
    f"id, coalesce(ending, state) AS word, decision, label, created_at, updated_at, finished_at, waiting_for, wake_at, "
    f"substr(error, 1, {_LONG}) AS error, parent, forked_from, cancel_requested"
)
_TYPES = (
    *((str,), (str,), (str,), (str, type(None)), (float, int), (float, int), (float, int, type(None))),
    *((str, type(None)), (float, int, type(None)), (str, type(None)), (str, type(None)), (str, type(None)), (int,)),
)
_OF_FAMILY = "instr(decision, ':') > 0 AND substr(decision, 1, instr(decision, ':')) = ?"
_TEXT = re.compile(r'"(type|message)": ?"((?:[^"\\]|\\.)*)')


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Which runs. Without `family` those of every kind of decision; `words` are states in words."""

    family: str | None = None
    words: Collection[str] | None = None
    label: str | None = None
    session: str | None = None
    owner: str | None = None
    since: float | None = None
    until: float | None = None
    text: str | None = None


class _Query:
    """Statements for one filter."""

    def __init__(self, execute: Execute, wanted: RunFilter, living: Sequence[str]) -> None:
        self.execute = execute
        self.wanted = wanted
        self.living = living

    def rows(self, before: tuple[float, str] | None, size: int) -> list[tuple[Any, ...]]:
        """Up to `size` rows behind `before`, in order; some of them may have to be left out."""
        wanted = self.wanted
        if wanted.session is not None:
            return self._joined("session_work", "begun_at", ["w.session = ?"], [wanted.session], before, size)
        if wanted.owner is not None:
            conditions = ["w.kind = 'run'", "w.owner = ?"]
            return self._joined("belongings", "created_at", conditions, [wanted.owner], before, size)
        bounds, values = self._bounds("", before)
        if wanted.words is not None and set(wanted.words) == {_RUNNING}:
            return self._at_work(bounds, values, size)
        words = self._words()
        if wanted.label is not None:
            which, first = "label = ? AND label IS NOT NULL", [wanted.label]
        elif wanted.family is not None:
            which, first = _OF_FAMILY, [wanted.family]
        else:
            return self._by_age(bounds, values, size)
        if words is None:
            return self._by_age([which, *bounds], [*first, *values], size)
        if not words:
            return []
        arm = f"SELECT {_COLUMNS} FROM runs WHERE {' AND '.join([which, 'coalesce(ending, state) = ?', *bounds])}"  # noqa: S608
        return merge(self.execute, arm, [(*first, word, *values) for word in words], "created_at DESC, id DESC", size)

    def _fetch(self, statement: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = self.execute(statement, tuple(values)).fetchall()
        return rows

    def _bounds(
        self, table: str, before: tuple[float, str] | None, moment: str = "created_at"
    ) -> tuple[list[str], list[object]]:
        bounds, values = list[str](), list[object]()
        if self.wanted.since is not None:
            bounds.append(f"{table}{moment} >= ?")
            values.append(self.wanted.since)
        if self.wanted.until is not None:
            bounds.append(f"{table}{moment} < ?")
            values.append(self.wanted.until)
        if before is not None:
            bounds.append(f"({table}{moment}, {table}id) < (?, ?)")
            values += before
        return bounds, values

    def _words(self) -> list[str] | None:
        """The written words that can be meant: those there are, and never `interrupted`; None where all rows are."""
        words = self.wanted.words
        if words is not None and _DAMAGED in words:
            return None  # what cannot be read has any word
        if words is not None:
            return sorted({_RUNNING if word == _INTERRUPTED else word for word in words})
        if self.wanted.family is None:
            rows = self.execute(
                "SELECT DISTINCT word FROM state_counts WHERE kind >= 'run/' AND kind < 'run0'"
            ).fetchall()
        else:
            rows = self.execute(
                "SELECT DISTINCT word FROM state_counts WHERE kind = ?", (f"run/{self.wanted.family}",)
            ).fetchall()
        return [word for (word,) in rows if type(word) is str]

    def _by_age(self, where: list[str], values: list[object], size: int) -> list[tuple[Any, ...]]:
        return self._fetch(
            f"SELECT {_COLUMNS} FROM runs WHERE {' AND '.join(['true', *where])} "  # noqa: S608
            "ORDER BY created_at DESC, id DESC LIMIT ?",
            (*values, size),
        )

    def _at_work(self, bounds: list[str], values: list[object], size: int) -> list[tuple[Any, ...]]:
        """Runs that somebody living holds: a list of those at work, however many were interrupted."""
        if not self.living:
            return []
        where, more = ["coalesce(ending, state) = 'running'", *bounds], list(values)
        if self.wanted.label is not None:
            where, more = ["label = ?", *where], [self.wanted.label, *more]
        elif self.wanted.family is not None:
            where, more = [_OF_FAMILY, *where], [self.wanted.family, *more]
        return self._fetch(
            f"SELECT {_COLUMNS} FROM leases CROSS JOIN runs ON runs.id = substr(resource, 5) "  # noqa: S608
            f"WHERE owner IN ({_marks(self.living)}) AND substr(resource, 1, 4) = 'run:' "
            f"AND {' AND '.join(where)} ORDER BY created_at DESC, id DESC LIMIT ?",
            (*self.living, *more, size),
        )

    def _joined(
        self,
        table: str,
        moment: str,
        which: list[str],
        first: list[object],
        before: tuple[float, str] | None,
        size: int,
    ) -> list[tuple[Any, ...]]:
        """Runs that another table has, in the order in which they were written there: of a session, of an owner."""
        bounds, values = self._bounds("w.", before, moment)
        columns = _COLUMNS.replace("id, coalesce", "r.id, coalesce", 1).replace("created_at,", "r.created_at,", 1)
        return self._fetch(
            f"SELECT {columns}, w.{moment} AS place FROM {table} w CROSS JOIN runs r ON r.id = w.id "  # noqa: S608
            f"WHERE {' AND '.join([*which, *bounds])} ORDER BY w.{moment} DESC, w.id DESC LIMIT ?",
            (*first, *values, size),
        )


def list_runs(
    execute: Execute, wanted: RunFilter, living: Sequence[str], *, cursor: str | None, limit: int
) -> Page[RunItem]:
    """A page of runs, the newest first."""
    before, query = read_moment(cursor), _Query(execute, wanted, living)
    items: list[RunItem] = []
    examined = 0
    while True:
        size = min(500, max(limit - len(items) + 1, 100 if examined else 0))
        rows = query.rows(before, size)
        at_work = _held(execute, [row[0] for row in rows if row[1] == _RUNNING], living)
        for row in rows:
            item = _item(row, row[0] in at_work)
            if not _is_wanted(item, wanted):
                before = _place(row) or before
                continue
            if len(items) == limit:
                return Page(items, None if before is None else moment_cursor(*before))
            items.append(item)
            before = _place(row) or before
        examined += len(rows)
        if len(rows) < size:
            return Page(items)
        if examined >= _EXAMINED and before is not None:
            return Page(items, moment_cursor(*before))


def _place(row: Sequence[Any]) -> tuple[float, str] | None:
    moment = row[13] if len(row) > 13 else row[4]
    return (moment, row[0]) if type(moment) in (float, int) and type(row[0]) is str else None


def _held(execute: Execute, run_ids: list[Any], living: Sequence[str]) -> set[str]:
    """Which of these runs somebody living holds."""
    if not run_ids or not living:
        return set()
    rows = execute(
        f"SELECT resource FROM leases WHERE resource IN ({_marks(run_ids)}) AND owner IN ({_marks(living)})",  # noqa: S608
        (*(f"run:{run_id}" for run_id in run_ids), *living),
    ).fetchall()
    return {resource[4:] for (resource,) in rows}


def count_at_work(execute: Execute, family: str | None, living: Sequence[str]) -> int:
    """How many runs somebody living is at work on."""
    if not living:
        return 0
    which, values = ("", ()) if family is None else (f" AND {_OF_FAMILY}", (family,))
    ((count,),) = execute(
        "SELECT count(*) FROM leases CROSS JOIN runs ON runs.id = substr(resource, 5) "  # noqa: S608
        f"WHERE owner IN ({_marks(living)}) AND substr(resource, 1, 4) = 'run:' "
        f"AND coalesce(ending, state) = 'running'{which}",
        (*living, *values),
    ).fetchall()
    return int(count)


def _marks(values: Collection[object]) -> str:
    return ", ".join("?" * len(values))


_good: set[tuple[type, ...]] = set()  # what was found right once need not be looked at column by column


def _item(row: Sequence[Any], is_at_work: bool) -> RunItem:  # noqa: FBT001
    kinds = tuple(map(type, row[:13]))
    if kinds not in _good:
        if any(kind not in types for kind, types in zip(kinds, _TYPES, strict=True)):
            return _damaged(row)
        _good.add(kinds)
    run_id, word, decision, label, created, updated, finished, waiting, wake, error, parent, forked, cancel = row[:13]
    if word == _RUNNING and not is_at_work:
        word = _INTERRUPTED
    kind, message = (None, None) if error is None else brief_error(error)
    return RunItem(
        run_id,
        word,
        decision,
        label,
        created,
        updated,
        finished,
        waiting,
        wake,
        kind,
        message,
        parent,
        forked,
        bool(cancel),
    )


def _damaged(row: Sequence[Any]) -> RunItem:
    """What can still be told of a run whose row is damaged."""
    run_id = row[0] if type(row[0]) is str else repr(row[0])
    created, updated = (value if type(value) in (float, int) else 0.0 for value in row[4:6])
    return RunItem(
        id=run_id,
        state=_DAMAGED,
        decision=row[2] if type(row[2]) is str else "",
        label=row[3] if type(row[3]) is str else None,
        created_at=created,
        updated_at=updated,
        finished_at=None,
        waiting_for=None,
        wake_at=None,
        error_type="DamagedStoreError",
        error=f"Its record cannot be read; `troth runs show {run_id}` shows more.",
        parent=None,
        forked_from=None,
        is_cancel_requested=False,
    )


def _is_wanted(item: RunItem, wanted: RunFilter) -> bool:
    if wanted.words is not None and item.state not in wanted.words:
        return False
    if wanted.family is not None and not item.decision.startswith(wanted.family):
        return False
    if wanted.label is not None and item.label != wanted.label:
        return False
    if wanted.text is None:
        return True
    text = wanted.text.casefold()
    return any(text in part.casefold() for part in _texts(item))


def _texts(item: RunItem) -> Iterator[str]:
    yield item.id
    yield from (part for part in (item.label, item.error_type, item.error, item.waiting_for) if part)


def brief_error(text: str | None) -> tuple[str | None, str | None]:
    """Type and message of an error from JSON text, also from the beginning of it."""
    if not text:
        return None, None
    try:
        error = json.loads(text)
        kind, message = error.get("type"), error.get("message")
    except (ValueError, AttributeError):
        parts: dict[str, str] = {}
        for match in _TEXT.finditer(text):
            parts.setdefault(match[1], match[2])  # the first one: what an error was caused by comes after it
        kind, message = (_unescaped(parts.get(name)) for name in ("type", "message"))
    return (
        kind if isinstance(kind, str) else None,
        message[:_MESSAGE] if isinstance(message, str) else None,
    )


def _unescaped(text: str | None) -> str | None:
    if text is None:
        return None
    try:
        return str(json.loads(f'"{text}"'))
    except ValueError:
        return text


def pattern(text: str) -> str:
    """What LIKE takes to find `text` anywhere, with a backslash as escape."""
    escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"
