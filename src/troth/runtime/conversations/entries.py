"""Write entries of a conversation's log in one commit, under the lease of whoever writes them."""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from troth.errors import TrothError
from troth.runtime.conversations import living_runs, log
from troth.runtime.conversations.errors import AlreadyRunning
from troth.runtime.conversations.pending_entries import Row
from troth.runtime.store import Event, LeaseLostError, Transaction
from troth.runtime.store.large_values import is_large
from troth.runtime.tools.call import PendingCall

if TYPE_CHECKING:
    from troth.runtime.conversations.conversation import Conversation
    from troth.runtime.conversations.drivers import ConversationRun

__all__ = ["Beginning", "Entries", "Gate", "NewsError"]


class Gate(Protocol):
    """Whoever is asked before anything is said in a conversation, or a run of it begins."""

    session: str
    """The governed session that the conversation belongs to."""

    def before(self, kinds: Sequence[str]) -> None:
        """Refuse by raising, before the commit."""

    def inside(self, tx: Transaction, entries: Sequence[tuple[str, Mapping[str, Any]]], now: float) -> None:
        """Refuse by raising, in the commit that writes the entries; what it writes is kept with them."""

    def after_refusal(self) -> None:
        """A commit has failed: if that was because `inside` refused, write down that it did."""

    def judge_calls(self, calls: Sequence[PendingCall]) -> Mapping[int, str]:
        """Which of these calls of tools are refused, and why; asked before any of them is made. Blocks."""


class Beginning(NamedTuple):
    """What is written in the commit that begins a run, before its start: all of it is kept, or none.

    `work` comes first and may refuse the run by raising. `rows` are added to the log. `is_new` says that nobody has
    opened the conversation yet: it is opened in this commit.
    """

    rows: Sequence[Row] = ()
    work: Callable[[Transaction], object] | None = None
    is_new: bool = False

    @property
    def is_large(self) -> bool:
        """Whether writing it may take noticeable time."""
        return any(is_large(payload) for _, payload in self.rows)


class NewsError(Exception):
    """Something came in between looking and ending; nothing of the ending is written."""


class Entries:
    """A commit's work: add `rows` to the log, after what the run has pending. Answers the new entries, in order.

    `is_agents` marks what only the agent may write: the run has to have the lease, or nobody. Everybody may send.
    """

    __slots__ = ("_conversation", "_elsewhere", "_is_agents", "_rows", "_run", "_taken")

    def __init__(
        self,
        conversation: "Conversation",
        run: "ConversationRun | None",
        rows: Sequence[Row] = (),
        *,
        is_agents: bool = False,
        elsewhere: Sequence[tuple[str, str, object]] = (),
    ) -> None:
        self._conversation = conversation
        self._run = run
        self._rows = rows
        self._is_agents = is_agents
        self._elsewhere = elsewhere
        self._taken: list[Row] = []

    @property
    def is_large(self) -> bool:
        """Whether writing them may take noticeable time."""
        return any(is_large(payload) for _, payload in self._rows)

    def __call__(self, tx: Transaction) -> list[Event]:
        """Write them."""
        now = self._conversation.now()
        self._take_pending(tx)
        rows = [*self._taken, *self._rows]
        if rows and self._conversation._gate is not None:
            self._conversation._gate.inside(tx, rows, now)
        for stream, kind, payload in self._elsewhere:
            tx.append_event(stream, kind, payload, now)
        return self._append(tx, rows, now)

    def own(self, events: Sequence[Event]) -> Event:
        """Of what was written, the first of the entries that it was about."""
        return events[len(events) - len(self._rows)]

    def take_back(self) -> None:
        """It was not written: what was pending is pending again."""
        if self._run is not None:
            self._run.pending.put_back(self._taken)
            self._taken = []

    def _take_pending(self, tx: Transaction) -> None:
        run, resource = self._run, log.stream_of(self._conversation.id)
        if run is not None:
            try:
                tx.hold(resource, run.run_id)
            except LeaseLostError:
                if self._is_agents:
                    raise
                self.take_back()  # it was held when this was tried before
                return
            if not run.is_ended:
                self._taken += run.pending.take()
        elif self._is_agents:
            self._check_free(tx, resource)

    def _check_free(self, tx: Transaction, resource: str) -> None:
        """Nobody runs it here, so nobody may run it elsewhere."""
        holder = tx.holder_of(resource)
        if holder is None:
            return
        if living_runs.is_run_by(
            holder, self._conversation.look_inside(tx).open_run, self._conversation._home.store.is_alive
        ):
            where = "this process" if holder.pid == os.getpid() else f"process {holder.pid}"
            raise AlreadyRunning(
                f"The conversation {self._conversation.id!r} is running, in {where}, and only the agent of that run "
                "adds to it.\nNothing was written.\nSay something to the agent with `send`, or wait for its end."
            )

    def _append(self, tx: Transaction, rows: Sequence[Row], now: float) -> list[Event]:
        stream = log.stream_of(self._conversation.id)
        return [
            Event(0, stream, tx.append_event(stream, kind, payload, now), kind, payload, now) for kind, payload in rows
        ]


class RunEntries(Entries):
    """What a run itself notes: that a step is done or, with `is_end`, that it is over, and its lease is free.

    With `seen` only if nothing came in after that entry; otherwise `NewsError`.
    """

    __slots__ = ("_is_end", "_seen")

    def __init__(self, run: "ConversationRun", row: Row, *, is_end: bool = False, seen: int | None = None) -> None:
        super().__init__(run.conversation, run, [row], is_agents=True)
        self._is_end = is_end
        self._seen = seen

    def __call__(self, tx: Transaction) -> list[Event]:
        """Write it."""
        conversation, run = self._conversation, self._run
        assert run is not None
        stream, now = log.stream_of(conversation.id), conversation.now()
        if self._seen is not None and tx.last_event(stream) != self._seen:
            tx.events(stream, after=self._seen)  # raises if what came in cannot be read: it would come in forever
            raise NewsError
        self._take_pending(tx)
        if self._seen is not None and any(kind == log.ASKED for kind, _ in self._taken):
            raise NewsError
        if self._taken and conversation._gate is not None:
            try:
                conversation._gate.inside(tx, self._taken, now)
            except TrothError:  # the agent may say nothing more, but what was asked of its run is written
                self._taken = [row for row in self._taken if row[0] != log.TOKENS]
        events = self._append(tx, [*self._taken, *self._rows], now)
        if self._is_end:
            tx.release(stream, run.run_id)
        return events

    def rows(self) -> list[Row]:
        """What it would write now."""
        assert self._run is not None
        self._taken += self._run.pending.take()
        return [*self._taken, *self._rows]
