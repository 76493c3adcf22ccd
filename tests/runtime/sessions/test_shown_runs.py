"""A run that a session governs is shown like any other, and nobody but the session goes on with it."""

import pytest

from troth.errors import MisuseError
from troth.runtime import Runtime, Saga, SagaFailedError
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
