"""What a saga does next, decided without a loop, a thread or a clock."""

import pytest

from troth.errors import MisuseError
from troth.runtime.engine.errors import RunCancelledError
from troth.runtime.engine.retry import Retry
from troth.runtime.sagas.decision import decide
from troth.runtime.sagas.outcome import SagaState
from troth.runtime.sagas.saga import Saga, result


def do(order=None): ...


def undo(order=None, result=None): ...


def three(**options) -> Saga:
    saga = Saga("order")
    for name in ("reserve", "charge", "ship"):
        saga.step(name, do=do, undo=undo, arguments={"order": name}, **options)
    return saga


def answering(failed, script):
    """Answers by name: a word is how it fails, anything else is returned; what is not in the script succeeds."""

    def answer(ask):
        given = script.get(ask.name, {"ok": ask.name})
        if given == "cancel":
            del script[ask.name]
            raise RunCancelledError("asked for")
        if isinstance(given, str):
            raise failed(ask, given)
        return given

    return answer


@pytest.mark.parametrize(
    ("script", "asked", "state", "done", "undone"),
    [
        pytest.param({}, "reserve charge ship", "completed", "reserve charge ship", "", id="all is well"),
        pytest.param(
            {"ship": "failed"},
            "reserve charge ship|undo charge|undo reserve",
            "rolled back",
            "reserve charge",
            "charge reserve",
            id="the last fails: those before it are undone in reverse",
        ),
        pytest.param({"reserve": "failed"}, "reserve", "failed", "", "", id="the first fails: nothing to undo"),
        pytest.param(
            {"charge": "timeout"},
            "reserve charge|undo charge|undo reserve",
            "rolled back",
            "reserve",
            "charge reserve",
            id="a timeout leaves the outcome unknown, so the step itself is undone too",
        ),
        pytest.param(
            {"charge": "late"},
            "reserve charge|undo charge|undo reserve",
            "rolled back",
            "reserve",
            "charge reserve",
            id="too late is as unknown as never",
        ),
        pytest.param(
            {"charge": "lost"},
            "reserve charge|undo charge|undo reserve",
            "rolled back",
            "reserve",
            "charge reserve",
            id="a lost coroutine: part of the step may have happened",
        ),
        pytest.param(
            {"charge": "interrupted"},
            "reserve charge|undo charge|undo reserve",
            "rolled back",
            "reserve",
            "charge reserve",
            id="a crash in flight",
        ),
        pytest.param(
            {"charge": "refused"},
            "reserve charge|undo reserve",
            "rolled back",
            "reserve",
            "reserve",
            id="never started: nothing of it to undo",
        ),
        pytest.param(
            {"ship": "cancel"},
            "reserve charge ship|undo ship|undo charge|undo reserve",
            "cancelled",
            "reserve charge",
            "ship charge reserve",
            id="cancelled while the third was in flight",
        ),
        pytest.param(
            {"ship": "failed", "undo charge": "failed"},
            "reserve charge ship|undo charge|undo reserve",
            "rollback incomplete",
            "reserve charge",
            "reserve",
            id="an undo fails: the others are undone all the same",
        ),
        pytest.param(
            {"ship": "failed", "undo charge": "cancel"},
            "reserve charge ship|undo charge|undo charge|undo reserve",
            "rolled back",
            "reserve charge",
            "charge reserve",
            id="cancelled while undoing: the undoing goes on",
        ),
    ],
)
def test_the_course_of_a_saga(drive, failed, script, asked, state, done, undone):
    """Every end has its word, and the outcome names each step."""
    outcome, names = drive(decide(three()), answering(failed, script))
    first, *rest = asked.split("|")
    assert names == [*first.split(), *rest]
    assert outcome.state == state
    assert outcome.done == tuple(done.split())
    assert outcome.undone == tuple(undone.split())


def test_an_incomplete_rollback_says_which_and_why(drive, failed):
    """The outcome names the step that is left, and the error of its undo."""
    outcome, _ = drive(decide(three()), answering(failed, {"ship": "failed", "undo charge": "failed"}))
    assert outcome.state is SagaState.ROLLBACK_INCOMPLETE
    assert [(left.step, str(left)) for left in outcome.not_undone] == [("charge", "ValueError: no")]
    assert "NOT undone: charge, because its undo failed with ValueError: no" in str(outcome)


def test_an_undo_is_given_what_the_step_was_given_and_its_result(drive, failed):
    """By name, as far as it has parameters for them; the result is None where it is not known."""
    saga = Saga("order")
    saga.step("a", do=lambda x: ..., undo=lambda x, result: ..., arguments={"x": 1})
    saga.step("b", do=lambda y, z: ..., undo=lambda z: ..., arguments={"y": result("a", "id"), "z": 3})
    saga.step("c", do=lambda: ..., undo=lambda result: ..., arguments={})
    given = {}

    def answer(ask):
        given[ask.name] = dict(ask.kwargs)
        if ask.name == "c":
            raise failed(ask, "timeout")
        return {"id": f"{ask.name}-1"}

    drive(decide(saga), answer)
    assert given == {
        "a": {"x": 1},
        "b": {"y": "a-1", "z": 3},
        "c": {},
        "undo c": {"result": None},
        "undo b": {"z": 3},
        "undo a": {"x": 1, "result": {"id": "a-1"}},
    }


def test_a_result_without_the_part_that_is_asked_for_fails_the_step(drive, failed):
    """Nothing is called with a wrong argument; what was done is undone."""
    saga = Saga("order").step("a", do=lambda: ..., undo=lambda: ...)
    saga.step("b", do=lambda x: ..., undo=None, arguments={"x": result("a", "nosuch")})
    outcome, names = drive(decide(saga), lambda ask: {"id": 1})
    assert names == ["a", "undo a"]
    assert outcome.failed.step == "b"
    assert "nosuch" in outcome.failed.message


def test_a_step_without_undo_is_kept_and_named(drive, failed):
    """`undo=None` says there is nothing to take back; the outcome still tells."""
    saga = Saga("order").step("look", do=lambda: ..., undo=None).step("act", do=lambda: ..., undo=lambda: ...)
    outcome, _ = drive(decide(saga), answering(failed, {"act": "failed"}))
    assert (outcome.state, outcome.kept) == (SagaState.FAILED, ("look",))


def test_policies_reach_the_engine():
    """Retry and timeout of `do` and of `undo` are their own."""
    saga = Saga("order")
    policy = Retry(attempts=4)
    saga.step("a", do=do, undo=undo, retry=policy, timeout=5, undo_retry=7, undo_timeout=9)
    ask = next(decide(saga))
    assert (ask.retry, ask.timeout) == (policy, 5)
    assert saga.steps[0].undo.retry.attempts == 7
    assert saga.steps[0].undo.timeout == 9


@pytest.mark.parametrize(
    ("options", "says"),
    [
        pytest.param({"do": lambda x: ..., "undo": None}, "needs 'x'", id="an argument is missing"),
        pytest.param({"do": lambda: ..., "undo": None, "arguments": {"y": 1}}, "does not take 'y'", id="one too many"),
        pytest.param({"do": do, "undo": lambda other: ...}, "`undo` of step 'b' needs 'other'", id="undo needs more"),
        pytest.param({"do": do, "undo": None, "timeout": 0}, "more than 0 s", id="no time at all"),
        pytest.param(
            {"do": do, "undo": None, "timeout": float("nan")}, "Give a number of seconds", id="NaN is no limit"
        ),
        pytest.param({"do": do, "undo": None, "retry": 0}, "1 or more", id="never tried"),
        pytest.param({"do": do, "undo": None, "arguments": {"order": result("z")}}, "'z'", id="a later step's result"),
        pytest.param({"do": 3, "undo": None}, "sync or async", id="not a function"),
    ],
)
def test_what_could_not_work_is_refused_at_registration(options, says):
    """Before any effect: the saga never starts."""
    with pytest.raises(MisuseError, match=says):
        Saga("order").step("a", do=do, undo=undo).step("b", **options)


@pytest.mark.parametrize("name", ["", None, 3], ids=repr)
def test_a_step_without_a_name_is_refused(name):
    """It could not be told of."""
    with pytest.raises(MisuseError, match="give it a string as its name"):
        Saga("order").step(name, do=do, undo=undo)
