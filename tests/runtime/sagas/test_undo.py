"""An undo that took effect is recorded as undone, whatever it returns; `result` goes to a parameter of that name only."""

import datetime
import functools
import math
import subprocess
import sys
import textwrap
import threading

import pytest

from troth.runtime import Runtime, Saga, SagaState, Workflow, step
from troth.runtime.engine import RunCancelledError
from troth.runtime.sagas.checked_callable import judge
from troth.runtime.sagas.undo import undo_arguments
from troth.runtime.sessions import Action, Hypervisor
from troth.runtime.workflows.execute.resume_points import CannotGoOnError
from troth.testing import failpoints


@pytest.fixture
def runtime(tmp_path):
    with Runtime(tmp_path / "runs.db") as opened:
        yield opened


def fail():
    raise ValueError("no")


RETURNED = [
    pytest.param(lambda: datetime.date(2026, 1, 1), id="a date"),
    pytest.param(object, id="an object, as a client's response is"),
    pytest.param(lambda: {1, 2}, id="a set"),
    pytest.param(lambda: math.nan, id="a number that JSON lacks"),
    pytest.param(threading.Lock, id="a lock"),
    pytest.param(lambda: {1: "a key that is no text"}, id="a mapping that would come back changed"),
    pytest.param(lambda: ValueError("an error as a value"), id="an error as a value"),
]


def undo_of(color, effects, make):
    def undo():
        effects.append("undone")
        return make()

    async def aundo():
        return undo()

    return {"sync": undo, "async": aundo, "a lambda that returns a coroutine": lambda: aundo()}[color]  # noqa: PLW0108


@pytest.mark.parametrize("make", RETURNED)
@pytest.mark.parametrize("color", ["sync", "async", "a lambda that returns a coroutine"])
@pytest.mark.parametrize("form", ["saga", "workflow"])
def test_what_an_undo_returns_does_not_matter(runtime, form, color, make):
    """It is done once, and going on does not do it again."""
    effects = []
    undo = undo_of(color, effects, make)
    if form == "saga":
        saga = Saga("s").step("a", do=lambda: 1, undo=undo).step("b", do=fail, undo=None)
        outcome = runtime.run_saga(saga, run_id="r", check=False)
        assert (outcome.state, outcome.undone, outcome.not_undone) == (SagaState.ROLLED_BACK, ("a",), ())
    else:
        flow = Workflow("w", step("a", function=lambda: 1, undo=undo), step("b", function=fail))
        run = runtime.run(flow, run_id="r", check=False)
        assert (str(run.state), run.undone, run.not_undone) == ("rolled back", ("a",), ())
    assert not runtime.replay("r").differs
    with pytest.raises(CannotGoOnError):
        runtime.resume("r")
    assert effects == ["undone"]


def a_generator():
    yield


async def an_async_generator():
    yield


@pytest.mark.parametrize("make", [a_generator, an_async_generator])
def test_a_generator_that_nobody_began_is_no_undoing(runtime, make):
    """The call returned, and did none of its work."""
    saga = Saga("s").step("a", do=lambda: 1, undo=lambda: make()).step("b", do=fail, undo=None)  # noqa: PLW0108
    outcome = runtime.run_saga(saga, check=False)
    assert outcome.state is SagaState.ROLLBACK_INCOMPLETE
    assert "returned a generator" in outcome.not_undone[0].message


def test_coroutines_in_what_an_undo_returns_are_lost_and_so_is_the_undo(runtime):
    """A list of coroutines is work that nobody did."""

    async def give_back():
        pass

    saga = Saga("s").step("a", do=lambda: 1, undo=lambda: [give_back(), give_back()]).step("b", do=fail, undo=None)
    outcome = runtime.run_saga(saga, check=False)
    assert (outcome.state, outcome.not_undone[0].type) == (SagaState.ROLLBACK_INCOMPLETE, "LostCoroutineError")


def plain(function):
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)

    return wrapper


def wrapping(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)

    return wrapper


def refund(order):
    del order


def refund_paid(order, result):
    del order, result


def refund_rest(order, **rest):
    del order, rest


def refund_paid_rest(result=None, **rest):
    del result, rest


@pytest.mark.parametrize(
    ("undo", "given"),
    [
        pytest.param(refund, {"order": "A7"}, id="no parameter for it"),
        pytest.param(refund_paid, {"order": "A7", "result": 12}, id="a parameter of that name"),
        pytest.param(functools.partial(refund_paid, order="A7"), {"order": "A7", "result": 12}, id="under a partial"),
        pytest.param(refund_rest, {"order": "A7", "cents": 5}, id="bare **kwargs"),
        pytest.param(refund_paid_rest, {"order": "A7", "cents": 5, "result": 12}, id="named beside **kwargs"),
        pytest.param(plain(refund), {"order": "A7", "cents": 5}, id="behind a decorator without `wraps`"),
        pytest.param(plain(refund_paid), {"order": "A7", "cents": 5}, id="the same, and its name cannot be seen"),
        pytest.param(wrapping(refund), {"order": "A7"}, id="behind a decorator with `wraps`"),
        pytest.param(wrapping(refund_paid), {"order": "A7", "result": 12}, id="the same, and its name is seen"),
        pytest.param(wrapping(wrapping(refund_paid)), {"order": "A7", "result": 12}, id="behind two of them"),
        pytest.param(plain(wrapping(refund_paid)), {"order": "A7", "cents": 5}, id="the outer one hides the inner one"),
    ],
)
def test_who_is_given_the_result(undo, given):
    """A parameter named `result` in the undo's own signature, as `inspect.signature` has it."""
    assert undo_arguments(judge(undo, "`undo`"), {"order": "A7", "cents": 5}, 12) == given


@pytest.mark.parametrize("decorator", [plain, wrapping])
@pytest.mark.parametrize("form", ["saga", "workflow"])
def test_an_undo_behind_a_decorator_is_called(runtime, form, decorator):
    """With the step's inputs, and without a `result` that it would not take."""
    effects = []

    @decorator
    def undo(order):
        effects.append(order)

    def charge(order):
        return f"paid {order}"

    if form == "saga":
        saga = Saga("s").step("a", do=charge, undo=undo, arguments={"order": "A7"}).step("b", do=fail, undo=None)
        assert runtime.run_saga(saga, check=False).state is SagaState.ROLLED_BACK
    else:
        flow = Workflow(
            "w", step("a", function=charge, inputs={"order": {"value": "A7"}}, undo=undo), step("b", function=fail)
        )
        assert str(runtime.run(flow, check=False).state) == "rolled back"
    assert effects == ["A7"]


def test_the_same_from_the_command_line(tmp_path):
    """Two processes: the second finds nothing left to undo, and undoes nothing."""
    (tmp_path / "shop.py").write_text(
        textwrap.dedent("""
        import datetime
        def charge():
            return 1
        def refund():
            with open("effects", "a") as effects:
                effects.write("refunded ")
            return datetime.date.today()
        def ship():
            raise ValueError("no parcel")
        """)
    )
    (tmp_path / "order.yaml").write_text(
        textwrap.dedent("""
        troth: 1
        name: order
        steps:
          - {id: charge, function: "shop:charge", undo: "shop:refund"}
          - {id: ship, function: "shop:ship"}
        """)
    )

    def troth(*words):
        command = [sys.executable, "-m", "troth", *words]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)

    first = troth("run", "order.yaml", "--id", "r")
    assert (first.returncode, "rolled back" in first.stderr) == (1, True), first.stderr
    second = troth("runs", "resume", "r")
    assert (second.returncode, "cannot be resumed" in second.stderr) == (2, True), second.stderr
    assert (tmp_path / "effects").read_text() == "refunded "


@pytest.mark.parametrize("door", ["saga", "workflow", "act"])
def test_what_was_never_called_is_not_taken_back(tmp_path, monkeypatch, door):
    """A cancellation that comes before a step is called leaves nothing of that step to undo: an undo may rely on it."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    effects = []

    def undo(name):
        return lambda: effects.append(f"undo {name}")

    with Runtime(tmp_path / "troth.db") as runtime:

        def cancels():
            effects.append("one")
            thread = threading.Thread(target=lambda: runtime.engine.cancel("r"))
            thread.start()
            thread.join()

        def never():
            effects.append("two")

        if door == "saga":
            saga = Saga("s").step("one", do=cancels, undo=undo("one")).step("two", do=never, undo=undo("two"))
            outcome = runtime.run_saga(saga, run_id="r", check=False)
            assert (outcome.state, outcome.undone) == ("cancelled", ("one",))
        elif door == "workflow":
            flow = Workflow(
                "w", step("one", function=cancels, undo=undo("one")), step("two", function=never, undo=undo("two"))
            )
            assert runtime.run(flow, run_id="r", check=False).state == "cancelled"
        else:
            cancelled_before_the_call(tmp_path, never, undo("two"))
        assert effects == (["one", "undo one"] if door != "act" else [])


def cancelled_before_the_call(tmp_path, never, undo):
    """An act whose run is cancelled right after it was begun."""
    actions = [Action("two", never, undo=undo)]
    with Hypervisor(tmp_path / "acts.db", audit_key="a key that is only used in tests", actions=actions) as hypervisor:
        session = hypervisor.create("ops")
        member = hypervisor.join(session, "a", score=0.8)
        hypervisor.activate(session)

        def cancel(_):
            for driven in hypervisor.engine._driver.runs.values():
                driven.run.cancellation.ask()

        with failpoints.armed("session.act.after", cancel), pytest.raises(RunCancelledError):
            member.act("two")
        assert [row.kind for row in hypervisor.events(after=3)] == ["act.begun", "act.over"]
