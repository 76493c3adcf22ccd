"""When a signal was sent decides whether it is in time, not who looks first, nor whether anybody was there to look."""

import random
import threading
import time

import pytest

from troth.errors import MisuseError
from troth.runtime.engine import (
    EmbeddedEngine,
    NotAwaitedError,
    TooLateError,
    Wait,
    WaitTimeoutError,
)
from troth.runtime.store import RunState, SqliteStore


def patient(seconds):
    try:
        return (yield Wait("answer", timeout=seconds))
    except WaitTimeoutError:
        return ["too late", (yield Wait("answer"))]


def hasty(seconds):
    try:
        return (yield Wait("answer", timeout=seconds))
    except WaitTimeoutError:
        return "nobody"


class Clock:
    """A clock that a test can set."""

    def __init__(self):
        self.stands_at = None

    def __call__(self):
        return time.time() if self.stands_at is None else self.stands_at


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def store(tmp_path, clock):
    with SqliteStore(tmp_path / "troth.db", clock=clock) as opened:
        yield opened


def until_waiting(engine, run_id):
    end = time.monotonic() + 30
    while (run := engine.find(run_id)) is None or run.state is not RunState.WAITING:
        assert time.monotonic() < end
        time.sleep(0.005)


def leave_waiting(store, decision, seconds, run_id="r"):
    """A run that waits, and whose process is gone; answers when its time is over."""
    with EmbeddedEngine(store, decisions=[decision], recover=False) as engine:
        engine.start(decision, seconds, run_id=run_id)
        until_waiting(engine, run_id)
    return store.steps(run_id)[0].wake_at


@pytest.mark.parametrize(
    ("sent", "looked", "answer"),
    [
        pytest.param([-50], -40, "at -50", id="in time, looked at in time"),
        pytest.param([-50], 400, "at -50", id="in time, looked at too late"),
        pytest.param([50], 400, "nobody", id="too late"),
        pytest.param([50, 60], 400, "nobody", id="both too late"),
        pytest.param([-50, 50], 400, "at -50", id="the first in time"),
        pytest.param([-0.001], 400, "at -0.001", id="just in time"),
        pytest.param([0], 400, "nobody", id="at the end of the time"),
        pytest.param([], 400, "nobody", id="never"),
    ],
)
def test_nobody_is_there_when_the_time_is_up(store, clock, sent, looked, answer):
    """A process that comes back later decides as one that was there. Moments are counted from the end of the time."""
    deadline = leave_waiting(store, hasty, 100)
    with EmbeddedEngine(store, recover=False) as sender:
        for moment in sent:
            clock.stands_at = deadline + moment
            sender.signal("r", "answer", f"at {moment}")
    clock.stands_at = deadline + looked
    with EmbeddedEngine(store, decisions=[hasty], recover=False) as engine:
        assert engine.resume("r") == answer


def test_a_signal_that_was_too_late_is_for_the_next_wait(store, clock):
    """It is not lost, and it is not an answer to what was asked before."""
    deadline = leave_waiting(store, patient, 100)
    with EmbeddedEngine(store, recover=False) as sender:
        clock.stands_at = deadline + 50
        sender.signal("r", "answer", "late")
    with EmbeddedEngine(store, decisions=[patient], recover=False) as engine:
        assert engine.resume("r") == ["too late", "late"]


def test_without_time_whatever_is_there_is_taken(store):
    """`timeout=0` looks, and does not wait."""

    def asking(_):
        yield Wait("begin")
        return (yield from hasty(0))

    with EmbeddedEngine(store, decisions=[asking]) as engine:
        handles = [engine.start(asking, 0, run_id=name) for name in ("sent", "silent")]
        engine.signal("sent", "answer", "there")
        for handle in handles:
            engine.signal(handle.id, "begin")
        assert [handle.result(30) for handle in handles] == ["there", "nobody"]


def test_signals_at_the_deadline_from_many_threads(tmp_path):
    """Sixty runs, each sent its answer a moment before or after its time: what was in time counts, nothing else does."""
    count, seconds = 60, 0.4
    with (
        SqliteStore(tmp_path / "troth.db") as store,
        EmbeddedEngine(store, decisions=[hasty]) as engine,
        EmbeddedEngine(store, recover=False) as sender,
    ):
        sent, handles = {}, {}

        def send(run_id, chance):
            end = time.monotonic() + 30
            while not (steps := store.steps(run_id)) and time.monotonic() < end:
                time.sleep(0.001)
            deadline = steps[0].wake_at or 0.0
            while time.time() < deadline + chance.uniform(-0.01, 0.01):
                time.sleep(0.0005)
            try:
                sender.signal(run_id, "answer", "yes")
            except MisuseError:
                return  # the run is over
            (signal,) = store.signals(run_id)
            sent[run_id] = signal.sent_at, deadline

        for number in range(count):
            handles[f"r{number}"] = engine.start(hasty, seconds, run_id=f"r{number}")
        threads = [
            threading.Thread(target=send, args=(run_id, random.Random(number))) for number, run_id in enumerate(handles)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        answers = {run_id: handle.result(30) for run_id, handle in handles.items()}
    assert sent
    for run_id, (sent_at, deadline) in sent.items():
        assert answers[run_id] == ("yes" if deadline and sent_at < deadline else "nobody"), (run_id, sent_at - deadline)
    assert all(answers[run_id] == "nobody" for run_id in handles if run_id not in sent)


def test_the_look_that_finds_nothing_is_the_one_that_gives_up(store, clock):
    """A signal between the last look and the word that nobody sent one would be lost; so both are one commit."""
    looks = []
    commit = store.commit

    def late_commit(point, work):
        answer = commit(point, work)
        if point.name in {"wait.begin", "signal.take"}:
            looks.append(point.name)
            if len(looks) == 1:  # nothing was there; now something comes in time, and the time passes before the look
                sender.signal("r", "answer", "in time")
                clock.stands_at = time.time() + 200
        return answer

    with EmbeddedEngine(store, recover=False) as sender, EmbeddedEngine(store, decisions=[hasty]) as engine:
        store.commit = late_commit
        assert engine.run(hasty, 100, run_id="r") == "in time"


@pytest.mark.parametrize(
    ("moment", "refusal"),
    [
        pytest.param(-50, None, id="in time"),
        pytest.param(50, TooLateError, id="too late"),
    ],
)
def test_a_signal_only_for_somebody_who_waits(store, clock, moment, refusal):
    """Refused in words before it is written, though nobody has noticed the timeout yet."""
    deadline = leave_waiting(store, hasty, 100)
    clock.stands_at = deadline + moment
    with EmbeddedEngine(store, recover=False) as sender:
        if refusal is None:
            assert sender.signal("r", "answer", "yes", awaited=True) is True
            with pytest.raises(NotAwaitedError, match="has already received it"):
                sender.signal("r", "answer", "no", awaited=True)
        else:
            with pytest.raises(refusal, match="timeout was over 50 s ago") as late:
                sender.signal("r", "answer", "yes", awaited=True)
            assert late.value.deadline == deadline
        with pytest.raises(NotAwaitedError, match="does not wait for it"):
            sender.signal("r", "another", awaited=True)
        assert [signal.payload for signal in store.signals("r")] == (["yes"] if refusal is None else [])
