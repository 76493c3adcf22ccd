"""Ask the store for what the pages list and count: a page of it at a time, and only what the caller may see.

An admin sees everything: the lists of the store, which cost what they show. Anybody else sees what its owner began
through a server, and those are looked up one by one.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

from troth.errors import TrothError
from troth.runtime.assemble import Runtime
from troth.runtime.conversations.transcript import read_transcript
from troth.runtime.jobs.records import JobRecord
from troth.runtime.store import StoreError
from troth.runtime.store.list_records import ConversationItem, DeliveryItem, Page, PromiseItem, RunItem, SessionItem
from troth.runtime.store.rows.sessions import SessionRows
from troth.runtime.workflows.record.report import RunReport, RunWord
from troth.runtime.workflows.registry import FAMILIES
from troth.server.access.owners import page_cursor
from troth.server.routes.promises import OWNING

__all__ = [
    "BAD",
    "Hit",
    "ListFilter",
    "counts_of_runs",
    "ended_at",
    "failures_since",
    "find_conversations",
    "find_deliveries",
    "find_jobs",
    "find_promises",
    "find_runs",
    "find_sessions",
    "is_mine",
    "open_kills",
    "report_of",
    "search",
]

_PAGE = 200
_EXAMINED = 1000  # of one's own things that one page looks at
BAD = (RunWord.FAILED, RunWord.ROLLED_BACK, RunWord.ROLLBACK_INCOMPLETE, RunWord.DAMAGED)
"""How runs end that somebody has to look at."""
_LONGEST = 30 * 86_400.0  # a run that failed was begun at most so long before


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ListFilter:
    """What a list is filtered by. An empty word stands for all."""

    states: tuple[str, ...] = ()
    workflow: str = ""
    session: str = ""
    text: str = ""
    since: float | None = None
    work: str = ""

    def takes_text(self, *words: str) -> bool:
        """Whether each word of the text is in one of these."""
        return all(any(part in word.casefold() for word in words) for part in self.text.casefold().split())


def find_runs(runtime: Runtime, filters: ListFilter, before: str, limit: int, owner: str | None) -> Page[RunItem]:
    """Runs of workflows, the newest first."""
    if filters.session and not is_mine(runtime, owner, filters.session):
        return Page(())
    return runtime.store.lists.runs(
        family=FAMILIES,
        states=filters.states or None,
        label=filters.workflow or None,
        session=filters.session or None,
        owner=owner,
        since=filters.since,
        text=filters.text or None,
        cursor=before or None,
        limit=limit,
    )


def failures_since(runtime: Runtime, moment: float, owner: str | None) -> list[RunItem]:
    """Runs that have ended badly since a moment, the last one first; the newest thousand at most."""
    bad = ListFilter(BAD, since=moment - _LONGEST)
    items = find_runs(runtime, bad, "", _EXAMINED, owner).items
    return sorted((run for run in items if ended_at(run) > moment), key=lambda run: (-ended_at(run), run.id))


def ended_at(run: RunItem) -> float:
    """When a run ended; when it began where that cannot be told."""
    return run.finished_at or run.created_at


def report_of(runtime: Runtime, run_id: str) -> RunReport | None:
    """A run with its steps; None where it is none of a workflow, or was never begun."""
    try:
        return runtime.show(run_id)
    except (TrothError, StoreError):
        return None


def _mine(runtime: Runtime, kind: str, owner: str, before: str) -> Iterator[tuple[float, str]]:
    """What an owner began, the newest first, as (when, id)."""
    cursor = page_cursor(before or None)
    examined = 0
    while examined < _EXAMINED:
        page = runtime.store.read_server(
            lambda rows: rows.belongings(kind, owner=owner, before=cursor, limit=_PAGE)  # noqa: B023
        )
        yield from ((belonging.created_at, belonging.id) for belonging in page)
        if len(page) < _PAGE:
            return
        examined += len(page)
        cursor = page[-1].created_at, page[-1].id


def counts_of_runs(runtime: Runtime, owner: str | None) -> dict[str, int]:
    """How many runs are in each state; of an owner, among its newest ones."""
    if owner is None:
        return dict(runtime.lists.counts().runs)
    counts: dict[str, int] = {}
    for item in find_runs(runtime, ListFilter(), "", _EXAMINED, owner).items:
        counts[item.state] = counts.get(item.state, 0) + 1
    return counts


def is_mine(runtime: Runtime, owner: str | None, thing: str) -> bool:
    """Whether a conversation, run or session was begun by an owner; an admin's is everything."""
    if owner is None:
        return True
    belongings = runtime.store.read_server(lambda rows: [rows.belonging(kind, thing) for kind in OWNING])
    return any(belonging is not None and belonging.owner == owner for belonging in belongings)


def open_kills(runtime: Runtime, owner: str | None) -> list[tuple[str, str, str, float]]:
    """Kills that something resists, or that are under way: session, agent, reason and when."""

    def look(rows: SessionRows) -> list[tuple[str, str, str, float]]:
        kills: list[tuple[str, str, str, float]] = []
        for session in rows.sessions(states=("active", "handshaking", "terminating"), before=None, limit=_PAGE):
            kills += [
                (session.id, kill.agent, kill.reason, kill.at)
                for kill in rows.kills(session.id)
                if kill.answer is None or json.loads(kill.answer).get("left")
            ]
        return kills

    return [kill for kill in runtime.store.read_sessions(look) if is_mine(runtime, owner, kill[0])]


def _gathered(
    fetch: Callable[[str | None, int], Page[T]], takes: Callable[[T], bool], before: str, limit: int
) -> Page[T]:
    """A page of those that a filter takes which the store cannot apply: page after page of it is looked through.

    A thousand are looked at for it; where there are more, `next` continues from there.
    """
    items, examined, cursor = list[T](), 0, before or None
    while True:
        page = fetch(cursor, limit - len(items))
        items += [item for item in page.items if takes(item)]
        examined += len(page.items)
        cursor = page.next
        if cursor is None or len(items) == limit or examined >= _EXAMINED:
            return Page(items, cursor)


def find_conversations(
    runtime: Runtime, filters: ListFilter, before: str, limit: int, owner: str | None
) -> Page[ConversationItem]:
    """Conversations; those first whose last run began or ended last."""
    store = runtime.store
    if owner is None:
        return _gathered(
            lambda cursor, size: _named(
                runtime, store.lists.conversations(states=filters.states or None, cursor=cursor, limit=size)
            ),
            lambda talk: filters.takes_text(talk.id, talk.agent, talk.title or ""),
            before,
            limit,
        )
    talks = list[ConversationItem]()
    last = None
    for created_at, conversation_id in _mine(runtime, "conversation", owner, before):
        if len(talks) == limit:
            return Page(talks, last)
        last = f"{created_at!r}:{conversation_id}"
        talk = read_transcript(store, conversation_id)
        if talk is None or (filters.states and talk.status not in filters.states):
            continue
        title = next((entry.text[:200] for entry in talk.entries if entry.who == "user"), None)
        item = ConversationItem(talk.id, talk.status, talk.agent, title, talk.opened_at, talk.last_at)
        (item,) = _named(runtime, Page((item,)))
        if filters.takes_text(item.id, item.agent, title or ""):
            talks.append(item)
    return Page(talks, None)


def _named(runtime: Runtime, page: Page[ConversationItem]) -> Page[ConversationItem]:
    """Conversations with the name that a server calls their agent by, as on their own pages, instead of its class."""
    belongings = runtime.store.read_server(lambda rows: [rows.belonging("conversation", talk.id) for talk in page])
    return Page(
        [
            talk if belonging is None else replace(talk, agent=belonging.details.get("agent") or talk.agent)
            for talk, belonging in zip(page, belongings, strict=True)
        ],
        page.next,
    )


def find_sessions(
    runtime: Runtime, filters: ListFilter, before: str, limit: int, owner: str | None
) -> Page[SessionItem]:
    """Governed sessions, the newest first."""
    if owner is None:
        lists = runtime.store.lists
        return _gathered(
            lambda cursor, size: lists.sessions(states=filters.states or None, cursor=cursor, limit=size),
            lambda session: filters.takes_text(session.id, session.creator),
            before,
            limit,
        )
    sessions: list[SessionItem] = []
    last = None
    for created_at, session_id in _mine(runtime, "session", owner, before):
        if len(sessions) == limit:
            return Page(sessions, last)
        last = f"{created_at!r}:{session_id}"
        session = runtime.hypervisor.get(session_id)
        if session is None or (filters.states and session.state not in filters.states):
            continue
        if filters.takes_text(session.id, session.creator):
            times = session.created_at, session.ends_at, session.ended_at
            sessions.append(SessionItem(session.id, session.state, session.creator, *times, len(session.present)))
    return Page(sessions, None)


def find_promises(
    runtime: Runtime, filters: ListFilter, before: str, limit: int, owner: str | None
) -> Page[PromiseItem]:
    """Promises, the newest first."""
    return _gathered(
        lambda cursor, size: runtime.store.lists.promises(
            states=filters.states or None,
            session=filters.session or None,
            work=filters.work or None,
            cursor=cursor,
            limit=size,
        ),
        lambda item: filters.takes_text(item.id, item.title) and is_mine(runtime, owner, item.session),
        before,
        limit,
    )


def find_deliveries(
    runtime: Runtime, states: tuple[str, ...], before: str, limit: int, owner: str | None
) -> Page[DeliveryItem]:
    """Deliveries, those of the newest promises first."""
    return _gathered(
        lambda cursor, size: runtime.store.lists.deliveries(states=states, cursor=cursor, limit=size),
        lambda item: is_mine(runtime, owner, item.session),
        before,
        limit,
    )


def find_jobs(runtime: Runtime, owner: str | None, limit: int) -> list[JobRecord]:
    """The newest jobs."""
    return [job for job in runtime.jobs.list(limit=limit) if is_mine(runtime, owner, job.session)]


class Hit(NamedTuple):
    """One thing that was found. `kind` is run, conversation, message, session or promise."""

    kind: str
    id: str
    title: str
    at: float


def search(runtime: Runtime, text: str, owner: str | None, before: str, limit: int) -> tuple[list[Hit], str | None]:
    """What has `text` in its id, its name or a message, the newest first."""
    if owner is None:
        page = runtime.lists.search(text, cursor=before or None, limit=limit)
        return [Hit(hit.kind, hit.id, hit.text, hit.at) for hit in page.items], page.next
    filters = ListFilter(text=text)
    runs = find_runs(runtime, filters, "", limit, owner)
    talks = find_conversations(runtime, filters, "", limit, owner)
    promises = find_promises(runtime, filters, "", limit, owner)
    sessions = find_sessions(runtime, filters, "", limit, owner)
    hits = [
        *_said(runtime, text, owner, limit),
        *(Hit("run", run.id, run.label or "", run.created_at) for run in runs),
        *(Hit("conversation", talk.id, talk.title or talk.agent, talk.changed_at) for talk in talks),
        *(Hit("promise", promise.id, promise.title, promise.created_at) for promise in promises),
        *(Hit("session", session.id, f"by {session.creator}", session.created_at) for session in sessions),
    ]
    return sorted(hits, key=lambda hit: -hit.at)[:limit], None


def _said(runtime: Runtime, text: str, owner: str, limit: int) -> Iterator[Hit]:
    """What was said in conversations of an owner, the newest first, among the newest thousand that have the text."""
    is_own: dict[str, bool] = {}
    cursor: str | None = None
    examined = count = 0
    while examined < _EXAMINED and count < limit:
        page = runtime.store.lists.search(text, kinds=["message"], cursor=cursor, limit=_PAGE)
        examined += len(page.items)
        for hit in page.items:
            if hit.id not in is_own:
                is_own[hit.id] = is_mine(runtime, owner, hit.id)
            if is_own[hit.id]:
                count += 1
                yield Hit(hit.kind, hit.id, hit.text, hit.at)
        cursor = page.next
        if cursor is None or not page.items:
            return
