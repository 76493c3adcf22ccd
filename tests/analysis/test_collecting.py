"""What an analysis leaves behind is collected, though not at once."""

import gc
import weakref

import pytest

from troth.analysis import gc_pause
from troth.analysis.gc_pause import hardly_collected, uncollected


class Node:
    """Part of a cycle, which only the collector takes apart."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def few(monkeypatch):
    monkeypatch.setattr(gc_pause, "_MANY", 1000)
    monkeypatch.setattr(gc_pause, "_left", 0)


def analyse(size: int) -> weakref.ref[Node]:
    with uncollected():
        nodes = [Node() for _ in range(size)]
        return weakref.ref(nodes[0])


def test_one_analysis():
    """It ends without a look at its garbage: the process is about to end, too."""
    first = analyse(5000)
    assert first() is not None


def test_analysis_after_analysis():
    """Small leavings come together; before they are many, they are collected."""
    leavings = [analyse(300) for _ in range(20)]
    assert sum(left() is not None for left in leavings) < 10


def test_inside_another():
    """Whoever has switched the collector off is not disturbed."""
    with uncollected():
        first = analyse(5000)
        second = analyse(5000)
        assert first() is not None
        assert second() is not None
        assert not gc.isenabled()
    assert gc.isenabled()


def test_while_much_is_imported():
    """New garbage is collected, what stays is frozen, and the collector is as it was before."""
    thresholds = gc.get_threshold()
    try:
        with hardly_collected():
            first = make_garbage(50_000)
            kept = Node()
            assert first() is None
            assert gc.is_tracked(kept)
        assert gc.get_freeze_count() > 0
        assert all(found is not kept for found in gc.get_objects())
        assert gc.get_threshold() == thresholds
    finally:
        gc.unfreeze()


def make_garbage(size: int) -> weakref.ref[Node]:
    first = Node()
    left = weakref.ref(first)
    del first
    for _ in range(size):
        Node()
    return left
