"""Carry out the turns of conversations that were accepted, and go on with those that a crash has cut off.

A turn is written down before its message is, and before anybody is told that it was accepted. Whoever finds a turn that
is not over and that nobody carries out goes on with it: the next start of the server, or another server on the store.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Iterable, Mapping

from troth.bridge import call
from troth.runtime.agents.method_color import decide
from troth.runtime.assemble import Runtime
from troth.runtime.conversations import AlreadyRunning, Conversation, Stopping
from troth.runtime.conversations.entries import Beginning
from troth.runtime.conversations.log import STARTED, Status, stream_of
from troth.runtime.store import Notifier, StoreError, Transaction, commit_point
from troth.runtime.store.aread import aread
from troth.runtime.store.rows.server import TurnRow
from troth.runtime.store.sqlite.transaction import stream_topic
from troth.server.channels import HttpChannel
from troth.server.telemetry.turn_spans import trace_turn

__all__ = ["Turns"]

log = logging.getLogger("troth.server")

TURN_BEGIN = commit_point("server.turn.begin", "that a turn is to run, before its message is written")
TURN_END = commit_point("server.turn.end", "that a turn is over")

_KEPT = 512  # handles of conversations
_TOGETHER = 0.05  # seconds in which turns that end are gathered
_LET_GO = 5.0  # seconds in which a run that is let go of has to end
_LOOK = 1.0  # seconds between two looks at turns that nobody may be carrying out


class Turns:
    """The turns of one server."""

    def __init__(self, runtime: Runtime, agents: Mapping[str, object]) -> None:
        self._runtime = runtime
        self._store = runtime.store
        self._agents = agents
        self._ways = {name: decide(agent) for name, agent in agents.items()}  # what would fail later is refused now
        self._refused: set[str] = set()
        self.has_content = False
        """Whether spans may tell what is said."""
        self._over: list[tuple[str, float]] = []
        self._telling: asyncio.Task[None] | None = None
        self._recent: OrderedDict[tuple[str, str], Conversation] = OrderedDict()

    async def open(self, agent: str, conversation_id: str) -> Conversation:
        """A handle of a conversation with an agent of this server.

        The handles that were asked for last are kept: what the log tells is then read once, and not for each request.
        """
        key = agent, conversation_id  # several agents may take turns in one conversation
        conversation = self._recent.pop(key, None)
        if conversation is None:
            conversation = await self._runtime.conversations.aopen(self._agents[agent], conversation_id)
        self._remember(key, conversation)
        return conversation

    def new(self, agent: str, conversation_id: str) -> Conversation:
        """A handle of a conversation that begins with its first turn; see `Beginning`."""
        conversation = self._runtime.conversations.new_handle(self._agents[agent], self._ways[agent], conversation_id)
        self._remember((agent, conversation_id), conversation)
        return conversation

    def _remember(self, key: tuple[str, str], conversation: Conversation) -> None:
        self._recent[key] = conversation
        while len(self._recent) > _KEPT:
            self._recent.popitem(last=False)

    async def owe(self, conversation_id: str, agent: str) -> None:
        """Write down that a turn is to be carried out, whatever becomes of this process. Before anything is sent."""
        now = self._store.clock()
        await self._store.acommit(TURN_BEGIN, lambda tx: tx.server.begin_turn(conversation_id, agent, now))

    async def start(self, conversation: Conversation, *, unless_since: float | None = None) -> bool:
        """Let the agent answer, in the background; false if a run is under way, which sees what was sent.

        A request that is repeated gives the moment at which it first came: a run that began since then is its own.
        """
        if unless_since is not None and await call(_has_run_since, conversation, unless_since):
            return True
        try:
            number = await conversation.astart()
        except AlreadyRunning:
            return False
        trace_turn(self._store, conversation, number, has_content=self.has_content)
        return True

    def over(self, conversation_id: str, owed_at: float) -> None:
        """A turn is over. Those of a moment are written down together; one that a crash forgets is noticed anyway."""
        self._over.append((conversation_id, owed_at))
        if self._telling is None:
            self._telling = asyncio.create_task(self._write_over(), name="troth-turns-over")

    async def _write_over(self) -> None:
        try:
            while self._over:
                await asyncio.sleep(_TOGETHER)
                over, self._over = self._over, []
                if over:  # else a turn that began meanwhile has taken them along
                    await self._store.acommit(TURN_END, lambda tx: _end_all(tx, over))  # noqa: B023
        except StoreError as problem:
            log.warning("That turns are over could not be written; it is noticed later: %s", problem)
        finally:
            self._telling = None

    async def close(self) -> None:
        """Write down what is over, while there is a store to write it in."""
        telling = self._telling
        if telling is not None:
            await telling

    async def begin(self, conversation: Conversation, beginning: Beginning) -> None:
        """Begin a turn and write down, in the same commit, what is said; raises `AlreadyRunning`.

        Turns that are over are written down along with it: they do not count as at work any more.
        """
        over: list[tuple[str, float]] = []

        def work(tx: Transaction) -> None:
            over[:], self._over = self._over, []
            _end_all(tx, over)
            if beginning.work is not None:
                beginning.work(tx)

        try:
            number = await conversation.astart(beginning=beginning._replace(work=work))
        except BaseException:
            self._over += over  # not written; once more is harmless
            raise
        trace_turn(self._store, conversation, number, has_content=self.has_content)

    async def await_end(self, conversation: Conversation) -> Status:
        """Wait until nothing runs in the conversation, here or in another process. Cancelling it cancels no turn."""
        run = conversation._current
        if run is not None:
            await run.await_over()
        bell = Notifier()
        with self._store.listening(bell, stream_topic(stream_of(conversation.id))):
            while True:
                rung = bell.count
                state = await aread(self._store, conversation.look)
                if state.open_run is None:
                    return state.outcome
                if await bell.await_ring(rung, _LOOK):
                    continue
                status = await aread(self._store, lambda: conversation.status)
                if status is not Status.RUNNING:
                    return status  # its process died, or its end is not written yet

    # Going on with what was cut off

    async def await_all(self) -> None:
        """Wait until no turn is under way in this process."""
        while any([await self._is_under_way(row) for row in await self._open()]):  # noqa: ASYNC110  looked up, not told
            await asyncio.sleep(0.05)

    async def let_go(self) -> None:
        """End what is under way in this process as interrupted, so that another one goes on with it."""
        for row in await self._open():
            key = row.agent, row.conversation
            conversation = self._recent.get(key)
            run = None if conversation is None else conversation._current
            if run is not None:
                await call(run.conversation.close, _LET_GO)
                self._recent.pop(key, None)

    async def _open(self) -> list[TurnRow]:
        return await call(self._store.read_server, lambda rows: rows.open_turns())

    async def _is_under_way(self, row: TurnRow) -> bool:
        if row.agent not in self._agents:
            return False
        conversation = await self.open(row.agent, row.conversation)
        return conversation._current is not None

    async def interrupt(self, conversation: Conversation) -> Stopping:
        """Stop what the agent is at, and say what can be promised: another server takes notice within a second."""
        stopping = await conversation.ainterrupt()
        if stopping is Stopping.CANNOT_STOP and any(row.conversation == conversation.id for row in await self._open()):
            return Stopping.WILL_STOP
        return stopping

    async def _notice_interrupt(self, conversation: Conversation) -> None:
        """Stop a run of this process that somebody at another server has interrupted, also in the middle of a step."""
        run = await call(conversation._here)
        if run is not None and not run.is_stopping and (await call(conversation.look)).interrupt_asked:
            run.stop()

    async def look(self) -> None:
        """Go on with turns that nobody carries out, and forget those that are over."""
        for row in await self._open():
            await self._look_at(row)

    async def _look_at(self, row: TurnRow) -> None:
        if row.agent not in self._agents:
            if row.conversation not in self._refused:
                self._refused.add(row.conversation)
                log.warning("A turn of %r waits for the agent %r, which is not here.", row.conversation, row.agent)
            return
        conversation = await self.open(row.agent, row.conversation)
        status = await call(lambda: conversation.status)
        if status is Status.RUNNING:
            await self._notice_interrupt(conversation)
            return
        state = await call(conversation.look)
        was_cut_off = state.open_run is not None or (status is Status.INTERRUPTED and not state.interrupt_asked)
        if was_cut_off or (state.has_news and status in (Status.IDLE, Status.FINISHED)):
            with HttpChannel.session(conversation.id):
                await self.start(conversation)
            return
        if self._store.clock() - row.begun_at > _LOOK:  # its message may be on its way
            await self._store.acommit(TURN_END, lambda tx: tx.server.end_turn(row.conversation, row.begun_at))


def _has_run_since(conversation: Conversation, moment: float) -> bool:
    return any(event.kind == STARTED and event.at >= moment for event in conversation.events())


def _end_all(tx: Transaction, over: Iterable[tuple[str, float]]) -> None:
    for conversation_id, owed_at in over:
        tx.server.end_turn(conversation_id, owed_at)
