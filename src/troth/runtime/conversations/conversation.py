"""What a conversation is to its users: a log one can write to, run, stop and follow at any moment.

No lock is held while an agent works. What is asked of a conversation is written to its log and answered at once; the
run takes notice between two steps. That is why `send`, `pause`, `interrupt` and `status` never wait for a step.
"""

from collections import deque
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any

from troth.bridge import run as bridge_run
from troth.color import Color
from troth.errors import MisuseError, RunError
from troth.runtime.agents.history import History, HistoryFold
from troth.runtime.agents.method_color import StepMethod
from troth.runtime.agents.model import Message
from troth.runtime.conversations import living_runs, log
from troth.runtime.conversations.callbacks import Callback, Callbacks
from troth.runtime.conversations.drivers import IN_STEP, SAY, ConversationRun, adrive, drive, in_thread
from troth.runtime.conversations.entries import Beginning, Entries, Gate
from troth.runtime.conversations.errors import AgentExitError
from troth.runtime.conversations.log import State, Status, fold, stream_of
from troth.runtime.conversations.shared_state import SharedState
from troth.runtime.conversations.state_machine import End
from troth.runtime.engine.current_step import CurrentStep
from troth.runtime.store import CommitPoint, Event, Follower, StoreError, Transaction, commit_point
from troth.runtime.store.aread import aread
from troth.runtime.tools.call import PendingCall, ToolOutcome

if TYPE_CHECKING:
    from troth.runtime.conversations.registry import Conversations

__all__ = ["Conversation", "Gate", "Stopping"]

_PAGE = 1000  # entries that are read at a time
ANSWER = commit_point("conversation.answer", "what a tool answered, and what it appended", is_append=True)
ATTEMPT = commit_point("conversation.attempt", "that calls which were cut off are made once more")


class Stopping(Enum):
    """What `interrupt` can promise.

    STOPPED      nothing is running
    WILL_STOP    the run ends: an async step at its next await, a sync step at its end
    CANNOT_STOP  the run is in another process, which will take notice between two steps, if it still takes any
    """

    STOPPED = "stopped"
    WILL_STOP = "will stop"
    CANNOT_STOP = "cannot stop"


class Conversation:
    """One agent, one log, one run at a time. Every method may be called from any thread, also from inside a step."""

    __slots__ = ("__weakref__", "_callbacks", "_gate", "_home", "_shared", "agent", "id", "way")

    def __init__(
        self, home: "Conversations", shared: SharedState, agent: object, way: StepMethod, gate: Gate | None
    ) -> None:
        self._home = home
        self._shared = shared
        self._gate = gate
        self._callbacks: Callbacks | None = None
        self.id = shared.id
        self.agent = agent
        self.way = way

    def _listen(self, callbacks: Sequence[Callback], cursor: int) -> None:
        """Let `callbacks` hear of what comes after entry `cursor`, through whichever handle it is written."""
        self._callbacks = Callbacks(callbacks, cursor, self._read, self._report, self._areport)
        self._shared.listen(self._callbacks)

    def _read(self, after: int) -> Sequence[Event]:
        return self._home.store.events(stream_of(self.id), after=after)

    def _report(self, name: str, problem: BaseException) -> int:
        return self._append(log.CALLBACK_FAILED, _failure(name, problem))

    async def _areport(self, name: str, problem: BaseException) -> int:
        return await self._aappend(log.CALLBACK_FAILED, _failure(name, problem))

    @property
    def _current(self) -> ConversationRun | None:
        """The run under way in this process, whichever handle began it."""
        run = self._shared.run
        return None if run is None or run.is_ended else run

    @property
    def session(self) -> str:
        """Where its results go: the session that governs it, else a session of its own, of the same id."""
        return self.id if self._gate is None else self._gate.session

    # What is known

    def look(self) -> State:
        """What the log tells at this moment."""
        with self._shared.lock:
            self._catch_up(self._current)
            return self._shared.state

    def look_inside(self, tx: Transaction) -> State:
        """What the log tells as a commit sees it. Not remembered: the commit may not be kept."""
        state, stream = self._shared.state, stream_of(self.id)
        return state if tx.last_event(stream) == state.cursor else fold(state, tx.events(stream, after=state.cursor))

    def look_for(self, run: ConversationRun) -> State:
        """`look` for the run itself, before it takes a step: its agent is told of the talk up to here."""
        with self._shared.lock:
            if not run.knows_all:
                self._catch_up(run)
            run.knows_all = False
            if run.talk is not None:
                run.history = run.talk.history()
            return self._shared.state

    def _note(self, events: Sequence[Event]) -> None:
        """Take in entries that were just written. If nothing had come in before them, the run need not look for more.

        In a database that is a round trip for each step. What comes in after them is seen a step later, as if it had
        been sent a moment later; a run ends only if nothing has come in, which its last commit looks for.
        """
        shared, run = self._shared, self._current
        with shared.lock:
            is_next = bool(events) and events[0].seq == shared.state.cursor + 1
            if is_next:
                shared.state = fold(shared.state, events)
                if run is not None and run.talk is not None:
                    run.talk.take(events)
            if run is not None:
                run.knows_all = is_next

    def _catch_up(self, run: ConversationRun | None) -> None:
        """Read what the log has more; the lock is held."""
        events: Sequence[Event] = ()
        is_more = True
        while is_more:  # a page that is not full is the last one; to ask again would cost a database a round trip
            events = self._home.store.events(stream_of(self.id), after=self._shared.state.cursor, limit=_PAGE)
            is_more = len(events) == _PAGE
            if events:
                self._shared.state = fold(self._shared.state, events)
                if run is not None and run.talk is not None:
                    run.talk.take(events)

    def _talk(self, run: ConversationRun) -> HistoryFold:
        """The talk as the log has it now; the lock is held. It is read once for each run, and then only what is new."""
        self._catch_up(run)
        if run.talk is None:
            talk = HistoryFold(self.id)
            for event in self._entries_after(0):
                if event.seq > self._shared.state.cursor:
                    break
                if talk.cursor == run.began_at:
                    run.history = talk.history()
                talk.take([event])
            if talk.cursor == run.began_at:
                run.history = talk.history()
            run.talk = talk
        return run.talk

    @property
    def status(self) -> Status:
        """Where it stands. Answers at once, whatever is running."""
        state = self.look()
        if state.open_run is None:
            return state.outcome
        unwritten = self._home.late.end_of(state.open_run)
        if unwritten is not None:
            return unwritten.outcome
        return Status.RUNNING if self._home.is_running(self.id, state.open_run) else Status.INTERRUPTED

    def events(self, *, after: int = 0) -> Iterator[Event]:
        """What the log holds after entry `after`, as far as it goes now."""
        for event in self._entries_after(after):
            self._saw(event.seq)
            yield event

    def _entries_after(self, after: int) -> Iterator[Event]:
        while page := self._home.store.events(stream_of(self.id), after=after):
            yield from page
            after = page[-1].seq

    def messages(self) -> list[Message]:
        """The talk so far, in the order in which a model can be told of it, without the pieces it came in.

        What a tool answered stands right behind the message that asked for it. What was sent while the agent was at
        work stands behind what the agent said without having read it.
        """
        run = self._current
        if run is None:
            talk = HistoryFold(self.id)
            talk.take(self._entries_after(0))
            return talk.messages()
        with self._shared.lock:
            talk = self._talk(run)
            messages, cursor = talk.messages(), talk.cursor
        self._saw(cursor)
        return messages

    async def amessages(self) -> list[Message]:
        """`messages` for a loop, which a database does not hold up."""
        return await aread(self._home.store, self.messages)

    def history(self) -> History:
        """For an agent that asks a model: what to tell it, which calls are left to make, and what was spent so far.

        It has what the log had when this step began. What comes in later is for the next step.
        """
        run = self._current
        if run is None or run.began_at is None:
            talk = HistoryFold(self.id)
            talk.take(self._entries_after(0))
            return talk.history()
        with self._shared.lock:
            if run.talk is None:  # otherwise it was brought up to date when the step began
                self._talk(run)
            return run.history

    def _saw(self, seq: int) -> None:
        """Note what the agent has read in its step, and so can know of in what it says next."""
        run = IN_STEP.get()
        if run is not None and run is self._current:
            run.seen = max(run.seen, seq)

    @property
    def is_interrupted(self) -> bool:
        """For a long sync step: whether it was asked to stop."""
        run = self._speaker()
        return run is not None and run.is_stopping

    def _speaker(self) -> ConversationRun | None:
        """The run that the calling code belongs to, over or not; otherwise the one under way, if there is any."""
        run = IN_STEP.get()
        return run if run is not None and run.conversation.id == self.id else self._current

    # What can be said

    def send(self, text: str, *, role: str = "user", with_events: Sequence[tuple[str, Mapping[str, Any]]] = ()) -> int:
        """Say something to the agent. The answer is its number in the log, where it is safe.

        Accepted at any instant: the run under way takes notice of it, or the next one does. `with_events` is kept with
        it, or not.
        """
        return self._append(log.MESSAGE, Message(_sender(role), _text(text)).to_json(), with_events)

    async def asend(
        self, text: str, *, role: str = "user", with_events: Sequence[tuple[str, Mapping[str, Any]]] = ()
    ) -> int:
        """`send` for a loop."""
        return await self._aappend(log.MESSAGE, Message(_sender(role), _text(text)).to_json(), with_events)

    def say(self, message: Message | str, *, with_events: Sequence[tuple[str, Mapping[str, Any]]] = ()) -> int:
        """For the agent: add to the talk. A text is what the assistant says. `with_events` is kept with it, or not."""
        return self._append(log.MESSAGE, self._said(message), with_events, is_agents=True)

    async def asay(self, message: Message | str, *, with_events: Sequence[tuple[str, Mapping[str, Any]]] = ()) -> int:
        """`say` for a loop."""
        return await self._aappend(log.MESSAGE, self._said(message), with_events, is_agents=True)

    def _said(self, message: Message | str) -> dict[str, Any]:
        reply = Message("assistant", message) if isinstance(message, str) else message
        row, run = reply.to_json(), self._speaker()
        if run is not None and run.began_at is not None and reply.role != "tool":
            row["seen"] = run.seen
        return row

    def answer_call(self, call: PendingCall, outcome: ToolOutcome, step: CurrentStep) -> int:
        """For the agent: what a tool answered, with what the tool appended; see `current_step().append`."""
        appended = step.appended if outcome.error is None else ()
        return self._append(log.MESSAGE, _answer(call, outcome), elsewhere=appended, point=ANSWER, is_agents=True)

    async def aanswer_calls(self, answers: Sequence[tuple[PendingCall, ToolOutcome, CurrentStep]]) -> None:
        """`answer_call` for a loop, of the calls that have answered by now."""
        rows = [(log.MESSAGE, _answer(call, outcome)) for call, outcome, _ in answers]
        appended = [entry for _, outcome, step in answers if outcome.error is None for entry in step.appended]
        (kind, payload), *more = rows
        await self._aappend(kind, payload, more, elsewhere=appended, point=ANSWER, is_agents=True)

    def note_attempts(self, calls: Sequence[PendingCall]) -> int:
        """For the agent: that it is about to make these calls, which were cut off before, once more."""
        first, *more = map(_attempt, calls)
        return self._append(*first, more, point=ATTEMPT, is_agents=True)

    async def anote_attempts(self, calls: Sequence[PendingCall]) -> int:
        """`note_attempts` for a loop."""
        first, *more = map(_attempt, calls)
        return await self._aappend(*first, more, point=ATTEMPT, is_agents=True)

    def now(self) -> float:
        """The time by the store's clock, which stamps the log."""
        return self._home.store.clock()

    def token(self, piece: str) -> None:
        """For the agent: a piece of an answer as it comes. Pieces are gathered before they are written."""
        run = self._speaker()
        if run is None or run.is_ended:
            self._append(log.TOKENS, {"text": piece}, is_agents=True)
        elif run.pending.add_tokens(piece):
            run.write_soon()
        else:
            run.write_later()

    def emit(self, kind: str, payload: Mapping[str, Any] | None = None) -> int:
        """For the agent: add an entry of its own kind, such as `plan` or `cost`."""
        return self._append(f"agent.{kind}", dict(payload or {}), is_agents=True)

    # Running

    def run(self, *, max_steps: int = 100) -> End:
        """Let the agent answer until it has nothing left to say. Works anywhere, also inside a running loop.

        A sync agent runs wholly on this thread, so that Ctrl-C reaches it; an async one on a loop of this thread.
        What a step raises is raised here, after it was recorded.
        """
        color = Color.SYNC if self.way.color is not Color.ASYNC else Color.ASYNC
        handle = self._home.begin(self, "run", color, max_steps)
        try:
            return drive(handle) if color is Color.SYNC else bridge_run(adrive(handle, leaves_callbacks=False))
        except AgentExitError as exiting:
            if isinstance(exiting.__cause__, SystemExit | KeyboardInterrupt):
                raise exiting.__cause__ from None  # no loop of anybody's has to be kept alive here
            raise
        finally:
            self._home.check_over(handle)

    async def arun(self, *, max_steps: int = 100) -> End:
        """`run` for a loop, which stays free. A sync agent runs wholly on one worker thread, an async one here.

        Cancelling it cancels an async step at once. A sync step cannot be stopped: the caller is let go at once all the
        same, and the run ends, as cancelled, when the step returns.
        """
        color = Color.ASYNC if self.way.color is not Color.SYNC else Color.SYNC
        handle = await self._home.abegin(self, "arun", color, max_steps)
        if color is Color.ASYNC:
            return await adrive(handle)
        try:
            return await in_thread(handle)
        except RunError:
            self._home.check_over(handle)
            raise

    def start(self, *, max_steps: int = 100, beginning: Beginning | None = None) -> int:
        """Let the agent answer in the background. The answer is the number of `run.started`, which is in the log.

        A sync agent runs on one thread of its own, an async one on a loop that the conversations keep for this.
        `subscribe(after=number)` follows the run to its `run.ended`, `interrupt` stops it. What a step raises is in the
        log; nobody is there to be told. `beginning` is kept together with the start: what is said, and more.
        """
        color = Color.SYNC if self.way.color is not Color.ASYNC else Color.ASYNC
        handle = self._home.begin(self, "start", color, max_steps, beginning)
        self._home.carry_out(handle)
        return handle.started_at

    async def astart(self, *, max_steps: int = 100, beginning: Beginning | None = None) -> int:
        """`start` for a loop: an async agent runs on this loop, and is cancelled when the loop ends."""
        color = Color.ASYNC if self.way.color is not Color.SYNC else Color.SYNC
        handle = await self._home.abegin(self, "astart", color, max_steps, beginning)
        self._home.carry_out(handle, here=True)
        return handle.started_at

    def pause(self) -> None:
        """Ask the run to end at the end of its step. `run` goes on later."""
        self._append(log.ASKED, {"what": "pause"})

    async def apause(self) -> None:
        """`pause` for a loop."""
        await self._aappend(log.ASKED, {"what": "pause"})

    def interrupt(self) -> Stopping:
        """Ask the run to end now, and say what can be promised. A run of this process is stopped before it is written.

        Returns at once, unless the run is in another process, which can only be asked through the log.
        """
        run = self._here()
        if run is not None:
            return self._stop(run)
        if self.status is not Status.RUNNING:
            return Stopping.STOPPED
        self._append(log.ASKED, {"what": "interrupt"})
        return Stopping.CANNOT_STOP

    async def ainterrupt(self) -> Stopping:
        """`interrupt` for a loop."""
        store = self._home.store
        run = await aread(store, self._here)
        if run is not None:
            return self._stop(run)
        if await aread(store, lambda: self.status) is not Status.RUNNING:
            return Stopping.STOPPED
        await self._aappend(log.ASKED, {"what": "interrupt"})
        return Stopping.CANNOT_STOP

    def _here(self) -> ConversationRun | None:
        """The run under way, if it is in this process, whichever `Conversations` it belongs to."""
        run = self._current
        if run is not None and not (run.is_ending and self._is_over(run)):
            return run
        return living_runs.find(self.look().open_run)

    def _is_over(self, run: ConversationRun) -> bool:
        """Whether the end of the run is in the log: those who follow it read that before the run itself knows."""
        try:
            return self.look().open_run != run.run_id
        except StoreError:
            return False

    def _stop(self, run: ConversationRun) -> Stopping:
        run.pending.add(log.ASKED, {"what": "interrupt"})  # before it stops: its end is written with it
        run.stop()
        self._home.write_without_waiting(run)
        return Stopping.WILL_STOP

    # Following

    def subscribe(self, *, after: int = 0, timeout: float | None = None) -> Iterator[Event]:
        """Every entry after number `after`, once and in order, and those to come; ends after `timeout` quiet seconds.

        It reads from the log at its own pace, so a slow reader loses nothing and slows nobody down. Go on later by
        giving the `seq` of the last entry as `after`.
        """
        with Follower(self._home.store, stream_of(self.id), after=after) as follower:
            while waiting := deque(follower.take(timeout)):
                while waiting:
                    yield waiting.popleft()  # an idle follower keeps nothing

    async def asubscribe(self, *, after: int = 0, timeout: float | None = None) -> AsyncGenerator[Event, None]:
        """`subscribe` for a loop, whichever loop that is."""
        with Follower(self._home.store, stream_of(self.id), after=after) as follower:
            while waiting := deque(await follower.atake(timeout)):
                while waiting:
                    yield waiting.popleft()

    def stop_listening(self) -> None:
        """Call the callbacks of this handle no more."""
        self._callbacks = None

    def close(self, timeout: float = 5.0) -> list[str]:
        """Close this handle, and end the run that was begun through it, if there is one.

        Waits at most `timeout` seconds; the answer names what was abandoned. Other handles are not touched.
        """
        return self._home.close_one(self, timeout)

    def judge_calls(self, calls: Sequence[PendingCall]) -> Mapping[int, str]:
        """Which of these calls of tools the conversation's session refuses, by their place among them, and why."""
        return {} if self._gate is None else self._gate.judge_calls(calls)

    @property
    def is_governed(self) -> bool:
        """Whether a session judges what is said and called in it."""
        return self._gate is not None

    # Writing

    def _append(
        self,
        kind: str,
        payload: Mapping[str, Any],
        more: Sequence[tuple[str, Mapping[str, Any]]] = (),
        *,
        elsewhere: Sequence[tuple[str, str, object]] = (),
        point: CommitPoint = SAY,
        is_agents: bool = False,
    ) -> int:
        work = self._entries([(kind, payload), *more], elsewhere, is_agents=is_agents)
        return work.own(self._write(point, work)).seq

    async def _aappend(
        self,
        kind: str,
        payload: Mapping[str, Any],
        more: Sequence[tuple[str, Mapping[str, Any]]] = (),
        *,
        elsewhere: Sequence[tuple[str, str, object]] = (),
        point: CommitPoint = SAY,
        is_agents: bool = False,
    ) -> int:
        work = self._entries([(kind, payload), *more], elsewhere, is_agents=is_agents)
        return work.own(await self._awrite(point, work)).seq

    def _entries(
        self,
        rows: Sequence[tuple[str, Mapping[str, Any]]],
        elsewhere: Sequence[tuple[str, str, object]],
        *,
        is_agents: bool,
    ) -> Entries:
        """The commit that adds `rows` to the log, and what is `elsewhere` to the streams named there."""
        self._home.check_open(self)
        if self._gate is not None:
            self._gate.before([kind for kind, _ in rows])
        run = self._speaker() if is_agents else self._current
        return Entries(self, run, rows, is_agents=is_agents, elsewhere=elsewhere)

    def _write(self, point: CommitPoint, work: Entries) -> Sequence[Event]:
        try:
            events = self._home.store.commit(point, work)
        except Exception:
            work.take_back()
            if self._gate is not None:
                self._gate.after_refusal()
            raise
        self._note(events)
        self._tell(events)
        return events

    async def _awrite(self, point: CommitPoint, work: Entries) -> Sequence[Event]:
        try:
            events = await self._home.store.acommit(point, work, is_large=work.is_large)
        except Exception:
            work.take_back()
            if self._gate is not None:
                self._gate.after_refusal()
            raise
        self._note(events)
        self._tell(events)
        return events

    def _tell(self, events: Sequence[Event]) -> None:
        """Let the callbacks of all handles hear: where the run is, or here if there is none."""
        shared = self._shared
        run = shared.run
        if run is not None:
            run.remember(events)
        if not shared.listeners():
            return
        shared.tell(events)
        if run is None:
            self._home.tell_between_runs(shared)
        elif run.thread is not None and (run.color is Color.ASYNC or run.is_here()):
            run.callbacks_now()


def _sender(role: str) -> Any:
    if role not in ("user", "system"):
        raise MisuseError(
            f"A message cannot be sent as {role!r}.\nIt was not accepted.\n"
            "Send as `user` or `system`; an agent sends with `say`."
        )
    return role


def _text(text: object) -> str:
    if not isinstance(text, str):
        raise MisuseError(
            f"A message is a string, and {text!r} is of type `{type(text).__name__}`.\nIt was not accepted.\n"
            "Send text that an agent can read; encode data as JSON."
        )
    return text


def _failure(name: str, problem: BaseException) -> dict[str, Any]:
    return {"callback": name, "error": {"type": type(problem).__qualname__, "message": str(problem)}}


def _answer(call: PendingCall, outcome: ToolOutcome) -> dict[str, Any]:
    return {**Message("tool", outcome.text(), call_id=call.id).to_json(), "key": call.key}


def _attempt(call: PendingCall) -> tuple[str, dict[str, Any]]:
    return log.ATTEMPTED, {"key": call.key, "call_id": call.id, "tool": call.name, "attempt": call.attempt}
