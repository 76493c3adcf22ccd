"""Find what has a text in its id, in its name, or in what was said.

Plain search, the newest first, in windows: each page looks at the next rows of every kind, and no more, so that a
search in a large store answers at once and can be gone on with.
"""

import base64
import json
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

from troth.errors import MisuseError
from troth.runtime.store.list_records import Page, SearchHit
from troth.runtime.store.rows.conversations import CONVERSATIONS, MESSAGE
from troth.runtime.store.rows.run_lists import pattern

__all__ = ["KINDS", "search"]

Execute = Callable[..., Any]
_WINDOW = 5000  # rows of each kind that one page looks at
_AROUND = 60  # letters shown before and after what matches


class _Kind(NamedTuple):
    """Where a kind is looked for: the table, its order, its id, and the columns that are looked into."""

    table: str
    where: str
    key: tuple[str, ...]
    id: str
    at: str
    texts: tuple[str, ...]


KINDS = {
    "run": _Kind("runs", "true", ("created_at", "id"), "id", "created_at", ("id", "label", "substr(error, 1, 4000)")),
    "conversation": _Kind("conversations", "true", ("changed_at", "id"), "id", "changed_at", ("id", "agent", "title")),
    "session": _Kind("sessions", "true", ("created_at", "id"), "id", "created_at", ("id", "creator")),
    "promise": _Kind("promises", "true", ("number",), "id", "created_at", ("id", "title")),
    "message": _Kind(
        "events",
        f"stream >= '{CONVERSATIONS}' AND stream < '{CONVERSATIONS[:-1]}0' AND kind = '{MESSAGE}'",
        ("id",),
        f"substr(stream, {len(CONVERSATIONS) + 1})",
        "at",
        ("payload",),
    ),
}
"""What can be searched. The id of a message is that of its conversation."""


def search(
    execute: Execute, text: str, kinds: Collection[str] | None, *, cursor: str | None, limit: int
) -> Page[SearchHit]:
    """A page of what has `text` in it: up to `limit` of each kind, the newest first."""
    unknown = sorted(set(kinds or ()) - set(KINDS))
    if unknown:
        raise MisuseError(f"There is no kind {unknown[0]!r} that could be searched. There are: {', '.join(KINDS)}.")
    places: dict[str, list[Any] | None]
    places = {kind: None for kind in KINDS if kinds is None or kind in kinds} if cursor is None else _read(cursor)
    hits: list[SearchHit] = []
    following: dict[str, list[Any]] = {}
    for kind, place in places.items():
        found, end = _window(execute, kind, KINDS[kind], text, place, limit)
        hits += found
        if end is not None:
            following[kind] = end
    hits.sort(key=lambda hit: (hit.at, hit.id), reverse=True)
    return Page(hits, _written(following) if following else None)


def _window(
    execute: Execute, name: str, kind: _Kind, text: str, place: list[Any] | None, limit: int
) -> tuple[list[SearchHit], list[Any] | None]:
    """The hits among the next rows of one kind, and where to go on; nothing where no rows are left."""
    key, order = ", ".join(kind.key), ", ".join(f"{column} DESC" for column in kind.key)
    marks = ", ".join("?" * len(kind.key))
    bound = "" if place is None else f" AND ({key}) < ({marks})"
    inner = (
        f"SELECT {key}, {kind.id} AS thing, {kind.at} AS moment, "  # noqa: S608  names of our own
        f"{', '.join(f'{column} AS text{number}' for number, column in enumerate(kind.texts))} "
        f"FROM {kind.table} WHERE {kind.where}{bound} ORDER BY {order} LIMIT {_WINDOW}"
    )
    like = " OR ".join(f"text{number} LIKE ? ESCAPE '\\'" for number in range(len(kind.texts)))
    wanted = pattern(json.dumps(text)[1:-1] if name == "message" else text)
    rows = execute(
        f"SELECT * FROM ({inner}) AS latest WHERE {like} ORDER BY {order} LIMIT ?",  # noqa: S608
        (*(place or ()), *[wanted] * len(kind.texts), limit),
    ).fetchall()
    width = len(kind.key)
    hits = [SearchHit(name, row[width], row[width + 1], _piece(row[width + 2 :], text, name)) for row in rows]
    if len(rows) == limit:
        return hits, list(rows[-1][:width])
    last = execute(
        f"SELECT {key} FROM {kind.table} WHERE {kind.where}{bound} ORDER BY {order} LIMIT 1 OFFSET ?",  # noqa: S608
        (*(place or ()), _WINDOW - 1),
    ).fetchone()
    return hits, None if last is None else list(last)


def _piece(texts: tuple[Any, ...], text: str, name: str) -> str:
    """The piece of the text that matches, with a little before and after it."""
    for whole in texts:
        if not isinstance(whole, str):
            continue
        shown = _said(whole) if name == "message" else whole
        start = shown.casefold().find(text.casefold())
        if start >= 0:
            first, last = max(0, start - _AROUND), start + len(text) + _AROUND
            return f"{'…' if first else ''}{shown[first:last]}{'…' if last < len(shown) else ''}"
    return next((whole[: 2 * _AROUND] for whole in texts if isinstance(whole, str)), "")


def _said(payload: str) -> str:
    try:
        message = json.loads(payload)
        return str(message.get("text") or payload)
    except (ValueError, AttributeError):
        return payload


def _written(places: dict[str, list[Any]]) -> str:
    return base64.urlsafe_b64encode(json.dumps(places).encode()).decode().rstrip("=")


def _read(cursor: str) -> dict[str, list[Any] | None]:
    try:
        places = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        if all(
            kind in KINDS
            and len(place) == len(KINDS[kind].key)
            and all(isinstance(one, str | int | float) for one in place)
            for kind, place in places.items()
        ):
            return dict(places)
    except (ValueError, AttributeError, TypeError):
        pass
    raise MisuseError(f"{cursor[:40]!r} is no place in a search. Give what the page before it has as `next`.")


def _is_place(place: Any, kind: _Kind) -> bool:
    return len(place) == len(kind.key) and all(isinstance(part, str | int | float) for part in place)
