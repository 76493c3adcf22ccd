"""Following a run while it goes on: everything that happens, once, in its order, to sync and async readers."""

import asyncio
import threading
import time

import pytest

from troth.runtime import Runtime, Workflow, step
from troth.runtime.engine.errors import UnknownRunError
from troth.runtime.workflows.record.report_json import as_json
from troth.runtime.workflows.render.text import draw


@pytest.fixture
def runtime(tmp_path):
    with Runtime(tmp_path / "runs.db") as opened:
        yield opened


class Gate:
    """A step that waits for somebody, so that it can be seen at work."""

    def __init__(self):
        self.open = threading.Event()

    def __call__(self):
        assert self.open.wait(20)
        return "through"


def told(events):
    return [(one.what, one.place, one.state) for one in events]


def test_events_come_while_the_run_goes_on(runtime):
    """The step at work is told before it has ended; the end of the run ends the stream."""
    gate = Gate()
    run_id = runtime.start(Workflow("w", step("a", function=gate), step("b", function=lambda: 2)))
    seen = []
    for event in runtime.events(run_id):
        seen.append(event)
        if (event.what, event.place) == ("step begun", "a"):
            assert runtime.show(run_id).state == "running"
            gate.open.set()
    assert told(seen) == [
        ("run begun", "", "running"),
        ("step begun", "a", "running"),
        ("step ended", "a", "done"),
        ("step begun", "b", "running"),
        ("step ended", "b", "done"),
        ("run ended", "", "completed"),
    ]
    assert seen[2].output == "through"
    assert told(runtime.events(run_id)) == told(seen), "whoever comes late reads the same"


def test_a_task_follows_a_run_on_its_own_loop(tmp_path):
    """The loop stays free: reader and run share it."""

    async def slow():
        await asyncio.sleep(0.3)
        return 1

    async def main():
        async with Runtime(tmp_path / "runs.db") as runtime:
            run_id = await runtime.astart(Workflow("w", step("a", function=slow)))
            return [event async for event in runtime.aevents(run_id)]

    assert told(asyncio.run(main()))[-2:] == [("step ended", "a", "done"), ("run ended", "", "completed")]


def test_every_attempt_question_and_undo_is_told(runtime):
    """With its own error, in the order in which it happened."""
    tries = []

    def flaky():
        tries.append(1)
        raise ConnectionError(f"down {len(tries)}")

    flow = Workflow(
        "w",
        step("a", function=lambda: 1, undo=lambda: None),
        step("ok", approval="Well?", timeout="10ms", on_deny="continue"),
        step("b", function=flaky, retry={"attempts": 2, "delay": "10ms"}),
    )
    run = runtime.run(flow, check=False)
    events = list(runtime.events(run.id))
    assert told(events) == [
        ("run begun", "", "running"),
        ("step begun", "a", "running"),
        ("step ended", "a", "done"),
        ("step begun", "ok", "running"),
        ("asked", "ok", "waiting"),
        ("step ended", "ok", "done"),
        ("step begun", "b", "running"),
        ("attempt failed", "b", "resting"),
        ("step ended", "b", "failed"),
        ("step begun", "undo a", "running"),
        ("step ended", "undo a", "done"),
        ("run ended", "", "rolled back"),
    ]
    assert "ConnectionError: down 1, retry after" in events[7].detail
    assert "down 2" in events[8].detail
    assert "asks: Well?" in str(events[4])
    assert all(one.as_json()["run_id"] == run.id for one in events)


def test_a_quiet_run_can_be_left(runtime):
    """A run that waits for a person is quiet; the reader goes after its own time."""
    run = runtime.run(Workflow("w", step("ok", approval="Well?")), wait=False)
    began = time.monotonic()
    assert told(runtime.events(run.id, timeout=0.3))[-1] == ("asked", "ok", "waiting")
    assert 0.2 < time.monotonic() - began < 5


def test_a_run_in_another_runtime_is_followed(tmp_path):
    """The reader need not be the one who carries it out."""
    gate = Gate()
    flow = Workflow("w", step("a", function=gate))
    with Runtime(tmp_path / "runs.db") as carrying, Runtime(tmp_path / "runs.db", recover=False) as looking:
        run_id = carrying.start(flow)
        seen = []
        for event in looking.events(run_id):
            seen.append(event.what)
            gate.open.set()
    assert seen == ["run begun", "step begun", "step ended", "run ended"]


def test_a_resumed_run_is_told_from_there_on(runtime):
    """What failed is told, and what came of it later."""
    fails = [True]

    def once():
        if fails.pop() if fails else False:
            raise ValueError("no")
        return 1

    run = runtime.run(Workflow("w", step("a", function=once)), check=False)
    assert told(runtime.events(run.id))[-1] == ("run ended", "", "failed")
    before = list(runtime.events(run.id))
    runtime.resume(run.id)
    after = list(runtime.events(run.id))
    assert after[: len(before)] == before, "what happened stays told"
    assert told(after[len(before) :]) == [
        ("run resumed", "", "running"),
        ("step begun", "a", "running"),
        ("step ended", "a", "done"),
        ("run ended", "", "completed"),
    ]


def test_numbers_have_no_gaps_and_stay(tmp_path):
    """Counted from 1, over restart, resume and fork; what the run asks for itself is not counted."""
    fails = [True]

    def once():
        if fails:
            raise ValueError(fails.pop())
        return 1

    flow = Workflow(
        "w",
        step("a", function=lambda: 1),
        step("p", parallel=[step("q", function=lambda: 2), step("r", sleep="1ms")], join="any"),
        step("ok", approval="Well?", timeout="10ms", on_deny="continue"),
        step("b", function=once),
        budget={"time": "1h"},
        on_error="stop",
    )
    with Runtime(tmp_path / "runs.db") as runtime:
        run_id = runtime.run(flow, check=False).id
        first = list(runtime.events(run_id))
    with Runtime(tmp_path / "runs.db") as runtime:
        assert list(runtime.events(run_id)) == first
        runtime.load(flow)
        runtime.resume(run_id, flow)
        events = list(runtime.events(run_id))
        fork = runtime.fork(run_id, "b")
        forked = list(runtime.events(fork.id))
        assert list(runtime.events(run_id)) == events
        assert list(runtime.events(fork.id)) == forked
    assert events[: len(first)] == first
    for sequence in (events, forked):
        assert [event.seq for event in sequence] == [*range(1, len(sequence) + 1)]
        assert not {event.place for event in sequence} & {"clock", "time left", "still needed", "enough p"}
    assert forked[0].detail == f"forked from {run_id}"
    assert told(forked)[-2:] == [("step ended", "b", "done"), ("run ended", "", "completed")]


def test_only_what_is_new_is_read(runtime):
    """`after` is the number of the last event that you have; sync and async."""
    flow = Workflow("w", *[step(name, function=lambda: 1) for name in "abc"])
    run = runtime.run(flow)
    events = list(runtime.events(run.id))
    assert list(runtime.events(run.id, after=events[-3].seq)) == events[-2:]
    assert list(runtime.events(run.id, after=events[-1].seq)) == []
    reads = []
    history = runtime.store.history
    runtime.store.history = lambda *args, **more: reads.extend(found := history(*args, **more)) or found
    assert list(runtime.events(run.id, after=events[-2].seq, timeout=0)) == events[-1:]
    assert len(reads) == 1, "no more than that is read"

    async def rest():
        return [event async for event in runtime.aevents(run.id, after=2)]

    assert asyncio.run(rest()) == events[2:]


def test_a_long_run_is_followed_from_a_number_on(runtime):
    """Whoever looks now and then reads each event once."""
    gate = Gate()
    run_id = runtime.start(Workflow("w", step("a", function=gate), step("b", function=lambda: 2)))
    seen = []
    deadline = time.monotonic() + 20
    while len(seen) < 2:
        seen += runtime.events(run_id, after=len(seen), timeout=0)
        assert time.monotonic() < deadline
    gate.open.set()
    runtime.attach(run_id)
    seen += runtime.events(run_id, after=len(seen))
    assert seen == list(runtime.events(run_id))


def test_other_code_between_two_attempts_is_told(runtime, caplog):
    """In the events, the report, what is shown, and the log."""

    def broken():
        raise ValueError("no")

    def mended():
        return 1

    def flow(function):
        return Workflow("w", step("a", function=lambda: 1), step("b", function=function), on_error="stop")

    run = runtime.run(flow(broken), check=False)
    assert run.step("b").code_changed == ()
    resumed = runtime.resume(run.id, flow(mended), accept_changes=True)
    assert resumed.succeeded
    assert resumed.step("b").code_changed == (2,)
    assert resumed.step("a").code_changed == ()
    assert "code changed before attempt 2" in draw(resumed, width=120)
    assert as_json(resumed)["steps"][1]["code_changed"] == [2]
    (change,) = [event for event in runtime.events(run.id) if event.what == "code changed"]
    assert (change.place, "before" in change.detail, change.detail.count("py3.")) == ("b", True, 2)
    assert "its code has changed" in str(change)
    assert "The code of step 'b'" in caplog.text


def test_the_same_code_is_not_told(runtime):
    """A step that is tried again, here or by a resume, is what it was."""
    fails = [True, True]

    def flaky():
        if fails:
            raise ValueError(fails.pop())
        return 1

    flow = Workflow("w", step("a", function=flaky), on_error="stop")
    run = runtime.run(flow, check=False)
    assert runtime.resume(run.id, check=False).state == "failed"
    done = runtime.resume(run.id)
    assert done.step("a").code_changed == ()
    assert "code changed" not in {event.what for event in runtime.events(run.id)}


def test_an_unknown_run(runtime):
    """Refused at once, not followed forever."""
    with pytest.raises(UnknownRunError):
        next(runtime.events("nothing"))
