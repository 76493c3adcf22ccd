"""List runs: a page by state, workflow, time, session and text that reads what it shows, whatever the store holds.

Each state of a family, and each of a workflow, is a range of an index in the order of age. A page of several states is
merged from as many ranges, by the database, which stops when the page is full. Whether a run that is written as running
is at work or was interrupted is known by who lives: those at work are found by who holds them. In which session a run
is carried out is looked up for those of a page alone.
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

__all__ = [
    "RunFilter",
    "brief_error",
    "count_at_work",
    "families_of",
    "list_labels",
    "list_runs",
    "of_families",
    "pattern",
]

Execute = Callable[..., Any]

_LONG = 4000  # letters of an error that are read: type and message come before the traceback
_EXAMINED = 5000  # rows that one page looks at, where a filter has to look at each
_MESSAGE = 1000  # letters of a message
_AT_ONCE = 500  # rows that are read at a time
_RUNNING, _INTERRUPTED, _DAMAGED = RunState.RUNNING.value, RunState.INTERRUPTED.value, RunState.DAMAGED.value
_BY_LIFE = frozenset({_RUNNING, _INTERRUPTED, _DAMAGED})  # what no column says
_WORDS = ", ".join(repr(state.value) for state in RunState)
_SOUND = f"CASE WHEN state IN ({_WORDS}) AND substr(args, 1, 1) = '[' THEN 1 ELSE 0 END"
_COLUMNS = (
    f"id, coalesce(ending, state) AS word, decision, label, created_at, updated_at, finished_at, waiting_for, wake_at, "
    f"substr(error, 1, {_LONG}) AS error, parent, forked_from, cancel_requested, {_SOUND} AS sound"
)
_TYPES = (
    *((str,), (str,), (str,), (str, type(None)), (float, int), (float, int), (float, int, type(None))),
    *((str, type(None)), (float, int, type(None)), (str, type(None)), (str, type(None)), (str, type(None)), (int,)),
    (int,),
)
_OF_RUN = _COLUMNS.replace("id, coalesce", "r.id AS id, coalesce", 1).replace("created_at,", "r.created_at,", 1)
_WIDTH = len(_TYPES)
_ID, _WORD = 0, 1  # where a row has them
_FAMILY = "instr(decision, ':') > 0 AND substr(decision, 1, instr(decision, ':'))"
_OF_SESSION = "session "
"""How the names of decisions begin that a governed session carries out."""
_TEXT = re.compile(r'"(type|message)": ?"((?:[^"\\]|\\.)*)')


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Which runs. Without `families` those of every kind of decision; `words` are states in words."""

    families: tuple[str, ...] | None = None
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

    @property
    def is_exact(self) -> bool:
        """Whether all rows are meant: nothing is left to be looked at that an index does not know."""
        if self.wanted.words is not None and (
            self.wanted.families is None or not _BY_LIFE.isdisjoint(self.wanted.words)
        ):
            return False
        unknown = self.wanted.label, self.wanted.session, self.wanted.owner, self.wanted.text
        return unknown == (None,) * len(unknown)

    def rows(self, before: tuple[float, str] | None, size: int) -> list[tuple[Any, ...]]:
        """Up to `size` rows behind `before`, in order; some of them may have to be left out."""
        wanted = self.wanted
        if wanted.session is not None:
            return self._of_session(wanted.session, before, size)
        if wanted.owner is not None:
            return self._owned(wanted.owner, before, size)
        bounds, values = self._bounds("", before)
        if wanted.words is not None and set(wanted.words) == {_RUNNING}:
            return self._at_work(bounds, values, size)
        if wanted.label is None and wanted.families is None:
            return self._by_age(bounds, values, size)
        which, first = ("label = ?", [wanted.label]) if wanted.label is not None else of_families(wanted.families or ())
        ranges = self._ranges()
        if ranges is None:
            return self._by_age([which, *bounds], [*first, *values], size)
        if not ranges:
            return []
        which = f"{_FAMILY} = ?" if wanted.label is None else "label = ? AND label IS NOT NULL"
        arm = f"SELECT {_COLUMNS} FROM runs WHERE {' AND '.join([which, 'coalesce(ending, state) = ?', *bounds])}"  # noqa: S608
        return merge(self.execute, arm, [(*place, *values) for place in ranges], "created_at DESC, id DESC", size)

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

    def _ranges(self) -> list[tuple[str, str]] | None:
        """The ranges of the index: each workflow or family, and a word that is written; None where all rows are meant.

        Words are those there are, and never `interrupted`.
        """
        words, label, families = self.wanted.words, self.wanted.label, self.wanted.families
        if words is not None and _DAMAGED in words:
            return None  # what cannot be read has any word
        if words is not None:
            written = sorted({_RUNNING if word == _INTERRUPTED else word for word in words})
            firsts = families or () if label is None else (label,)
            return [(first, word) for first in firsts for word in written]
        if families is None:
            counted = self._fetch("SELECT kind, word FROM state_counts WHERE kind >= 'run/' AND kind < 'run0'", ())
        else:
            kinds = [f"run/{family}" for family in families]
            counted = self._fetch(f"SELECT kind, word FROM state_counts WHERE kind IN ({_marks(kinds)})", kinds)  # noqa: S608
        pairs = {(kind[4:] if label is None else label, word) for kind, word in counted if type(word) is str}
        return sorted(pairs)

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
        elif self.wanted.families is not None:
            which, families = of_families(self.wanted.families)
            where, more = [which, *where], [*families, *more]
        return self._fetch(
            f"SELECT {_COLUMNS} FROM leases CROSS JOIN runs ON runs.id = substr(resource, 5) "  # noqa: S608
            f"WHERE owner IN ({_marks(self.living)}) AND substr(resource, 1, 4) = 'run:' "
            f"AND {' AND '.join(where)} ORDER BY created_at DESC, id DESC LIMIT ?",
            (*self.living, *more, size),
        )

    def _of_session(self, session: str, before: tuple[float, str] | None, size: int) -> list[tuple[Any, ...]]:
        """Runs that a governed session carries out, in the order in which they began there."""
        bounds, values = self._bounds("w.", before, "begun_at")
        return self._fetch(
            f"SELECT {_OF_RUN}, w.begun_at AS place FROM session_work w CROSS JOIN runs r ON r.id = w.id "  # noqa: S608
            f"WHERE w.kind = 'run' AND {' AND '.join(['w.session = ?', *bounds])} "
            "ORDER BY w.begun_at DESC, w.id DESC LIMIT ?",
            (session, *values, size),
        )

    def _owned(self, owner: str, before: tuple[float, str] | None, size: int) -> list[tuple[Any, ...]]:
        """Runs that an owner began through a server, and those of its governed sessions."""
        begun_bounds, begun = self._bounds("w.", before)
        within_bounds, within = self._bounds("w.", before, "begun_at")
        last = "ORDER BY place DESC, id DESC LIMIT ?"
        return self._fetch(  # each part has a limit of its own, so that no more of it is read and sorted
            f"SELECT * FROM (SELECT {_OF_RUN}, w.created_at AS place "  # noqa: S608
            "FROM belongings w CROSS JOIN runs r ON r.id = w.id "
            f"WHERE w.kind = 'run' AND {' AND '.join(['w.owner = ?', *begun_bounds])} "
            "ORDER BY w.created_at DESC, w.id DESC LIMIT ?) AS of_server "
            f"UNION ALL SELECT * FROM (SELECT {_OF_RUN}, w.begun_at AS place "
            "FROM belongings b CROSS JOIN session_work w ON w.session = b.id CROSS JOIN runs r ON r.id = w.id "
            f"WHERE b.kind = 'session' AND w.kind = 'run' AND {' AND '.join(['b.owner = ?', *within_bounds])} "
            f"{last}) AS of_sessions {last}",
            (owner, *begun, size, owner, *within, size, size),
        )


def list_runs(
    execute: Execute, wanted: RunFilter, living: Sequence[str], *, cursor: str | None, limit: int
) -> Page[RunItem]:
    """A page of runs, the newest first."""
    before, query = read_moment(cursor), _Query(execute, wanted, living)
    if query.is_exact and limit < _AT_ONCE:
        return _exact_page(execute, query.rows(before, limit + 1), living, limit)
    items: list[RunItem] = []
    examined = 0
    while True:
        size = min(_AT_ONCE, max(limit - len(items) + 1, 100 if examined else 0))
        rows = query.rows(before, size)
        at_work = _held(execute, [row[_ID] for row in rows if row[_WORD] == _RUNNING], living)
        for row in rows:
            item = _item(row, row[_ID] in at_work)
            if not _is_wanted(item, wanted, row[_WORD]):
                before = _place(row) or before
                continue
            if len(items) == limit:
                return Page(_placed(execute, items), None if before is None else moment_cursor(*before))
            items.append(item)
            before = _place(row) or before
        examined += len(rows)
        if len(rows) < size:
            return Page(_placed(execute, items))
        if examined >= _EXAMINED and before is not None:
            return Page(_placed(execute, items), moment_cursor(*before))


def _exact_page(execute: Execute, rows: Sequence[tuple[Any, ...]], living: Sequence[str], limit: int) -> Page[RunItem]:
    """A page of rows all of which are meant. `rows` has one more, if there is one."""
    at_work = _held(execute, [row[_ID] for row in rows if row[_WORD] == _RUNNING], living)
    items = _placed(execute, [_item(row, row[_ID] in at_work) for row in rows[:limit]])
    if len(rows) <= limit:
        return Page(items)
    place = next(filter(None, map(_place, reversed(rows[:limit]))), None)
    return Page(items, None if place is None else moment_cursor(*place))


def _placed(execute: Execute, items: list[RunItem]) -> list[RunItem]:
    """The same, with the session and the member of those that a governed session carries out."""
    governed = [item.id for item in items if item.decision.startswith(_OF_SESSION)]
    if not governed:
        return items
    work: dict[str, tuple[str, str]] = {}
    for first in range(0, len(governed), 500):  # as many values as every SQLite takes
        part = governed[first : first + 500]
        rows = execute(f"SELECT id, session, agent FROM session_work WHERE id IN ({_marks(part)})", part).fetchall()  # noqa: S608
        work |= {run_id: (session, agent) for run_id, session, agent in rows}
    return [_within(item, *work[item.id]) if item.id in work else item for item in items]


def _within(item: RunItem, session: str, agent: str) -> RunItem:
    return item._replace(session=session, agent=agent)


def _place(row: Sequence[Any]) -> tuple[float, str] | None:
    moment = row[_WIDTH] if len(row) > _WIDTH else row[4]
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


def count_at_work(execute: Execute, families: tuple[str, ...] | None, living: Sequence[str]) -> int:
    """How many runs somebody living is at work on."""
    if not living:
        return 0
    which, values = ("true", list[object]()) if families is None else of_families(families)
    ((count,),) = execute(
        "SELECT count(*) FROM leases CROSS JOIN runs ON runs.id = substr(resource, 5) "  # noqa: S608
        f"WHERE owner IN ({_marks(living)}) AND substr(resource, 1, 4) = 'run:' "
        f"AND coalesce(ending, state) = 'running' AND {which}",
        (*living, *values),
    ).fetchall()
    return int(count)


_LABELS = (  # from one label to the next one: as many reads of the index as there are labels
    "WITH RECURSIVE labels (label) AS (SELECT min(label) FROM runs WHERE label IS NOT NULL UNION ALL "
    "SELECT (SELECT min(r.label) FROM runs r WHERE r.label IS NOT NULL AND r.label > labels.label) FROM labels "
    "WHERE labels.label IS NOT NULL) SELECT label FROM labels WHERE label IS NOT NULL LIMIT ?"
)


def list_labels(execute: Execute, limit: int) -> list[str]:
    """The names of workflows that runs have, in the order of the alphabet."""
    return [label for (label,) in execute(_LABELS, (limit,)).fetchall() if type(label) is str]


def _marks(values: Collection[object]) -> str:
    return ", ".join("?" * len(values))


def families_of(family: str | Collection[str] | None) -> tuple[str, ...] | None:
    """One family, several, or all."""
    return None if family is None else (family,) if isinstance(family, str) else tuple(family)


def of_families(families: Sequence[str]) -> tuple[str, list[object]]:
    """A condition for the runs of these families, and its values."""
    return f"{_FAMILY} IN ({_marks(families)})", list(families)


_good: set[tuple[type, ...]] = set()  # what was found right once need not be looked at column by column


def _item(row: Sequence[Any], is_at_work: bool) -> RunItem:  # noqa: FBT001
    kinds = tuple(map(type, row[:_WIDTH]))
    if kinds not in _good:
        if any(kind not in types for kind, types in zip(kinds, _TYPES, strict=True)):
            return _damaged(row)
        _good.add(kinds)
    run_id, word, decision, label, created, updated, finished, waiting, wake, error, parent, forked, cancel, sound = (
        row[:_WIDTH]
    )
    if not sound:  # there is no such state
        return _damaged(row)
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
        None,
        None,
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
        session=None,
        agent=None,
    )


def _is_wanted(item: RunItem, wanted: RunFilter, written: object) -> bool:
    """A damaged run is also among those of the state that was written last, where it is counted."""
    if wanted.words is not None and item.state not in wanted.words:
        counted = _INTERRUPTED if written == _RUNNING else written
        if item.state != _DAMAGED or counted not in wanted.words:
            return False
    if wanted.families is not None and not item.decision.startswith(wanted.families):
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
