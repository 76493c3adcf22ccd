"""How a call is timed on a machine that others use too: small batches, and the tenth percentile of them."""

import time
from collections.abc import Callable

BATCH = 40
ROUNDS = 120


def batch(call: Callable[[], object], size: int = BATCH) -> float:
    """Seconds per call in one batch."""
    for _ in range(3):  # whatever ran before has left its own things in the processor's caches
        call()
    start = time.perf_counter()
    for _ in range(size):
        call()
    return (time.perf_counter() - start) / size


def typical(times: list[float]) -> float:
    """The tenth percentile in µs: what a call takes while nobody disturbs it."""
    return sorted(times)[len(times) // 10] * 1e6
