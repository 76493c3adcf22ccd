"""One word for one end, and the verbs of a saga: run, resume, cancel; each tries an undo again that failed."""

import asyncio
import threading
import time

import pytest

from troth.runtime import Runtime, Saga, SagaState, Workflow, step

PATIENCE = 30  # seconds after which a test that hangs fails


class Shop:
    """Steps that note what happened, and fail as often as they are told to."""

    def __init__(self):
        self.seen = []
        self.broken = set()
        self.at_work = threading.Event()
        self.go_on = threading.Event()

    def call(self, name):
        def work():
            if name in self.broken:
                raise ConnectionError(f"{name} is broken")
            self.seen.append(name)
            return name

        return work

    def wait(self):
        self.at_work.set()
        assert self.go_on.wait(PATIENCE)
        return "waited"

    def saga(self, *names, undo=True, waits=False):
        saga = Saga("shop")
        for name in names:
            back = self.call(f"undo {name}") if undo else None
            saga.step(name, do=self.call(name), undo=back, undo_retry=1)
        if waits:
            saga.step("wait", do=self.wait, undo=None).step("late", do=self.call("late"), undo=None)
        return saga


@pytest.fixture
def shop():
    shop = Shop()
    yield shop
    shop.go_on.set()


@pytest.fixture
def runtime(tmp_path):
    with Runtime(tmp_path / "runs.db") as runtime:
        yield runtime


@pytest.mark.parametrize(
    ("broken", "undo", "state"),
    [
        pytest.param((), True, "completed", id="all done"),
        pytest.param(("a",), True, "failed", id="the first step failed: there is nothing to undo"),
        pytest.param(("b",), True, "rolled back", id="the second failed"),
        pytest.param(("b",), False, "failed", id="what was done has no undo"),
        pytest.param(("b", "undo a"), True, "rollback incomplete", id="an undo failed"),
    ],
)
def test_outcome_and_report_have_one_word(runtime, shop, broken, undo, state):
    """`SagaOutcome.state`, `RunReport.state` and the text say the same."""
    shop.broken = set(broken)
    outcome = runtime.run_saga(shop.saga("a", "b", undo=undo), run_id="r", check=False)
    assert (outcome.state, runtime.show("r").state) == (state, state)
    assert str(outcome).startswith(f"{state}: ")


def cancelled(runtime, shop, verb):
    """What `verb` answers for a saga that waits in its last step."""
    saga = shop.saga("a", waits=True)
    runtime.start(saga, run_id="r")
    assert shop.at_work.wait(PATIENCE)
    answer = []
    asking = threading.Thread(target=lambda: answer.append(verb(saga)))
    asking.start()
    deadline = time.monotonic() + PATIENCE
    while not runtime.show("r").cancel_requested:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    shop.go_on.set()
    asking.join(PATIENCE)
    return answer[0]


@pytest.mark.parametrize("color", ["sync", "async"])
def test_cancel(runtime, shop, color):
    """What was done is undone, and both say `cancelled`; a second time it is told again."""

    def verb(saga):
        if color == "sync":
            return runtime.cancel_saga("r", saga)
        return asyncio.run(runtime.acancel_saga("r", saga))

    outcome = cancelled(runtime, shop, verb)
    assert (outcome.state, outcome.undone, outcome.was_cancelled) == (SagaState.CANCELLED, ("a",), True)
    assert runtime.show("r").state == "cancelled"
    assert "cancelled" in str(outcome)
    assert verb(shop.saga("a", waits=True)).state is SagaState.CANCELLED
    assert shop.seen == ["a", "undo a"]


def test_a_cancelled_rollback_that_failed_is_tried_again_by_cancel(runtime, shop):
    """Until it works; completed undos are not repeated."""
    shop.broken = {"undo a"}
    outcome = cancelled(runtime, shop, lambda saga: runtime.cancel_saga("r", saga))
    assert (outcome.state, runtime.show("r").state) == ("rollback incomplete", "rollback incomplete")
    assert runtime.cancel_saga("r", shop.saga("a", waits=True)).state is SagaState.ROLLBACK_INCOMPLETE
    shop.broken = set()
    again = runtime.cancel_saga("r", shop.saga("a", waits=True))
    assert (again.state, again.undone, again.not_undone) == (SagaState.CANCELLED, ("a",), ())
    assert (runtime.show("r").state, shop.seen) == ("cancelled", ["a", "undo a"])


AGAIN = {
    "run_saga": lambda runtime, saga: runtime.run_saga(saga, run_id="r", check=False),
    "arun_saga": lambda runtime, saga: asyncio.run(runtime.arun_saga(saga, run_id="r", check=False)),
    "resume_saga": lambda runtime, saga: runtime.resume_saga("r", saga, check=False),
    "aresume_saga": lambda runtime, saga: asyncio.run(runtime.aresume_saga("r", saga, check=False)),
    "cancel_saga": lambda runtime, saga: runtime.cancel_saga("r", saga),
}


@pytest.mark.parametrize("verb", AGAIN)
@pytest.mark.parametrize("is_new", [False, True], ids=["the same runtime", "another one"])
def test_a_rollback_that_failed_is_tried_again(tmp_path, shop, verb, is_new):
    """By the verb that began it and by the others, in this runtime or in the next."""
    shop.broken = {"c", "undo a"}
    saga = shop.saga("a", "b", "c")
    with Runtime(tmp_path / "runs.db") as runtime:
        assert runtime.run_saga(saga, run_id="r", check=False).state is SagaState.ROLLBACK_INCOMPLETE
        if not is_new:
            assert AGAIN[verb](runtime, saga).state is SagaState.ROLLBACK_INCOMPLETE
            shop.broken = {"c"}
            outcome = AGAIN[verb](runtime, saga)
    if is_new:
        shop.broken = {"c"}
        with Runtime(tmp_path / "runs.db") as runtime:
            outcome = AGAIN[verb](runtime, shop.saga("a", "b", "c"))
    assert (outcome.state, outcome.undone) == (SagaState.ROLLED_BACK, ("b", "a"))
    assert shop.seen == ["a", "b", "undo b", "undo a"]


def test_a_workflow_whose_rollback_failed(runtime, shop):
    """`run` with the same id, and `cancel`, try its undos again; `run` of another one does not."""
    shop.broken = {"b", "undo a"}
    flow = Workflow(
        "w",
        step("a", function=shop.call("a"), undo={"function": shop.call("undo a"), "retry": 1}),
        step("b", function=shop.call("b")),
    )
    assert runtime.run(flow, run_id="r", check=False).state == "rollback incomplete"
    assert runtime.run(flow, check=False).state == "rollback incomplete"
    assert runtime.cancel("r").state == "rollback incomplete"
    shop.broken = {"b"}
    assert runtime.run(flow, run_id="r", check=False).state == "rolled back"
    assert shop.seen == ["a", "a", "undo a"]


def test_resume_goes_on_from_the_step_that_failed(runtime, shop):
    """Where nothing was undone."""
    shop.broken = {"b"}
    saga = shop.saga("a", "b", undo=False)
    assert runtime.run_saga(saga, run_id="r", check=False).state is SagaState.FAILED
    shop.broken = set()
    assert runtime.resume_saga("r", saga).state is SagaState.COMPLETED
    assert shop.seen == ["a", "b"]


@pytest.mark.parametrize("fails", ["undo a", "undo (a)", "last"])
def test_a_step_called_like_an_undo_is_shown_in_its_own_place(runtime, fails):
    """Steps are steps, and each undo is told of the step that it takes back."""
    seen = []

    def call(name):
        def work():
            if name == fails:
                raise ConnectionError("broken")
            seen.append(name)

        return work

    saga = Saga("odd")
    names = ["a", "undo a", "undo (a)", "last"]
    for name in names:
        saga.step(name, do=call(name), undo=call(f"back {name}"))
    outcome = runtime.run_saga(saga, run_id="r", check=False)
    run = runtime.show("r")
    done = names[: names.index(fails)]
    assert [one.place for one in run.steps if not one.is_undo] == names
    assert [one.state for one in run.steps if not one.is_undo][: len(done) + 1] == ["undone"] * len(done) + ["failed"]
    assert [one.undoes for one in run.steps if one.is_undo] == done[::-1]
    assert len({one.place for one in run.steps}) == len(run.steps)
    assert (outcome.state, outcome.undone, outcome.failed.step) == ("rolled back", tuple(done[::-1]), fails)
    assert seen == [*done, *(f"back {name}" for name in done[::-1])]


@pytest.mark.parametrize(("grace", "ended"), [(0.01, False), (PATIENCE, True)])
def test_the_grace_after_a_timeout_can_be_set(tmp_path, grace, ended):
    """An async step that is cancelled has that long for its `finally` blocks, and no longer."""
    go_on, is_over = asyncio.Event(), []

    async def stubborn():
        try:
            await asyncio.sleep(PATIENCE)
        finally:
            if not ended:
                await go_on.wait()
            is_over.append(True)

    async def main():
        async with Runtime(tmp_path / "runs.db", grace=grace) as runtime:
            run = await runtime.arun(Workflow("w", step("a", function=stubborn, timeout="10ms")), check=False)
            assert bool(is_over) is ended
            go_on.set()
            deadline = time.monotonic() + PATIENCE
            while not is_over:
                assert time.monotonic() < deadline
                await asyncio.sleep(0.01)
            return run

    run = asyncio.run(main())
    word = "it was cancelled" if ended else "it ignores its cancellation"
    assert word in run.step("a").error.message
