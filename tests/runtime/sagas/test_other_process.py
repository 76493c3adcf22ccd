"""A saga that was begun in Python is carried on by a worker that has only its record and the modules it names."""

import asyncio
import math
import threading
import time
from functools import partial

import pytest

from troth.runtime import Runtime, Saga
from troth.runtime.engine import Retry
from troth.runtime.engine.commit_points import RUN_START
from troth.runtime.sagas.saga import result
from troth.runtime.store import RunState
from troth.runtime.workflows.document.document import dump_workflow
from troth.runtime.workflows.document.problems import InvalidWorkflowError
from troth.runtime.workflows.link.from_saga import spec_of
from troth.runtime.workflows.link.linker import Registry
from troth.runtime.workflows.link.recorded_saga import KEY, dump_saga, load_saga

PATIENCE = 60
calls = []
at_work = threading.Event()
stays = threading.Event()  # set: the step in flight never returns by itself
broken = []


@pytest.fixture(autouse=True)
def fresh():
    calls.clear()
    broken.clear()
    at_work.clear()
    stays.set()
    yield
    stays.clear()


def charge(order):
    calls.append("charge")
    return {"id": f"pay-{order}", "parts": [1, 2]}


def refund(order, result=None):
    calls.append(f"refund {order} {result['id']}")


async def reserve(order):
    calls.append("reserve")
    at_work.set()
    while stays.is_set():
        await asyncio.sleep(0.01)
    return order


def release(order):
    calls.append("release")


def ship(payment, part):
    calls.append(f"ship {payment} {part}")
    if broken:
        raise broken.pop(0)
    return "shipped"


def order_saga():
    return (
        Saga("an order")
        .step("charge it", do=charge, undo=refund, arguments={"order": "A7"})
        .step("reserve", do=reserve, undo=release, arguments={"order": "A7"})
        .step(
            "ship it",
            do=ship,
            undo=None,
            arguments={"payment": result("charge it", "id"), "part": result("charge it", "parts", 1)},
            retry=Retry(attempts=3, delay=0.01, on=(ConnectionError,)),
        )
    )


def interrupted(path, saga):
    """Begin a run of `saga`, and close its runtime while the second step is at work."""
    with Runtime(path) as runtime:
        runtime.start(saga, run_id="s")
        assert at_work.wait(PATIENCE)
    stays.clear()


def carried_on(path, run_id="s"):
    """What a worker says that knows nothing but the store."""
    with Runtime(path, recover=False) as runtime:
        worker, news = runtime.worker(), []
        deadline = time.monotonic() + PATIENCE
        while not any(entry.what != "resumed" for entry in news):
            assert time.monotonic() < deadline
            news += worker.look()
            time.sleep(0.01)
        return news[-1], runtime.show(run_id), runtime.engine.find(run_id)


@pytest.mark.parametrize("failures", [0, 2], ids=["at once", "with its retries"])
def test_a_worker_goes_on_with_it(tmp_path, failures):
    """With the retries of its steps, and names that no workflow could have; what is done is not done again."""
    interrupted(tmp_path / "s.db", order_saga())
    broken.extend([ConnectionError("no carrier")] * failures)
    news, report, run = carried_on(tmp_path / "s.db")
    assert (news.what, run.state) == ("over", RunState.COMPLETED), news.why
    assert run.result == {"charge it": {"id": "pay-A7", "parts": [1, 2]}, "reserve": "A7", "ship it": "shipped"}
    assert calls == ["charge", "reserve", "reserve", *["ship pay-A7 2"] * (failures + 1)]
    assert [step.place for step in report.steps] == ["charge it", "reserve", "ship it"]


def test_a_worker_undoes_it(tmp_path):
    """A step that fails there undoes what another process has done, with the result that it had."""
    interrupted(tmp_path / "s.db", order_saga())
    broken.append(ValueError("too heavy"))
    news, report, _ = carried_on(tmp_path / "s.db")
    assert (news.what, report.state.value) == ("over", "rolled back")
    assert calls[-3:] == ["ship pay-A7 2", "release", "refund A7 pay-A7"]


def test_the_program_goes_on_with_what_a_worker_did(tmp_path):
    """Both ask for the same things, so either may have the run at any time."""
    interrupted(tmp_path / "s.db", order_saga())
    carried_on(tmp_path / "s.db")
    with Runtime(tmp_path / "s.db") as runtime:
        outcome = runtime.run_saga(order_saga(), run_id="s")
        assert outcome.results["ship it"] == "shipped"
        assert not runtime.replay("s").differs


def method_of_an_object():
    class Shop:
        def charge(self):
            return 1

    return Shop().charge


@pytest.mark.parametrize(
    "function",
    [lambda: 1, partial(charge, "A7"), method_of_an_object(), [].clear],
    ids=["lambda", "partial", "method", "builtin"],
)
def test_what_no_name_leads_to_is_left_alone(tmp_path, function):
    """It is not mistaken for something else of that name; nothing is done, nothing undone."""
    saga = Saga("own").step("a", do=function, undo=None).step("b", do=reserve, undo=None, arguments={"order": "x"})
    interrupted(tmp_path / "s.db", saga)
    news, _, run = carried_on(tmp_path / "s.db")
    assert news.what == "cannot continue"
    assert "step 'a' of the saga calls a function that has no name to find it by" in news.why
    assert not run.state.is_over
    assert [call for call in calls if call != "charge"] == ["reserve"]


def test_a_saga_is_built_again_as_it_was(tmp_path):
    """Retries, time limits and arguments included."""
    saga = (
        Saga("all of it")
        .step("a", do=charge, undo=refund, arguments={"order": ["x", {"y": None}]}, undo_retry=7, undo_timeout=2.5)
        .step(
            "b",
            do=release,
            undo=None,
            arguments={"order": result("a")},
            retry=Retry(attempts=2, max_delay=math.inf, backoff="fixed", on=("httpx.ConnectError", OSError)),
            timeout=1,
        )
    )
    again = load_saga(dump_saga(saga), Registry(), tmp_path)
    assert dump_saga(again) == dump_saga(saga)
    assert [(step.name, step.do.action.call, step.arguments) for step in again.steps] == [
        (step.name, step.do.action.call, step.arguments) for step in saga.steps
    ]
    assert again.steps[1].do.retry.covers(ConnectionError())
    assert not again.steps[1].do.retry.covers(ValueError())
    assert again.steps[0].undo.timeout == 2.5


def test_a_function_that_is_gone_is_named(tmp_path):
    """With the module that it was looked for in."""
    record = dump_saga(order_saga())
    record["steps"][0]["do"]["function"] = f"{__name__}:chargee"
    with pytest.raises(InvalidWorkflowError, match="has no function 'chargee'"):
        load_saga(record, Registry(), tmp_path)


def test_a_record_without_the_saga_gets_it(tmp_path):
    """Earlier versions kept only the words of a workflow; the program that has the saga adds the rest."""
    path = tmp_path / "s.db"
    with Runtime(path) as runtime:
        name = runtime._take(order_saga())[0]
        document = dump_workflow(spec_of(order_saga()))
        assert {key: value for key, value in runtime.store.events(name)[-1].payload.items() if key != KEY} == document
    with Runtime(tmp_path / "older.db") as older:
        older.store.commit(RUN_START, lambda tx: tx.append_event(name, "document", document, 1.0))
    interrupted(tmp_path / "older.db", order_saga())
    assert carried_on(tmp_path / "older.db")[0].what == "over"
