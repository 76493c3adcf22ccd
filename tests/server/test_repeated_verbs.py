"""Verbs that change something and take no `Idempotency-Key`: whoever asks again is answered as the first time.

A client whose server was killed before it answered cannot know what was done. It asks again, and nothing is done twice.
Every such route has a row; one without fails the suite.
"""

import contextlib
import json
from typing import Any, NamedTuple

import httpx
import pytest
from tests.server.service import wait_until
from tests.server.test_crash_matrix import (
    SNAPSHOT,
    Trial,
    creating,
    empty_session,
    no_webhook,
    only_webhook,
    session,
    session_with_text,
    trail_of,
)

from troth.runtime import Runtime
from troth.runtime.channels import bind
from troth.server.channels import HttpChannel

SESSION = "/sessions/{session_id}"
WORKSPACE = SESSION + "/members/{agent}/workspace"


class Verb(NamedTuple):
    """One verb: what has to be there before, what is asked for, and what has to be true when it was asked twice."""

    method: str
    path: str
    prepare: Any
    body: Any = None
    check: Any = lambda client, there: True
    again: int | None = None
    """How a repetition is answered that finds nothing left to do; None if as the first time."""


def held(client, folder, body):
    (folder / "go").unlink(missing_ok=True)
    answer = client.post("/responses", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def background(client, folder):
    return {"response_id": held(client, folder, {"model": "patient", "input": "x", "background": True})["id"]}


def talking(client, folder):
    (folder / "go").unlink(missing_ok=True)
    talk = client.post("/conversations", json={"agent": "patient"}).json()["id"]
    client.post(f"/conversations/{talk}/messages", json={"text": "x", "run": True})
    return {"conversation_id": talk}


def running(client, folder):
    (folder / "go").unlink(missing_ok=True)
    run = client.post("/runs", json={"workflow": "agated"}).json()["id"]
    wait_until(lambda: client.get(f"/runs/{run}").json()["steps"])
    return {"run_id": run}


def ended_saga(client, folder):
    saga = client.post("/sagas", json={"saga": "parcel"}, headers={"Prefer": "wait=60"}).json()
    return {"saga_id": saga["id"]}


def promised(client, folder):
    (folder / "go").unlink(missing_ok=True)
    talk = client.post("/conversations", json={"agent": "promiser"}).json()["id"]
    client.post(f"/conversations/{talk}/messages", json={"text": "x", "run": True}, headers={"Prefer": "wait=60"})
    said = client.get(f"/conversations/{talk}").json()["messages"][-1]["text"]
    return {"promise_id": said.split()[-1], "talk": talk, "folder": folder}


def delivered(client, folder):
    there = promised(client, folder)
    (folder / "go").touch()
    place = {"session": there["talk"]}
    found = wait_until(lambda: client.get("/deliveries", params=place).json()["data"])
    return {**there, "delivery_id": found[0]["id"]}


def asked(client, folder):
    policy = {"policy": [{"answer": "ask", "action": "add"}], "otherwise": "allow"}
    made = client.post("/sessions", json=policy).json()["id"]
    client.post(f"/sessions/{made}/members", json={"agent": "clerk", "score": 0.9, "actions": ["add"]})
    client.post(f"/sessions/{made}/activate")
    act = {"agent": "clerk", "action": "add", "inputs": {"a": 1, "b": 2}}
    begun = client.post(f"/sessions/{made}/execute", json=act, headers={"Prefer": "wait=0"}).json()["id"]
    found = wait_until(lambda: client.get("/asks", params={"session": made}).json()["data"])
    return {"session_id": made, "ask_id": found[0]["id"], "act": begun}


def joined(client, folder):
    there = empty_session(client, folder)
    member = {"agent": "clerk", "score": 0.9}
    assert client.post(f"/sessions/{there['session_id']}/members", json=member).status_code == 201
    return {**there, "agent": "clerk"}


def kept(client, folder):
    """A snapshot, and a member that may bring it back."""
    there = session_with_text(client, folder)
    place = f"/sessions/{there['session_id']}/members/clerk"
    elevation = {"ring": 1, "attestation": "me"}
    assert client.post(f"{place}/workspace/snapshots", json={"name": "before"}).status_code == 200
    assert client.post(f"{place}/elevate", json=elevation).status_code == 200
    assert client.put(f"{place}/workspace/texts/notes.md", json={"text": "second"}).status_code == 200
    return {**there, "name": "before"}


def disabled(client, folder):
    there = only_webhook(client, folder)
    assert client.post(f"/webhooks/{there['webhook_id']}/disable").status_code == 200
    return there


def given_up(client, folder):
    """A receiver that nobody is at, and a delivery that waits for its next attempt there."""
    there = only_webhook(client, folder)
    client.post("/runs", json={"workflow": "greet", "inputs": {"who": "you"}})
    place = f"/webhooks/{there['webhook_id']}/failures"
    failures = wait_until(lambda: client.get(place).json()["data"])
    return {**there, "delivery_id": failures[0]["delivery"]}


def job(client, folder):
    talk = client.post("/conversations", json={"agent": "parrot"}).json()["id"]
    with Runtime(folder / "shop.db", in_process=False) as runtime, bind(talk, HttpChannel()):
        return {"job_id": runtime.jobs.start("sleep 600").promise.id}


def text_of(client, there):
    answer = client.get(f"{WORKSPACE.format(**there)}/texts/notes.md")
    return answer.json()["text"] if answer.status_code == 200 else None


def counted(kind, count=1):
    def check(client, there):
        kinds = [row["kind"] for row in trail_of(client, there["session_id"])]
        assert kinds.count(kind) == count, kinds

    return check


def is_acted_once(client, there):
    act = f"/sessions/{there['session_id']}/acts/{there['act']}"
    assert wait_until(lambda: (found := client.get(act).json())["state"] != "running" and found)["result"] == 3


def says(path, state):
    def check(client, there):
        wait_until(lambda: client.get(path.format(**there)).json().get("state", "") == state, f"{path} {state}")

    return check


def has_text(text):
    def check(client, there):
        assert text_of(client, there) == text

    return check


def is_receiver(state):
    def check(client, there):
        assert client.get(f"/webhooks/{there['webhook_id']}").json()["state"] == state

    return check


def is_gone(client, there):
    assert client.get("/webhooks").json()["data"] == []


def is_interrupted(client, there):
    place = f"/conversations/{there['conversation_id']}"
    wait_until(lambda: client.get(place).json()["status"] == "interrupted", "the end of the turn")


def is_cancelled(client, there):
    assert client.get(f"/responses/{there['response_id']}").json()["status"] == "cancelled"


def is_called_off(client, there):
    """Its only step is in a thread, which cannot be stopped: where that ends as it should, so does the promise."""
    (there["folder"] / "go").touch()
    place = f"/promises/{there['promise_id']}"
    wait_until(lambda: client.get(place).json()["state"] in ("done", "cancelled"), "the end of the promise")


def is_acknowledged(client, there):
    assert client.get(f"/deliveries/{there['delivery_id']}").json()["state"] == "delivered"


VERBS = [
    Verb("post", "/conversations/{conversation_id}/interrupt", talking, check=is_interrupted),
    Verb("post", "/responses/{response_id}/cancel", background, check=is_cancelled),
    Verb("post", "/runs/{run_id}/cancel", running, check=says("/runs/{run_id}", "cancelled")),
    Verb("post", "/sagas/{saga_id}/cancel", ended_saga, check=says("/sagas/{saga_id}", "rolled back")),
    Verb("post", "/promises/{promise_id}/cancel", promised, check=is_called_off),
    Verb("post", "/deliveries/{delivery_id}/ack", delivered, check=is_acknowledged),
    Verb("post", "/jobs/{job_id}/stop", job, check=says("/jobs/{job_id}", "stopped")),
    Verb("post", "/asks/{ask_id}/answer", asked, {"yes": True}, is_acted_once),
    Verb("post", "/sessions/monitor", session),
    Verb("post", SESSION + "/activate", joined, check=counted("session.activated")),
    Verb("delete", SESSION + "/members/{agent}", session, check=counted("member.left")),
    Verb("post", SESSION + "/members/{agent}/kill", session, {"reason": "a test"}, counted("member.killed")),
    Verb("post", SESSION + "/members/{agent}/verify", session),
    Verb("post", SESSION + "/terminate", session, {"reason": "a test"}, counted("session.archived")),
    Verb("post", WORKSPACE + "/permit", session_with_text, {"path": "notes.md", "readers": ["clerk"]}),
    Verb("post", WORKSPACE + "/snapshots/{name}/restore", kept, check=has_text("first")),
    Verb("put", WORKSPACE + "/texts/{path}", session_with_text, {"text": "third"}, has_text("third")),
    Verb("delete", WORKSPACE + "/texts/{path}", session_with_text, check=has_text(None)),
    Verb("delete", "/webhooks/{webhook_id}", only_webhook, check=is_gone, again=404),
    Verb("post", "/webhooks/{webhook_id}/disable", only_webhook, check=is_receiver("disabled")),
    Verb("post", "/webhooks/{webhook_id}/enable", disabled, check=is_receiver("enabled")),
    Verb("post", "/webhooks/{webhook_id}/deliveries/{delivery_id}/replay", given_up),
]


def test_every_verb_has_a_row():
    """A new one is put on trial, or the suite fails."""
    paths = json.loads(SNAPSHOT.read_text())["paths"]
    changing = {
        (method, path.removeprefix("/v1"))
        for path, operations in paths.items()
        for method in operations
        if method != "get" and path.removeprefix("/v1") not in creating()
    }
    assert changing == {(verb.method, verb.path) for verb in VERBS}


class VerbTrial(Trial):
    """One verb on one store: it is asked, the server dies, another one is asked again."""

    def ask(self, client, there, key, **headers):
        path = self.row.path.format(**{"path": "notes.md", **there})
        return client.request(self.row.method, path, json=self.row.body, headers=headers)

    def prepare(self, client):
        if "webhook" not in self.row.path:
            no_webhook(client, self.folder)
        return self.row.prepare(client, self.folder)

    def is_answered(self, answer, *, is_first):
        return answer.is_success or (not is_first and answer.status_code == self.row.again)

    def crash_at(self, point):
        with self.served.client() as client:
            there = self.prepare(client)
            with contextlib.suppress(httpx.TransportError):  # the answer dies with the server, or just made it
                self.ask(client, there, None, **{"X-Failpoint": point})
            wait_until(lambda: self.served.process.poll() is not None, f"the crash at {point}")
        self.served.close()
        self.served = self.start()
        with self.served.client() as client:
            for _ in range(2):
                answer = wait_until(
                    lambda: (got := self.ask(client, there, None)).status_code not in (409, 503) and got,
                    f"an answer after {point}",
                )
                assert self.is_answered(answer, is_first=False), (point, answer.text)
            self.row.check(client, there)
        (self.folder / "go").touch()


@pytest.fixture(scope="module")
def trial(tmp_path_factory):
    """One server for all rows that need no crash."""
    trial = VerbTrial(tmp_path_factory.mktemp("verbs"), None)
    yield trial
    trial.served.close()


def rows():
    return pytest.mark.parametrize("verb", [pytest.param(verb, id=f"{verb.method} {verb.path}") for verb in VERBS])


@rows()
def test_whoever_asks_again_is_answered(trial, verb):
    """As the first time: its answer may have been lost."""
    trial.row = verb
    with trial.served.client() as client:
        there = trial.prepare(client)
        for is_first in (True, False):
            answer = trial.ask(client, there, None)
            assert trial.is_answered(answer, is_first=is_first), answer.text
        verb.check(client, there)
    (trial.folder / "go").touch()


@pytest.mark.soak
@pytest.mark.timeout(3600)  # twenty starts of a server, more or less
@rows()
def test_every_commit_point_of_a_verb(tmp_path, verb):
    """Wherever the server dies: whoever comes back and asks again is answered, and what was asked for is done once."""
    trial = VerbTrial(tmp_path, verb)
    try:
        with trial.served.client() as client:
            there = trial.prepare(client)
            assert trial.ask(client, there, None, **{"X-Failpoint": "note"}).is_success
        (trial.folder / "go").touch()
        for point in trial.noted():
            trial.crash_at(point)
    finally:
        trial.served.close()
