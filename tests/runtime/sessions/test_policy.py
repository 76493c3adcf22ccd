"""Policies: asked before every act, in either color; what they answer is audited, and an ask waits for people."""

import json
import threading
import time

import pytest

from troth.errors import MisuseError
from troth.runtime import Saga, SagaFailedError
from troth.runtime.sessions import (
    Action,
    Answer,
    Hypervisor,
    PolicyRequest,
    PolicyTable,
    RefusedError,
    Rule,
    SessionConfig,
)
from troth.runtime.sessions.policy.rehearsal import rehearse

KEY = "a key that is only used in tests"
DEADLINE = 60.0


def member_under(hypervisor, policy):
    session = hypervisor.create("ops", SessionConfig(policy=policy, rates={}))
    member = hypervisor.join(session, "a", score=0.8)
    hypervisor.activate(session)
    return member


def entries(hypervisor, kind):
    return [json.loads(row.data) for row in hypervisor.events() if row.kind == kind]


def in_thread(call):
    """What a call answers or raises, from a thread of its own."""
    outcome = {}

    def work():
        try:
            outcome["value"] = call()
        except BaseException as error:
            outcome["error"] = error

    thread = threading.Thread(target=work)
    thread.start()
    return thread, outcome


def wait_for_ask(hypervisor, session):
    deadline = time.monotonic() + DEADLINE
    while time.monotonic() < deadline:
        asks = hypervisor.asks(session)
        if asks:
            return asks[0]
        time.sleep(0.01)
    raise AssertionError("nothing was asked")


def sync_policy(request):
    return "deny", f"no {request.action} for ring {request.ring} with {request.arguments['version']}"


async def async_policy(request):
    return Answer("deny", f"no {request.action} for ring {request.ring} with {request.arguments['version']}")


TABLE = PolicyTable([Rule("deny", action="dep*", reason="no deploy for ring 2 with 3")], otherwise="allow")


@pytest.mark.parametrize("policy", [sync_policy, async_policy, TABLE], ids=["sync", "async", "table"])
def test_a_denial_is_a_refusal_with_its_reason(hypervisor, effects, policy):
    """Who, what, the ring and the arguments are told; answer and digest are in the audit entry."""
    member = member_under(hypervisor, policy)
    with pytest.raises(RefusedError, match="no deploy for ring 2 with 3") as refused:
        member.act("deploy", version=3)
    assert (refused.value.rule, effects) == ("policy", [])
    (entry,) = entries(hypervisor, "refused")
    assert entry["policy"]["answer"] == "deny"
    assert len(entry["policy"]["digest"]) == 64


@pytest.mark.parametrize("answer", ["allow", "log"])
def test_what_is_allowed_is_done_and_told(hypervisor, effects, answer):
    """`log` is an allow that says why it is worth a look."""
    member = member_under(hypervisor, lambda _: (answer, "a reason"))
    member.act("deploy", version=3)
    assert effects == [("deploy", 3)]
    (entry,) = entries(hypervisor, "act.begun")
    assert (entry["policy"]["answer"], entry["policy"]["reason"], entry["ring"]) == (answer, "a reason", 2)


@pytest.mark.parametrize(
    "policy",
    [
        pytest.param(lambda _: None, id="no answer"),
        pytest.param(lambda _: "perhaps", id="another word"),
        pytest.param(lambda _: 1 / 0, id="it raises"),
        pytest.param(lambda _: ("ask", 3), id="a reason that is none"),
    ],
)
def test_a_policy_that_fails_allows_nothing(hypervisor, effects, policy):
    """Whatever goes wrong with it is an outcome."""
    member = member_under(hypervisor, policy)
    with pytest.raises(RefusedError) as refused:
        member.act("deploy", version=3)
    assert (refused.value.rule, effects) == ("policy", [])


@pytest.mark.parametrize(
    "policy", [pytest.param("deny", id="a word"), pytest.param(type("M", (), {})(), id="an object")]
)
def test_what_cannot_be_asked_is_refused_at_construction(policy):
    """Nothing is configured that nobody asks."""
    with pytest.raises(MisuseError):
        SessionConfig(policy=policy)


@pytest.mark.parametrize(
    "rule", [Rule("perhaps"), Rule("ask", people=0), Rule("ask", expires=-1), Rule("allow", action=3), ("allow", "*")]
)
def test_a_row_that_is_none_is_refused(rule):
    """Before any session has it."""
    with pytest.raises(MisuseError):
        PolicyTable([rule])


@pytest.mark.parametrize(
    ("rule", "fits"),
    [
        pytest.param(Rule("allow"), True, id="everything"),
        pytest.param(Rule("allow", action="deploy"), True, id="the action"),
        pytest.param(Rule("allow", action="depl"), False, id="a beginning is no pattern"),
        pytest.param(Rule("allow", action="de*y"), True, id="a pattern"),
        pytest.param(Rule("allow", agent="b"), False, id="another agent"),
        pytest.param(Rule("allow", rings=[0, 1]), False, id="other rings"),
        pytest.param(Rule("allow", rings=[2]), True, id="the ring"),
        pytest.param(Rule("allow", arguments={"to": "prod"}), True, id="an argument"),
        pytest.param(Rule("allow", arguments={"to": ["stage", "prod"]}), True, id="one of a list"),
        pytest.param(Rule("allow", arguments={"to": "stage"}), False, id="another argument"),
        pytest.param(Rule("allow", arguments={"force": None}), False, id="an argument that is missing"),
    ],
)
def test_rows_of_a_table(rule, fits):
    """The first row that fits answers; a table comes back from its record as it was."""
    request = PolicyRequest("s", "a", "deploy", "act", 2, {"to": "prod"})
    table = PolicyTable([rule])
    again = PolicyTable.from_json(json.loads(json.dumps(table.to_json())))
    assert table(request).word == again(request).word == ("allow" if fits else "deny")
    assert table.digest == again.digest


def test_a_step_of_a_saga_is_asked_about(hypervisor, effects):
    """What is denied as an act cannot be done as a step of a saga; what needs a person is refused there."""
    rules = [Rule("deny", action="two", reason="not that"), Rule("ask", action="three", reason="who says so")]
    member = member_under(hypervisor, PolicyTable(rules, otherwise="allow"))
    for name, why in (("two", "not that"), ("three", "only an act can wait")):
        saga = (
            Saga(f"saga-{name}")
            .step("one", do=lambda: effects.append("one"), undo=lambda: effects.append("undo one"))
            .step(name, do=lambda: effects.append("never"), undo=None)
        )
        with pytest.raises(SagaFailedError, match=why):
            member.run(saga)
    assert effects == ["one", "undo one"] * 2


ASK = PolicyTable([Rule("ask", action="deploy", reason="it is live", people=2, expires=60)], otherwise="allow")


def test_an_act_waits_for_people(hypervisor, effects):
    """It goes on when two different persons have said yes, to exactly this."""
    member = member_under(hypervisor, ASK)
    thread, outcome = in_thread(lambda: member.act("deploy", version=3))
    ask = wait_for_ask(hypervisor, member.session)
    assert (ask.what, ask.arguments, ask.people, ask.reason) == ("deploy", {"version": 3}, 2, "it is live")
    for wrong in (
        lambda: hypervisor.answer(ask, by="a", yes=True),
        lambda: hypervisor.answer(ask.id, by="ann", yes=True, digest="another"),
        lambda: hypervisor.answer(ask.id, by="ann", yes="yes"),
        lambda: hypervisor.answer("act-0", by="ann", yes=True),
    ):
        with pytest.raises(MisuseError):
            wrong()
    assert hypervisor.answer(ask, by="ann", yes=True).state == "open"
    with pytest.raises(MisuseError, match="already"):
        hypervisor.answer(ask, by="ann", yes=True)
    assert effects == []
    assert hypervisor.answer(ask, by="bob", yes=True).state == "yes"
    thread.join(DEADLINE)
    assert (outcome, effects) == ({"value": {"version": 3}}, [("deploy", 3)])
    (begun,) = entries(hypervisor, "act.begun")
    assert begun["ask"] == {"id": ask.id, "by": ["ann", "bob"]}
    assert hypervisor.asks() == []
    with pytest.raises(MisuseError, match="no longer waits"):
        hypervisor.answer(ask, by="eve", yes=False)
    assert hypervisor.verify_audit().is_valid


def test_one_no_is_enough(hypervisor, effects):
    """It is a refusal, with who said so."""
    member = member_under(hypervisor, ASK)
    thread, outcome = in_thread(lambda: member.act("deploy", version=3))
    ask = wait_for_ask(hypervisor, member.session)
    hypervisor.answer(ask, by="ann", yes=True)
    hypervisor.answer(ask, by="bob", yes=False, reason="not on a Friday")
    thread.join(DEADLINE)
    assert isinstance(outcome["error"], RefusedError)
    assert outcome["error"].rule == "ask"
    assert "Friday" in str(outcome["error"])
    assert effects == []


def test_an_ask_expires(hypervisor, clock, effects):
    """Nobody can say yes after that, and the act is refused."""
    member = member_under(hypervisor, ASK)
    thread, outcome = in_thread(lambda: member.act("deploy", version=3))
    ask = wait_for_ask(hypervisor, member.session)
    clock.now += 61
    with pytest.raises(MisuseError, match="time is over"):
        hypervisor.answer(ask, by="ann", yes=True)
    thread.join(DEADLINE)
    assert isinstance(outcome["error"], RefusedError)
    assert effects == []
    assert len(entries(hypervisor, "ask.expired")) == 1


def test_a_kill_ends_the_waiting(hypervisor, effects):
    """And nobody has to answer any more."""
    member = member_under(hypervisor, ASK)
    thread, outcome = in_thread(lambda: member.act("deploy", version=3))
    ask = wait_for_ask(hypervisor, member.session)
    assert hypervisor.kill(member.session, "a", reason="a test").terminated
    thread.join(DEADLINE)
    assert "error" in outcome
    assert (hypervisor.asks(), effects) == ([], [])
    with pytest.raises(MisuseError):
        hypervisor.answer(ask, by="ann", yes=True)


def test_waiting_outlives_the_process(path, actions, effects):
    """What was asked in one process is answered in another, and goes on in a third."""
    with Hypervisor(path, actions=actions, audit_key=KEY) as first:
        member = member_under(first, PolicyTable([Rule("ask")]))
        in_thread(lambda: member.act("deploy", version=3))
        ask = wait_for_ask(first, member.session)
    with Hypervisor(path, audit_key=KEY, recover=False) as second:
        second.answer(second.asks()[0], by="ann", yes=True)
    assert effects == []
    with Hypervisor(path, actions=actions, audit_key=KEY) as third:
        third.engine.result(ask.id, DEADLINE)
        assert effects == [("deploy", 3)]
        assert third.verify_audit().is_valid


def test_a_policy_of_an_earlier_process(path, effects):
    """One that cannot be found allows nothing; it is imported by its name, or given."""

    def deploy(version):
        effects.append(version)

    action = Action("deploy", deploy, reversibility="partial")

    def local(_):
        return "allow"

    with Hypervisor(path, actions=[action], audit_key=KEY) as hypervisor:
        session = member_under(hypervisor, local).session
    with (
        Hypervisor(path, actions=[action], audit_key=KEY) as hypervisor,
        pytest.raises(RefusedError, match="policies"),
    ):
        hypervisor.member(session, "a").act("deploy", version=1)
    with Hypervisor(path, actions=[action], audit_key=KEY, policies=[local]) as hypervisor:
        hypervisor.member(session, "a").act("deploy", version=2)
    assert effects == [2]


CHANGES = {
    "workspace.write": lambda space: space.write("plan", "a new text"),
    "workspace.delete": lambda space: space.delete("plan"),
    "workspace.permit": lambda space: space.permit("plan", readers=[]),
    "workspace.snapshot": lambda space: space.snapshot("later"),
    "workspace.restore": lambda space: space.restore("before"),
}


def no_changes(request):
    is_first = request.arguments.get("characters") == 3 or request.arguments.get("snapshot") == "before"
    if request.action == "workspace.restore" or not is_first:
        return "deny", f"no {request.action} in ring {request.ring}"
    return "allow"


async def async_no_changes(request):
    return no_changes(request)


NO_CHANGES = PolicyTable(
    [Rule("allow", action="workspace.write", arguments={"characters": 3}),
     Rule("allow", action="workspace.snapshot", arguments={"snapshot": "before"}),
     *[Rule("deny", action=action, reason=f"no {action} in ring 1") for action in CHANGES]]
)  # fmt: skip


@pytest.mark.parametrize("action", CHANGES)
@pytest.mark.parametrize("policy", [no_changes, async_no_changes, NO_CHANGES], ids=["sync", "async", "table"])
def test_a_change_of_the_workspace_is_asked_about(hypervisor, policy, action):
    """Before every write; what is refused changes nothing, and both are audited with the policy's answer."""
    session = hypervisor.create("ops", SessionConfig(policy=policy, rates={}))
    member = hypervisor.join(session, "a", score=0.99, consensus=["ops"])
    hypervisor.activate(session)
    space = member.workspace
    space.write("plan", "old")
    space.snapshot("before")
    (written,) = entries(hypervisor, "workspace.written")
    assert (written["policy"]["answer"], written["ring"], written["characters"]) == ("allow", 1, 3)
    with pytest.raises(RefusedError, match=f"no {action} in ring 1") as refused:
        CHANGES[action](space)
    assert refused.value.rule == "policy"
    assert (space.read("plan"), space.list()) == ("old", [f"{space.root}/plan"])
    assert len(entries(hypervisor, "workspace.written")) == len(entries(hypervisor, "workspace.snapshot")) == 1
    (entry,) = entries(hypervisor, "refused")
    assert (entry["policy"]["answer"], len(entry["policy"]["digest"])) == ("deny", 64)
    assert hypervisor.verify_audit().is_valid


def test_a_write_cannot_wait_for_people(hypervisor):
    """Only an act can: the refusal says so."""
    member = member_under(hypervisor, lambda request: ("ask", "who knows"))
    with pytest.raises(RefusedError, match="only an act can wait"):
        member.workspace.write("plan", "text")
    assert (hypervisor.asks(), member.workspace.list()) == ([], [])


def test_writes_are_part_of_a_rehearsal(hypervisor):
    """A policy can be tried on what was written before there was one."""
    session = hypervisor.create("ops")
    member = hypervisor.join(session, "a", score=0.8)
    hypervisor.activate(session)
    member.workspace.write("secrets/key", "text")
    member.workspace.write("plan", "longer text")
    member.workspace.delete("plan")
    table = PolicyTable(
        [Rule("deny", action="workspace.*", arguments={"path": f"{member.workspace.root}/secrets/key"})],
        otherwise="allow",
    )
    rehearsal = rehearse(hypervisor.store, table)
    assert rehearsal.total == 3
    ((_, request, answer),) = rehearsal.differing
    assert (request.action, request.kind, request.ring, answer.word) == ("workspace.write", "write", 2, "deny")
    assert request.arguments == {"path": f"{member.workspace.root}/secrets/key", "characters": 4}
