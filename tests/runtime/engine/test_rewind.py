"""Resuming and forking: what is asked again, what is not, and what a step's earlier attempts still say."""

import asyncio
import threading
import time

import pytest

from troth.runtime.engine import (
    Append,
    CannotResumeError,
    EmbeddedEngine,
    Join,
    Retry,
    RunFailedError,
    Sleep,
    Start,
    Step,
    StepFailedError,
    Together,
    Wait,
    current_step,
)
from troth.runtime.store import StepState

DONE = []
BROKEN = set()


@pytest.fixture(autouse=True)
def _fresh():
    DONE.clear()
    BROKEN.clear()


def do(name):
    if name in BROKEN:
        raise ConnectionError(f"{name} is down")
    DONE.append(name)
    return name


async def ado(name):
    await asyncio.sleep(0)
    return do(name)


def handled_before():
    try:
        yield Step("first", do, "first")
    except StepFailedError:
        yield Step("instead", do, "instead")
    yield Step("middle", do, "middle")
    return (yield Step("last", do, "last"))


def in_a_branch():
    return (yield Together(Step("left", do, "left"), both("inner"), Step("right", ado, "right")))


def both(name):
    try:
        yield Step("try", do, f"{name} try")
    except StepFailedError:
        yield Step("else", do, f"{name} else")
    return (yield Together(Step("deep", do, "last"), Step("beside", do, "beside")))


def tells_then_raises():
    yield Step("first", do, "first")
    try:
        return (yield Step("last", do, "last"))
    except StepFailedError:
        yield Append("audit", "gave up", "last")
        yield Sleep(0.001, name="a breath")
        raise


def in_own_words():
    yield Step("first", do, "first")
    try:
        return (yield Step("last", do, "last"))
    except StepFailedError as failed:
        raise LookupError("no order") from failed


def own_mistake():
    yield Step("first", do, "first")
    if "mistake" in BROKEN:
        raise ZeroDivisionError("a slip in the decision")
    return (yield Step("last", do, "last"))


@pytest.mark.parametrize("color", ["sync", "async"])
@pytest.mark.parametrize(
    ("decision", "broken", "once"),
    [
        pytest.param(handled_before, {"first", "last"}, ["instead", "middle", "last"], id="an earlier failure handled"),
        pytest.param(
            in_a_branch,
            {"inner try", "last"},
            ["left", "right", "inner else", "beside", "last"],
            id="in a branch of a branch, beside one that was handled",
        ),
        pytest.param(
            in_a_branch, {"left", "right"}, ["left", "right", "inner try", "last", "beside"], id="two branches"
        ),
        pytest.param(
            tells_then_raises, {"last"}, ["first", "last"], id="it told somebody, and slept, before it raised"
        ),
        pytest.param(in_own_words, {"last"}, ["first", "last"], id="raised in the decision's own words"),
        pytest.param(own_mistake, {"mistake"}, ["first", "last"], id="a mistake of the decision's own"),
    ],
)
def test_what_ended_the_run_is_asked_again(engine, decision, broken, once, color):
    """Nothing else is: every effect happens once, and a failure that was dealt with stays dealt with."""
    BROKEN.update(broken)
    with pytest.raises(RunFailedError):
        engine.run(decision, run_id="r")
    BROKEN.clear()
    assert (engine.resume("r") if color == "sync" else asyncio.run(engine.aresume("r"))) is not None
    assert sorted(DONE) == sorted(once)
    assert {step.state for step in engine.steps("r")} <= {StepState.DONE, StepState.FAILED}


@pytest.mark.parametrize("kind", ["step", "branch", "run"])
def test_what_was_done_after_the_failure_is_not_done_twice(engine, kind):
    """It is refused, whatever it was: a step, a step in a branch, another run."""

    def other():
        yield Step("other", do, "other")

    def decision():
        try:
            yield Step("last", do, "last")
        except StepFailedError:
            if kind == "step":
                yield Step("undo", do, "undo")
            elif kind == "branch":
                yield Together(Step("undo", do, "undo"))
            else:
                yield Join((yield Start(other)))
            raise

    BROKEN.add("last")
    with pytest.raises(RunFailedError):
        engine.run(decision, run_id="r")
    with pytest.raises(CannotResumeError, match=r"would be repeated.*\n.*engine.fork\('r', 1\)"):
        engine.resume("r")


def test_a_signal_that_is_taken_back_can_be_received_again(engine):
    """It was sent once, and is not lost by resuming."""

    def decision():
        try:
            return (yield Step("last", do, "last"))
        except StepFailedError:
            yield Wait("why")
            raise

    BROKEN.add("last")
    handle = engine.start(decision, run_id="r")
    engine.signal("r", "why", "because")
    with pytest.raises(RunFailedError):
        handle.result(10)
    with pytest.raises(RunFailedError):
        engine.resume("r")
    assert [signal.payload for signal in engine.store.signals("r")] == ["because"]
    BROKEN.clear()
    assert engine.resume("r") == "last"


def test_a_resumed_step_has_all_its_attempts(tmp_path):
    """Those before the resume do not count against it, nor after a second interruption."""
    seen = []

    def flaky():
        seen.append(current_step().attempt)
        if len(seen) == 4:
            raise KeyboardInterrupt  # the driving ends in the middle of the second attempt after the resume
        if len(seen) < 6:
            raise ConnectionError(f"{len(seen)}")
        return len(seen)

    def decision():
        return (yield Step("flaky", flaky, retry=Retry(2, delay=0.001)))

    with EmbeddedEngine(tmp_path / "troth.db", recover=False) as engine:
        with pytest.raises(RunFailedError):
            engine.run(decision, run_id="r")
        with pytest.raises(KeyboardInterrupt):
            engine.resume("r")
        with pytest.raises(RunFailedError):
            engine.run(decision, run_id="r")
        assert engine.resume("r") == 6


@pytest.mark.parametrize("args", [(), (1, "two"), ([1, {"a": [2.5, None]}],), ("ä",)], ids=repr)
def test_a_fork_is_a_run_like_any_other(engine, args):
    """Asked for by its id with the same arguments, it is that run, not a mismatch."""

    def decision(*given):
        yield Step("one", do, "one")
        yield Step("two", do, "two")
        return list(given)

    engine.run(decision, *args, run_id="r")
    expected = engine.fork("r", "two", fork_id="f").result(10)
    assert engine.run(decision, *args, run_id="f") == expected
    assert engine.start(decision, *args, run_id="f").result(10) == expected
    assert engine.fork("f", "two").result(10) == expected
    assert DONE == ["one", "two", "two", "two"]


def slow_then(ending):
    def call():
        if current_step().attempt == 1:
            time.sleep(0.3)
        return ending()

    return call


async def aslow():
    if current_step().attempt == 1:
        await asyncio.sleep(0.3)
    raise ValueError("already charged")


def fails():
    raise ValueError("already charged")


UNKNOWN = [
    pytest.param(Step("s", slow_then(fails), timeout=0.05, retry=Retry(2, delay=0)), True, id="timed out, then failed"),
    pytest.param(Step("s", aslow, timeout=0.05, retry=Retry(3, delay=0)), True, id="async: timed out, failed, failed"),
    pytest.param(Step("s", fails, retry=Retry(2, delay=0)), False, id="failed twice, by its own word"),
    pytest.param(Step("s", lambda: {1, 2}), True, id="returned what cannot be kept"),
    pytest.param(Step("s", slow_then(set), timeout=0.05, retry=Retry(2, delay=0)), True, id="both"),
]


@pytest.mark.parametrize("way", ["run", "arun"])
@pytest.mark.parametrize(("step", "is_unknown"), UNKNOWN)
def test_an_outcome_is_unknown_if_that_of_any_attempt_is(engine, step, is_unknown, way):
    """The last attempt's word is not the step's: the one before it may have had its effect. The same on a replay."""
    told = []

    def decision(again):
        try:
            yield step
        except StepFailedError as failed:
            told.append(failed.is_outcome_unknown)
        if again:
            yield Step("broken", do, "broken")
        return None

    BROKEN.add("broken")
    with pytest.raises(RunFailedError):
        engine.run(decision, True, run_id="r") if way == "run" else asyncio.run(engine.arun(decision, True, run_id="r"))
    BROKEN.clear()
    engine.resume("r")
    assert told == [is_unknown, is_unknown]


def test_an_interruption_before_a_failure_is_not_forgotten(tmp_path):
    """Not by going on, and not by taking the answer back to resume."""
    told = []

    def charge():
        if len(told) == 0:
            told.append("interrupted")
            raise KeyboardInterrupt
        raise ValueError("already charged")

    def decision():
        try:
            yield Step("charge", charge)
        except StepFailedError as failed:
            told.append(failed.is_outcome_unknown)
            raise

    with EmbeddedEngine(tmp_path / "troth.db", recover=False) as engine:
        with pytest.raises(KeyboardInterrupt):
            engine.run(decision, run_id="r")
        with pytest.raises(RunFailedError):
            engine.run(decision, run_id="r")
        with pytest.raises(RunFailedError):
            engine.resume("r")
    assert told == ["interrupted", True, True]


def test_waiting_and_branching_have_names(engine):
    """So that a record tells them apart; unnamed they are called by what they are."""

    def decision():
        yield Sleep(0)
        yield Sleep(0, name="until the bank opens")
        yield Together(name="nothing at once")
        yield Together.of([], name="nothing either")

    engine.run(decision, run_id="r")
    assert [(step.kind, step.name) for step in engine.steps("r")] == [
        ("sleep", "sleep"),
        ("sleep", "until the bank opens"),
        ("together", "nothing at once"),
        ("together", "nothing either"),
    ]


@pytest.mark.parametrize("args", [("theirs",), ("other",)], ids=["another decision", "other arguments"])
def test_a_run_is_not_started_under_an_id_of_something_else(engine, args):
    """The decision is told; it is not sent the id of a run that it did not mean."""

    def child(name):
        return (yield Step("child", do, name))

    def theirs(name):
        return (yield Step("theirs", do, name))

    def decision():
        try:
            yield Start(child, "mine", run_id="taken")
        except StepFailedError as failed:
            return [failed.outcome, failed.type]

    engine.run(theirs if args == ("theirs",) else child, *args, run_id="taken")
    assert engine.run(decision, run_id="r") == ["refused", "RunMismatchError"]
    assert engine.fork("r", 1).result(10) == ["refused", "RunMismatchError"]


def test_a_resumed_run_is_left_with_nobody_waiting_threads(engine):
    """Resuming in a thread while another waits for the result: both get it, the steps run once."""

    def decision():
        return (yield Step("last", do, "last"))

    BROKEN.add("last")
    with pytest.raises(RunFailedError):
        engine.run(decision, run_id="r")
    BROKEN.clear()
    results = []
    threads = [threading.Thread(target=lambda: results.append(engine.resume("r"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert results == ["last"] * 8
    assert DONE == ["last"]


def test_a_run_that_is_taken_up_while_it_is_read(engine, monkeypatch):
    """The record and the steps of a run are of one moment: who comes second gets the result, and no step runs twice."""

    def decision():
        return (yield Step("last", do, "last"))

    BROKEN.add("last")
    with pytest.raises(RunFailedError):
        engine.run(decision, run_id="r")
    BROKEN.clear()
    steps, taken = engine.store.steps, []

    def meanwhile(run_id, **options):
        if not taken:
            taken.append(True)
            engine.resume("r")
            return []  # the moment before its step was asked for again
        return steps(run_id, **options)

    monkeypatch.setattr(engine.store, "steps", meanwhile)
    assert engine.resume("r") == "last"
    assert taken
    assert DONE == ["last"]


def test_a_run_that_went_on_and_failed_elsewhere_meanwhile(engine, monkeypatch):
    """What one saw to take back is out of date then: nothing is taken back, and no step that is done runs again."""

    def decision():
        yield Step("first", do, "first")
        return (yield Step("last", do, "last"))

    BROKEN.add("first")
    with pytest.raises(RunFailedError):
        engine.run(decision, run_id="r")
    BROKEN.clear()
    BROKEN.add("last")
    go_on, others = engine._claims.to_go_on, []

    def after_reading(run_id):
        if not others:
            others.append(True)
            with pytest.raises(RunFailedError):
                engine.resume("r")
        return go_on(run_id)

    monkeypatch.setattr(engine._claims, "to_go_on", after_reading)
    with pytest.raises(RunFailedError):
        engine.resume("r")
    assert others
    assert DONE == ["first"]
    BROKEN.clear()
    assert engine.resume("r") == "last"
    assert DONE == ["first", "last"]
