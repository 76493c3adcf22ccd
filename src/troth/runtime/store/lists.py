"""Questions for pages and commands: lists with cursors, counts by state, what changed, and search.

Every answer costs what it shows, whatever the store holds: lists walk an index in its own order, counts are kept as
states change, and changes are read behind a cursor. Every method may be called from any thread; none changes anything.
"""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar

from troth.errors import MisuseError
from troth.runtime.arguments import check_count
from troth.runtime.store.list_records import (
    ConversationItem,
    DeliveryItem,
    OpenWaitItem,
    Page,
    PromiseItem,
    RunItem,
    SearchHit,
    SessionItem,
    StateChanges,
    StoreCounts,
)
from troth.runtime.store.rows.open_waits import list_open_waits
from troth.runtime.store.rows.other_lists import count_states, list_conversations, list_sessions, read_changes
from troth.runtime.store.rows.promise_lists import list_deliveries, list_promises
from troth.runtime.store.rows.run_lists import RunFilter, families_of, list_labels, list_runs
from troth.runtime.store.rows.search import SearchIndex, search

__all__ = ["MOST", "StoreLists"]

T = TypeVar("T")
_ENDS = "SELECT (SELECT min(id) FROM state_changes), (SELECT max(id) FROM state_changes)"  # in one it would read all
MOST = 1000
"""How many a page has at most."""
_SEARCH_TIME = 0.5  # seconds for which a search that finds nothing goes on by itself


class StoreLists:
    """Lists of what a store holds. `ask` lends a connection to a question, `living` tells which owners are alive."""

    def __init__(
        self,
        ask: Callable[[Callable[[Callable[..., Any]], Any]], Any],
        living: Callable[[Callable[..., Any]], Sequence[str]],
        complete: Callable[[Callable[..., Any]], int | None] = lambda _: None,
        index: SearchIndex | None = None,
        after_search: Callable[[], None] = lambda: None,
    ) -> None:
        self._ask = ask
        self._living = living
        self._complete = complete
        self._index = index
        self._after_search = after_search

    def runs(
        self,
        *,
        family: str | Collection[str] | None = None,
        states: Collection[str] | None = None,
        label: str | None = None,
        session: str | None = None,
        owner: str | None = None,
        since: float | None = None,
        until: float | None = None,
        text: str | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> Page[RunItem]:
        """A page of runs, the newest first.

        `family` is how the names of their decisions begin, as in `workflow:`, one or several; `label` is the name of
        the workflow;
        `session` a governed session that they belong to, `owner` whoever began them through a server. `since` and
        `until` are seconds since 1970, the first counting and the second not. `text` is looked for in ids, names and
        messages of errors, without regard to case; a page looks at 5,000 runs for it, and its `next` goes on from
        there.
        """
        check_limit(limit)
        words = None if states is None else {str(state) for state in states}
        run_filter = RunFilter(families_of(family), words, label, session, owner, since, until, text or None)
        if words is not None and not words:
            return Page(())
        return self._with_living(
            lambda execute, living: list_runs(execute, run_filter, living, cursor=cursor, limit=limit)
        )

    def labels(self, *, limit: int = 50) -> Sequence[str]:
        """The names of the workflows that runs have, in the order of the alphabet; costs as much as there are."""
        check_limit(limit)
        return self._answer(lambda execute: list_labels(execute, limit))

    def open_waits(self, run_ids: Sequence[str], *, signal: str) -> Mapping[str, Sequence[OpenWaitItem]]:
        """What each of these runs waits for: signals whose names begin so, and that nobody has sent yet.

        Also where another branch of the run works, or waits for something else. Runs that wait for none are not in it.
        """
        return self._answer(lambda execute: list_open_waits(execute, run_ids, signal))

    def conversations(
        self, *, states: Collection[str] | None = None, cursor: str | None = None, limit: int = 50
    ) -> Page[ConversationItem]:
        """A page of conversations: those first whose last run began or ended last."""
        check_limit(limit)
        words = None if states is None else {str(state) for state in states}
        return self._with_living(
            lambda execute, living: list_conversations(execute, living, states=words, cursor=cursor, limit=limit)
        )

    def sessions(
        self, *, states: Collection[str] | None = None, cursor: str | None = None, limit: int = 50
    ) -> Page[SessionItem]:
        """A page of governed sessions, the newest first."""
        check_limit(limit)
        words = None if states is None else {str(state) for state in states}
        return self._answer(lambda execute: list_sessions(execute, states=words, cursor=cursor, limit=limit))

    def promises(
        self,
        *,
        states: Collection[str] | None = None,
        session: str | None = None,
        work: str | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> Page[PromiseItem]:
        """A page of promises, the newest first; `work` is `run`, `job`, or another kind of work."""
        check_limit(limit)
        words = None if states is None else {str(state) for state in states}
        return self._answer(
            lambda execute: list_promises(execute, states=words, session=session, work=work, cursor=cursor, limit=limit)
        )

    def jobs(
        self,
        *,
        states: Collection[str] | None = None,
        session: str | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> Page[PromiseItem]:
        """A page of jobs, the newest first: `promises` whose work is a command in the background."""
        return self.promises(states=states, session=session, work="job", cursor=cursor, limit=limit)

    def deliveries(
        self,
        *,
        states: Collection[str] | None = None,
        session: str | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> Page[DeliveryItem]:
        """A page of deliveries, newest promises first."""
        check_limit(limit)
        words = None if states is None else {str(state) for state in states}
        return self._answer(
            lambda execute: list_deliveries(execute, states=words, session=session, cursor=cursor, limit=limit)
        )

    def counts(self, *, family: str | Collection[str] | None = None) -> StoreCounts:
        """How many there are in each state, as of now; of runs, those of a family or of several, if any is named."""
        families = families_of(family)
        return self._with_living(lambda execute, living: count_states(execute, families, living))

    def changes(self, *, after: int = 0, limit: int = 1000) -> StateChanges:
        """What came into another state behind change `after`, in the order in which it was committed.

        The one stream of everything that happens in a store. Whoever goes on behind the last change that was told
        misses none. Listen to `changes_topic` to know when to look. `first` and `last` are of what is kept: the last
        100,000 changes or so.
        """

        def look(execute: Callable[..., Any]) -> StateChanges:
            up_to = self._complete(execute)
            items = read_changes(execute, after, limit)
            ((first, last),) = execute(_ENDS).fetchall()
            if up_to is not None:
                items = [item for item in items if item.id <= up_to]
                last = min(last or 0, up_to)
            return StateChanges(items, first or 1, last or 0)

        return self._answer(look)

    def search(
        self,
        text: str,
        *,
        kinds: Collection[str] | None = None,
        family: str | Collection[str] | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> Page[SearchHit]:
        """What has each word of `text` in its id, its name or, of a conversation, in what was said.

        Without regard to case, and also where a word is a part of a longer one. `kinds` are `run`, `conversation`,
        `session`, `promise` and `message`; of runs those of a family, or of several, if any is named. A page looks at
        so many rows of each, and for half a second goes on by itself until it has found something; its `next` continues
        from there. A file keeps an index of messages, where its SQLite has full text: it is made in the background when
        somebody has searched, and then makes searches quick, however many messages there are. It holds the first
        100,000 letters of each.
        """
        check_limit(limit)
        if not text.strip():
            raise MisuseError("There is nothing to search for. Give a part of an id, of a name, or of a message.")
        wanted = None if kinds is None else set(kinds)
        families = families_of(family)
        deadline = time.monotonic() + _SEARCH_TIME

        def look(place: str | None) -> Page[SearchHit]:
            return self._answer(
                lambda execute: search(
                    execute, text, wanted, cursor=place, limit=limit, index=self._index, families=families
                )
            )

        page = look(cursor)
        while not page.items and page.next is not None and time.monotonic() < deadline:
            page = look(page.next)
        self._after_search()
        return page

    def _answer(self, question: Callable[[Callable[..., Any]], T]) -> T:
        answer: T = self._ask(question)
        return answer

    def _with_living(self, question: Callable[[Callable[..., Any], Sequence[str]], T]) -> T:
        return self._answer(lambda execute: question(execute, self._living(execute)))


def check_limit(limit: int) -> None:
    """Refuse a page that nobody would read."""
    check_count("limit", limit)
    if limit > MOST:
        raise MisuseError(f"`limit={limit}` is more than one page. Give {MOST:,} or less; `next` is the next page.")
