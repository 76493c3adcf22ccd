"""What an analysis leaves behind is collected, though not at once."""

import gc
import weakref

import pytest

from troth.analysis import gc_pause
from troth.analysis.gc_pause import uncollected


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
