"""A clock that is set forward wakes what waits; set back, it keeps nobody waiting, and nothing ends before it began."""

import asyncio
import itertools
import math
import time

import pytest

from troth.runtime import Runtime, Workflow, step
from troth.runtime.engine import EmbeddedEngine, Retry, Sleep, Step, Wait, WaitTimeoutError
from troth.runtime.engine.clock import SteadyClock
from troth.runtime.engine.embedded import drivers
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
    monkeypatch.setattr(drivers, "_SLICE", 0.05)
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


# ---- set back


HOUR = 3600.0


class Wall:
    """A clock on the wall that somebody sets."""

    def __init__(self):
        self.ahead = 0.0

    def __call__(self):
        return time.time() + self.ahead

    def set_back(self):
        self.ahead -= HOUR


@pytest.fixture
def wall():
    return Wall()


@pytest.fixture
def store(tmp_path, wall):
    with SqliteStore(tmp_path / "troth.db", clock=wall) as opened:
        yield opened


@pytest.mark.parametrize(
    ("wall", "monotonic", "times"),
    [
        pytest.param([100, 101, 102], [0, 1, 2], [100, 101, 102], id="as on the wall"),
        pytest.param([100, 200, 201], [0, 1, 2], [100, 200, 201], id="set forward"),
        pytest.param([100, 40, 41], [0, 1, 2], [100, 101, 102], id="set back"),
        pytest.param([100, 100, 100], [0, 1, 2], [100, 101, 102], id="it stands still"),
        pytest.param([100, 40, 150, 151], [0, 1, 2, 3], [100, 101, 150, 151], id="set back, then forward"),
        pytest.param([100, 40, 90, 141], [0, 1, 51, 102], [100, 101, 151, 202], id="set back for good"),
        pytest.param([100, 160, 90], [0, 1, 2], [100, 160, 161], id="set forward, then back"),
        pytest.param([50, 51], [0, 1], [70, 71], id="behind what is on record"),
    ],
)
def test_a_steady_clock(wall, monotonic, times):
    """It follows the wall forward, and goes on by the time that passes where the wall is behind."""
    not_before = times[0] if times[0] > wall[0] else -math.inf
    passing = iter([monotonic[0], *monotonic])  # it looks once when it is made
    clock = SteadyClock(iter(wall).__next__, not_before, passing.__next__)
    assert [clock() for _ in times] == times


def naps():
    yield Sleep(0.3)
    return "awake"


def waits():
    try:
        yield Wait("never", timeout=0.3)
    except WaitTimeoutError:
        return "awake"


def tries():
    return (yield Step("twice", Twice(), retry=Retry(2, delay=0.3, jitter=0)))


class Twice:
    """Fails the first time."""

    def __init__(self):
        self.calls = 0

    def __call__(self):
        self.calls += 1
        if self.calls == 1:
            raise ValueError("not yet")
        return "awake"


def until_waiting(engine, run_id="r"):
    end = time.monotonic() + 30
    while not any(one.wake_at is not None for one in engine.steps(run_id)):
        assert time.monotonic() < end
        time.sleep(0.005)


@pytest.mark.parametrize("decision", [naps, waits, tries])
@pytest.mark.parametrize("color", ["start", "astart"])
def test_a_clock_that_is_set_back_keeps_nobody_waiting(store, wall, decision, color):
    """What was to last a moment lasts that long, not an hour more."""
    with EmbeddedEngine(store, decisions=[decision], recover=False) as engine:
        if color == "start":
            handle = engine.start(decision, run_id="r")
            until_waiting(engine)
            wall.set_back()
            assert handle.result(30) == "awake"
        else:

            async def main():
                handle = await engine.astart(decision, run_id="r")
                await asyncio.to_thread(until_waiting, engine)
                wall.set_back()
                return await handle.aresult(30)

            assert asyncio.run(main()) == "awake"


@pytest.mark.parametrize("decision", [naps, waits])
def test_a_clock_that_is_set_back_while_nobody_is_there(store, wall, decision):
    """Whoever goes on goes on from the last moment on record."""
    with EmbeddedEngine(store, decisions=[decision], recover=False) as engine:
        engine.start(decision, run_id="r")
        until_waiting(engine)
    wall.set_back()
    with EmbeddedEngine(store, decisions=[decision], recover=False) as engine:
        asked = time.monotonic()
        assert engine.resume("r") == "awake"
        assert time.monotonic() - asked < HOUR / 10
        (only,) = engine.steps("r")
        assert only.finished_at >= only.started_at


def in_order(events):
    """Whether each step ends after it has begun, and the next one begins after that."""
    told = [(event.what, event.place) for event in events]
    times = [event.at for event in events]
    return told, all(one <= other for one, other in itertools.pairwise(times))


WHOLE = [
    ("run begun", ""),
    *[(what, place) for place in ("a", "b", "c") for what in ("step begun", "step ended")],
    ("run ended", ""),
]


def test_events_are_told_in_their_order(store, wall):
    """Though the clock was set back in the middle of a step."""
    flow = Workflow("w", *[step(name, function=wall.set_back if name == "b" else int) for name in "abc"])
    with Runtime(store) as runtime:
        run = runtime.run(flow)
        assert in_order(runtime.events(run.id)) == (WHOLE, True)
        assert all(0 <= one.took < HOUR / 10 for one in run.steps)


def test_events_are_told_in_their_order_after_a_restart(store, wall):
    """Though the clock was set back while nobody was there."""
    is_well = []

    def b():
        assert is_well

    flow = Workflow("w", step("a", function=int), step("b", function=b), step("c", function=int), on_error="stop")
    with Runtime(store) as runtime:
        run = runtime.run(flow, check=False)
    wall.set_back()
    is_well.append(True)
    with Runtime(store) as runtime:
        runtime.resume(run.id, flow)
        resumed = [("run ended", ""), ("run resumed", ""), ("step begun", "b"), ("step ended", "b")]
        assert in_order(runtime.events(run.id)) == ([*WHOLE[:5], *resumed, *WHOLE[5:]], True)


@pytest.mark.parametrize("how", ["in a step", "in a sleep", "while nobody is there"])
def test_a_budget_of_time_is_kept(store, wall, how):
    """All of it, and not an hour more."""
    first = wall.set_back if how == "in a step" else int
    flow = Workflow("w", step("a", function=first), step("nap", sleep="1h"), budget={"time": "500ms"})
    with Runtime(store) as runtime:
        run_id = runtime.start(flow)
        if how != "in a step":
            until_waiting(runtime.engine, run_id)
            wall.set_back()
        if how != "while nobody is there":
            assert runtime.attach(run_id, check=False).over_budget == "time"
            return
    with Runtime(store) as runtime:
        asked = time.monotonic()
        assert runtime.resume(run_id, flow, check=False).over_budget == "time"
        assert time.monotonic() - asked < HOUR / 10


def test_no_step_begins_after_the_time(store, wall):
    """The clock says that there is an hour; a step that would begin after the time is refused all the same."""
    did = []

    def slow():
        wall.set_back()
        time.sleep(0.4)

    flow = Workflow(
        "w", *[step(name, function=slow if name != "d" else lambda: did.append("d")) for name in "abcd"],
        budget={"time": "900ms"},
    )  # fmt: skip
    with Runtime(store) as runtime:
        assert runtime.run(flow, check=False).over_budget == "time"
    assert did == []


def test_an_engine_goes_on_beating(store, wall):
    """Its heart goes by the time that passes."""
    with EmbeddedEngine(store, decisions=[sleeper]) as engine:
        engine.start(sleeper, run_id="r")
        until_waiting(engine)
        before = store.holder("run:r").beat_at
        wall.set_back()
        end = time.monotonic() + 30
        while store.holder("run:r").beat_at == before:
            assert time.monotonic() < end
            time.sleep(0.05)
        assert store.holder("run:r").beat_at < before
