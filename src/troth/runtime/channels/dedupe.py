"""Remember which deliveries a receiver has seen: at-least-once becomes once."""

import threading
from collections import OrderedDict

__all__ = ["Deduplicator"]


class Deduplicator:
    """The ids of the last `limit` deliveries. `is_new` answers yes once for each; from any thread.

    It lives in memory. A receiver that must not act twice after its own restart keeps the ids where it keeps the
    effect, in one transaction with it.
    """

    def __init__(self, limit: int = 10_000) -> None:
        self._limit = limit
        self._seen: OrderedDict[str, None] = OrderedDict()
        self._lock = threading.Lock()

    def is_new(self, delivery_id: str) -> bool:
        """Whether this id comes for the first time."""
        with self._lock:
            if delivery_id in self._seen:
                self._seen.move_to_end(delivery_id)
                return False
            self._seen[delivery_id] = None
            if len(self._seen) > self._limit:
                self._seen.popitem(last=False)
            return True

    def forget(self, delivery_id: str) -> None:
        """Let this id be new again: what it was to cause did not happen."""
        with self._lock:
            self._seen.pop(delivery_id, None)
