"""Keep the collector away from an analysis, and from what it leaves behind."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["hardly_collected", "uncollected"]

_MANY = 200_000  # objects; about 40 MB, and a twentieth of a second to look at
_FROZEN = 5_000  # objects; 3.12 keeps some hundreds of its own away from the collector, a program that does so far more
_YOUNG = 10_000  # objects; some megabytes of garbage at most, and looked at in the time of a small import

_left = 0  # objects that the analyses of this process have left, since they were last looked at


@contextmanager
def uncollected() -> Iterator[None]:
    """Inside, nobody looks for garbage: syntax trees have no cycles that matter, and looking costs a fifth of the time.

    Afterwards the collector is switched on again, if it was, without a look at all that came while it was off: that
    takes as long as ten rules, and in a large project seconds. A program that analyses again and again pays for it once
    much has come together: what is old by decree is never old enough for the collector to look by itself.
    """
    global _left  # noqa: PLW0603 - the collector is one for the whole process, too
    collecting = gc.isenabled()
    if collecting and _left > _MANY:
        gc.collect()
        _left = 0
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            _left += gc.get_count()[0]
            if gc.get_freeze_count() < _FROZEN:  # else somebody has frozen what is his, and it stays so
                gc.freeze()
                gc.unfreeze()  # now all of it is old, and looked at when its time comes
            gc.enable()


@contextmanager
def hardly_collected() -> Iterator[None]:
    """Inside, which is for imports, garbage is looked for among new objects alone; what is left over is frozen.

    A library of a thousand classes makes some garbage with each, which is memory that the next class can have. But
    what stays of them would be gone through again and again, a fifth of the time that the import takes.
    """
    thresholds = gc.get_threshold()
    gc.set_threshold(_YOUNG, 1_000, 1_000)
    try:
        yield
    finally:
        gc.freeze()
        gc.set_threshold(*thresholds)
