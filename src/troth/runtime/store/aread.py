"""Read a store from a loop without holding the loop up: a file at once, a database on a thread.

A short look at a file takes microseconds, less than a thread would. A database may take as long as the network to it
does, or as its failover, and everybody else on the loop would wait with whoever asks.
"""

from collections.abc import Callable
from typing import TypeVar

from troth.bridge import call
from troth.runtime.store.port import Store

__all__ = ["aread"]

T = TypeVar("T")


async def aread(store: Store, question: Callable[[], T]) -> T:
    """What `question` answers, which reads `store` and nothing else. It is called here, or on a thread."""
    return await call(question) if store.is_shared else question()
