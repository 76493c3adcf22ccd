"""List what a runtime's store holds, for pages and commands: each verb in both colors, and each page with a cursor.

    page = runtime.lists.runs(state="failed", workflow="order")
    page = runtime.lists.runs(state="failed", workflow="order", cursor=page.next)

A page costs what it shows, whatever the store holds.
"""

from collections.abc import Collection, Iterable
from dataclasses import replace
from enum import StrEnum

from troth.bridge import call
from troth.errors import MisuseError
from troth.runtime.conversations.log import Status
from troth.runtime.sessions.state import SessionState
from troth.runtime.store import Store
from troth.runtime.store.list_records import (
    ConversationItem,
    DeliveryItem,
    Page,
    PromiseItem,
    RunItem,
    SearchHit,
    SessionItem,
    StateChanges,
    StoreCounts,
)
from troth.runtime.store.promise_records import DeliveryState, PromiseState
from troth.runtime.workflows.document.problems import did_you_mean
from troth.runtime.workflows.record.report import RunWord
from troth.runtime.workflows.registry import FAMILIES

__all__ = ["Lists", "words_of"]

States = str | Iterable[str] | None
"""One state in its word, several, or all."""


class Lists:
    """Lists of one store. May be shared between threads and loops; nothing here changes anything."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def runs(
        self,
        *,
        state: States = None,
        workflow: str | None = None,
        session: str | None = None,
        since: float | None = None,
        until: float | None = None,
        text: str | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> Page[RunItem]:
        """A page of runs of workflows and sagas, the newest first; also of those that a governed session carries out.

        `state` is a word such as `rolled back`, or several; `session` is a governed session that carries them out.
        `since` and `until` are seconds since 1970. `text` is looked for in ids, names and messages of errors; a page
        looks at 5,000 runs for it, so one with few or none can still have a `next`.
        """
        return self._store.lists.runs(
            family=FAMILIES,
            states=words_of(RunWord, state, "run"),
            label=workflow,
            session=session,
            since=since,
            until=until,
            text=text,
            cursor=cursor,
            limit=limit,
        )

    async def aruns(
        self,
        *,
        state: States = None,
        workflow: str | None = None,
        session: str | None = None,
        since: float | None = None,
        until: float | None = None,
        text: str | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> Page[RunItem]:
        """`runs` for a task."""
        return await call(
            lambda: self.runs(
                state=state,
                workflow=workflow,
                session=session,
                since=since,
                until=until,
                text=text,
                cursor=cursor,
                limit=limit,
            )
        )

    def conversations(
        self, *, state: States = None, cursor: str | None = None, limit: int = 50
    ) -> Page[ConversationItem]:
        """A page of conversations: those first whose last run began or ended last."""
        states = words_of(Status, state, "conversation")
        return self._store.lists.conversations(states=states, cursor=cursor, limit=limit)

    async def aconversations(
        self, *, state: States = None, cursor: str | None = None, limit: int = 50
    ) -> Page[ConversationItem]:
        """`conversations` for a task."""
        return await call(lambda: self.conversations(state=state, cursor=cursor, limit=limit))

    def sessions(self, *, state: States = None, cursor: str | None = None, limit: int = 50) -> Page[SessionItem]:
        """A page of governed sessions, the newest first."""
        states = words_of(SessionState, state, "session")
        return self._store.lists.sessions(states=states, cursor=cursor, limit=limit)

    async def asessions(self, *, state: States = None, cursor: str | None = None, limit: int = 50) -> Page[SessionItem]:
        """`sessions` for a task."""
        return await call(lambda: self.sessions(state=state, cursor=cursor, limit=limit))

    def promises(
        self,
        *,
        state: States = None,
        session: str | None = None,
        work: str | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> Page[PromiseItem]:
        """A page of promises, the newest first; `work` is `run`, `job`, or another kind of work.

        Other states than `open` are looked for among 5,000 promises for each page.
        """
        states = words_of(PromiseState, state, "promise")
        return self._store.lists.promises(states=states, session=session, work=work, cursor=cursor, limit=limit)

    async def apromises(
        self,
        *,
        state: States = None,
        session: str | None = None,
        work: str | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> Page[PromiseItem]:
        """`promises` for a task."""
        return await call(lambda: self.promises(state=state, session=session, work=work, cursor=cursor, limit=limit))

    def jobs(
        self, *, state: States = None, session: str | None = None, cursor: str | None = None, limit: int = 50
    ) -> Page[PromiseItem]:
        """A page of jobs, the newest first, as the promises that they are. `runtime.jobs.get` tells more of one."""
        return self.promises(state=state, session=session, work="job", cursor=cursor, limit=limit)

    async def ajobs(
        self, *, state: States = None, session: str | None = None, cursor: str | None = None, limit: int = 50
    ) -> Page[PromiseItem]:
        """`jobs` for a task."""
        return await call(lambda: self.jobs(state=state, session=session, cursor=cursor, limit=limit))

    def deliveries(
        self, *, state: States = None, session: str | None = None, cursor: str | None = None, limit: int = 50
    ) -> Page[DeliveryItem]:
        """A page of deliveries, newest promises first."""
        states = words_of(DeliveryState, state, "delivery")
        return self._store.lists.deliveries(states=states, session=session, cursor=cursor, limit=limit)

    async def adeliveries(
        self, *, state: States = None, session: str | None = None, cursor: str | None = None, limit: int = 50
    ) -> Page[DeliveryItem]:
        """`deliveries` for a task."""
        return await call(lambda: self.deliveries(state=state, session=session, cursor=cursor, limit=limit))

    def counts(self) -> StoreCounts:
        """How many there are in each state, as of now; of runs, those of workflows and sagas, in sessions or not.

        They are kept as states change, so they cost the same however much there is, and add up with the lists.
        """
        counts = self._store.lists.counts(family=FAMILIES)
        unknown = [word for word in counts.runs if word not in set(RunWord)]
        if not unknown:
            return counts
        runs = dict(counts.runs)
        damaged = sum(runs.pop(word) for word in unknown)
        return replace(counts, runs={**runs, RunWord.DAMAGED.value: runs.get(RunWord.DAMAGED, 0) + damaged})

    async def acounts(self) -> StoreCounts:
        """`counts` for a task."""
        return await call(self.counts)

    def changes(self, *, after: int = 0, limit: int = 1000) -> StateChanges:
        """What came into another state behind change `after`: the one stream of everything that happens in the store.

        Whoever goes on behind the last change that was told misses none. Listen to the store's `changes_topic` to know
        when to look.
        """
        return self._store.lists.changes(after=after, limit=limit)

    async def achanges(self, *, after: int = 0, limit: int = 1000) -> StateChanges:
        """`changes` for a task."""
        return await call(lambda: self.changes(after=after, limit=limit))

    def search(
        self, text: str, *, kinds: Collection[str] | None = None, cursor: str | None = None, limit: int = 50
    ) -> Page[SearchHit]:
        """What has each word of `text` in its id, its name or in what was said; up to `limit` of each kind.

        `kinds` are `run`, `conversation`, `session`, `promise` and `message`; all of them if none is named.
        """
        return self._store.lists.search(text, kinds=kinds, family=FAMILIES, cursor=cursor, limit=limit)

    async def asearch(
        self, text: str, *, kinds: Collection[str] | None = None, cursor: str | None = None, limit: int = 50
    ) -> Page[SearchHit]:
        """`search` for a task."""
        return await call(lambda: self.search(text, kinds=kinds, cursor=cursor, limit=limit))


def words_of(kind: type[StrEnum], states: States, name: str) -> set[str] | None:
    """The states that are meant; refuses a word that is none."""
    if states is None:
        return None
    words = {states} if isinstance(states, str) else set(states)
    every = [str(word) for word in kind]
    for word in sorted(words):
        if word not in every:
            advice = did_you_mean(word, every, kind="state")
            raise MisuseError(f"There is no state {word!r} that a {name} can be in. {advice}")
    return {str(word) for word in words}
