"""Bring a file of version 7 to version 8: lists that cost what they show, counts that are kept, a log of what changed.

Counts and log are written by triggers, in the statement that changes a state, so that no way of writing can miss them.
What the file holds already is counted here once.
"""

import json
import sqlite3
from collections.abc import Iterator, Mapping
from typing import Any

from troth.runtime.store.rows.conversations import CONVERSATIONS, ENDED, MESSAGE, OPENED, STARTED, ConversationRows

__all__ = ["COUNTED", "TABLES", "THING", "move", "triggers"]

TABLES = """
CREATE TABLE state_counts (kind TEXT NOT NULL, word TEXT NOT NULL, count INTEGER NOT NULL, PRIMARY KEY (kind, word))
WITHOUT ROWID;

CREATE TABLE state_changes (
    id INTEGER PRIMARY KEY, at REAL NOT NULL, kind TEXT NOT NULL, thing TEXT NOT NULL, word TEXT NOT NULL
);

CREATE TABLE conversations (
    id TEXT PRIMARY KEY, agent TEXT NOT NULL, state TEXT NOT NULL, run TEXT, title TEXT,
    opened_at REAL NOT NULL, changed_at REAL NOT NULL
) WITHOUT ROWID;
CREATE INDEX conversations_by_age ON conversations (changed_at, id);
CREATE INDEX conversations_by_state ON conversations (state, changed_at, id);

DROP INDEX runs_by_label;
CREATE INDEX runs_by_label ON runs (label, coalesce(ending, state), created_at, id) WHERE label IS NOT NULL;
CREATE INDEX session_work_by_age ON session_work (session, begun_at, id);
CREATE INDEX deliveries_by_number ON deliveries (state, promise, kind, seq);
CREATE INDEX kills_open ON kills (at) WHERE answer IS NULL;
CREATE INDEX asks_by_age ON asks (asked_at, id) WHERE state = 'open';
"""
"""`state_counts` says how many things of a kind are in each state. `state_changes` says what came into which state, in
order; only the last of them are kept, since the things themselves are all there. `conversations` has a row for each log
of a conversation, as of the begin or end of its last run; `run` is the one that is open."""

_KEPT = 100_000  # changes of a state that are kept for whoever comes back
_FAMILY = "'run/' || substr({row}.decision, 1, instr({row}.decision, ':'))"
COUNTED = {
    "runs": (_FAMILY, "coalesce({row}.ending, {row}.state)", "state, ending", "id", "created_at", "updated_at"),
    "conversations": ("'conversation'", "{row}.state", "state", "id", "opened_at", "changed_at"),
    "sessions": ("'session'", "{row}.state", "state", "id", "created_at", "coalesce(new.ended_at, new.created_at)"),
    "deliveries": ("'delivery'", "{row}.state", "state", "", "created_at", "updated_at"),
}
THING = {
    "deliveries": "(SELECT id FROM promises WHERE number = new.promise) || '-' || new.kind || '-' || new.seq",
}
_NEWS = {
    "members": ("AFTER INSERT ON members", "new.joined_at, 'member', new.session, new.state"),
    "members_changed": (
        "AFTER UPDATE OF state ON members WHEN old.state != new.state",
        "coalesce(new.left_at, new.joined_at), 'member', new.session, new.state",
    ),
    "kills": ("AFTER INSERT ON kills", "new.at, 'kill', new.id, 'open'"),
    "kills_answered": (
        "AFTER UPDATE OF answer ON kills WHEN new.answer IS NOT NULL",
        "new.at, 'kill', new.id, 'answered'",
    ),
    "asks": ("AFTER INSERT ON asks", "new.asked_at, 'ask', new.id, new.state"),
}


def triggers() -> Iterator[str]:
    """The statements that make the triggers."""
    for table, (kind, word, columns, thing, begun_at, changed_at) in COUNTED.items():
        new_kind, old_kind = kind.format(row="new"), kind.format(row="old")
        new, old = word.format(row="new"), word.format(row="old")
        name = THING.get(table, f"new.{thing}")
        moment = changed_at if "(" in changed_at else f"new.{changed_at}"
        one_more = (
            f"INSERT INTO state_counts (kind, word, count) VALUES ({new_kind}, {new}, 1) "  # noqa: S608  names of ours
            "ON CONFLICT (kind, word) DO UPDATE SET count = count + 1;"
        )
        tell = "INSERT INTO state_changes (at, kind, thing, word) "
        # A lease is taken and given up within moments, and nobody waits for it.
        is_told = " WHERE new.state != 'leased'" if table == "deliveries" else ""
        yield (
            f"CREATE TRIGGER {table}_counted AFTER INSERT ON {table} BEGIN {one_more} "
            f"{tell}SELECT new.{begun_at}, {new_kind}, {name}, {new}{is_told}; END"
        )
        yield (  # names of our own
            f"CREATE TRIGGER {table}_recounted AFTER UPDATE OF {columns} ON {table} WHEN {old} != {new} BEGIN "  # noqa: S608
            f"UPDATE state_counts SET count = count - 1 WHERE kind = {old_kind} AND word = {old}; {one_more} "
            f"{tell}SELECT {moment}, {new_kind}, {name}, {new}{is_told}; END"
        )
    for name, (when, what) in _NEWS.items():
        yield (
            f"CREATE TRIGGER {name}_told {when} BEGIN "  # noqa: S608
            f"INSERT INTO state_changes (at, kind, thing, word) VALUES ({what}); END"
        )
    yield (
        "CREATE TRIGGER state_changes_trimmed AFTER INSERT ON state_changes WHEN new.id % 1000 = 0 BEGIN "  # noqa: S608
        f"DELETE FROM state_changes WHERE id <= new.id - {_KEPT}; END"
    )


def move(connection: sqlite3.Connection) -> None:
    """Count what there is, write a row for each conversation, and from now on keep both as they change."""
    for table, (kind, word, *_) in COUNTED.items():
        if table != "conversations":
            connection.execute(
                "INSERT INTO state_counts (kind, word, count) "  # noqa: S608
                f"SELECT {kind.format(row=table)}, {word.format(row=table)}, count(*) FROM {table} GROUP BY 1, 2"
            )
    for statement in triggers():
        connection.execute(statement)
    write_conversations(connection.execute)
    connection.execute("DELETE FROM state_changes")


def write_conversations(execute: Any) -> None:
    """Write a row for each conversation that the streams have."""
    rows = ConversationRows(execute)
    events = execute(
        "SELECT stream, kind, payload, at FROM events "  # noqa: S608
        f"WHERE stream >= '{CONVERSATIONS}' AND stream < '{CONVERSATIONS[:-1]}0' "
        f"AND kind IN ('{OPENED}', '{MESSAGE}', '{STARTED}', '{ENDED}') ORDER BY id"
    )
    for stream, kind, payload, at in events:
        content = _read(payload)
        if type(stream) is str and content is not None:
            rows.note(stream.removeprefix(CONVERSATIONS), kind, content, at)


def _read(payload: object) -> Mapping[str, Any] | None:
    """What an entry says; nothing where it cannot be read: whoever opens the conversation is told so."""
    try:
        content = json.loads(payload) if isinstance(payload, str) else None
    except ValueError:
        return None
    return content if isinstance(content, dict) else None
