"""List promises, jobs and deliveries, the newest first: a page reads what it shows, whatever the store holds."""

import heapq
import itertools
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from troth.runtime.store.list_records import DeliveryItem, Page, PromiseItem
from troth.runtime.store.promise_records import DeliveryState, PromiseState
from troth.runtime.store.rows.cursors import number_cursor, read_number
from troth.runtime.store.rows.deliveries import ANY_STATE
from troth.runtime.store.rows.merge import merge

__all__ = ["list_deliveries", "list_promises"]

Execute = Callable[..., Any]

_EXAMINED = 5000  # promises that one page looks at, where a filter has to look at each
_OPEN = PromiseState.OPEN.value
_PROMISE = (
    "p.number, p.id, coalesce(d.outcome, 'open'), p.session, p.work, coalesce(p.subject, p.id), p.title, p.channel, "
    "d.state, p.created_at, d.created_at, d.expires_at, d.expired_at"
)
_PROMISES = (
    f"promises p LEFT JOIN deliveries d ON d.{ANY_STATE} AND d.session = p.session AND d.promise = p.number "
    "AND d.kind = 'done' AND d.seq = 1"
)
_OF_DELIVERY = (
    "promise, kind, seq, state, session, count, channel, attempt, due_at, problem, receipt, created_at, updated_at, "
    "finished_at"
)
_DELIVERY = (
    "d.promise, d.kind, d.seq, p.id, d.state, p.title, p.work, d.session, d.count, d.channel, p.channel, d.attempt, "
    "d.due_at, d.problem, d.receipt, d.created_at, d.updated_at, d.finished_at"
)
_ORDER = "promise DESC, kind DESC, seq DESC"
_ORDER_OF_PAGE = "d.promise DESC, d.kind DESC, d.seq DESC"
_PENDING = frozenset({DeliveryState.DUE.value, DeliveryState.LEASED.value, DeliveryState.STORED.value})
_PROBLEM = 1000  # letters of a receiver's own words
_OPEN_ONES = (
    "p.number IN (SELECT o.number FROM runs r CROSS JOIN promises o ON o.id = r.id "
    "WHERE r.state IN ('running', 'waiting') UNION ALL SELECT number FROM promises WHERE is_open = 1)"
)
_END = 1 << 62  # beyond any number of a promise
_OF_SESSION = (
    f"SELECT p.number FROM promises p WHERE p.session = ? AND {_OPEN_ONES}"  # noqa: S608
    + "".join(
        f" UNION ALL SELECT promise FROM (SELECT promise FROM deliveries WHERE state = '{state}' AND session = ? "  # noqa: S608
        f"AND promise < ? AND kind = 'done' ORDER BY promise DESC LIMIT ?) AS {state}_ones"
        for state in DeliveryState
    )
)
"""Promises of a session: those under way, and of each state of their deliveries the newest."""


def list_promises(
    execute: Execute,
    *,
    states: Collection[str] | None,
    session: str | None,
    work: str | None,
    cursor: str | None,
    limit: int,
) -> Page[PromiseItem]:
    """A page of promises. Of a session they are looked for among the newest, as with a state that is not `open`."""
    place = read_number(cursor)
    items: list[PromiseItem] = []
    examined = 0
    number = None if place is None else place[0]
    while True:
        where, values = list[str](), list[object]()
        size = min(500, max(limit - len(items) + 1, 100 if examined else 0))
        if number is not None:
            where.append("p.number < ?")
            values.append(number)
        if work is not None:
            where.append("p.work = ?" if work == "run" else "p.work = ? AND p.work != 'run'")  # so its index is used
            values.append(work)
        if states is not None and set(states) == {_OPEN}:
            where.append(_OPEN_ONES)  # what is under way is less than what is over
        if session is not None:
            where.append(f"p.number IN ({_OF_SESSION})")
            behind = _END if number is None else number
            values += [session, *[value for _ in DeliveryState for value in (session, behind, size)]]
        rows = execute(
            f"SELECT {_PROMISE} FROM {_PROMISES} WHERE {' AND '.join(['true', *where])} "  # noqa: S608
            "ORDER BY p.number DESC LIMIT ?",
            (*values, size),
        ).fetchall()
        for row in rows:
            item = PromiseItem(*row[1:])
            if states is None or item.state in states:
                if len(items) == limit:
                    return Page(items, number_cursor(number))
                items.append(item)
            number = row[0]
        examined += len(rows)
        if len(rows) < size:
            return Page(items)
        if examined >= _EXAMINED:
            return Page(items, number_cursor(number))


def list_deliveries(
    execute: Execute,
    *,
    states: Collection[str] | None,
    session: str | None,
    cursor: str | None,
    limit: int,
) -> Page[DeliveryItem]:
    """A page of deliveries, by the promise that they belong to."""
    place = read_number(cursor, more=2)
    words = sorted(states) if states is not None else [state.value for state in DeliveryState]
    if not words:
        return Page(())
    where, values = list[str](), list[object]()
    if session is not None:
        where.append("session = ?")
        values.append(session)
    if place is not None:
        where.append("(promise, kind, seq) < (?, ?, ?)")
        values += place
    page = (
        f"SELECT {_DELIVERY} FROM ({{rows}}) AS d CROSS JOIN promises p ON p.number = d.promise "  # noqa: S608
        f"ORDER BY {_ORDER_OF_PAGE}"
    )
    index, in_pieces = "", session is None and not getattr(execute, "limits_arms", False)
    if in_pieces:
        index = " INDEXED BY deliveries_by_number"
        where.append("finished_at IS NOT NULL")
    arm = f"SELECT {_OF_DELIVERY} FROM deliveries{index} WHERE {' AND '.join(['state = ?', *where])}"  # noqa: S608
    if in_pieces:
        rows = _of_all_sessions(execute, words, values, arm, page, place, limit + 1)
    else:
        rows = merge(execute, arm, [(state, *values) for state in words], _ORDER, limit + 1, page=page)
    items = [_delivery(row) for row in rows[:limit]]
    return Page(items, number_cursor(*rows[limit - 1][:3]) if len(rows) > limit else None)


def _of_all_sessions(
    execute: Execute,
    states: Collection[str],
    values: Sequence[object],
    arm: str,
    page: str,
    place: tuple[int | str, ...] | None,
    size: int,
) -> list[tuple[Any, ...]]:
    """The first rows of a page, in a file: what is over by its index, what is pending by the sessions that have it.

    As of one moment: what goes from one state to another meanwhile would be in neither of two answers.
    """
    over = [state for state in states if state not in _PENDING]
    execute("BEGIN")
    try:
        rows = merge(execute, arm, [(state, *values) for state in over], _ORDER, size, page=page) if over else []
        for state in states:
            if state in _PENDING:
                rows += _of_pending(execute, state, place, size)
    finally:
        execute("COMMIT")
    rows.sort(key=_newest_first, reverse=True)
    return rows[:size]


def _of_pending(
    execute: Execute, state: str, place: tuple[int | str, ...] | None, size: int
) -> Iterator[tuple[Any, ...]]:
    """The first rows of a pending state, the newest first: those of each session lie in order."""
    behind = "" if place is None else " AND (promise, kind, seq) < (?, ?, ?)"
    values = (state, *(place or ()))
    newest_of = f"SELECT promise FROM deliveries WHERE state = ?{behind} AND session"  # noqa: S608
    sessions = execute(
        "WITH RECURSIVE having_some (session) AS (SELECT min(session) FROM deliveries WHERE state = ? UNION ALL "  # noqa: S608
        "SELECT (SELECT min(session) FROM deliveries WHERE state = ? AND session > having_some.session) "
        "FROM having_some WHERE having_some.session IS NOT NULL) "
        f"SELECT session, ({newest_of} = having_some.session ORDER BY {_ORDER} LIMIT 1) AS newest FROM having_some "
        "WHERE having_some.session IS NOT NULL ORDER BY newest DESC LIMIT ?",
        (state, state, *values, size),
    ).fetchall()
    of_session = (
        f"SELECT {_DELIVERY} FROM deliveries d CROSS JOIN promises p ON p.number = d.promise "  # noqa: S608
        f"WHERE d.state = ?{behind.replace('(promise, kind, seq)', '(d.promise, d.kind, d.seq)')} AND d.session = ? "
        f"ORDER BY {_ORDER_OF_PAGE} LIMIT ?"
    )
    rows = heapq.merge(
        *(execute(of_session, (*values, session, size)) for session, newest in sessions if newest is not None),
        key=_newest_first,
        reverse=True,
    )
    return itertools.islice(rows, size)


def _newest_first(row: Sequence[Any]) -> tuple[Any, ...]:
    """What the order of a page compares, in a row of `_DELIVERY`."""
    promise, kind, seq, *_ = row
    return promise, kind, seq


def _delivery(row: tuple[Any, ...]) -> DeliveryItem:
    _, kind, seq, promise, state, title, work, session, count, channel, meant_for, attempt, due_at, problem = row[:14]
    receipt, created_at, updated_at, finished_at = row[14:]
    return DeliveryItem(
        id=f"{promise}-{kind}-{seq}",
        state=state,
        promise=promise,
        title=title,
        work=work,
        session=session,
        kind=kind,
        count=count,
        channel=channel,
        meant_for=meant_for,
        attempt=attempt,
        due_at=due_at,
        problem=None if problem is None else problem[:_PROBLEM],
        receipt=receipt,
        created_at=created_at,
        updated_at=updated_at,
        finished_at=finished_at,
    )
