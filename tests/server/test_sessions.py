"""Governed sessions, sagas, the audit trail and the metrics, over HTTP."""

import pytest
from tests.server.service import Served, fill, wait_until


@pytest.fixture(scope="module")
def governed(tmp_path_factory):
    served = Served(fill(tmp_path_factory.mktemp("governed")), "app:governed")
    with served.client() as client:
        yield client
    served.close()


@pytest.fixture
def session(governed):
    made = governed.post("/sessions", json={"max_members": 3})
    assert made.status_code == 201, made.text
    place = f"/sessions/{made.json()['id']}"
    assert governed.post(f"{place}/members", json={"agent": "a", "score": 0.8}).status_code == 201
    assert governed.post(f"{place}/activate").json()["state"] == "active"
    return place


def test_a_member_acts(governed, session):
    """`execute` performs what is registered; what is not is 501, and never said to be done."""
    done = governed.post(f"{session}/execute", json={"agent": "a", "action": "add", "inputs": {"a": 1, "b": 2}})
    assert (done.status_code, done.json()["state"], done.json()["result"]) == (200, "completed", 3), done.text
    assert governed.get(done.headers["Location"].removeprefix("/v1")).json() == done.json()
    missing = governed.post(f"{session}/execute", json={"agent": "a", "action": "nosuch"})
    assert (missing.status_code, missing.json()["error"]["code"]) == (501, "action_not_registered")
    wrong = governed.post(f"{session}/execute", json={"agent": "a", "action": "add", "inputs": {"c": 1}})
    assert wrong.status_code == 400
    stranger = governed.post(f"{session}/execute", json={"agent": "b", "action": "add"})
    assert stranger.status_code == 404


def test_an_act_is_done_once(governed, session):
    """Repeated with its key, it is answered and not done again."""
    body = {"agent": "a", "action": "add", "inputs": {"a": 2, "b": 2}}
    first = governed.post(f"{session}/execute", json=body, headers={"Idempotency-Key": f"act {session}"})
    again = governed.post(f"{session}/execute", json=body, headers={"Idempotency-Key": f"act {session}"})
    assert first.json() == again.json()
    assert again.headers["Idempotent-Replayed"] == "true"


def test_a_killed_agent_acts_no_more(governed, session):
    """Kill answers what came of it, and again the same."""
    killed = governed.post(f"{session}/members/a/kill", json={"reason": "too loud"}).json()
    assert killed["terminated"] is True
    assert governed.post(f"{session}/members/a/kill", json={"reason": "again"}).json()["id"] == killed["id"]
    refused = governed.post(f"{session}/execute", json={"agent": "a", "action": "add", "inputs": {"a": 1, "b": 2}})
    assert refused.status_code in (403, 404, 409), refused.text
    entries = governed.get("/audit", params={"session": session.removeprefix("/sessions/")}).json()["data"]
    assert "member.killed" in [entry["kind"] for entry in entries]
    assert governed.get("/audit/verify").json()["verdict"] != "broken"


def test_a_session_ends(governed, session):
    """Terminated, it is archived, and nobody joins."""
    assert governed.delete(f"{session}/members/a").status_code == 200
    assert governed.post(f"{session}/terminate", json={}).json()["state"] == "archived"
    late = governed.post(f"{session}/members", json={"agent": "b", "score": 0.8})
    assert (late.status_code, late.json()["error"]["code"]) == (409, "wrong_session_state")
    assert governed.post(f"{session}/activate").status_code == 409


@pytest.mark.parametrize(
    ("path", "body"),
    [
        pytest.param("/sessions", {"max_members": 0}, id="too few members"),
        pytest.param("/sessions", {"max_members": True, "mode": "bogus"}, id="an unknown field"),
        pytest.param("{}/members", {"agent": "x", "score": 2}, id="a score beyond 1"),
        pytest.param("{}/members", {"agent": " ", "score": 0.5}, id="no id of an agent"),
        pytest.param(
            "{}/members", {"agent": "x", "score": 0.9, "actions": ["nosuch"]}, id="an action that is not there"
        ),
        pytest.param("{}/members/a/elevate", {"ring": 7}, id="no ring"),
    ],
)
def test_wrong_input_is_400(governed, session, path, body):
    """Never 404 and never 500."""
    assert governed.post(path.format(session), json=body).status_code == 400


def test_a_saga_is_undone(governed):
    """What was done before the failure is undone, and told by name."""
    begun = governed.post("/sagas", json={"saga": "parcel"}, headers={"Prefer": "wait=30"})
    assert begun.status_code == 202, begun.text
    told = governed.get(begun.headers["Location"].removeprefix("/v1"), headers={"Prefer": "wait=30"}).json()
    assert (told["state"], told["undone"]) == ("rolled back", ["pay"]), told
    assert "no parcel" in told["failed"]
    run = governed.post("/runs", json={"workflow": "parcel"}, headers={"Prefer": "wait=30"}).json()
    assert run["state"] == "rolled back", "a saga is a workflow, too, whichever route it was begun by before"
    assert governed.post("/sagas", json={"saga": "nosuch"}).status_code == 400
    assert governed.get("/sagas/nosuch").status_code == 404


def test_an_act_waits_for_a_persons_yes(governed):
    """The policy asks; who answers is the owner of the key, once, and for what was seen."""
    rules = [{"answer": "ask", "action": "add", "reason": "sums are risky"}]
    made = governed.post("/sessions", json={"policy": rules, "otherwise": "allow"})
    assert made.status_code == 201, made.text
    place = f"/sessions/{made.json()['id']}"
    governed.post(f"{place}/members", json={"agent": "a", "score": 0.8})
    governed.post(f"{place}/activate")
    act = {"agent": "a", "action": "add", "inputs": {"a": 1, "b": 2}}
    begun = governed.post(f"{place}/execute", json=act, headers={"Prefer": "wait=0"})
    assert begun.status_code == 202, begun.text
    ask = wait_until(lambda: governed.get("/asks", params={"session": made.json()["id"]}).json()["data"])[0]
    assert (ask["agent"], ask["arguments"], ask["state"]) == ("a", {"a": 1, "b": 2}, "open")
    assert ask["id"] in [row["id"] for row in governed.get("/asks").json()["data"]]
    unseen = governed.post(f"/asks/{ask['id']}/answer", json={"yes": True, "digest": "0" * 64})
    assert (unseen.status_code, unseen.json()["error"]["code"]) == (409, "not_answered")
    yes = {"yes": True, "digest": ask["digest"]}
    answered = governed.post(f"/asks/{ask['id']}/answer", json=yes)
    assert (answered.status_code, answered.json()["state"]) == (200, "yes"), answered.text
    assert governed.post(f"/asks/{ask['id']}/answer", json=yes).json() == answered.json()
    assert governed.post(f"/asks/{ask['id']}/answer", json={"yes": False}).status_code == 409
    acts = f"{place}/acts/{begun.json()['id']}"
    assert wait_until(lambda: (act := governed.get(acts).json())["state"] == "completed" and act)["result"] == 3
    assert governed.post("/asks/nosuch/answer", json={"yes": True}).status_code == 404
    assert governed.post("/sessions", json={"otherwise": "allow"}).status_code == 400


def test_how_members_stand(governed, session):
    """The verifier of the program is asked; a killed member may be readmitted; low scores are named."""
    assert governed.post(f"{session}/members/a/verify").json() == {"agent": "a", "behaves": True}
    assert governed.post(f"{session}/members/nobody/verify").status_code == 404
    assert governed.post(f"{session}/members", json={"agent": "low", "score": 0.61}).status_code == 201
    low = governed.post("/sessions/monitor", params={"below": 0.7}).json()["data"]
    assert [row["agent"] for row in low if f"/sessions/{row['session']}" == session] == ["low"]
    early = governed.post(f"{session}/members/a/readmit", json={"reason": "why not"})
    assert (early.status_code, early.json()["error"]["code"]) == (409, "not_suspended")
    governed.post(f"{session}/members/a/kill", json={"reason": "a test"})
    assert governed.post(f"{session}/members", json={"agent": "a", "score": 0.8}).status_code == 409
    assert governed.post(f"{session}/members/a/readmit", json={"reason": "it was a test"}).status_code == 200
    assert governed.post(f"{session}/members", json={"agent": "a", "score": 0.8}).status_code == 201


def test_the_texts_of_a_session(governed, session):
    """Written, read, listed, kept and brought back as one member; a path that leads out is refused."""
    place = f"{session}/members/a/workspace"
    written = governed.put(f"{place}/texts/notes/plan.md", json={"text": "one"})
    assert written.status_code == 200, written.text
    assert governed.get(f"{place}/texts/notes/plan.md").json()["text"] == "one"
    assert [path.rpartition("/")[2] for path in governed.get(place).json()["data"]] == ["plan.md"]
    assert governed.get(f"{place}/texts/nosuch").status_code == 404
    assert governed.get(f"{place}/texts/%2E%2E/%2E%2E/etc/passwd").status_code in (400, 404)
    assert governed.get(place, params={"below": "../.."}).status_code == 400
    assert governed.post(f"{place}/snapshots", json={"name": "first"}).json() == {"name": "first"}
    refused = governed.post(f"{place}/snapshots/first/restore")
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "refused_by_session")  # it needs ring 1
    assert governed.post(f"{place}/permit", json={"path": "notes/plan.md", "writers": ["a"]}).status_code == 200
    assert governed.delete(f"{place}/texts/notes/plan.md").json()["is_new"] is True
    assert governed.delete(f"{place}/texts/notes/plan.md").json()["is_new"] is False
    kinds = [row["kind"] for row in governed.get("/audit", params={"session": session.split("/")[2]}).json()["data"]]
    assert kinds.count("workspace.written") == 1


def test_metrics_are_prometheus_text(governed):
    """One value for each name and label, with its type."""
    answer = governed.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = answer.text.splitlines()
    values = [line.rpartition(" ") for line in lines if not line.startswith("#")]
    assert len({name for name, _, _ in values}) == len(values)
    assert all(float(value) >= 0 for _, _, value in values)
    assert any(line.startswith("# TYPE troth_runs gauge") for line in lines)
