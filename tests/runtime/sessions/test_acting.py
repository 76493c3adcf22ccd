"""Acting inside a session: acts, sagas, texts and conversations, each judged and audited."""

import json

import pytest

from troth.errors import MisuseError
from troth.runtime import Saga, SagaFailedError, Workflow, current_step, step
from troth.runtime.sessions import RefusedError, WorkspacePathError


def kinds(hypervisor, session):
    return [row.kind for row in hypervisor.events(session=session)]


def test_an_act_is_done_once_and_audited(hypervisor, session, member, effects):
    """Begun, done and over, each in the commit of what it tells of."""
    assert member.act("deploy", version=3) == {"version": 3}
    assert effects == [("deploy", 3)]
    assert kinds(hypervisor, session)[-4:] == ["member.joined", "session.activated", "act.begun", "act.done"]
    with pytest.raises(MisuseError, match="version"):
        member.act("deploy")
    with pytest.raises(RefusedError) as refused:
        member.act("wipe")
    assert (refused.value.rule, effects) == ("ring", [("deploy", 3)])
    assert member.act("look") == "seen"


def test_a_saga_in_a_session(hypervisor, session, member, effects):
    """Its steps are audited, with what they append."""

    def book(hotel):
        current_step().append("bookings", "booked", {"hotel": hotel})
        return hotel

    saga = Saga("trip")
    saga.step("book", do=book, undo=lambda hotel: effects.append(("cancel", hotel)), arguments={"hotel": "x"})
    assert member.run(saga).done == ("book",)
    event = next(row for row in hypervisor.events(session=session) if row.kind == "event")
    assert json.loads(event.data)["payload"] == {"hotel": "x"}


def test_a_refused_step_turns_the_saga_round(hypervisor, session, member, effects):
    """It fails as refused, is not tried again, and what was done before is undone although the agent may nothing."""

    def suspend():
        hypervisor.leave(session, "a")

    saga = (
        Saga("trip")
        .step("one", do=lambda: effects.append("one"), undo=lambda: effects.append("undo one"))
        .step("two", do=suspend, undo=None)
        .step("three", do=lambda: effects.append("three"), undo=None, retry=3)
    )
    with pytest.raises(SagaFailedError) as failed:
        member.run(saga)
    assert effects == ["one", "undo one"]
    assert failed.value.outcome.failed.step == "three"
    assert kinds(hypervisor, session).count("refused") == 1
    with pytest.raises(RefusedError):
        member.run(saga)


def test_a_workflow_in_a_session(hypervisor, session, member):
    """The same, with a report."""
    report = member.run(Workflow("greet", step("hello", function=greet, inputs={"name": {"value": "you"}})))
    assert report.succeeded
    assert report.step("hello").output == "hello you"
    assert "run.over" in kinds(hypervisor, session)


def greet(name):
    return f"hello {name}"


def test_texts(member, hypervisor, session):
    """Written, read, listed, kept, restored, deleted; ring 1 restores."""
    workspace = member.workspace
    assert workspace.root == f"/sessions/{session.id}"
    real = workspace.write("notes/a.txt", "one")
    assert real == f"{workspace.root}/notes/a.txt"
    assert (workspace.read("notes/a.txt"), workspace.read(real), workspace.read("nothing")) == ("one", "one", None)
    snapshot = workspace.snapshot()
    workspace.write("notes/a.txt", "two")
    with pytest.raises(RefusedError):
        workspace.restore(snapshot)
    chief = hypervisor.join(session, "chief", score=0.97, consensus=["a"])
    assert chief.workspace.restore(snapshot) == 1
    assert workspace.read("notes/a.txt") == "one"
    assert workspace.list() == workspace.list("notes") == [real]
    assert workspace.delete("notes/a.txt") is True
    assert workspace.list() == []


@pytest.mark.parametrize(
    "outside",
    ["../x", "a/../../x", "/etc/passwd", "{root}0/x", "{root}/../other/x", "//sessions/other/x", "", "\0", "a\\b", "."],
)
def test_a_path_that_leads_out_is_refused(member, outside):
    """Resolved before it is compared: siblings with the same beginning, `..`, other sessions' trees."""
    outside = outside.format(root=member.workspace.root)
    assert not member.workspace.allows(outside)
    for attempt in (member.workspace.read, member.workspace.delete, lambda where: member.workspace.write(where, "x")):
        with pytest.raises(WorkspacePathError):
            attempt(outside)


def test_permissions_are_the_owners(hypervisor, session, member):
    """Only the owner, or ring 1, can change them."""
    other = hypervisor.join(session, "b", score=0.8)
    chief = hypervisor.join(session, "chief", score=0.97, consensus=["a"])
    member.workspace.write("a.txt", "mine")
    other.workspace.write("a.txt", "ours")
    with pytest.raises(RefusedError):
        other.workspace.permit("a.txt", writers=["b"])
    member.workspace.permit("a.txt", readers=["chief"], writers=[])
    for attempt in (
        lambda: other.workspace.read("a.txt"),
        lambda: other.workspace.write("a.txt", "no"),
        lambda: other.workspace.delete("a.txt"),
    ):
        with pytest.raises(RefusedError):
            attempt()
    assert other.workspace.list() == []
    assert chief.workspace.read("a.txt") == "ours"
    chief.workspace.permit("a.txt")
    assert other.workspace.read("a.txt") == "ours"


class Echo:
    def step(self, conversation):
        conversation.say("heard")


def test_a_conversation_in_a_session(hypervisor, session, member):
    """What is said is audited; once the membership has ended nothing is said any more."""
    conversation = member.converse(Echo())
    conversation.send("hello")
    conversation.run()
    assert [message.text for message in conversation.messages()] == ["hello", "heard"]
    assert kinds(hypervisor, session).count("conversation") == 3
    member.leave()
    before = len(list(conversation.events()))
    for attempt in (lambda: conversation.send("more"), lambda: conversation.say("more"), conversation.run):
        with pytest.raises(RefusedError):
            attempt()
    assert len(list(conversation.events())) == before
