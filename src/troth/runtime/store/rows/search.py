"""Find what has some words in its id, in its name, or in what was said.

The newest first, in windows: each page looks at the next rows of every kind, and no more, so that a search in a large
store answers at once and can be gone on with. What begins as an id does is found by the index of ids on the first page,
however old it is. Where the store has an index of messages, only the newest ones, which are not in it yet, are looked
through.
"""

import base64
import json
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple, Protocol

from troth.errors import MisuseError
from troth.runtime.store.list_records import Page, SearchHit
from troth.runtime.store.rows.conversations import CONVERSATIONS, MESSAGE
from troth.runtime.store.rows.run_lists import brief_error, of_families, pattern

__all__ = ["KINDS", "MessageRow", "SearchIndex", "said", "search"]

Execute = Callable[..., Any]
_WINDOW = 5000  # rows of each kind that one page looks at
_BY_ID = "ids"
"""The key in a cursor for kinds of which the first page had what begins as an id does."""
_LAST = "\U0010ffff"
_AROUND = 60  # letters shown before and after what matches


class _Condition(NamedTuple):
    """Which rows of a kind are meant at all."""

    sql: str
    values: list[object]


_ALL = _Condition("true", [])


class _Kind(NamedTuple):
    """Where a kind is looked for: the table, its order, its id, and the columns that are looked into."""

    table: str
    key: tuple[str, ...]
    id: str
    at: str
    texts: tuple[str, ...]
    decision: str = "NULL"


KINDS = {
    "run": _Kind(
        "runs", ("created_at", "id"), "id", "created_at", ("id", "label", "substr(error, 1, 4000)"), "decision"
    ),
    "conversation": _Kind("conversations", ("changed_at", "id"), "id", "changed_at", ("id", "agent", "title")),
    "session": _Kind("sessions", ("created_at", "id"), "id", "created_at", ("id", "creator")),
    "promise": _Kind("promises", ("number",), "id", "created_at", ("id", "title")),
    "message": _Kind("events", ("id",), f"substr(stream, {len(CONVERSATIONS) + 1})", "at", ("payload",)),
}
"""What can be searched. The id of a message is that of its conversation."""

_MESSAGES = f"stream >= '{CONVERSATIONS}' AND stream < '{CONVERSATIONS[:-1]}0' AND kind = '{MESSAGE}'"


class MessageRow(NamedTuple):
    """One message: the number of its entry, its conversation, when, and what its entry says."""

    entry: int
    conversation: str
    at: float
    payload: object


class SearchIndex(Protocol):
    """An index of messages that a store may have."""

    def up_to(self, execute: Execute) -> int:
        """The last entry that the index has."""
        ...

    def find(self, execute: Execute, words: Sequence[str], before: int, limit: int) -> list[MessageRow] | None:
        """Messages before an entry that may have all `words`, the newest first; nothing where it cannot tell."""
        ...


def search(
    execute: Execute,
    text: str,
    kinds: Collection[str] | None,
    *,
    cursor: str | None,
    limit: int,
    index: SearchIndex | None = None,
    families: tuple[str, ...] | None = None,
) -> Page[SearchHit]:
    """A page of what has all words of `text` in it: up to `limit` of each kind, the newest first.

    Of runs those of some families, if they are named.
    """
    unknown = sorted(set(kinds or ()) - set(KINDS))
    if unknown:
        raise MisuseError(f"There is no kind {unknown[0]!r} that could be searched. There are: {', '.join(KINDS)}.")
    places: dict[str, list[Any] | None]
    places = {kind: None for kind in KINDS if kinds is None or kind in kinds} if cursor is None else _read(cursor)
    words = text.split()
    hits: list[SearchHit] = []
    following: dict[str, list[Any]] = {}
    told = places.pop(_BY_ID, None) or []  # kinds of which the first page had those whose ids begin so
    for kind, place in places.items():
        if kind == "message":
            before = None if place is None else int(place[0])
            matching, end = _messages(execute, words, before, limit, index)
        else:
            condition = _Condition(*of_families(families)) if kind == "run" and families is not None else _ALL
            matching, end = _things(execute, kind, words, place, limit, told, condition)
        hits += matching
        if end is not None:
            following[kind] = end
    hits.sort(key=lambda hit: (hit.at, hit.id), reverse=True)
    if following and told:
        following[_BY_ID] = told
    return Page(hits, _written(following) if following else None)


def _things(
    execute: Execute,
    kind: str,
    words: Sequence[str],
    place: list[Any] | None,
    limit: int,
    told: list[Any],
    condition: _Condition,
) -> tuple[list[SearchHit], list[Any] | None]:
    """The hits of one kind, and where to go on. The first page has older ones whose ids begin so, and notes that."""
    matching, end = _window(execute, kind, words, place, limit, condition)
    if place is None and end is not None:  # there are older ones
        by_id = _by_id(execute, kind, words, limit, condition)
        if not matching or len(by_id) < limit:  # all of them, or nothing that is newer
            told.append(kind)
            newer = {hit.id for hit in matching}
            matching += [hit for hit in by_id if hit.id not in newer]
    elif kind in told:
        shown = {hit.id for hit in _by_id(execute, kind, words, limit, condition)}
        matching = [hit for hit in matching if hit.id not in shown]
    return matching, end


def _by_id(execute: Execute, name: str, words: Sequence[str], limit: int, condition: _Condition) -> list[SearchHit]:
    """Things whose ids begin with what is searched for: their index has them, wherever in the list they are."""
    if len(words) != 1:
        return []
    kind = KINDS[name]
    is_meant = f"CASE WHEN {condition.sql} THEN 1 ELSE 0 END = 1"  # by the index of ids, and not by that of families
    rows = execute(
        f"SELECT {kind.id}, {kind.at}, {', '.join(kind.texts)} FROM {kind.table} "  # noqa: S608  names of our own
        f"WHERE {kind.id} >= ? AND {kind.id} < ? AND {is_meant} ORDER BY {kind.id} DESC LIMIT ?",
        (words[0], words[0] + _LAST, *condition.values, limit),
    ).fetchall()
    return [SearchHit(name, thing, at, _piece(_shown(name, texts), words)) for thing, at, *texts in rows]


def _window(
    execute: Execute, name: str, words: Sequence[str], place: list[Any] | None, limit: int, condition: _Condition
) -> tuple[list[SearchHit], list[Any] | None]:
    """The hits among the next rows of one kind, and where to go on; nothing where no rows are left."""
    kind = KINDS[name]
    key, order = ", ".join(kind.key), ", ".join(f"{column} DESC" for column in kind.key)
    marks = ", ".join("?" * len(kind.key))
    bound = "" if place is None else f" WHERE ({key}) < ({marks})"
    inner = (
        f"SELECT {key}, {kind.id} AS thing, {kind.at} AS moment, {kind.decision} AS decision, "  # noqa: S608  our own names
        f"{', '.join(f'{column} AS text{number}' for number, column in enumerate(kind.texts))} "
        f"FROM {kind.table}{bound} ORDER BY {order} LIMIT {_WINDOW}"
    )
    like = " OR ".join(f"text{number} LIKE ? ESCAPE '\\'" for number in range(len(kind.texts)))
    rows = execute(
        f"SELECT * FROM ({inner}) AS latest "  # noqa: S608  names of our own
        f"WHERE {' AND '.join(f'({like})' for _ in words)} AND {condition.sql} "
        f"ORDER BY {order} LIMIT ?",
        (*(place or ()), *[pattern(word) for word in words for _ in kind.texts], *condition.values, limit),
    ).fetchall()
    width = len(kind.key)
    hits = [SearchHit(name, row[width], row[width + 1], _piece(_shown(name, row[width + 3 :]), words)) for row in rows]
    if len(rows) == limit:
        return hits, list(rows[-1][:width])
    last = execute(
        f"SELECT {key} FROM {kind.table}{bound} ORDER BY {order} LIMIT 1 OFFSET ?",  # noqa: S608
        (*(place or ()), _WINDOW - 1),
    ).fetchone()
    return hits, None if last is None else list(last)


def _messages(
    execute: Execute, words: Sequence[str], before: int | None, limit: int, index: SearchIndex | None
) -> tuple[list[SearchHit], list[Any] | None]:
    """The hits among the next messages: first those that are not in the index, then what the index finds."""
    up_to = 0 if index is None else index.up_to(execute)
    hits: list[SearchHit] = []
    if before is None or before > up_to:
        rows = _look_through(execute, words, before, up_to)
        hits, end = _matching(rows, words, limit, is_last=len(rows) < _WINDOW)
        if end is not None or not up_to:
            return hits, end
        before = up_to + 1
    examined = 0
    while True:
        older = None if index is None else index.find(execute, words, before, size := 4 * limit)
        if older is None:  # no word is long enough for the index
            older = _look_through(execute, words, before, 0)
            size = _WINDOW
        more, end = _matching(older, words, limit - len(hits), is_last=len(older) < size)
        hits += more
        examined += len(older)
        if end is None or len(hits) == limit or examined >= _WINDOW:
            return hits, end
        before = int(end[0])


def _look_through(execute: Execute, words: Sequence[str], before: int | None, after: int) -> list[MessageRow]:
    """The next messages that may have all words in them: of those without one, the last stands for where they end."""
    bounds = [_MESSAGES, *(["id < ?"] if before is not None else []), *(["id > ?"] if after else [])]
    values: list[object] = [*([before] if before is not None else []), *([after] if after else [])]
    plain = [word for word in words if word.isascii()]  # others stand in JSON in another way
    like = " AND ".join("payload LIKE ? ESCAPE '\\'" for _ in plain) or "true"
    rows = execute(
        "SELECT id, stream, at, CASE WHEN "  # noqa: S608  names of our own
        f"{like} THEN payload END FROM events WHERE {' AND '.join(bounds)} ORDER BY id DESC LIMIT {_WINDOW}",
        (*(pattern(json.dumps(word)[1:-1]) for word in plain), *values),
    ).fetchall()
    return [MessageRow(row[0], row[1][len(CONVERSATIONS) :], row[2], row[3]) for row in rows]


def _matching(
    rows: Sequence[MessageRow], words: Sequence[str], limit: int, *, is_last: bool
) -> tuple[list[SearchHit], list[Any] | None]:
    """Those rows that have all words in what was said, and where to go on."""
    lowered = [word.lower() for word in words]
    hits: list[SearchHit] = []
    for row in rows:
        if len(hits) >= limit:
            return hits, [row.entry + 1]
        if row.payload is None:
            continue
        text = said(row.payload)
        text_lowered = text.lower()
        if all(word in text_lowered for word in lowered):
            hits.append(SearchHit("message", row.conversation, row.at, _piece((text,), words)))
    return hits, None if is_last else [rows[-1].entry]


def _shown(name: str, texts: Sequence[Any]) -> list[str]:
    """The texts of a row as they are shown: its id comes last, since that is shown anyway."""
    first, *others = texts
    if name == "run" and isinstance(others[-1], str):
        error = ": ".join(filter(None, brief_error(others[-1])))
        others[-1:] = [error, others[-1]]  # what stands in neither type nor message is shown as it is kept
    return [text for text in (*others, first) if isinstance(text, str) and text]


def _piece(texts: Sequence[str], words: Sequence[str]) -> str:
    """The pieces of the texts in which the words stand, with a little before and after them."""
    pieces: list[str] = []
    for word in map(str.lower, words):
        if any(word in piece.lower() for piece in pieces):
            continue
        whole = next((text for text in texts if word in text.lower()), None)
        if whole is not None:
            start = whole.lower().find(word)
            first, last = max(0, start - _AROUND), start + len(word) + _AROUND
            pieces.append(f"{'…' if first else ''}{whole[first:last]}{'…' if last < len(whole) else ''}")
    return " · ".join(pieces) or next((whole[: 2 * _AROUND] for whole in texts), "")


def said(payload: object) -> str:
    """What a message says: its text, and the tools that it calls with their arguments."""
    try:
        message = json.loads(payload) if isinstance(payload, str) else {}
        calls = [f"{call.get('name')}({call.get('arguments')})" for call in message.get("calls") or ()]
        return "\n".join([str(message.get("text") or ""), *calls]).strip()
    except (ValueError, AttributeError, TypeError):
        return str(payload)


def _written(places: dict[str, list[Any]]) -> str:
    return base64.urlsafe_b64encode(json.dumps(places).encode()).decode().rstrip("=")


def _read(cursor: str) -> dict[str, list[Any] | None]:
    try:
        places = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        told = places.get(_BY_ID, [])
        if all(kind == _BY_ID or _is_place(place, KINDS[kind]) for kind, place in places.items()) and set(told) <= set(
            KINDS
        ):
            return dict(places)
    except (ValueError, AttributeError, TypeError, KeyError):
        pass
    raise MisuseError(f"{cursor[:40]!r} is not a cursor. Give the `next` of the previous page.")


def _is_place(place: Any, kind: _Kind) -> bool:
    return len(place) == len(kind.key) and all(isinstance(part, str | int | float) for part in place)
