"""A run that a session governs is shown like any other, and nobody but the session goes on with it."""

import threading

import pytest

from troth.errors import MisuseError
from troth.runtime import Runtime, Saga, SagaFailedError, Workflow, step
from troth.runtime.workflows.record.report_json import as_json
from troth.runtime.workflows.render.html import page
from troth.runtime.workflows.render.text import draw


def put_back():
    raise ConnectionError("the shelf is locked")


def drop():
    raise RuntimeError("it slipped")


@pytest.fixture
def runtime(path, hypervisor, member):
    saga = Saga("move").step("lift", do=lambda: "lifted", undo=put_back, undo_retry=1).step("drop", do=drop, undo=None)
    with pytest.raises(SagaFailedError):
        member.run(saga, run_id="move-1")
    with Runtime(path, in_process=False) as runtime:
        yield runtime


def test_it_is_shown_with_its_session(runtime, session):
    """Its steps, what failed and what was not undone, and whose it is: as text, as a page and as JSON."""
    report = runtime.show("move-1")
    assert (report.workflow, report.state, report.session, report.agent) == (
        "move",
        "rollback incomplete",
        session.id,
        "a",
    )
    assert [step.place for step in report.failures] == ["drop"]
    assert [(undo.undoes, undo.error.message) for undo in report.not_undone] == [("lift", "the shelf is locked")]
    assert as_json(report)["session"] == session.id
    assert f"in the session {session.id}, by a" in draw(report)
    assert f"in the session {session.id} by a" in page(report)
    assert next(event.what for event in runtime.events("move-1")) == "run begun"


def test_it_is_in_lists_counts_and_searches(runtime, session):
    """With the session and the member; the counts add up with the lists, and the session's own list has it, too."""
    for wanted in (
        {},
        {"session": session.id},
        {"workflow": "move"},
        {"text": "MOVE"},
        {"state": "rollback incomplete"},
    ):
        (item,) = runtime.lists.runs(**wanted)
        assert (item.id, item.label, item.session, item.agent) == ("move-1", "move", session.id, "a")
        (report,) = runtime.run_page(**wanted)
        assert as_json(report) == as_json(runtime.show("move-1"))
    assert runtime.lists.counts().runs == {"rollback incomplete": 1}
    assert runtime.lists.runs(session="elsewhere").items == []
    assert [hit.id for hit in runtime.lists.search("move-", kinds=["run"])] == ["move-1"]
    assert [run.id for run in runtime.runs()] == ["move-1"]
    assert [run.id for run in runtime.runs(state="rollback incomplete")] == ["move-1"]
    assert runtime.runs(state="completed") == []


def test_what_waits_at_its_first_step_is_in_the_session(path, hypervisor, member, session):
    """It is listed, counted and killed like one of which a step was done already."""
    workflow = Workflow("ask_first", step("sure", approval="Go on?"))
    ended = threading.Event()

    def work():
        member.run(workflow, run_id="ask-1")
        ended.set()

    thread = threading.Thread(target=work)
    thread.start()
    with Runtime(path, in_process=False) as runtime:
        while [item.state for item in runtime.lists.runs(session=session.id)] != ["waiting"]:
            assert not ended.wait(0.05), "it ended by itself"
        kill = hypervisor.kill(session, "a", reason="enough")
        assert ended.wait(60)
        thread.join()
        assert kill.left == ()
        assert [item.state for item in runtime.lists.runs(session=session.id)] == ["cancelled"]
        assert runtime.lists.counts().runs == {"cancelled": 1}


@pytest.mark.parametrize(
    "act",
    [
        pytest.param(lambda runtime: runtime.resume("move-1"), id="resume"),
        pytest.param(lambda runtime: runtime.fork("move-1"), id="fork"),
        pytest.param(lambda runtime: runtime.cancel("move-1"), id="cancel"),
        pytest.param(lambda runtime: runtime.cancel("move-1", wait=False), id="ask for its end"),
    ],
)
def test_nobody_else_goes_on_with_it(runtime, act):
    """No command is offered, and what is tried all the same is refused with the session's name; nothing changes."""
    before = as_json(runtime.show("move-1"))
    assert before["commands"] == []
    with pytest.raises(MisuseError, match="belongs to 'a' in the session"):
        act(runtime)
    assert as_json(runtime.show("move-1")) == before
