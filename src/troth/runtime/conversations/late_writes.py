"""Write what could not be written when it came, as soon as it can be: the end of a run on a full disk, say.

The store's own thread tries again, in order, many times a second. Until then the process itself knows: a run that is
over does not stand in the way of the next one, which writes the end of the one before together with its own start.
"""

import logging
import threading
from collections.abc import Callable, Sequence

from troth.runtime.conversations.entries import Entries, RunEntries
from troth.runtime.conversations.pending_entries import Row
from troth.runtime.conversations.state_machine import End
from troth.runtime.store import CommitPoint, Event, LeaseLostError, Store, StoreError

__all__ = ["LateWrites"]

log = logging.getLogger("troth.conversation")

_AGAIN = 0.05  # seconds between two tries

Told = Callable[[Sequence[Event]], object]


class LateWrites:
    """What one `Conversations` has left to write. From any thread."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._writes: list[tuple[CommitPoint, Entries, Told]] = []
        self._ends: dict[str, tuple[End, RunEntries]] = {}
        self._stop: Callable[[], None] | None = None

    def add(self, point: CommitPoint, work: Entries, told: Told) -> None:
        """Have `work` written, after what is there already; `told` hears what was written, on the store's thread."""
        with self._lock:
            self._writes.append((point, work, told))
            if self._stop is None:
                self._stop = self._store.chore(_AGAIN, self._try)

    def add_end(self, run_id: str, end: End, point: CommitPoint, work: RunEntries, told: Told) -> None:
        """Have the end of a run written. Until it is, it can be looked up."""
        self._ends[run_id] = end, work
        self.add(point, work, told)

    def end_of(self, run_id: str | None) -> End | None:
        """How a run ended that the log still has as open."""
        end = None if run_id is None else self._ends.get(run_id)
        return None if end is None else end[0]

    def rows_of(self, run_id: str) -> "list[Row] | None":
        """What is left to write of a run that is over, the end last."""
        end = self._ends.get(run_id)
        return None if end is None else list(end[1].rows())

    def write_all(self) -> None:
        """Try once, now. Raises `StoreError` if it still cannot be."""
        while True:
            with self._lock:
                if not self._writes:
                    return
                point, work, on_written = self._writes[0]
            events: Sequence[Event] = ()
            try:
                events = self._store.commit(point, work)
            except LeaseLostError:
                pass  # the next run has written it, or somebody has taken over
            except StoreError:
                work.take_back()
                raise
            except Exception:
                log.exception("An entry of a conversation's log could not be written, and is given up.")
            with self._lock:
                self._writes = [write for write in self._writes if write[1] is not work]
                self._ends = {run_id: end for run_id, end in self._ends.items() if end[1] is not work}
            if events:
                on_written(events)

    def _try(self) -> None:
        try:
            self.write_all()
        except StoreError as error:
            log.debug("Entries of conversations are still to be written: %s", error)
            return
        with self._lock:
            if not self._writes and self._stop is not None:
                self._stop()
                self._stop = None
