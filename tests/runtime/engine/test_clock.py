"""A clock that is set, or a machine that slept: what waits for a moment goes by the clock, not by the waiting."""

import time

import pytest

from troth.runtime.engine import EmbeddedEngine, Sleep, Wait, WaitTimeoutError
from troth.runtime.engine import drive as driving
from troth.runtime.store import RunState, SqliteStore


def sleeper():
    yield Sleep(3600)
    return "awake"


def waiter():
    try:
        yield Wait("never", timeout=3600)
    except WaitTimeoutError:
        return "awake"


@pytest.mark.parametrize("decision", [sleeper, waiter])
@pytest.mark.parametrize("hour", [3601, -7200], ids=["forward", "backward"])
def test_a_clock_that_is_set(tmp_path, monkeypatch, decision, hour):
    """Forward: the moment has come, and is noticed. Backward: it has not, and nothing happens early."""
    monkeypatch.setattr(driving, "_SLICE", 0.05)
    ahead = [0.0]
    with (
        SqliteStore(tmp_path / "troth.db", clock=lambda: time.time() + ahead[0]) as store,
        EmbeddedEngine(store, decisions=[decision]) as engine,
    ):
        handle = engine.start(decision, run_id="r")
        deadline = time.monotonic() + 10
        while engine.find("r").state is not RunState.WAITING:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        ahead[0] = hour
        if hour < 0:
            time.sleep(0.3)
            assert engine.find("r").state is RunState.WAITING
            ahead[0] = 3601
        assert handle.result(10) == "awake"
