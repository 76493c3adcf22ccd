"""Say something to an agent once, let it answer, and follow the answer: for a request that may be repeated.

What a request begins is written in one commit: whose it is, the messages, the entry that names the answer, and the
start of the agent's run. A repetition finds all of that or nothing.
"""

import asyncio
import contextlib
import json
import time
import weakref
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing
from typing import NamedTuple

from troth.bridge import call
from troth.runtime.agents.history import HistoryFold
from troth.runtime.agents.model import Message
from troth.runtime.conversations import AlreadyRunning, Conversation
from troth.runtime.conversations.drivers import ConversationRun
from troth.runtime.conversations.entries import Beginning
from troth.runtime.conversations.log import MESSAGE, Status, stream_of
from troth.runtime.conversations.pending_entries import Row
from troth.runtime.store import Event, Transaction, commit_point
from troth.runtime.store.sqlite.transaction import stream_topic
from troth.server.access.concurrency import refuse_too_many
from troth.server.access.scopes import Caller
from troth.server.channels import HttpChannel
from troth.server.context import ServerContext
from troth.server.errors import ApiError
from troth.server.openai_api.answer import ANSWER, CANCELLED, LoggedAnswer
from troth.server.streams.sources import LogSource
from troth.server.telemetry import trace_context, tracing

__all__ = ["ClosingError", "OwedTurn", "Talk", "follow", "messages_until", "read_answer"]

AGAIN = commit_point(
    "server.talk", "that a turn is to run for a request that came again, before anything is done for it"
)
CANCEL = commit_point("server.answer.cancel", "that an answer was cancelled")

Work = Callable[[Transaction], object]
_SHORT = 100  # entries
_AT_FIRST = 1.0  # seconds in which an answer is followed in memory: so late a cancellation elsewhere may be noticed
_LOOK = 0.5  # seconds after which an answer that was cut off is looked at again

_locks: "weakref.WeakValueDictionary[str, asyncio.Lock]" = weakref.WeakValueDictionary()


class ClosingError(Exception):
    """The server ends while an answer is followed; the answer goes on without it."""


class OwedTurn(NamedTuple):
    """A turn under way, and the moment since which it is owed."""

    conversation: Conversation
    owed_at: float
    run: ConversationRun | None = None
    """The agent's run, if it was begun right here."""


class Talk(NamedTuple):
    """A place in a conversation where a request is answered: everything of it comes after entry `after`."""

    context: ServerContext
    caller: Caller
    agent: str
    conversation_id: str
    answer_id: str
    after: int = 0

    async def begin(self, messages: Sequence[Message], *, is_new: bool, with_work: "Work | None" = None) -> "OwedTurn":
        """Send the messages and let the agent answer: one commit, with `with_work` and whose all of it is.

        `is_new` says that the conversation is for this alone. Any other is refused while something else is answered in
        it, and so is one turn too many of an owner.
        """
        context = self.context
        owed_at = context.store.clock()

        def work(tx: Transaction) -> None:
            refuse_too_many(context, self.caller, tx.server)
            if with_work is not None:
                with_work(tx)
            self._owe(tx, owed_at, is_new=is_new)

        if is_new:
            conversation = context.turns.new(self.agent, self.conversation_id)
        else:
            conversation = await context.turns.open(self.agent, self.conversation_id)
        with Talk.session(self):
            try:
                await context.turns.begin(conversation, Beginning(self._rows(messages), work, is_new))
            except AlreadyRunning:
                raise self._locked() from None
        return OwedTurn(conversation, owed_at, conversation._current)

    async def begin_again(
        self, messages: Sequence[Message], *, is_new: bool, with_work: "Work | None" = None
    ) -> "OwedTurn":
        """`begin` for a request that is repeated: does what an earlier attempt has not done, and nothing twice."""
        context = self.context
        async with _lock(context, self.conversation_id):
            owed_at = context.store.clock()
            await context.store.acommit(AGAIN, lambda tx: self._owe(tx, owed_at, is_new=is_new, with_work=with_work))
            conversation = await context.turns.open(self.agent, self.conversation_id)
            answer = await self.answer()
            if not answer.is_known:
                if not is_new and await call(lambda: conversation.status) is Status.RUNNING:
                    raise self._locked()
                first, *more = self._rows(messages)
                await conversation._aappend(*first, more)
            if not answer.is_over:
                with Talk.session(self):
                    await context.turns.start(conversation)
        return OwedTurn(conversation, owed_at)

    def _owe(self, tx: Transaction, now: float, *, is_new: bool, with_work: "Work | None" = None) -> None:
        """Write down whose the conversation is, and that a turn is owed, before anything is written in it."""
        if with_work is not None:
            with_work(tx)
        if is_new:
            tx.server.claim("conversation", self.conversation_id, self.caller.owner, now, {"agent": self.agent})
        tx.server.begin_turn(self.conversation_id, self.agent, now)

    def _rows(self, messages: Sequence[Message]) -> list[Row]:
        """The messages as entries, and behind them the one that names the answer."""
        carrier = tracing.carrier()
        traced: list[Row] = [(trace_context.KIND, carrier)] if carrier else []
        return [*((MESSAGE, message.to_json()) for message in messages), *traced, (ANSWER, {"id": self.answer_id})]

    def _locked(self) -> ApiError:
        return ApiError(
            409,
            "conversation_locked",
            f"The agent is already answering in the conversation {self.conversation_id!r}.",
            advice="Wait for its answer, or interrupt it.",
            headers={"x-should-retry": "false"},
        )

    def over(self, turn: "OwedTurn") -> None:
        """Let it be written that the turn is over: it counts no more among those that its owner has at work."""
        self.context.turns.over(self.conversation_id, turn.owed_at)

    @contextlib.contextmanager
    def session(self) -> Iterator[None]:
        """Bind what the agent begins: to the receiver of webhooks that its owner has, else to HTTP, which stores."""
        channel = self.context.webhooks.channel_for(self.caller.owner, self.conversation_id)
        with (channel or HttpChannel).session(self.conversation_id):
            yield

    async def answer(self) -> LoggedAnswer:
        """The answer as it is now."""
        store, stream = self.context.store, stream_of(self.conversation_id)
        if not store.is_shared:  # a short log is read from a file before a thread would have begun
            page = store.events(stream, after=self.after, limit=_SHORT)
            answer = LoggedAnswer(self.answer_id).read(page)
            if answer.is_over or len(page) < _SHORT:
                return answer
        return await call(read_answer, self.context, self.conversation_id, self.answer_id, self.after)

    async def await_end(self, turn: "OwedTurn") -> LoggedAnswer:
        """The answer, waiting for its end: whoever carries it out, and whatever becomes of them."""
        run = turn.run or turn.conversation._current
        if run is not None:
            await run.await_over()
            answer = LoggedAnswer(self.answer_id).read(self._remembered(run, 0))
            if answer.is_over:
                self.over(turn)
                return answer
        while True:
            answer = await self.answer()
            if answer.is_over:
                self.over(turn)
                return answer
            await self.context.turns.await_end(turn.conversation)
            await asyncio.sleep(_LOOK)  # its process died, and somebody is about to go on with it

    def _remembered(self, run: ConversationRun, count: int) -> Sequence[Event]:
        """Of the log's entries behind the place, those after the first `count`, as far as this process wrote them all.

        Nothing where it does not remember them, or where somebody else wrote in between: then the log itself is read.
        """
        events = (run.written or ())[count:]
        end = next((n for n, event in enumerate(events) if event.seq != self.after + count + n + 1), len(events))
        return events[:end]

    async def pages(self, turn: "OwedTurn") -> AsyncGenerator[Sequence[Event], None]:
        """The entries behind the place as they come, some at a time; none at all when it was quiet for a while.

        What this process writes it is told of at once, without reading the log. That lasts for a moment, which is
        enough for most answers. Then the log is followed, where other processes write, too.
        """
        cursor, deadline = self.after, time.monotonic() + _AT_FIRST
        while turn.run is not None:
            events = self._remembered(turn.run, cursor - self.after)
            if events:
                cursor = events[-1].seq
                yield events
            elif not await turn.run.await_written(cursor - self.after, deadline - time.monotonic()):
                break
            elif not self._remembered(turn.run, cursor - self.after):
                break  # somebody else wrote in between
        async with aclosing(follow(self.context, self.conversation_id, cursor)) as pages:
            async for page in pages:
                yield page

    async def cancel(self) -> LoggedAnswer:
        """End the answer. Once it is over, however it ended, it stays as it is."""
        context = self.context
        conversation = await context.turns.open(self.agent, self.conversation_id)
        async with _lock(context, self.conversation_id):
            answer = await self.answer()
            if answer.is_over or not answer.is_known:
                return answer
            payload = {"id": self.answer_id}
            stream, now = stream_of(self.conversation_id), context.store.clock()
            await context.store.acommit(CANCEL, lambda tx: tx.append_event(stream, CANCELLED, payload, now))
            await conversation.ainterrupt()
            return await self.answer()


def _lock(context: ServerContext, conversation_id: str) -> asyncio.Lock:
    key = f"{id(context)}/{conversation_id}"
    lock = _locks.get(key)
    if lock is None:
        lock = _locks[key] = asyncio.Lock()
    return lock


def read_answer(context: ServerContext, conversation_id: str, answer_id: str, after: int) -> LoggedAnswer:
    """An answer as its log tells it. Blocks."""
    answer, stream = LoggedAnswer(answer_id), stream_of(conversation_id)
    while page := context.store.events(stream, after=after):
        answer.read(page)
        after = page[-1].seq
        if answer.is_over:
            break
    return answer


async def follow(context: ServerContext, conversation_id: str, after: int) -> AsyncGenerator[list[Event], None]:
    """The entries of a conversation as they come, some at a time; none at all when it was quiet for a while."""
    stream = stream_of(conversation_id)
    topic, cursor = stream_topic(stream), after
    async with context.feeds.following(topic, lambda: LogSource(context.store, stream)) as feed:
        while True:
            items = feed.after(cursor)
            if items is None:
                items = list((await call(feed.source.read, cursor)).items)
            if items:
                cursor = items[-1].seq
                yield [_event(stream, item.seq, item.kind, item.data) for item in items]
                continue
            if feed.problem is not None:
                raise feed.problem
            if feed.is_closing or context.is_draining:
                raise ClosingError
            if feed.last <= cursor and not await feed.wait(context.limits.keep_alive):
                yield []


def _event(stream: str, seq: int, kind: str, data: str) -> Event:
    payload = json.loads(data)
    return Event(0, stream, seq, kind, payload, payload.pop("at", 0.0))


def messages_until(context: ServerContext, conversation_id: str, last: int) -> list[Message]:
    """What was said in a conversation up to entry `last`, as a model is told of it. Blocks."""
    talk, after, stream = HistoryFold(conversation_id), 0, stream_of(conversation_id)
    while page := context.store.events(stream, after=after):
        talk.take([event for event in page if event.seq <= last])
        after = page[-1].seq
        if after >= last:
            break
    return talk.messages()
