"""What each agent did, out of the audit trail: acts with their outcomes, and refusals with their reasons."""

import pytest

from troth.runtime import Saga, SagaFailedError
from troth.runtime.sessions import RefusedError
from troth.runtime.sessions.activity import activity_of, read_activity
from troth.runtime.sessions.details import session_details


def outcomes(activities):
    return [(activity.kind, activity.what, activity.outcome) for activity in activities]


def fail():
    raise RuntimeError("it broke")


def test_acts_have_their_outcomes_and_refusals_their_reasons(hypervisor, session, member):
    """In the order in which they began, for the agent that did them and for no other."""
    hypervisor.join(session, "idle", score=0.8)
    member.act("deploy", version=3)
    with pytest.raises(RefusedError):
        member.act("wipe")
    member.workspace.write("plan.txt", "first")
    saga = Saga("trip").step("book", do=lambda: None, undo=lambda: None).step("pay", do=fail, undo=None)
    with pytest.raises(SagaFailedError):
        member.run(saga)
    did = hypervisor.store.read_sessions(lambda rows: read_activity(rows, session.id))
    assert set(did) == {"a"}
    told = outcomes(did["a"])
    assert told[0] == ("act", "deploy", "done")
    assert told[1][::2] == ("refused", "refused")
    assert "wipe" in told[1][1]
    assert did["a"][1].why
    assert told[2][::2] == ("workspace", "written")
    assert ("step", "book", "done") in told
    assert ("step", "pay", "failed") in told
    assert not [activity for activity in told if activity[2] == "started"], "each has ended"
    numbers = {row.seq: row.kind for row in hypervisor.events(session=session)}
    assert numbers[did["a"][0].number] == "act.begun"

    members = {one["agent"]: one for one in session_details(hypervisor.store, hypervisor.get(session))["members"]}
    assert members["idle"]["did"] == []
    assert members["a"]["did"] == [activity.to_json() for activity in did["a"]]


def test_a_cut_trail_and_an_unreadable_entry(hypervisor, session, member):
    """An end whose beginning is not among the entries is told still; what cannot be read does not hide the rest."""
    member.act("look")
    member.act("deploy", version=1)
    entries = [row for row in hypervisor.events(session=session) if row.kind.startswith("act.")]
    assert outcomes(activity_of(entries[1:])["a"]) == [("act", "look", "done"), ("act", "deploy", "done")]
    broken = [entries[0]._replace(data="no json"), *entries[2:]]
    assert outcomes(activity_of(broken)["a"]) == [("act", "", "started"), ("act", "deploy", "done")]
