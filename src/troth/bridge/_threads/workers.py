"""The worker threads that sync functions called from async code run in.

One pool for the process, made when first needed: at most `LIMIT` threads at work at a time, whatever the number of
loops. The interpreter lets a function that has begun finish before it exits.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

from troth.bridge._threads.limiter import Limiter
from troth.bridge._threads.waiting_threads import park, unpark

__all__ = ["LIMIT", "Pool", "at_work", "pool"]

T = TypeVar("T")

LIMIT = 40  # what anyio and Starlette allow; a server's threads are then bounded by one number, not by two


@dataclass(frozen=True)
class Pool:
    """Threads, and the right to use them."""

    pid: int = field(default_factory=os.getpid)
    slots: Limiter = field(default_factory=lambda: Limiter(LIMIT))
    # The executor is unbounded because `slots` bounds it: a worker that waits for its home loop has lent its slot, so
    # there are as many threads as are at work, and one for each level of calls that nest.
    threads: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(1_000_000, "troth-worker", initializer=park)
    )


_pool: Pool | None = None


def pool() -> Pool:
    """The pool of this process: a forked child has none of its parent's threads, and starts its own."""
    global _pool  # noqa: PLW0603 - one pool per process is what is meant
    if _pool is None or _pool.pid != os.getpid():
        _pool = Pool()
    return _pool


def at_work(job: Callable[[], T]) -> T:
    """Run `job` in this worker thread, and rest again."""
    unpark()
    try:
        return job()
    finally:
        park()
