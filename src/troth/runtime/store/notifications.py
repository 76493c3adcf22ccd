"""Find who waits for news of what, and tell them: at once within the process, soon across processes.

A commit names the topics it touched. Within the process those who listen are told right after the commit. Commits of
other processes are noticed by looking at SQLite's change counter a few times a second, and then everybody who listens
looks again.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator

__all__ = ["Notifications", "Notifier"]


class Notifier:
    """Rings when there may be news. Read `count` before looking, then wait for it to differ: no ring is missed."""

    __slots__ = ("_lock", "_wakers", "count")

    def __init__(self) -> None:
        self.count = 0
        self._lock = threading.Lock()
        self._wakers: list[Callable[[], object]] = []

    def ring(self) -> None:
        """Wake everybody who waits. From any thread."""
        with self._lock:
            self.count += 1
            wakers, self._wakers = self._wakers, []
        for wake in wakers:
            wake()

    def _on_ring(self, seen: int, wake: Callable[[], object]) -> bool:
        with self._lock:
            if self.count != seen:
                return False
            self._wakers.append(wake)
            return True

    def _forget(self, wake: Callable[[], object]) -> None:
        with self._lock, contextlib.suppress(ValueError):  # it rang meanwhile, and was taken off by that
            self._wakers.remove(wake)

    def wait(self, seen: int, timeout: float | None) -> bool:
        """Block this thread until the bell has rung since `seen` was read, or for `timeout` seconds."""
        event = threading.Event()
        if not self._on_ring(seen, event.set):
            return True
        try:
            return event.wait(timeout)
        finally:
            self._forget(event.set)

    async def await_ring(self, seen: int, timeout: float | None) -> bool:
        """The same for a task."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()

        def resolve() -> None:
            if not future.done():
                future.set_result(None)

        def wake() -> None:
            with contextlib.suppress(RuntimeError):  # that loop is closed: nobody waits there any more
                loop.call_soon_threadsafe(resolve)

        if not self._on_ring(seen, wake):
            return True
        try:
            async with asyncio.timeout(timeout):
                await future
        except TimeoutError:
            return False
        finally:
            self._forget(wake)
        return True


class Notifications:
    """The bells of one store, by topic. `watched` is called when somebody listens after nobody did."""

    def __init__(self, watched: Callable[[], None]) -> None:
        self._lock = threading.Lock()
        self._bells: dict[str, set[Notifier]] = {}
        self._watched = watched

    def after_fork(self) -> None:
        """In the child: whoever listened was a thread of the parent."""
        self._lock = threading.Lock()
        self._bells = {}

    @contextlib.contextmanager
    def listening(self, bell: Notifier, *topics: str) -> Iterator[Notifier]:
        """Ring `bell` for every commit that touches one of `topics`, as long as the block runs."""
        self.add(bell, topics)
        try:
            yield bell
        finally:
            self.remove(bell, topics)

    def add(self, bell: Notifier, topics: Iterable[str]) -> None:
        """Ring `bell` for every commit that touches one of `topics`, until it is removed."""
        with self._lock:
            is_first = not self._bells
            for topic in topics:
                self._bells.setdefault(topic, set()).add(bell)
        if is_first:
            self._watched()

    def remove(self, bell: Notifier, topics: Iterable[str]) -> None:
        """Stop ringing `bell`. In a forked child it may be one of the parent's, which is not there any more."""
        with self._lock:
            for topic in topics:
                bells = self._bells.get(topic, set())
                bells.discard(bell)
                if not bells:
                    self._bells.pop(topic, None)

    @property
    def is_listened_to(self) -> bool:
        """Whether anybody wants to know anything."""
        return bool(self._bells)

    def publish(self, topics: Iterable[str]) -> None:
        """Ring for `topics`. From any thread."""
        for topic in topics:
            if topic in self._bells:
                break
        else:
            return  # whoever begins to listen now looks afterwards, and sees what was committed before
        with self._lock:
            bells = {bell for topic in topics for bell in self._bells.get(topic, ())}
        for bell in bells:
            bell.ring()

    def topics(self) -> list[str]:
        """What somebody wants to know of."""
        with self._lock:
            return list(self._bells)

    def publish_all(self) -> None:
        """Ring for everybody: something changed, and nobody said what."""
        with self._lock:
            bells = {bell for group in self._bells.values() for bell in group}
        for bell in bells:
            bell.ring()
