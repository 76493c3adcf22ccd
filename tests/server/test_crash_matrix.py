"""SIGKILL of the server at every commit point that a creating request reaches, and between its answer and its effect.

The client comes back with its key: nothing is lost, nothing is done twice, and no id is unknown that was ever given out.
Every route that takes an `Idempotency-Key` has a row in the table, its streams and the socket have one, too; a route
without one fails the suite.
"""

import contextlib
import itertools
import json
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
import websockets.sync.client
from tests.server.service import PATIENCE, Served, fill, frames, wait_until
from websockets.exceptions import WebSocketException

from troth.runtime.store import SqliteStore
from troth.server.webhooks.endpoint import STREAM, fold

SNAPSHOT = Path(__file__).with_name("openapi.json")
SOCKET = "socket"

ARMED = '''
"""The service, with a header that says where it is to die: at a commit point, or nowhere, to note what is reached."""

import app

from troth.runtime import Hypervisor
from troth.runtime.store import failpoints
from troth.server import Webhooks


def note(name):
    with (app.HERE / "reached.txt").open("a") as reached:
        reached.write(name + "\\n")


class Arming:
    def __init__(self, inner):
        self.inner = inner

    async def __call__(self, scope, receive, send):
        point = dict(scope.get("headers") or ()).get(b"x-failpoint", b"").decode()
        names = failpoints.failpoint_names()
        if point == "note":
            for name in names:
                failpoints.arm(name, note)
        elif point:
            assert point in names, point
            failpoints.arm(point, failpoints.action_named("kill"))
        try:
            await self.inner(scope, receive, send)
        finally:
            if point == "note":
                for name in names:
                    failpoints.disarm(name)


def server():
    app.runtime.hypervisor = Hypervisor(app.runtime.store, verifier=app.behaves)
    app.runtime.hypervisor.register(app.Action("add", app.add, read_only=True))
    served = app.Server(
        app.runtime, agents=app.AGENTS, workflows=app.WORKFLOWS, keys=False, webhooks=Webhooks(allow=["127.0.0.1"])
    )
    served.app = Arming(served.app)
    return served
'''


class Said(NamedTuple):
    """What a client makes of an answer: its status, and what it says."""

    status: int
    body: Any


def asked(client, there, row, headers):
    """Ask over HTTP, and read the answer to its end."""
    answer = client.post(row.path.format(**there), json=row.body, headers=headers)
    return Said(answer.status_code, answer.json() if answer.status_code >= 300 else row.read(answer))


def sent(client, there, row, headers):
    """Ask on a socket. The key goes with the message."""
    url = str(client.base_url).replace("http", "ws", 1) + row.path
    message = {"n": 1, **row.body, **there, "key": headers["Idempotency-Key"]}
    more = {name: word for name, word in headers.items() if name == "X-Failpoint"}
    try:
        with websockets.sync.client.connect(url, additional_headers=more, proxy=None) as socket:
            socket.send(json.dumps(message))
            answer = json.loads(socket.recv(PATIENCE))
    except (OSError, EOFError, WebSocketException) as gone:
        raise httpx.TransportError(str(gone)) from gone
    if answer["type"] == "error":
        return Said(409 if answer["error"]["code"] == "request_in_progress" else 400, answer)
    return Said(200, answer)


def read_chunks(answer):
    """A streamed completion: its id, what was said, and whether it came to its end."""
    text = answer.text.removesuffix("data: [DONE]\n\n")
    chunks = [data for _, _, data in frames(text)]
    said = "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks)
    return {"id": chunks[0]["id"], "text": said.rstrip(), "is_whole": text != answer.text}


def read_events(answer):
    """A streamed response: its id, what was said, its end, and the numbers of its events."""
    events = [data for _, _, data in frames(answer.text)]
    said = "".join(event["delta"] for event in events if event["type"] == "response.output_text.delta")
    numbers = [event["sequence_number"] for event in events]
    assert numbers == list(range(len(events)))
    return {"id": events[0]["response"]["id"], "text": said.rstrip(), "end": events[-1]["type"]}


class Row(NamedTuple):
    """One creating route: what has to be there before, what is asked for, and what has to be true in the end."""

    path: str
    body: Any
    check: Any
    prepare: Any = lambda client, folder: {}
    is_finished: Any = lambda client, there, answer: True
    """Whether the effect that the answer has promised is there; it may come later."""
    ask: Any = asked
    read: Any = httpx.Response.json
    what: str = ""

    @property
    def id(self):
        """As the test is called."""
        return f"{self.path} {self.what}".strip()


def listed(client, what):
    paging = "" if what == "webhooks" else "?limit=100"
    return [row["id"] for row in client.get(f"/{what}{paging}").json()["data"]]


def talk(client, folder):
    return {"conversation_id": client.post("/conversations", json={"agent": "parrot"}).json()["id"]}


def talk_with_message(client, folder):
    there = talk(client, folder)
    client.post(f"/conversations/{there['conversation_id']}/messages", json={"text": "hello"})
    return there


def said(client, there, _):
    found = client.get(f"/conversations/{there['conversation_id']}").json()
    return found["status"] == "finished" and len(found["messages"]) > 1


def said_once(client, there, answer):
    found = client.get(f"/conversations/{there['conversation_id']}").json()
    assert [message["text"] for message in found["messages"]] == ["hello", "hello"]


def is_over(client, there, answer):
    return client.get(f"/runs/{answer['id']}").json()["ended_at"] is not None


def ended_once(state):
    def check(client, there, answer):
        run = client.get(f"/runs/{answer['id']}").json()
        assert run["state"] == state, run
        events = client.get(f"/runs/{answer['id']}/events?follow=false").text
        assert events.count("event: run.ended") == 1 + there.get("ended_before", 0)

    return check


def asking(client, folder):
    (folder / "repaired").touch()
    run = client.post("/runs", json={"workflow": "asks"}).json()["id"]
    wait_until(lambda: client.get(f"/runs/{run}").json()["waiting_for"])
    return {"run_id": run}


def failed(client, folder):
    (folder / "repaired").unlink(missing_ok=True)
    there = asking_only(client)
    client.post(f"/runs/{there['run_id']}/approve", json={})
    wait_until(lambda: client.get(f"/runs/{there['run_id']}").json()["state"] == "failed")
    (folder / "repaired").touch()
    return {**there, "ended_before": 1}


def asking_only(client):
    run = client.post("/runs", json={"workflow": "asks"}).json()["id"]
    wait_until(lambda: client.get(f"/runs/{run}").json()["waiting_for"])
    return {"run_id": run}


def ended_run(client, folder):
    run = client.post("/runs", json={"workflow": "greet", "inputs": {"who": "you"}}).json()["id"]
    wait_until(lambda: client.get(f"/runs/{run}").json()["state"] == "completed")
    return {"run_id": run}


def session(client, folder):
    made = client.post("/sessions", json={}).json()["id"]
    joining = {"agent": "clerk", "score": 0.9, "actions": ["add"]}
    assert client.post(f"/sessions/{made}/members", json=joining).status_code == 201
    assert client.post(f"/sessions/{made}/activate").status_code == 200
    return {"session_id": made, "agent": "clerk"}


def killed_member(client, folder):
    there = session(client, folder)
    kill = f"/sessions/{there['session_id']}/members/clerk/kill"
    assert client.post(kill, json={"reason": "a test"}).status_code == 200
    return there


def trail_of(client, session_id):
    return client.get("/audit", params={"session": session_id, "limit": 1000}).json()["data"]


def elevated_once(client, there, answer):
    kinds = [row["kind"] for row in trail_of(client, there["session_id"])]
    assert (kinds.count("member.elevated"), answer["members"][0]["ring"]) == (1, 1)


def readmitted_once(client, there, answer):
    kinds = [row["kind"] for row in trail_of(client, there["session_id"])]
    assert (kinds.count("member.readmitted"), answer["members"][0]["state"]) == (1, "left")


def session_with_text(client, folder):
    there = session(client, folder)
    text = f"/sessions/{there['session_id']}/members/clerk/workspace/texts/notes.md"
    assert client.put(text, json={"text": "first"}).status_code == 200
    return there


def kept_once(client, there, answer):
    """The snapshot is there, and was taken once."""
    trail = trail_of(client, there["session_id"])
    assert [row["data"]["snapshot"] for row in trail if row["kind"] == "workspace.snapshot"] == [answer["name"]]


def empty_session(client, folder):
    return {"session_id": client.post("/sessions", json={}).json()["id"]}


def joined_once(client, there, answer):
    members = client.get(f"/sessions/{there['session_id']}").json()["members"]
    assert [member["agent"] for member in members] == ["clerk"]


def acted_once(client, there, answer):
    acts = f"/sessions/{there['session_id']}/acts/{answer['id']}"
    assert client.get(acts).json() == {"id": answer["id"], "state": "completed", "result": 3, "error": None}


def is_acted(client, there, answer):
    return client.get(f"/sessions/{there['session_id']}/acts/{answer['id']}").json().get("state") == "completed"


def no_webhook(client, folder):
    for webhook in client.get("/webhooks").json()["data"]:
        client.delete(f"/webhooks/{webhook['id']}")
    return {}


def registered_once(client, there, answer):
    assert listed(client, "webhooks") == [answer["id"]]


def only_webhook(client, folder):
    no_webhook(client, folder)
    made = client.post("/webhooks", json={"url": "http://127.0.0.1:9/hook"}).json()
    return {"webhook_id": made["id"], "secret": made["secret"], "store": folder / "shop.db"}


def rotated_once(client, there, answer):
    """The new secret signs, and so does the one that the receiver knows: a second rotation would have dropped it."""
    endpoints = {}
    with SqliteStore(there["store"]) as store:
        for event in store.events(STREAM):
            fold(endpoints, event)
        secrets = endpoints[there["webhook_id"]].secrets_at(store.clock())
    assert secrets == [answer["secret"], there["secret"]]


def known(noun):
    def check(client, there, answer):
        assert client.get(f"/{noun}/{answer['id']}").status_code == 200

    return check


def completion_is_whole(client, there, answer):
    assert answer["choices"][0]["message"]["content"] == "hello"


def stream_is_whole(client, there, answer):
    assert (answer["text"], answer.get("is_whole"), answer.get("end")) in (
        ("hello", True, None),
        ("hello", None, "response.completed"),
    )


def talk_with_id(client, folder):
    return {"conversation": talk(client, folder)["conversation_id"]}


def said_on_socket(client, there, _):
    return said(client, {"conversation_id": there["conversation"]}, _)


def said_once_on_socket(client, there, answer):
    said_once(client, {"conversation_id": there["conversation"]}, answer)


def response_is_whole(client, there, answer):
    text = client.get(f"/responses/{answer['id']}").json()["output"][0]["content"][0]["text"]
    assert text == "hello"


ROWS = [
    Row("/conversations", {"agent": "parrot"}, known("conversations")),
    Row("/conversations/{conversation_id}/messages", {"text": "hello", "run": True}, said_once, talk, said),
    Row("/conversations/{conversation_id}/run", None, said_once, talk_with_message, said),
    Row(
        "/chat/completions",
        {"model": "parrot", "messages": [{"role": "user", "content": "hello"}]},
        completion_is_whole,
    ),
    Row(
        "/chat/completions",
        {"model": "parrot", "messages": [{"role": "user", "content": "hello"}], "stream": True},
        stream_is_whole,
        read=read_chunks,
        what="streamed",
    ),
    Row("/responses", {"model": "parrot", "input": "hello"}, response_is_whole),
    Row(
        "/responses",
        {"model": "parrot", "input": "hello", "background": True},
        response_is_whole,
        is_finished=lambda client, _, answer: client.get(f"/responses/{answer['id']}").json()["status"] == "completed",
        what="in the background",
    ),
    Row(
        "/responses",
        {"model": "parrot", "input": "hello", "stream": True},
        stream_is_whole,
        read=read_events,
        what="streamed",
    ),
    Row(
        "/responses",
        {"model": "parrot", "input": "hello", "background": True, "stream": True},
        stream_is_whole,
        read=read_events,
        what="streamed in the background",
    ),
    Row(
        SOCKET,
        {"type": "send", "text": "hello", "run": True},
        said_once_on_socket,
        talk_with_id,
        said_on_socket,
        ask=sent,
    ),
    Row("/runs", {"workflow": "greet", "inputs": {"who": "you"}}, ended_once("completed"), is_finished=is_over),
    Row("/runs/{run_id}/approve", {}, ended_once("completed"), asking, is_over),
    Row(
        "/runs/{run_id}/resume",
        {},
        ended_once("completed"),
        failed,
        lambda client, there, answer: client.get(f"/runs/{answer['id']}").json()["state"] == "completed",
    ),
    Row("/runs/{run_id}/fork", {}, ended_once("completed"), ended_run, is_over),
    Row(
        "/sagas",
        {"saga": "parcel"},
        ended_once("rolled back"),
        is_finished=is_over,
    ),
    Row("/sessions", {}, known("sessions")),
    Row("/sessions/{session_id}/members", {"agent": "clerk", "score": 0.9}, joined_once, empty_session),
    Row(
        "/sessions/{session_id}/execute",
        {"agent": "clerk", "action": "add", "inputs": {"a": 1, "b": 2}},
        acted_once,
        session,
        is_acted,
    ),
    Row("/sessions/{session_id}/members/{agent}/elevate", {"ring": 1, "attestation": "me"}, elevated_once, session),
    Row("/sessions/{session_id}/members/{agent}/readmit", {"reason": "a mistake"}, readmitted_once, killed_member),
    Row(
        "/sessions/{session_id}/members/{agent}/workspace/snapshots",
        {"name": "before"},
        kept_once,
        session_with_text,
    ),
    Row("/webhooks", {"url": "http://127.0.0.1:9/hook"}, registered_once, no_webhook),
    Row("/webhooks/{webhook_id}/rotate", {"keep": 86400}, rotated_once, only_webhook),
]
NOUNS = ("runs", "conversations", "sessions", "webhooks")


def creating():
    """The routes that take an `Idempotency-Key`, as the document has them."""
    paths = json.loads(SNAPSHOT.read_text())["paths"]
    return {
        path.removeprefix("/v1")
        for path, operations in paths.items()
        for operation in operations.values()
        if any(parameter["name"].lower() == "idempotency-key" for parameter in operation.get("parameters", ()))
    }


def test_every_creating_route_has_a_row():
    """A new one is put on trial, or the suite fails."""
    assert creating() == {row.path for row in ROWS} - {SOCKET}


class Trial:
    """One creating route on one store: it is asked, the server dies, another one is asked again."""

    def __init__(self, folder, row):
        self.folder, self.row = fill(folder), row
        (folder / "armed.py").write_text(ARMED)
        (folder / "go").touch()
        self.keys = (f"key-{number}" for number in itertools.count())
        self.served = self.start()

    def start(self):
        return Served(self.folder, "armed:server")

    def ask(self, client, there, key, **headers):
        return self.row.ask(client, there, self.row, {"Idempotency-Key": key, **headers})

    def reached(self):
        """The failpoints that one request reaches until it is answered, each once."""
        with self.served.client() as client:
            there = self.row.prepare(client, self.folder)
            answer = self.ask(client, there, next(self.keys), **{"X-Failpoint": "note"})
            assert answer.status < 300, answer
        return self.noted()

    def noted(self):
        """The failpoints that were reached while they were noted, each once; no housekeeping."""
        noted = self.folder / "reached.txt"
        names = noted.read_text().split() if noted.exists() else []
        return [name for name in dict.fromkeys(names) if name.rpartition(".")[0] not in HOUSEKEEPING]

    def crash_at(self, point):
        """Die at `point`, or without one after the answer and before its effect is waited for; then come back."""
        key = next(self.keys)
        with self.served.client() as client:
            there = self.row.prepare(client, self.folder)
            before = {noun: set(listed(client, noun)) for noun in NOUNS}
            told = None
            if point is None:
                told = self.ask(client, there, key)
                assert told.status < 300, told
                self.served.kill()
            else:
                with contextlib.suppress(httpx.TransportError):  # the answer dies with the server, or just made it
                    told = self.ask(client, there, key, **{"X-Failpoint": point})
                wait_until(lambda: self.served.process.poll() is not None, f"the crash at {point}")
        self.served.close()
        self.served = self.start()
        with self.served.client() as client:
            answer = wait_until(
                lambda: (got := self.ask(client, there, key)).status not in (409, 503) and got,
                f"an answer after {point}",
            )
            assert answer.status < 300, (point, answer)
            if told is not None and told.status < 300:
                assert answer.body.get("id") == told.body.get("id"), point
            wait_until(lambda: self.row.is_finished(client, there, answer.body), f"the effect after {point}")
            self.row.check(client, there, answer.body)
            again = self.ask(client, there, key)
            assert again == answer, point
            for noun in NOUNS:
                assert len(set(listed(client, noun)) - before[noun]) <= 1, (point, noun)


HOUSEKEEPING = {
    f"{who}.{what}"
    for who in ("server", "conversation", "engine", "owner", "jobs", "outbox", "hypervisor", "process", "telemetry")
    for what in ("enroll", "beat", "retire", "request.forget", "metrics")
}
"""What a process does once, or from time to time, whoever asks for what."""


@pytest.fixture
def trial(tmp_path, request):
    trial = Trial(tmp_path, request.param)
    yield trial
    trial.served.close()


def rows(**options):
    return pytest.mark.parametrize("trial", [pytest.param(row, id=row.id) for row in ROWS], indirect=True, **options)


@rows()
def test_what_was_done_and_not_answered(trial):
    """The server dies when everything is done and the answer is about to be kept; then right after an answer."""
    trial.crash_at("server.request.answer.before")
    trial.crash_at(None)


@pytest.mark.soak
@pytest.mark.timeout(3600)  # fifty starts of a server, more or less
@rows()
def test_every_commit_point_of_a_request(trial):
    """Wherever the server dies."""
    points = trial.reached()
    assert any(point.startswith("server.request.claim") for point in points)
    assert any(point.startswith("server.request.answer") for point in points)
    for point in points:
        trial.crash_at(point)
