"""A run that is written down together with its first step: the same run, with one commit less."""

import pytest

from troth.runtime.engine import EmbeddedEngine, RunFailedError, RunMismatchError, Sleep, Step, Wait, current_step
from troth.runtime.store import RunState, SqliteStore, commit_point
from troth.testing import failpoints

POINT = commit_point("test.short", "a run and its first step")


def key(x):
    return [x, current_step().key]


def one(x):
    return (yield Step("key", key, x))


def two(x):
    yield Step("key", key, x)
    return (yield Step("key", key, x + 1))


def waits(x):
    return x + (yield Wait("go", timeout=0.001 * x))


def sleeps(x):
    yield Sleep(0.001)
    return x


def raises(x):
    raise ValueError(x)
    yield


@pytest.fixture
def engine(tmp_path):
    with EmbeddedEngine(tmp_path / "troth.db", decisions=[one, two, sleeps, raises, waits]) as engine:
        yield engine


@pytest.mark.parametrize("decision", [one, two, sleeps], ids=lambda decision: decision.__name__)
def test_it_is_the_same_run(engine, decision):
    """The same answer, and the same history but for its moments and its id."""
    answers = [engine.run(decision, 1, run_id="long"), engine.run_short(POINT, decision, 1, run_id="short")]
    long, short = ([(entry.what, entry.name, entry.seq) for entry in engine.history(run)] for run in ("long", "short"))
    assert str(answers[1]).replace("short", "long") == str(answers[0])
    assert short == long
    assert [step.key.replace("short", "long") for step in engine.steps("short")] == [
        step.key for step in engine.steps("long")
    ]
    assert engine.store.holder("run:short") is None


def test_what_there_is_already_is_found(engine):
    """A run of that id that is over answers; another one of that id is refused."""
    assert engine.run_short(POINT, one, 1, run_id="r") == engine.run_short(POINT, one, 1, run_id="r")
    assert len(engine.steps("r")) == 1
    with pytest.raises(RunMismatchError):
        engine.run_short(POINT, one, 2, run_id="r")


@pytest.mark.parametrize("decision", [raises, waits], ids=["it raises", "its wait times out"])
def test_one_that_fails_is_written_down(engine, decision):
    """Before its first step, too."""
    with pytest.raises(RunFailedError):
        engine.run_short(POINT, decision, 1, run_id="r")
    assert engine.find("r").state is RunState.FAILED


@pytest.mark.parametrize("place", ["before", "written"])
def test_interrupted_in_that_commit_nothing_is_begun(engine, place):
    """Nobody holds it, nothing is written, and the same call begins it."""

    def stop(_):
        raise KeyboardInterrupt

    with failpoints.armed(getattr(POINT, place), stop), pytest.raises(KeyboardInterrupt):
        engine.run_short(POINT, one, 1, run_id="r")
    assert engine.find("r") is None
    assert engine.store.holder("run:r") is None
    assert engine.run_short(POINT, one, 1, run_id="r") == [1, "r:1:key"]


def test_the_key_of_a_copied_step_stays(engine):
    """A key is not kept where it can be told; a fork tells that of the run that did the step."""
    engine.run(two, 1, run_id="r")
    engine.fork("r", 2, fork_id="f").result(60)
    assert [step.key for step in engine.steps("f")] == ["r:1:key", "f:2:key"]
    engine.fork("f", 2, fork_id="g").result(60)
    assert [step.key for step in engine.steps("g")] == ["r:1:key", "g:2:key"]


def test_who_takes_a_run_over_counts_its_history_anew(tmp_path):
    """Numbers that one process remembers do not outlive its lease."""
    with SqliteStore(tmp_path / "troth.db") as first, SqliteStore(tmp_path / "troth.db") as second:
        first.commit(POINT, lambda tx: (tx.add_run("r", "one", "[]", 0.0), tx.claim("run:r", "a", "t1", 0.0)))
        second.commit(POINT, lambda tx: (tx.tell_callback_failed("r", 1.0, name="c", error="{}"),))
        first.commit(POINT, lambda tx: tx.release("run:r", "t1"))
        first.commit(POINT, lambda tx: tx.claim("run:r", "a", "t2", 2.0))
        first.commit(POINT, lambda tx: tx.begin_attempt(("r", "", 1), 2, 3.0, name="s"))  # stands behind the last one
        with first._readers.lend() as connection:
            rows = connection.execute("SELECT seq, sub, what FROM history ORDER BY seq, sub").fetchall()
        assert rows == [(1, 0, "run begun"), (2, 0, "callback failed"), (2, 1, "again")]
