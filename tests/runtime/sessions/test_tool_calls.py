"""Tools that an agent calls in a conversation of a session: judged before any of them is made, in either color."""

import asyncio
import json

import pytest

from troth.runtime.agents.tool_calling import ToolCallingAgent
from troth.runtime.conversations import log
from troth.runtime.conversations.log import stream_of as log_stream
from troth.runtime.sessions import PolicyTable, RefusedError, Rule, SessionConfig
from troth.testing.scripted import ScriptedModel, call


@pytest.fixture(params=["sync", "async"])
def run(request):
    if request.param == "sync":
        return lambda conversation: conversation.run()
    return lambda conversation: asyncio.run(conversation.arun())


@pytest.fixture
def tools(effects):
    def deploy(version: int) -> str:
        """Deploy."""
        effects.append(("deploy", version))
        return "deployed"

    async def wipe() -> str:
        """Wipe."""
        effects.append("wipe")
        return "wiped"

    def look() -> str:
        """Look."""
        effects.append("look")
        return "seen"

    return [deploy, wipe, look]


def converse(hypervisor, tools, model, *, score=0.8, policy=None):
    session = hypervisor.create("ops", SessionConfig(policy=policy))
    member = hypervisor.join(session, "a", score=score)
    hypervisor.activate(session)
    conversation = member.converse(ToolCallingAgent(model, tools))
    conversation.send("go")
    return session, conversation


def answers(conversation):
    return [message.text for message in conversation.messages() if message.role == "tool"]


def test_a_tool_needs_the_ring_of_its_action(hypervisor, tools, effects, run):
    """The model is told what was refused, and the others are called: `wipe` cannot be taken back, and needs ring 1."""
    wish = [call("wipe"), call("deploy", '{"version": 3}'), call("look")]
    session, conversation = converse(hypervisor, tools, ScriptedModel(wish, "done"))
    run(conversation)
    assert sorted(map(str, effects)) == ["('deploy', 3)", "look"]
    assert sum("needs ring 1" in text for text in answers(conversation)) == 1
    kinds = [row.kind for row in hypervisor.events(session=session)]
    assert (kinds.count("refused"), kinds.count("tool.begun")) == (1, 2)
    assert hypervisor.verify_audit().is_valid


def test_the_sandbox_only_looks(hypervisor, tools, effects, run):
    """A tool without an action of its name is a step like others."""
    wish = [call("deploy", '{"version": 3}'), call("look")]
    _, conversation = converse(hypervisor, tools, ScriptedModel(wish, "done"), score=0.1)
    run(conversation)
    assert effects == ["look"]


async def async_policy(request):
    return ("deny", "too new") if request.arguments.get("version") == 3 else "allow"


def sync_policy(request):
    return ("deny", "too new") if request.arguments.get("version") == 3 else "allow"


TABLE = PolicyTable([Rule("deny", arguments={"version": 3}, reason="too new")], otherwise="allow")


@pytest.mark.parametrize("policy", [sync_policy, async_policy, TABLE], ids=["sync", "async", "table"])
def test_the_policy_is_asked(hypervisor, tools, effects, run, policy):
    """With the arguments that the model gave."""
    wish = [call("deploy", '{"version": 3}'), call("deploy", '{"version": 2}')]
    session, conversation = converse(hypervisor, tools, ScriptedModel(wish, "done"), policy=policy)
    run(conversation)
    assert effects == [("deploy", 2)]
    refused = [json.loads(row.data) for row in hypervisor.events(session=session) if row.kind == "refused"]
    assert [entry["policy"]["reason"] for entry in refused] == ["too new"]


def test_a_refusal_in_the_commit_is_audited(hypervisor, session, member):
    """A membership that ends between the look and the commit: nothing is said, and that it was refused is kept."""

    class Echo:
        def step(self, conversation):
            conversation.say("heard")

    conversation = member.converse(Echo())
    gate = conversation._gate
    look = gate.before

    def leave_meanwhile(kinds):
        look(kinds)
        if hypervisor.get(session).present:
            member.leave()

    gate.before = leave_meanwhile
    with pytest.raises(RefusedError):
        conversation.send("too late")
    assert [event.kind for event in conversation.events()] == [log.OPENED]
    assert [row.kind for row in hypervisor.events(session=session)][-2:] == ["member.left", "refused"]


def test_a_run_that_is_refused_in_the_commit_holds_nothing(hypervisor, session, member):
    """Neither a lease nor an entry is left of it."""

    class Echo:
        def step(self, conversation):
            conversation.say("heard")

    conversation = member.converse(Echo())
    conversation._gate.before = lambda _: None
    member.leave()
    with pytest.raises(RefusedError):
        conversation.run()
    assert hypervisor.store.holder(log_stream(conversation.id)) is None
    assert [row.kind for row in hypervisor.events(session=session)][-1] == "refused"
    hypervisor.join(session, "a", score=0.8)
    conversation.run()
