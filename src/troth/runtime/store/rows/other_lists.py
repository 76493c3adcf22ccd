"""List conversations and governed sessions, count what is in which state, and tell what came into another one."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from troth.runtime.store.list_records import (
    ConversationItem,
    Page,
    SessionItem,
    StateChange,
    StoreCounts,
)
from troth.runtime.store.rows.conversations import CONVERSATIONS
from troth.runtime.store.rows.cursors import moment_cursor, read_moment
from troth.runtime.store.rows.merge import merge
from troth.runtime.store.rows.run_lists import count_at_work

__all__ = ["count_states", "list_conversations", "list_sessions", "read_changes"]

Execute = Callable[..., Any]
_RUNNING, _INTERRUPTED = "running", "interrupted"
_CONVERSATION = "id, state, agent, title, opened_at, changed_at"
_SESSION = "id, state, creator, created_at, ends_at, ended_at"
_PRESENT = "SELECT count(*) FROM members WHERE session = ? AND state IN ('present', 'suspended')"
_CHANGE = "SELECT id, at, kind, thing, word FROM state_changes WHERE id > ? ORDER BY id LIMIT ?"


def _merged(
    execute: Execute,
    table: str,
    columns: str,
    moment: str,
    states: Collection[str] | None,
    before: tuple[float, str] | None,
    size: int,
) -> list[tuple[Any, ...]]:
    """Rows of a table by age, merged from the ranges of an index that each state has."""
    bound, values = ("", ()) if before is None else (f" AND ({moment}, id) < (?, ?)", tuple(before))
    which = "true" if states is None else "state = ?"
    arm = f"SELECT {columns} FROM {table} WHERE {which}{bound}"  # noqa: S608
    every = [values] if states is None else [(state, *values) for state in sorted(states)]
    return merge(execute, arm, every, f"{moment} DESC, id DESC", size)


def _held(execute: Execute, ids: Sequence[str], living: Sequence[str]) -> set[str]:
    if not ids or not living:
        return set()
    rows = execute(
        f"SELECT resource FROM leases WHERE resource IN ({', '.join('?' * len(ids))}) "  # noqa: S608
        f"AND owner IN ({', '.join('?' * len(living))})",
        (*(f"{CONVERSATIONS}{one}" for one in ids), *living),
    ).fetchall()
    return {resource.removeprefix(CONVERSATIONS) for (resource,) in rows}


def list_conversations(
    execute: Execute, living: Sequence[str], *, states: Collection[str] | None, cursor: str | None, limit: int
) -> Page[ConversationItem]:
    """A page of conversations, those whose last run began or ended last come first."""
    before = read_moment(cursor)
    written = None if states is None else set(states)
    if written is not None and written & {_RUNNING, _INTERRUPTED}:
        written.add(_RUNNING)
    items: list[ConversationItem] = []
    while written is None or written:
        size = limit - len(items) + 1
        rows = _merged(execute, "conversations", _CONVERSATION, "changed_at", written, before, size)
        held = _held(execute, [row[0] for row in rows if row[1] == _RUNNING], living)
        for row in rows:
            state = _INTERRUPTED if row[1] == _RUNNING and row[0] not in held else row[1]
            if states is None or state in states:
                if len(items) == limit and before is not None:
                    return Page(items, moment_cursor(*before))
                items.append(ConversationItem(row[0], state, *row[2:]))
            before = row[5], row[0]
        if len(rows) < size:
            break
    return Page(items)


def list_sessions(
    execute: Execute, *, states: Collection[str] | None, cursor: str | None, limit: int
) -> Page[SessionItem]:
    """A page of governed sessions, the newest first."""
    if states is not None and not states:
        return Page(())
    rows = _merged(execute, "sessions", _SESSION, "created_at", states, read_moment(cursor), limit + 1)
    counted = [(*row, execute(_PRESENT, (row[0],)).fetchone()[0]) for row in rows[:limit]]
    items = [SessionItem(*row) for row in counted]
    return Page(items, moment_cursor(items[-1].created_at, items[-1].id) if len(rows) > limit else None)


def count_states(execute: Execute, families: tuple[str, ...] | None, living: Sequence[str]) -> StoreCounts:
    """How many there are in each state. Costs as much as there are words, and runs at work."""
    counts: dict[str, dict[str, int]] = {}
    for kind, word, count in execute("SELECT kind, word, sum(count) FROM state_counts GROUP BY kind, word").fetchall():
        if type(kind) is not str or type(word) is not str:
            continue  # of a row that is damaged
        what, _, begins = kind.partition("/")
        if what == "run" and families is not None and begins not in families:
            continue
        words = counts.setdefault(what, {})
        words[word] = words.get(word, 0) + int(count)
    ((asks,),) = execute("SELECT count(*) FROM asks WHERE state = 'open'").fetchall()
    ((kills,),) = execute("SELECT count(*) FROM kills WHERE answer IS NULL").fetchall()
    return StoreCounts(
        runs=_by_life(counts.get("run", {}), count_at_work(execute, families, living)),
        conversations=_by_life(counts.get("conversation", {}), _talking(execute, living)),
        sessions=_some(counts.get("session", {})),
        deliveries=_some(counts.get("delivery", {})),
        asks=int(asks),
        kills=int(kills),
    )


def _talking(execute: Execute, living: Sequence[str]) -> int:
    if not living:
        return 0
    ((count,),) = execute(
        "SELECT count(*) FROM leases CROSS JOIN conversations c ON c.id = substr(resource, ?) "  # noqa: S608
        f"WHERE owner IN ({', '.join('?' * len(living))}) AND substr(resource, 1, ?) = ? AND c.state = 'running'",
        (len(CONVERSATIONS) + 1, *living, len(CONVERSATIONS), CONVERSATIONS),
    ).fetchall()
    return int(count)


def _by_life(words: Mapping[str, int], at_work: int) -> dict[str, int]:
    """Counts in which those that are written as running, and that nobody living holds, are interrupted."""
    split = dict(words)
    written = split.pop(_RUNNING, 0)
    split[_RUNNING] = min(at_work, written)
    split[_INTERRUPTED] = split.get(_INTERRUPTED, 0) + written - split[_RUNNING]
    return _some(split)


def _some(words: Mapping[str, int]) -> dict[str, int]:
    return {word: count for word, count in sorted(words.items()) if count}


def read_changes(execute: Execute, after: int, limit: int) -> list[StateChange]:
    """What came into another state, behind number `after`."""
    changes = []
    for number, at, kind, thing, word in execute(_CHANGE, (after, limit)).fetchall():
        what, _, family = kind.partition("/")
        changes.append(StateChange(number, at, what, family, thing, word))
    return changes
