"""Keep an index of what was said in conversations, with SQLite's full text, so that a search reads what it finds.

It holds every three letters that stand beside each other, so it answers the same as looking through all messages. No
commit of a step or a message pays for it: it is made when somebody searches, by the store's own thread, a little at a
time, and reaches up to an entry that is written down with it; later entries are few, and looked through. With a trigger
a message cost 145 µs more, beside 25 µs for a bare commit; made in pieces it costs 40 to 140 µs. A file of messages
grows by seven tenths of their text; an index of words would take a sixth, but would not find a part of an id.

Where SQLite has no full text (FTS5 with `trigram`, 3.34), there is none, and all messages are looked through.
"""

import contextlib
import functools
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from troth.runtime.store.failpoints import commit_point
from troth.runtime.store.rows.conversations import CONVERSATIONS, MESSAGE
from troth.runtime.store.rows.search import MessageRow, said

__all__ = [
    "INDEX",
    "INDEXED",
    "MESSAGES_INDEX",
    "MessageIndex",
    "can_index",
    "forget_messages",
    "index_messages",
    "is_behind",
]

INDEXED = "messages indexed"
"""The key in `meta` under which stands up to which entry the index reaches."""
MESSAGES_INDEX = commit_point("messages.index", "some more messages in the index that searches read")

INDEX = "message_index"
"""The name of its table; those in which SQLite keeps it have names that begin so."""
_MAKE = f"CREATE VIRTUAL TABLE {INDEX} USING fts5(said, content='', detail=none, tokenize='trigram')"
_LEAST = 3  # letters that the index knows together
_LONGEST = 100_000  # letters of one message that the index holds
_READ = 1000  # entries that are read at once
_LETTERS = 25_000  # letters that one commit adds: six milliseconds for which others wait, now and then thirty

Execute = Callable[..., Any]


@functools.cache
def can_index() -> bool:
    """Whether this SQLite has full text by three letters."""
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as memory:
        try:
            memory.execute(_MAKE)
        except sqlite3.Error:
            return False
    return True


class MessageIndex:
    """The index as a search reads it."""

    @staticmethod
    def up_to(execute: Execute) -> int:
        """The last entry that the index has; 0 where there is no index, or none that can be read here."""
        row = execute("SELECT value FROM meta WHERE key = ?", (INDEXED,)).fetchone() if can_index() else None
        return 0 if row is None else int(row[0])

    @staticmethod
    def find(execute: Execute, words: Sequence[str], before: int, limit: int) -> list[MessageRow] | None:
        """Messages before entry `before` that may have all `words` in them, the newest first.

        Nothing where no word is long enough to be in the index.
        """
        lowered = [_clean(word.lower()) for word in words]
        parts = {word[at : at + _LEAST] for word in lowered for at in range(len(word) - _LEAST + 1)}
        if not parts:
            return None
        question = " AND ".join('"' + part.replace('"', '""') + '"' for part in sorted(parts))
        rows = execute(
            f"SELECT e.id, substr(e.stream, {len(CONVERSATIONS) + 1}), e.at, e.payload "  # noqa: S608  names of our own
            f"FROM {INDEX} i CROSS JOIN events e ON e.id = i.rowid "
            f"WHERE i.{INDEX} MATCH ? AND i.rowid < ? ORDER BY i.rowid DESC LIMIT ?",
            (question, before, limit),
        ).fetchall()
        return [MessageRow(*row) for row in rows]


def index_messages(
    ask: Callable[[Callable[[Execute], Any]], Any], keep: Callable[[Callable[[Any], bool]], bool]
) -> bool:
    """Let the index reach a little further, in a commit that `keep` makes. Answers whether there may be more.

    The texts are read and made before the commit, which then only adds them; whoever else has added them meanwhile was
    quicker.
    """
    up_to, entries = ask(_next)
    texts: list[tuple[int, str]] = []
    letters, reached = 0, up_to
    for number, stream, kind, payload in entries:
        if letters > _LETTERS:
            break
        reached = number
        if kind == MESSAGE and type(stream) is str and stream.startswith(CONVERSATIONS):
            text = _indexed(payload)
            letters += len(text)
            texts.append((number, text))
    if reached == up_to:
        return False
    return keep(lambda tx: _add(tx.execute, up_to, reached, texts)) and (
        reached != entries[-1][0] or len(entries) == _READ
    )


def _next(execute: Execute) -> tuple[int, list[tuple[Any, ...]]]:
    up_to = MessageIndex.up_to(execute)
    rows = execute("SELECT id, stream, kind, payload FROM events WHERE id > ? ORDER BY id LIMIT ?", (up_to, _READ))
    return up_to, rows.fetchall()


def _add(execute: Execute, up_to: int, reached: int, texts: Iterable[tuple[int, str]]) -> bool:
    if MessageIndex.up_to(execute) != up_to:
        return False
    if up_to == 0:
        execute(f"DROP TABLE IF EXISTS {INDEX}")
        execute(_MAKE)
    for number, text in texts:
        execute(  # unless it was deleted meanwhile
            f"INSERT INTO {INDEX} (rowid, said) SELECT ?, ? WHERE EXISTS (SELECT 1 FROM events WHERE id = ?)",  # noqa: S608
            (number, text, number),
        )
    execute(
        "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (INDEXED, str(reached)),
    )
    return True


def forget_messages(execute: Execute, stream: str, last: int) -> None:
    """Take the entries of a stream up to number `last` out of the index, before they are deleted."""
    if not stream.startswith(CONVERSATIONS):
        return
    row = execute("SELECT value FROM meta WHERE key = ?", (INDEXED,)).fetchone()
    if row is None:
        return
    if not can_index():  # it is made anew by the next one that can read it
        execute("DELETE FROM meta WHERE key = ?", (INDEXED,))
        return
    rows = execute(
        "SELECT id, payload FROM events WHERE stream = ? AND seq <= ? AND kind = ? AND id <= ?",
        (stream, last, MESSAGE, int(row[0])),
    ).fetchall()
    for number, payload in rows:
        execute(
            f"INSERT INTO {INDEX} ({INDEX}, rowid, said) VALUES ('delete', ?, ?)",  # noqa: S608
            (number, _indexed(payload)),
        )


def _indexed(payload: object) -> str:
    """What the index holds of a message: always the same, since it is also what is taken out of it."""
    return _clean(said(payload)[:_LONGEST].lower())


def _clean(text: str) -> str:
    """Without what SQLite's full text cannot hold: a zero ends a text there, and half a letter is none."""
    return text.replace("\0", " ").encode("utf-8", "replace").decode()


def is_behind(execute: Execute, least: int) -> bool:
    """Whether at least so many entries are not in the index."""
    (newest,) = execute("SELECT max(id) FROM events").fetchone()
    return (newest or 0) - MessageIndex.up_to(execute) >= least
