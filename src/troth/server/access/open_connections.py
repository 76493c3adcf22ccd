"""End streams and sockets whose key opens nothing any more: a connection may live longer than the key it came with."""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from troth.bridge import call
from troth.server.access.keys import Keys

__all__ = ["OpenConnections"]

log = logging.getLogger("troth.server")

_LOOK = 1.0  # seconds between two looks at the keys of all that is open


class OpenConnections:
    """What is open for long, by the key that it was opened with. One look a second serves all of them."""

    def __init__(self, keys: Keys | None) -> None:
        self._keys = keys
        self._open: dict[str, set[asyncio.Task[Any]]] = {}
        self._refused: set[asyncio.Task[Any]] = set()
        self._watching: asyncio.Task[None] | None = None

    @contextmanager
    def watched(self, key_id: str | None) -> Iterator[None]:
        """Cancel the task that runs here when the key opens nothing any more; `take_refused` then says that it was."""
        task = asyncio.current_task()
        if self._keys is None or key_id is None or task is None:
            yield
            return
        self._open.setdefault(key_id, set()).add(task)
        if self._watching is None or self._watching.done():
            self._watching = asyncio.create_task(self._watch(self._keys), name="troth-server-open-connections")
        try:
            yield
        finally:
            self._refused.discard(task)
            tasks = self._open[key_id]
            tasks.discard(task)
            if not tasks:
                del self._open[key_id]

    def take_refused(self) -> bool:
        """Whether the task that runs here was cancelled for its key. Then it goes on, to say so."""
        task = asyncio.current_task()
        if task is None or task not in self._refused:
            return False
        return task.uncancel() == 0  # else somebody wants its end, too

    async def _watch(self, keys: Keys) -> None:
        while self._open:
            await asyncio.sleep(_LOOK)
            try:
                closed = await call(keys.closed_of, list(self._open))
            except Exception:
                log.exception("The keys of open streams could not be read; it is tried again.")
                continue
            for key_id in closed:
                for task in self._open.get(key_id, set()) - self._refused:
                    self._refused.add(task)
                    task.cancel()
