"""Share the state of a conversation among its handles: a server opens one for each request.

Whichever handle is asked, it is the same run that is stopped, and the callbacks of all handles hear what is written
through any of them. A handle's callbacks are called as long as the handle lives.
"""

import asyncio
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from troth.runtime.conversations.callbacks import Callbacks
from troth.runtime.conversations.log import State
from troth.runtime.store import Event

if TYPE_CHECKING:
    from troth.runtime.conversations.drivers import ConversationRun

__all__ = ["SharedState"]

_telling: set["asyncio.Task[None]"] = set()  # a loop keeps its tasks only weakly


class SharedState:
    """What the handles of one conversation know together, within one `Conversations`."""

    __slots__ = ("__weakref__", "_listeners", "id", "lock", "run", "state")

    def __init__(self, conversation_id: str) -> None:
        self.id = conversation_id
        self.state = State()
        """What the log tells, as far as it was read. Changed under `lock`."""
        self.lock = threading.Lock()
        self.run: ConversationRun | None = None
        self._listeners: tuple[weakref.ref[Callbacks], ...] = ()

    def listen(self, callbacks: Callbacks) -> None:
        """Tell them from now on, until they are gone."""
        with self.lock:
            self._listeners = (
                *(listener for listener in self._listeners if listener() is not None),
                weakref.ref(callbacks),
            )

    def listeners(self) -> list[Callbacks]:
        """Everybody who hears of what is written."""
        if not self._listeners:
            return []
        return [callbacks for listener in self._listeners if (callbacks := listener()) is not None]

    def is_idle(self) -> bool:
        """Whether nothing runs, so that whoever writes lets the callbacks hear."""
        return self.run is None

    def tell(self, events: Sequence[Event]) -> None:
        """Let all of them hear of `events` at the next opportunity."""
        for callbacks in self.listeners():
            callbacks.tell(events)

    def drain(self, patience: float = 0.0) -> None:
        """Call them, on this thread, after those who are being called elsewhere; see `Callbacks.drain_after_others`."""
        for callbacks in self.listeners():
            callbacks.drain_after_others(patience) if patience else callbacks.drain()


def tell_in_task(
    callbacks: Callbacks,
    conversation_id: str,
    goes_on: Callable[[], bool] = lambda: True,
    among: "set[asyncio.Task[None]] | None" = None,
) -> None:
    """Call them in a task of the loop that runs here, which nobody has to wait for; `among` has it while it runs."""
    task = asyncio.create_task(callbacks.adrain(goes_on), name=f"troth-callbacks-{conversation_id}")
    for tasks in (_telling,) if among is None else (_telling, among):
        tasks.add(task)
        task.add_done_callback(tasks.discard)
