"""Decisions: what may be one, how it is replayed, resumed and forked, and what it may ask for."""

import asyncio
import functools
import math
import re

import pytest

from troth.errors import MisuseError
from troth.runtime.engine import (
    Append,
    CannotResumeError,
    EmbeddedEngine,
    Join,
    NondeterministicError,
    NotADecisionError,
    Retry,
    RunCancelledError,
    RunFailedError,
    RunMismatchError,
    Sleep,
    Start,
    Step,
    StepFailedError,
    Together,
    UnknownColorError,
    UnknownDecisionError,
    UnknownRunError,
    Wait,
    WaitTimeoutError,
    current_step,
)
from troth.runtime.store import NotJsonError, RunState, StepState

CALLS = []


@pytest.fixture(autouse=True)
def _no_calls():
    CALLS.clear()


def call(name):
    CALLS.append(name)
    return name


async def coroutine():
    """Not a decision."""


async def async_generator():
    yield 1


def plain():
    """Not a decision."""


def generator():
    yield Step("one", call, "one")


@pytest.mark.parametrize(
    ("decision", "says"),
    [
        pytest.param(coroutine, "it is async", id="async def"),
        pytest.param(async_generator, "it is async", id="async generator"),
        pytest.param(plain, "it does not yield", id="a function without yield"),
        pytest.param(generator(), "that has already started", id="a generator object"),
        pytest.param(functools.partial(plain), "it does not yield", id="a partial of one"),
        pytest.param(3, "cannot be called", id="a number"),
    ],
)
def test_what_is_not_a_decision(engine, decision, says):
    """Said before anything is written."""
    with pytest.raises(NotADecisionError, match=says):
        engine.run(decision)
    assert engine.list() == []


class Orders:
    def decide(self, name):
        return (yield Step("one", call, name))

    def __call__(self, name):
        return (yield Step("one", call, name))


@pytest.mark.parametrize(
    ("decision", "name"),
    [
        pytest.param(Orders().decide, "Orders.decide", id="a bound method"),
        pytest.param(Orders(), "Orders", id="an object with a generator __call__"),
        pytest.param(functools.partial(Orders().decide), "Orders.decide", id="a partial"),
    ],
)
def test_what_is_a_decision(engine, decision, name):
    """And under which name its runs are written down."""
    assert engine.run(decision, "x", run_id="r") == "x"
    assert engine.find("r").decision == name


def test_two_decisions_of_one_name_are_refused(engine):
    """After a restart they could not be told apart."""

    def same():
        yield Step("one", call, 1)

    first = same

    def same():
        yield Step("two", call, 2)

    engine.register(first)
    with pytest.raises(MisuseError, match="Two decisions are called"):
        engine.run(same)
    assert engine.register(same, "another") == "another"
    assert engine.run(same) is None


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        pytest.param(lambda: Step("s", 3), UnknownColorError, "It was not called", id="not callable"),
        pytest.param(lambda: Step("s", async_generator), UnknownColorError, "sync or async", id="an async generator"),
        pytest.param(lambda: Step("s", call, {1, 2}), NotJsonError, "arguments of step 's'", id="a set as argument"),
        pytest.param(
            lambda: Step("s", call, kwargs={"x": object()}), NotJsonError, r"\['x'\]", id="a keyword argument"
        ),
        pytest.param(lambda: Step("s", call, 1, timeout=0), MisuseError, "before it starts", id="no time at all"),
        pytest.param(
            lambda: Step("s", call, 1, timeout=math.nan), MisuseError, "before it starts", id="NaN is no time"
        ),
        pytest.param(lambda: Step(None, call, 1), MisuseError, "A step needs a string as its name", id="no name"),
        pytest.param(lambda: Step("s", call, 10**5000), NotJsonError, "more digits", id="a number that is too long"),
        pytest.param(lambda: Sleep(math.inf), MisuseError, "not a valid duration", id="a sleep forever"),
        pytest.param(lambda: Sleep(math.nan), MisuseError, "is not a valid duration", id="a sleep of NaN"),
        pytest.param(lambda: Wait(None), MisuseError, "A signal needs a string as its name", id="no signal"),
        pytest.param(lambda: Wait("s", math.nan), MisuseError, "Give seconds, or None", id="a wait of NaN"),
        pytest.param(lambda: Together(limit=0), MisuseError, "never begin", id="no branch at a time"),
        pytest.param(lambda: Retry(0), MisuseError, "1 or more", id="no attempt"),
        pytest.param(lambda: Retry(3, jitter=2), MisuseError, "between 0 and 1", id="too much jitter"),
        pytest.param(lambda: "charge", MisuseError, "cannot perform", id="not an ask"),
        pytest.param(generator, MisuseError, "`yield from` it", id="a generator, yielded"),
    ],
)
def test_a_wrong_ask_is_refused_before_any_effect(engine, make, error, says):
    """At the line of the decision that made it, and never retried."""

    def decision():
        return (yield make())

    with pytest.raises(RunFailedError) as failed:
        engine.run(decision, run_id="r")
    assert failed.value.error["type"] == error.__name__
    assert re.search(says, failed.value.error["message"])
    assert failed.value.error["place"].startswith(__file__)
    assert CALLS == []


@pytest.mark.parametrize("change", ["name", "arguments", "kind", "code"])
def test_a_decision_that_changed_its_mind(tmp_path, change):
    """Replayed, it asks for something else: refused, saying what; the record stays, and the old decision goes on."""
    path = tmp_path / "troth.db"

    def before():
        one = yield Step("one", call, 1, code="v1")
        return [one, (yield Wait("go"))]

    def after():
        if change == "kind":
            yield Wait("one")
        one = yield Step(
            "uno" if change == "name" else "one",
            call,
            2 if change == "arguments" else 1,
            code="v2" if change == "code" else "v1",
        )
        return [one, (yield Wait("go"))]

    with EmbeddedEngine(path) as engine:
        engine.register(before, "d")
        engine.start("d", run_id="r")
        while engine.find("r").state is not RunState.WAITING:
            pass
    with EmbeddedEngine(path) as engine:
        engine.register(after, "d")
        with pytest.raises(NondeterministicError, match=rf"(?s)at step 1.*{change} +then.*now"):
            engine.run("d", run_id="r")
        with pytest.raises(NondeterministicError):
            engine.resume("r")
    with EmbeddedEngine(path) as engine:
        engine.register(before, "d")
        engine.signal("r", "go", 1)
        assert engine.run("d", run_id="r") == [1, 1]
    assert CALLS == [1]


def test_a_failed_run_goes_on_where_it_stopped(engine):
    """What is done is not repeated; the failed step is asked for again, with its old attempts on record."""
    broken = [True]

    def maybe():
        CALLS.append("maybe")
        if broken[0]:
            raise ConnectionError("down")
        return "up"

    def decision():
        yield Step("one", call, "one")
        return (yield Together(Step("two", call, "two"), Step("maybe", maybe)))

    with pytest.raises(RunFailedError, match=r"(?s)in step 'maybe': ConnectionError: down.*engine.resume\('r'\)"):
        engine.run(decision, run_id="r")
    broken[0] = False
    assert engine.resume("r") == ["two", "up"]
    assert sorted(CALLS) == ["maybe", "maybe", "one", "two"]
    step = next(step for step in engine.steps("r") if step.name == "maybe")
    assert [attempt.error["message"] for attempt in step.attempts] == ["down"]
    assert asyncio.run(engine.aresume("r")) == ["two", "up"]


def test_a_run_that_cleaned_up_cannot_be_resumed(engine):
    """Going on would repeat what was done after the failure; forking is the way."""

    def fail():
        raise ValueError

    def decision():
        yield Step("one", call, "one")
        try:
            yield Step("bad", fail)
        except StepFailedError:
            yield Step("undo", call, "undo")
            raise

    with pytest.raises(RunFailedError):
        engine.run(decision, run_id="r")
    with pytest.raises(CannotResumeError, match=r"'undo', which would be repeated.*\n.*engine.fork\('r', 2\)"):
        engine.resume("r")
    assert CALLS == ["one", "undo"]


def test_a_fork_has_the_answers_up_to_its_step(engine):
    """By number or by name; the original stays as it is; an unknown step is named with the known ones."""

    def decision(x):
        one = yield Step("one", call, x)
        branches = yield Together(Step("left", call, "left"), Step("right", call, "right"))
        return [one, branches, (yield Step("three", call, "three"))]

    engine.run(decision, 1, run_id="r")
    assert engine.fork("r", "three", fork_id="f").result(10) == [1, ["left", "right"], "three"]
    assert CALLS.count("three") == 2
    assert len(CALLS) == 5
    assert asyncio.run(forked(engine, 1)) == [1, ["left", "right"], "three"]
    assert len(CALLS) == 9
    assert engine.find("f").forked_from == "r"
    with pytest.raises(MisuseError, match=r"'tree' is not one of its steps\. Its steps: 1 one, 2 together, 3 three"):
        engine.fork("r", "tree")


async def forked(engine, before):
    return await (await engine.afork("r", before)).aresult(10)


def test_children_run_beside_and_are_joined(engine):
    """Their result or their failure arrives as an answer; a run that does not exist is a failure too."""

    def child(fails):
        if fails:
            raise LookupError("lost")
        return (yield Step("child", call, "child"))

    def parent():
        good = yield Start(child, False)
        bad = yield Start(child, True, run_id="bad")
        answers = [(yield Join(good))]
        for run_id in (bad, "nobody"):
            try:
                yield Join(run_id)
            except StepFailedError as failed:
                answers.append([failed.type, failed.outcome])
        return answers

    assert engine.run(parent, run_id="p") == ["child", ["LookupError", "child"], ["UnknownRunError", "child"]]
    assert engine.find("p.1").parent == "p"
    assert asyncio.run(engine.arun(parent, run_id="p")) == engine.find("p").result


def test_a_wait_that_is_too_long(engine):
    """Thrown into the decision, the same on a replay."""

    def decision():
        try:
            yield Wait("never", timeout=0.01)
        except WaitTimeoutError as late:
            return [late.step, (yield Wait("go"))]
        return None

    handle = engine.start(decision, run_id="r")
    while (run := engine.find("r")).waiting_for != "signal 'go'":
        assert not run.state.is_over
    engine.signal("r", "go", 1)
    assert handle.result(10) == ["never", 1]


def test_events_commit_with_what_they_tell_of(engine):
    """Those of a failed attempt are not kept; those of the decision come with its next commit."""

    def work():
        current_step().append("audit", "tried", current_step().attempt)
        if current_step().attempt == 1:
            raise ValueError
        return 1

    def decision():
        yield Append("talk", "said", "begin")
        yield Step("work", work, retry=Retry(2, delay=0.001))
        yield Append("talk", "said", "end")
        return None

    engine.run(decision, run_id="r")
    assert [event.payload for event in engine.store.events("audit")] == [2]
    assert [event.payload for event in engine.store.events("talk")] == ["begin", "end"]


def test_together_brings_all_to_an_end_and_throws_the_first_failure(engine):
    """The others are notes on it; a limit bounds how many are at work."""
    at_work, most = [0], [0]

    async def busy(name):
        at_work[0] += 1
        most[0] = max(most[0], at_work[0])
        await asyncio.sleep(0.001)
        at_work[0] -= 1
        if name.startswith("bad"):
            raise ValueError(name)
        return name

    def decision():
        names = ["a", "bad1", "b", "bad2", "c", "d"]
        try:
            yield Together.of((Step("busy", busy, name) for name in names), limit=2)
        except StepFailedError as failed:
            return [failed.message, failed.__notes__]
        return None

    message, notes = engine.run(decision, run_id="r")
    assert message == "bad1"
    assert "bad2" in notes[0]
    assert most[0] == 2
    done = [step.state for step in engine.steps("r") if step.kind == "step"]
    assert done.count(StepState.DONE) == 4


def test_every_branch_hears_of_a_cancellation(engine):
    """Each cleans up once, and the run is cancelled."""

    def branch(name):
        try:
            yield Wait(f"never {name}")
        except RunCancelledError:
            yield Step("undo", call, name)
            raise

    def decision():
        yield Together(branch("left"), branch("right"))

    handle = engine.start(decision, run_id="r")
    while engine.find("r").state is not RunState.WAITING:
        pass
    engine.cancel("r")
    with pytest.raises(RunCancelledError):
        handle.result(10)
    assert sorted(CALLS) == ["left", "right"]


def test_an_id_belongs_to_one_thing(engine):
    """Another decision, or other arguments, under a known id: refused, with both named."""
    engine.run(generator, run_id="r")

    def other():
        yield Step("one", call, "one")

    with pytest.raises(RunMismatchError, match="belongs to a run of `generator`"):
        engine.run(other, run_id="r")
    with pytest.raises(RunMismatchError):
        engine.run(Orders().decide, "x", run_id="r")
    engine.run(Orders().decide, "x", run_id="a")
    with pytest.raises(RunMismatchError, match=r'`Orders\.decide` with other arguments: \["x"\], and here \["y"\]\.'):
        engine.run(Orders().decide, "y", run_id="a")


@pytest.mark.parametrize("verb", ["result", "signal", "cancel", "resume", "fork"])
def test_a_run_that_does_not_exist(engine, verb):
    """Every verb says so."""
    args = {"signal": ("go",), "fork": (1,)}.get(verb, ())
    with pytest.raises(UnknownRunError, match="There is no run 'nobody'"):
        getattr(engine, verb)("nobody", *args)


def test_a_run_whose_decision_is_not_known_here(tmp_path):
    """It is left alone, and the error says what to do."""
    path = tmp_path / "troth.db"

    def waits():
        return (yield Wait("go"))

    with EmbeddedEngine(path) as engine:
        engine.start(waits, run_id="r")
    with EmbeddedEngine(path) as engine, pytest.raises(UnknownDecisionError, match="has no decision"):
        engine.resume("r")


@pytest.mark.parametrize(
    ("retry", "waits"),
    [
        pytest.param(Retry(4, delay=1, backoff="fixed", jitter=0), [1, 1, 1], id="fixed"),
        pytest.param(Retry(4, delay=1, jitter=0), [1, 2, 4], id="exponential"),
        pytest.param(Retry(4, delay=1, factor=10, max_delay=5, jitter=0), [1, 5, 5], id="bounded"),
    ],
)
def test_how_long_a_retry_waits(retry, waits):
    """Before the first retry too."""
    import random

    assert [retry.wait_after(failed, random.Random(1)) for failed in (1, 2, 3)] == waits


def test_jitter_spreads_the_waits():
    """Within its bounds, and not all the same."""
    import random

    chance = random.Random(7)
    waits = {Retry(2, delay=10, jitter=0.5).wait_after(1, chance) for _ in range(50)}
    assert all(5 <= wait <= 15 for wait in waits)
    assert len(waits) > 40


def test_waiting_is_told_apart_from_working(engine):
    """Each attempt has its own times, and says until when nobody worked."""

    def flaky():
        if current_step().attempt < 3:
            raise ValueError(current_step().attempt)

    def decision():
        yield Step("flaky", flaky, retry=Retry(3, delay=0.02, jitter=0))

    engine.run(decision, run_id="r")
    (step,) = engine.steps("r")
    first, second = step.attempts
    assert first.started_at <= first.finished_at < first.next_at <= second.started_at
    assert second.next_at - second.finished_at == pytest.approx(0.04)
    assert step.attempt == 3
    assert step.started_at >= second.next_at


def test_hundreds_of_waiting_runs_need_no_threads(engine):
    """Each is a task and a generator; one signal wakes one run."""
    import threading

    def waits(number):
        return [number, (yield Wait("go"))]

    async def main():
        handles = [await engine.astart(waits, number) for number in range(300)]
        threads = threading.active_count()
        for handle in handles:
            await engine.asignal(handle.id, "go", 1)
        results = [await handle.aresult(30) for handle in handles]
        return threads, results

    before = threading.active_count()
    threads, results = asyncio.run(main())
    assert results == [[number, 1] for number in range(300)]
    assert threads <= before + 2
