"""Being told what happens in a run: each event once, in its order, whoever is told, and without harm to the run."""

import asyncio
import logging
import threading

import pytest

from troth.errors import MisuseError
from troth.runtime import Runtime, Workflow, arun_workflow, run_workflow, step
from troth.runtime.runs import callbacks

FLOW = Workflow("w", step("a", function=lambda: 1), step("b", function=lambda: 2))
WHOLE = ["run begun", "step begun", "step ended", "step begun", "step ended", "run ended"]


class Heard:
    """Remembers what it was told, and on which thread."""

    def __init__(self):
        self.events = []
        self.threads = set()

    def sync(self, event):
        self.events.append(event)
        self.threads.add(threading.current_thread().name)

    async def alike(self, event):
        await asyncio.sleep(0)
        self.sync(event)

    @property
    def whats(self):
        return [event.what for event in self.events]


@pytest.fixture
def heard():
    return Heard()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "runs.db"


@pytest.mark.parametrize("color", ["sync", "alike"])
def test_run(path, heard, color):
    """All of it before `run` returns, on the thread of the events."""
    with Runtime(path) as runtime:
        run = runtime.run(FLOW, on_event=getattr(heard, color))
        assert heard.events == list(runtime.events(run.id))
    assert heard.whats == WHOLE
    assert heard.threads == {"troth-events"}


@pytest.mark.parametrize("color", ["sync", "alike"])
def test_arun(path, heard, color):
    """An async one on the loop, a sync one beside it."""

    async def main():
        async with Runtime(path) as runtime:
            run = await runtime.arun(FLOW, on_event=getattr(heard, color))
            return heard.events == [event async for event in runtime.aevents(run.id)]

    assert asyncio.run(main())
    assert heard.whats == WHOLE
    assert (heard.threads == {threading.current_thread().name}) is (color == "alike")


def test_run_workflow(path, heard):
    """In both colors."""
    run_workflow(FLOW, store=path, on_event=heard.sync)
    asyncio.run(arun_workflow(FLOW, store=path, on_event=[heard.alike]))
    assert heard.whats == [*WHOLE, *WHOLE]


def test_a_runtime_tells_of_all_its_runs(path, heard):
    """Those that are waited for and those that are not; each in its own order."""

    def fails_once():
        if not heard.events[-1:] or not any(event.what == "run resumed" for event in heard.events):
            raise ValueError("no")

    failing = Workflow("f", step("a", function=fails_once), on_error="stop")
    with Runtime(path, on_event=heard.sync) as runtime:
        first = runtime.run(FLOW).id
        second = runtime.start(FLOW)
        runtime.attach(second)
        third = asyncio.run(runtime.arun(FLOW)).id
        fourth = runtime.run(failing, check=False).id
        runtime.resume(fourth, check=False)
    for run_id in (first, second, third):
        assert [event.what for event in heard.events if event.run_id == run_id] == WHOLE
    with Runtime(path) as runtime:
        assert [event for event in heard.events if event.run_id == fourth] == list(runtime.events(fourth))
    assert heard.threads == {"troth-events"}


def test_an_older_run_is_told_from_where_it_goes_on(path, heard):
    """What was told before is not told again."""
    flow = Workflow("w", step("ok", approval="Well?"))
    with Runtime(path) as runtime:
        run = runtime.run(flow, wait=False, on_event=heard.sync)
        assert heard.whats == ["run begun", "step begun", "asked"]
    with Runtime(path, recover=False) as runtime:
        runtime.approve(run.id, by="ann")
        runtime.run(flow, run_id=run.id, on_event=heard.sync)
    assert heard.whats[3:] == ["step ended", "run ended"]
    assert heard.events[3].detail == "approved by ann"


@pytest.mark.parametrize("color", ["sync", "async"])
def test_one_that_raises_harms_nobody(path, heard, caplog, color):
    """It is told in the log and, once, as an event; the others hear everything, and so does it."""
    calls = []

    def bad(event):
        calls.append(event.what)
        raise ZeroDivisionError("mine")

    async def abad(event):
        bad(event)

    with Runtime(path) as runtime, caplog.at_level(logging.ERROR):
        if color == "sync":
            run = runtime.run(FLOW, on_event=[bad, heard.sync])
        else:
            run = asyncio.run(runtime.arun(FLOW, on_event=[abad, heard.alike]))
        assert run.succeeded
        events = list(runtime.events(run.id))
    assert [event.what for event in events].count("callback failed") == 1
    (failed,) = [event for event in events if event.what == "callback failed"]
    assert "bad" in failed.place
    assert failed.detail == "ZeroDivisionError: mine"
    assert [event.what for event in heard.events if event.what != "callback failed"] == WHOLE
    assert [what for what in calls if what != "callback failed"] == WHOLE
    assert [event.seq for event in events] == [*range(1, len(events) + 1)]
    assert "raised over event 1" in caplog.text


def test_one_that_does_not_return_does_not_hold_the_run(path, monkeypatch, caplog):
    """The run is returned, and the callback is left."""
    monkeypatch.setattr(callbacks, "_GRACE", 0.2)
    gate = threading.Event()
    with Runtime(path) as runtime:
        assert runtime.run(FLOW, on_event=lambda _event: gate.wait(30)).succeeded
        assert "did not return" in caplog.text
        gate.set()


@pytest.mark.parametrize("wrong", [pytest.param(3, id="no function"), pytest.param(lambda: None, id="takes no event")])
def test_what_cannot_be_called_is_refused_before_anything_runs(path, wrong):
    """When it is given, by every way in."""
    with Runtime(path) as runtime:
        for use in (
            lambda: runtime.run(FLOW, on_event=[wrong]),
            lambda: asyncio.run(runtime.arun(FLOW, on_event=[wrong])),
            lambda: Runtime(path, on_event=[wrong]),
        ):
            with pytest.raises(MisuseError, match="cannot be a callback"):
                use()
        assert runtime.runs() == []
