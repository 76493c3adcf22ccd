"""What is special about runs on Temporal: they live on a server, and any worker may do their next step."""

import contextlib
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import more_programs as programs
import pytest
from temporalio.client import Client

from troth.runtime.engine import NondeterministicError, RunCancelledError, RunFailedError
from troth.runtime.engine.commands import Govern, Step
from troth.runtime.engine.temporal import workflow
from troth.runtime.engine.temporal.engine import TemporalEngine
from troth.runtime.engine.temporal.limits import MAX_TEXT, NotOnTemporalError
from troth.runtime.store import NotJsonError, RunState, StepState, open_store
from troth.testing.engine_programs import effects

pytestmark = [pytest.mark.xdist_group("temporal"), pytest.mark.timeout(200)]
HERE = str(Path(__file__).parent)
PATIENCE = 120


def until(is_so, what):
    deadline = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < deadline, f"it did not come about that {what}"
        time.sleep(0.05)


def names(path):
    return [name for name, _ in effects(path)]


@pytest.fixture
def address(temporal_server):
    return temporal_server.address(heartbeat=4, task=5)


@pytest.fixture
def store(postgres_server):
    return postgres_server.address()


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "effects")


@pytest.fixture
def engine(address, store):
    with TemporalEngine(address, store, decisions=programs.DECISIONS) as engine:
        yield engine


@contextlib.contextmanager
def worker_process(address, store, body="threading.Event().wait()"):
    script = f"""
        import sys, threading
        sys.path.insert(0, {HERE!r})
        import more_programs as programs
        from troth.runtime.engine.temporal.engine import TemporalEngine
        with TemporalEngine({address!r}, {store!r}, decisions=programs.DECISIONS) as engine:
            print("open", flush=True)
            {body}
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "open\n"
        try:
            yield process
        finally:
            process.kill()


def test_child_runs_are_started_and_joined(engine, path):
    """Each is a run of its own; one that fails is a failure of the join."""
    answers = engine.run(programs.parent, path, ["a", "bad", "b"], run_id=path)
    assert answers == ["a", ["child", "LookupError"], "b"]
    assert sorted(names(path)) == ["a", "b", "bad"]
    children = [run for run in engine.list() if run.parent == path]
    assert sorted(run.state.value for run in children) == ["completed", "completed", "failed"]


def test_a_join_is_told_of_the_end(engine, path):
    """Whoever waits for another run sleeps until that one ends; it does not look again and again."""
    handle = engine.start(programs.waits_for_child, path, f"{path}-child", run_id=path)
    until(lambda: (run := engine.find(f"{path}-child")) and run.state is RunState.WAITING, "the child waits")
    until(lambda: engine.find(path).state is RunState.WAITING, "the parent waits")
    engine.signal(f"{path}-child", "go")
    assert handle.result(PATIENCE) == "went"


def test_signals_of_one_name_go_to_one_wait_each(engine, path):
    """Also if several branches wait for it; nothing is lost and nothing is taken twice."""
    handle = engine.start(programs.several_waits, path, run_id=path)
    assert engine.signal(path, "word", 1)
    assert engine.signal(path, "word", 2)
    answers = handle.result(PATIENCE)
    assert sorted(answers[:2]) == [1, 2]
    assert [signal.taken_by is not None for signal in engine.store.signals(path)] == [True, True]


def test_a_signal_that_was_only_written_down_arrives(engine, store, path):
    """Whoever sent it knew the store and not the server, or died in between: a worker tells the run."""
    handle = engine.start(programs.slow_child, path, run_id=path)
    until(lambda: engine.find(path).state is RunState.WAITING, "it waits")
    from troth.runtime.engine import EmbeddedEngine

    with EmbeddedEngine(store) as other:
        assert other.signal(path, "go") is True
    assert handle.result(PATIENCE) == "went"


def test_a_run_that_was_only_written_down_is_started(address, store, path):
    """By the next worker that knows its decision."""
    with TemporalEngine(address, store, decisions=programs.DECISIONS) as engine:
        _, write = engine._to_begin(programs.child, (path, "a"), path, None, None)
        with open_store(store) as other:
            from troth.runtime.engine.commit_points import RUN_START

            assert other.commit(RUN_START, write)["is_new"]
    with TemporalEngine(address, store, decisions=programs.DECISIONS) as engine:
        until(lambda: engine.find(path).state is RunState.COMPLETED, "it is carried out")


def test_cancelling_reaches_every_branch(engine, path):
    """A wait, a sleep and a step in flight end; what the decision then asks for is done."""
    handle = engine.start(programs.undoes, path, run_id=path)
    until(lambda: "hang" in names(path), "the step is in flight")
    assert engine.cancel(path)
    with pytest.raises(RunCancelledError):
        handle.result(PATIENCE)
    assert names(path) == ["begin", "hang", "undo"]


def test_cancelling_on_the_server_is_cancelling(engine, path):
    """The button of Temporal's own page means the same."""
    handle = engine.start(programs.undoes, path, run_id=path)
    until(lambda: "hang" in names(path), "the step is in flight")

    async def cancel():
        client = await Client.connect(engine.address.host)
        await client.get_workflow_handle(engine.address.workflow_id(path)).cancel()

    engine._portal.run(cancel())
    with pytest.raises(RunCancelledError):
        handle.result(PATIENCE)
    assert names(path)[-1] == "undo"


def test_a_cancelled_run_can_be_resumed(engine, path):
    """From where it stopped, with what it had done before."""
    handle = engine.start(programs.slow_child, path, run_id=path)
    until(lambda: engine.find(path).state is RunState.WAITING, "it waits")
    engine.cancel(path)
    with pytest.raises(RunCancelledError):
        handle.result(PATIENCE)
    thread = threading.Thread(target=engine.resume, args=(path,))
    thread.start()
    until(lambda: engine.find(path).state is RunState.WAITING, "it waits again")
    engine.signal(path, "go")
    thread.join(PATIENCE)
    assert engine.find(path).result == "went"


def test_a_long_run_goes_on_in_a_new_workflow(address, store, path, monkeypatch):
    """With its settled answers: none is asked for twice, and the record is whole."""
    monkeypatch.setattr("troth.runtime.engine.temporal.worker.MOST_EVENTS", 40)
    with TemporalEngine(address, store, decisions=programs.DECISIONS) as engine:
        assert engine.run(programs.long_loop, path, 20, run_id=path) == 20
        assert names(path) == ["one"] * 20
        steps = [step for step in engine.steps(path) if step.kind == "step"]
        assert [step.state for step in steps] == [StepState.DONE] * 20
        assert {step.attempt for step in steps} == {1}
        (event,) = engine.store.events(f"stream:{path}")
        assert event.payload == 20

        async def executions():
            client = await Client.connect(engine.address.host)
            workflow_id = engine.address.workflow_id(path)
            return (await client.get_workflow_handle(workflow_id).describe()).raw_info.execution_time, [
                event.event_type async for event in client.get_workflow_handle(workflow_id).fetch_history_events()
            ]

        _, events = engine._portal.run(executions())
        assert len(events) < 60, "one workflow did it all"


def test_a_changed_decision_is_refused(engine, path, monkeypatch):
    """Replayed from the record, it asks for something else: nothing is done, and whoever waits is told."""
    with pytest.raises(RunFailedError):
        engine.run(programs.changes, path, run_id=path)
    monkeypatch.setitem(programs.CHANGED, "name", "after")
    with pytest.raises(NondeterministicError, match="asked at step 1 for something else"):
        engine.resume(path)
    assert names(path) == ["first", "needs"]
    monkeypatch.setitem(programs.CHANGED, "name", "before")
    Path(f"{path}.file").touch()
    assert engine.resume(path) == "found"


@pytest.mark.parametrize("count", [MAX_TEXT - 100, MAX_TEXT + 100])
def test_what_is_too_large_is_told_before_the_server_does(engine, path, count):
    """A result is refused by name, with the limit; what fits travels."""
    if count < MAX_TEXT:
        assert engine.run(programs.large, path, count, run_id=path) == count
    else:
        with pytest.raises(RunFailedError, match="travel through Temporal"):
            engine.run(programs.large, path, count, run_id=path)
        with pytest.raises(NotJsonError, match="arguments of run"):
            engine.run(programs.large, "x" * count, 1)
        with pytest.raises(NotJsonError, match="signal 'word'"):
            engine.signal(path, "word", "x" * count)


def test_a_large_value_is_handed_on_from_step_to_step(engine, path):
    """It is in the arguments and in the answers; a run that goes on in a new workflow for it gets on in each of them."""
    count = MAX_TEXT - 100
    assert engine.run(programs.passes_on, path, count, 6, run_id=path) == count
    assert names(path) == [str(number) for number in range(6)]


@pytest.mark.parametrize(
    ("program", "error", "words"),
    [
        pytest.param(programs.step_complains, RunFailedError, "more characters do not travel", id="an error of a step"),
        pytest.param(programs.run_complains, RunFailedError, "more characters do not travel", id="an error of the run"),
        pytest.param(programs.step_appends, RunFailedError, "travel through Temporal", id="what a step appended"),
        pytest.param(programs.run_appends, NotJsonError, "travel through Temporal", id="what the run appended"),
    ],
)
def test_what_is_too_large_for_a_message_is_told(engine, path, program, error, words):
    """Nothing that the server refuses is tried forever: an error is told without its rest, the others are refused."""
    with pytest.raises(error) as told:
        engine.start(program, path, 3_000_000, run_id=path).result(PATIENCE)
    assert words in str(told.value)


def test_a_record_that_is_too_large_to_go_on_with_is_told(engine, path, monkeypatch):
    """The server would end its workflow without a word to whoever waits."""
    monkeypatch.setattr(workflow, "MAX_RECORD", 1_000_000)
    with pytest.raises(NotOnTemporalError, match="fifty megabytes"):
        engine.start(programs.passes_on, path, MAX_TEXT - 100, 6, run_id=path).result(PATIENCE)


def test_what_another_engine_sent_may_be_too_large(engine, store, path):
    """Whoever waits for the run is told, and nothing is tried forever."""
    handle = engine.start(programs.slow_child, path, run_id=path)
    until(lambda: engine.find(path).state is RunState.WAITING, "it waits")
    from troth.runtime.engine import EmbeddedEngine

    with EmbeddedEngine(store) as other:
        other.signal(path, "go", "x" * 2_000_000)
    with pytest.raises(NotOnTemporalError, match="travel through Temporal"):
        handle.result(PATIENCE)


def test_a_governed_run_is_refused_by_name(engine, path):
    """A governor decides in the commit that begins a step: that cannot be kept."""

    class Governor:
        def consult(self, step):
            return None

    def governed():
        yield Govern(Governor())
        yield Step("never", programs.one, path)

    with pytest.raises(NotOnTemporalError, match="governed by a session"):
        engine.run(governed, run_id=path)
    assert names(path) == []


def test_a_step_that_cannot_be_imported_is_found_by_another_worker(address, store, path):
    """Its worker is killed in the middle of it; the next one replays the record up to that step."""
    with worker_process(address, store, f"engine.run(programs.lambda_elsewhere, {path!r}, run_id={path!r})") as process:
        assert process.wait(PATIENCE) == -9
    with TemporalEngine(address, store, decisions=programs.DECISIONS) as engine:
        assert engine.result(path, PATIENCE) == "closed over"
        _, step = engine.steps(path)
        assert [attempt.outcome for attempt in step.attempts] == ["interrupted"]
    assert names(path) == ["one", "two", "two"]
    assert len(set(effects(path))) == 2, "under the same key"


def test_what_must_not_be_repeated_fails_after_a_crash(address, store, path):
    """`after_crash="fail"`, as on every engine."""
    with worker_process(address, store, f"engine.run(programs.not_twice, {path!r}, run_id={path!r})") as process:
        assert process.wait(PATIENCE) == -9
    with TemporalEngine(address, store, decisions=programs.DECISIONS) as engine:
        assert engine.result(path, PATIENCE) == ["interrupted", True]
    assert names(path) == ["two"]


def test_a_killed_worker_costs_at_most_the_step_in_flight(address, store, path):
    """Two workers share the steps of a run; one is killed, the other goes on."""
    with (
        TemporalEngine(address, store, decisions=programs.DECISIONS) as engine,
        worker_process(address, store) as other,
    ):
        handle = engine.start(programs.steps_slowly, path, 10, run_id=path)
        until(lambda: len(names(path)) >= 4, "some steps are done")
        other.kill()
        assert handle.result(PATIENCE) == 10
        assert 10 <= len(names(path)) <= 11
        assert len(set(effects(path))) == 10
        assert len(engine.store.events(f"stream:{path}")) == 10, "an attempt that was cut off appends nothing"


@pytest.mark.soak
def test_a_server_that_was_killed_and_is_back(store, path):
    """Runs go on by themselves; a signal that was sent meanwhile arrives."""
    from troth.testing.temporal_server import TemporalServer

    with TemporalServer() as server:
        address = server.address(heartbeat=4, task=5)
        with TemporalEngine(address, store, decisions=programs.DECISIONS) as engine:
            waits = engine.start(programs.slow_child, path, run_id=f"{path}-waits")
            handle = engine.start(programs.steps_slowly, path, 8, run_id=path)
            until(lambda: len(names(path)) >= 3, "some steps are done")
            until(lambda: engine.find(waits.id).state is RunState.WAITING, "the other one waits")
            server.kill()
            time.sleep(3)
            server.start()
            assert handle.result(PATIENCE) == 8
            assert len(set(effects(path))) == 8
            assert len(names(path)) <= 10
            engine.signal(waits.id, "go")
            assert waits.result(PATIENCE) == "went"
