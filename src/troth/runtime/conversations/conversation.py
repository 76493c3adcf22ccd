"""Knows what a conversation is to its users: a log one can write to, run, stop and follow at any moment.

No lock is held while an agent works. What is asked of a conversation is written to its log and answered at once; the
run takes notice between two steps. That is why `send`, `pause`, `interrupt` and `status` never wait for a step.
"""

import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any

from troth.bridge import run as bridge_run
from troth.color import Color
from troth.errors import MisuseError
from troth.runtime.agents.decide import Way, decide
from troth.runtime.agents.model import Message
from troth.runtime.conversations import log
from troth.runtime.conversations.callbacks import Callback, checked
from troth.runtime.conversations.course import End
from troth.runtime.conversations.drive import RunHandle, adrive, drive, in_thread
from troth.runtime.conversations.errors import AgentExitError
from troth.runtime.conversations.log import State, Status, fold, stream_of
from troth.runtime.store import Event, Follower, commit_point

if TYPE_CHECKING:
    from troth.runtime.conversations.registry import Conversations

__all__ = ["Conversation", "Stopping"]

SAY = commit_point("conversation.say", "one entry of a conversation's log")


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

    __slots__ = ("__weakref__", "_callbacks", "_current", "_home", "_state", "_state_lock", "agent", "id", "way")

    def __init__(
        self, home: "Conversations", conversation_id: str, agent: object, on_event: Sequence[Callback] = ()
    ) -> None:
        self.id = conversation_id
        self.agent = agent
        self.way: Way = decide(agent)
        self._home = home
        self._callbacks = checked(on_event)
        self._state = State()
        self._state_lock = threading.Lock()
        self._current: RunHandle | None = None

    # What is known

    def look(self) -> State:
        """What the log tells at this moment."""
        with self._state_lock:
            events = self._home.store.events(stream_of(self.id), after=self._state.cursor)
            while events:
                self._state = fold(self._state, events)
                events = self._home.store.events(stream_of(self.id), after=self._state.cursor)
            return self._state

    @property
    def status(self) -> Status:
        """Where it stands. Answers at once, whatever is running."""
        state = self.look()
        if state.open_run is None:
            return state.outcome
        return Status.RUNNING if self._home.is_held(self.id) else Status.INTERRUPTED

    def events(self, *, after: int = 0) -> Iterator[Event]:
        """What the log holds after entry `after`, as far as it goes now."""
        while page := self._home.store.events(stream_of(self.id), after=after):
            yield from page
            after = page[-1].seq

    def messages(self) -> list[Message]:
        """The talk so far, without the pieces it came in."""
        return [Message.from_json(event.payload) for event in self.events() if event.kind == log.MESSAGE]

    @property
    def is_interrupted(self) -> bool:
        """For a long sync step: whether it was asked to stop."""
        current = self._current
        return current is not None and current.is_stopping

    # What can be said

    def send(self, text: str, *, role: str = "user") -> int:
        """Say something to the agent. The answer is its number in the log, where it is safe.

        Accepted at any instant: the run under way takes notice of it, or the next one does.
        """
        return self._append(log.MESSAGE, Message(_sender(role), _text(text)).to_json())

    async def asend(self, text: str, *, role: str = "user") -> int:
        """`send` for a loop."""
        return await self._aappend(log.MESSAGE, Message(_sender(role), _text(text)).to_json())

    def say(self, message: Message | str, *, with_events: Sequence[tuple[str, Mapping[str, Any]]] = ()) -> int:
        """For the agent: add to the talk. A text is what the assistant says. `with_events` is kept with it, or not."""
        return self._append(log.MESSAGE, _said(message).to_json(), with_events)

    async def asay(self, message: Message | str, *, with_events: Sequence[tuple[str, Mapping[str, Any]]] = ()) -> int:
        """`say` for a loop."""
        return await self._aappend(log.MESSAGE, _said(message).to_json(), with_events)

    def now(self) -> float:
        """The time by the store's clock, which stamps the log."""
        return self._home.store.clock()

    def token(self, piece: str) -> None:
        """For the agent: a piece of an answer as it comes. Pieces are gathered before they are written."""
        current = self._current
        if current is None:
            self._append(log.TOKENS, {"text": piece})
        else:
            current.tokens.add(piece)

    def emit(self, kind: str, payload: Mapping[str, Any] | None = None) -> int:
        """For the agent: add an entry of its own kind, such as `plan` or `cost`."""
        return self._append(f"agent.{kind}", dict(payload or {}))

    # Running

    def run(self, *, max_steps: int = 100) -> End:
        """Let the agent answer until it has nothing left to say. Works anywhere, also inside a running loop.

        A sync agent runs wholly on this thread, so that Ctrl-C reaches it; an async one on a loop of this thread.
        What a step raises is raised here, after it was recorded.
        """
        color = Color.SYNC if self.way.color is not Color.ASYNC else Color.ASYNC
        handle = self._home.begin(self, "run", color, max_steps)
        if color is Color.SYNC:
            return drive(handle)
        try:
            return bridge_run(adrive, handle)
        except AgentExitError as exiting:
            if isinstance(exiting.__cause__, SystemExit):
                raise exiting.__cause__ from None  # no loop of anybody's has to be kept alive here
            raise

    async def arun(self, *, max_steps: int = 100) -> End:
        """`run` for a loop, which stays free. A sync agent runs wholly on one worker thread, an async one here.

        Cancelling it cancels an async step at once. A sync step cannot be stopped: the caller is let go at once all the
        same, and the run ends, as cancelled, when the step returns.
        """
        color = Color.ASYNC if self.way.color is not Color.SYNC else Color.SYNC
        handle = await self._home.abegin(self, "arun", color, max_steps)
        if color is Color.ASYNC:
            return await adrive(handle)
        return await in_thread(handle)

    def pause(self) -> None:
        """Ask the run to end at the end of its step. `run` goes on later."""
        self._append(log.ASKED, {"what": "pause"})

    def interrupt(self) -> Stopping:
        """Ask the run to end now. Returns at once, and says what can be promised."""
        current = self._current
        if current is None:
            if self.status is not Status.RUNNING:
                return Stopping.STOPPED
            self._append(log.ASKED, {"what": "interrupt"})
            return Stopping.CANNOT_STOP
        self._append(log.ASKED, {"what": "interrupt"})
        current.stop()
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

    async def asubscribe(self, *, after: int = 0, timeout: float | None = None) -> AsyncIterator[Event]:
        """`subscribe` for a loop, whichever loop that is."""
        with Follower(self._home.store, stream_of(self.id), after=after) as follower:
            while waiting := deque(await follower.atake(timeout)):
                while waiting:
                    yield waiting.popleft()

    def close(self, timeout: float = 5.0) -> list[str]:
        """End the run, if there is one, waiting at most `timeout` seconds; the answer names what was abandoned."""
        return self._home.close_one(self, timeout)

    # Writing

    def _append(self, kind: str, payload: Mapping[str, Any], more: Sequence[tuple[str, Mapping[str, Any]]] = ()) -> int:
        current = self._current
        if current is not None and kind is not log.TOKENS:
            current.tokens.flush()
        events = self._home.store.commit(SAY, self._entries([(kind, payload), *more]))
        self._tell(events)
        return events[0].seq

    async def _aappend(
        self, kind: str, payload: Mapping[str, Any], more: Sequence[tuple[str, Mapping[str, Any]]] = ()
    ) -> int:
        current = self._current
        if current is not None:
            current.tokens.flush()
        events = await self._home.store.acommit(SAY, self._entries([(kind, payload), *more]))
        self._tell(events)
        return events[0].seq

    def _entries(self, rows: Sequence[tuple[str, Mapping[str, Any]]]) -> Callable[[Any], list[Event]]:
        self._home.check_open(self)
        stream = stream_of(self.id)

        def work(tx: Any) -> list[Event]:
            now = self._home.store.clock()
            return [
                Event(0, stream, tx.append_event(stream, kind, payload, now), kind, payload, now)
                for kind, payload in rows
            ]

        return work

    def _tell(self, events: Sequence[Event]) -> None:
        current = self._current
        if current is None:
            return
        for event in events:
            current.callbacks.tell(event)
        if current.is_here():
            current.callbacks_now()


def _sender(role: str) -> Any:
    if role not in ("user", "system"):
        raise MisuseError(
            f"A message cannot be sent as {role!r}.\nIt was not accepted.\n"
            "Send as `user` or `system`; what the agent itself says goes in through `say`."
        )
    return role


def _text(text: object) -> str:
    if not isinstance(text, str):
        raise MisuseError(
            f"A message is a text, and {text!r} is of type `{type(text).__name__}`.\nIt was not accepted.\n"
            "Send what an agent can read; data goes in as JSON text."
        )
    return text


def _said(message: Message | str) -> Message:
    return Message("assistant", message) if isinstance(message, str) else message
