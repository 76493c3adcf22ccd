"""Knows how to keep the collector away from an analysis, and from what it leaves behind."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["uncollected"]

_FROZEN = 5_000  # objects; 3.12 keeps some hundreds of its own away from the collector, a program that does so far more


@contextmanager
def uncollected() -> Iterator[None]:
    """Inside, nobody looks for garbage: syntax trees have no cycles that matter, and looking costs a fifth of the time.

    Afterwards the collector is switched on again, if it was, without a look at all that came while it was off: that
    takes as long as ten rules, and in a large project seconds.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            if gc.get_freeze_count() < _FROZEN:  # else somebody has frozen what is his, and it stays so
                gc.freeze()
                gc.unfreeze()  # now all of it is old, and looked at when its time comes
            gc.enable()
