"""Say something to an agent once, let it answer, and follow the answer: for a request that may be repeated.

The messages of a request and the entry that names it are written in one commit, so a repetition finds both or neither.
"""

import asyncio
import contextlib
import json
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from troth.bridge import call
from troth.runtime.agents.history import HistoryFold
from troth.runtime.agents.model import Message
from troth.runtime.conversations import Conversation
from troth.runtime.conversations.log import MESSAGE, Status, stream_of
from troth.runtime.store import Event, Transaction, commit_point
from troth.runtime.store.transaction import stream_topic
from troth.server.access import Caller
from troth.server.channels import HttpChannel
from troth.server.context import ServerContext
from troth.server.errors import ApiError
from troth.server.openai_api.answer import ANSWER, CANCELLED, Answer
from troth.server.sources import LogSource
from troth.server.telemetry import trace_context, tracing
from troth.server.turns import TURN_BEGIN

__all__ = ["Begun", "ClosingError", "Talk", "follow", "messages_until", "read_answer"]

NEW_TALK = commit_point("server.talk", "whose a conversation is, and that a turn of it is owed, before it is opened")
CANCEL = commit_point("server.answer.cancel", "that somebody cancelled an answer")

_SHORT = 100  # entries
_LOOK = 0.5  # seconds after which an answer that was cut off is looked at again

_locks: "weakref.WeakValueDictionary[str, asyncio.Lock]" = weakref.WeakValueDictionary()


class ClosingError(Exception):
    """The server ends while an answer is followed; the answer goes on without it."""


class Begun(NamedTuple):
    """A turn under way, and the moment since which it is owed."""

    conversation: Conversation
    owed_at: float


class Talk(NamedTuple):
    """A place in a conversation where a request is answered: everything of it comes after entry `after`."""

    context: ServerContext
    caller: Caller
    agent: str
    conversation_id: str
    answer_id: str
    after: int = 0

    async def begin(
        self,
        messages: Sequence[Message],
        *,
        is_new: bool,
        is_repeated: bool,
        before_start: "Callable[[Talk], Awaitable[None]] | None" = None,
    ) -> "Begun":
        """Send the messages, unless they were sent before, and let the agent answer, unless it did or does.

        `is_new` says that the conversation is for this alone. Any other is refused while something else is answered in
        it. `is_repeated` says that an earlier attempt may have done part of this. `before_start` is awaited between
        sending and answering.
        """
        context = self.context
        async with _lock(context, self.conversation_id):
            owed_at = context.store.clock()
            if is_new:
                await context.store.acommit(NEW_TALK, lambda tx: self._claim(tx, owed_at))
            conversation = await context.turns.open(self.agent, self.conversation_id)
            answer = await self.answer() if is_repeated or not is_new else Answer(self.answer_id)
            if not answer.is_known:
                if not is_new and await call(lambda: conversation.status) is Status.RUNNING:
                    raise ApiError(
                        409,
                        "conversation_locked",
                        f"The agent is answering in the conversation {self.conversation_id!r} just now.",
                        advice="Wait for its answer, or interrupt it.",
                        headers={"x-should-retry": "false"},
                    )
                if not is_new:
                    await context.store.acommit(
                        TURN_BEGIN, lambda tx: tx.server.begin_turn(self.conversation_id, self.agent, owed_at)
                    )
                await self._send(conversation, messages)
            if before_start is not None:
                await before_start(self)
            if not answer.is_over:
                with Talk.session(self):
                    await context.turns.start(conversation)
        return Begun(conversation, owed_at)

    def _claim(self, tx: Transaction, now: float) -> None:
        """Write down whose the conversation is, and that a turn is owed, before anything is written in it."""
        tx.server.claim("conversation", self.conversation_id, self.caller.owner, now, {"agent": self.agent})
        tx.server.begin_turn(self.conversation_id, self.agent, now)

    def over(self, begun: "Begun") -> None:
        """Let it be written that the turn is over: it counts no more among those that its owner has at work."""
        self.context.turns.over(self.conversation_id, begun.owed_at)

    async def _send(self, conversation: Conversation, messages: Sequence[Message]) -> None:
        first, *others = [(MESSAGE, message.to_json()) for message in messages]
        carrier = tracing.carrier()
        traced = [(trace_context.KIND, carrier)] if carrier else []
        await conversation._aappend(*first, [*others, *traced, (ANSWER, {"id": self.answer_id})])

    @contextlib.contextmanager
    def session(self) -> Iterator[None]:
        """Bind what the agent begins: to the receiver of webhooks that its owner has, else to HTTP, which stores."""
        channel = self.context.webhooks.channel_for(self.caller.owner, self.conversation_id)
        with (channel or HttpChannel).session(self.conversation_id):
            yield

    async def answer(self) -> Answer:
        """The answer as it is now."""
        read = partial(read_answer, self.context, self.conversation_id, self.answer_id, self.after)
        is_short = self.context.store.last_event(stream_of(self.conversation_id)) - self.after < _SHORT
        return read() if is_short else await call(read)  # a short log is read before a thread would have begun

    async def await_end(self, begun: "Begun") -> Answer:
        """The answer, waiting for its end: whoever carries it out, and whatever becomes of them."""
        while True:
            await self.context.turns.await_end(begun.conversation)
            answer = await self.answer()
            if answer.is_over:
                self.over(begun)
                return answer
            await asyncio.sleep(_LOOK)  # its process died, and somebody is about to go on with it

    async def cancel(self) -> Answer:
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


def read_answer(context: ServerContext, conversation_id: str, answer_id: str, after: int) -> Answer:
    """An answer as its log tells it. Blocks."""
    answer, stream = Answer(answer_id), stream_of(conversation_id)
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
