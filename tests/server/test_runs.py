"""Runs over HTTP, on a real socket."""

import socket
import threading

import httpx
import pytest
from tests.server.service import PATIENCE, frames, wait_until


def begin(client, workflow, **inputs):
    begun = client.post("/runs", json={"workflow": workflow, "inputs": inputs})
    assert begun.status_code == 202, begun.text
    assert begun.headers["Location"] == f"/v1/runs/{begun.json()['id']}"
    return begun.json()["id"]


def ended(client, run_id):
    """The run, once it is over."""
    return wait_until(
        lambda: (run := client.get(f"/runs/{run_id}", headers={"Prefer": "wait=5"}).json())["ended_at"] and run
    )


def test_a_run_is_begun_and_looked_at(client):
    """202 with `Location` at once; the run is there, and in the list."""
    run_id = begin(client, "greet", who="you")
    assert ended(client, run_id)["output"] == {"text": "hello you"}
    assert run_id in [run["id"] for run in client.get("/runs").json()["data"]]
    assert client.get("/workflows").json()["data"][0]["name"] == "agated"
    assert client.get("/workflows/greet").json()["inputs"]["who"]["required"] is True


def test_waiting_is_a_preference(client, shared):
    """`Prefer: wait=N` waits for the end, and says that it did; the run that lasts longer is 202."""
    done = client.post("/runs", json={"workflow": "greet", "inputs": {"who": "a"}}, headers={"Prefer": "wait=30"})
    assert (done.status_code, done.json()["state"]) == (200, "completed")
    assert done.headers["Preference-Applied"] == "wait=30"
    late = client.post("/runs", json={"workflow": "gated"}, headers={"Prefer": "wait=0, respond-async"})
    assert late.status_code == 202
    assert late.headers["Retry-After"] == "1"
    client.post(f"/runs/{late.json()['id']}/cancel")


def test_the_list_has_pages(client):
    """Each run stands on one page."""
    mine = {begin(client, "greet", who=str(number)) for number in range(5)}
    seen, before = [], None
    while True:
        page = client.get("/runs", params={"limit": 2, **({"before": before} if before else {})}).json()
        seen += [run["id"] for run in page["data"]]
        before = page["next"]
        if before is None:
            break
    assert len(seen) == len(set(seen))
    assert mine <= set(seen)


def test_preferences_may_come_in_several_lines(client):
    """As any header of its kind."""
    prefer = [("Prefer", "respond-async"), ("Prefer", "wait=60")]
    answer = client.post("/runs", json={"workflow": "greet", "inputs": {"who": "you"}}, headers=prefer)
    assert (answer.status_code, answer.headers["Preference-Applied"]) == (200, "respond-async, wait=60")
    answer = client.get(f"/runs/{answer.json()['id']}", headers=prefer)
    assert answer.json()["state"] == "completed"


def test_events_have_numbers_and_go_on(client):
    """`id:` on each frame; `Last-Event-ID` and `?after=` go on; the end comes, and 204 to whoever has it."""
    run_id = begin(client, "greet", who="you")
    ended(client, run_id)
    whole = frames(client.get(f"/runs/{run_id}/events").text)
    assert [number for number, _, _ in whole] == list(range(1, len(whole) + 1))
    assert whole[-1][1] == "run.ended"
    rest = client.get(f"/runs/{run_id}/events", headers={"Last-Event-ID": "2"}).text
    assert frames(rest) == whole[2:]
    assert frames(client.get(f"/runs/{run_id}/events", params={"after": 2}).text) == whole[2:]
    assert client.get(f"/runs/{run_id}/events", params={"after": len(whole)}).status_code == 204


def test_a_cursor_that_never_was_is_told(client):
    """A number beyond the end is answered by a `gap`, not by silence."""
    run_id = begin(client, "greet", who="you")
    ended(client, run_id)
    told = frames(client.get(f"/runs/{run_id}/events", params={"after": 999}).text)
    assert told[0][1] == "gap"
    assert told[0][2]["after"] == 999
    bad = client.get(f"/runs/{run_id}/events", headers={"Last-Event-ID": "x"})
    assert (bad.status_code, bad.json()["error"]["param"]) == (400, "Last-Event-ID")


def test_every_reader_sees_all(serve):
    """Several readers at once, one of whom comes late and one of whom leaves: nobody takes anything away."""
    server = serve("app:server")
    with server.client() as client:
        run_id = begin(client, "gated")
        seen, first = {}, threading.Barrier(4)

        def read(name):
            with server.client() as mine, mine.stream("GET", f"/runs/{run_id}/events") as stream:
                chunks = stream.iter_text()
                text = next(chunks)
                first.wait(PATIENCE)
                seen[name] = frames(text + "".join(chunks))

        readers = [threading.Thread(target=read, args=(name,)) for name in range(3)]
        for reader in readers:
            reader.start()
        with client.stream("GET", f"/runs/{run_id}/events") as leaving:
            next(leaving.iter_text())
        first.wait(PATIENCE)
        (server.folder / "go").touch()
        for reader in readers:
            reader.join(PATIENCE)
        late = frames(client.get(f"/runs/{run_id}/events").text)
        assert [late] * 3 == [seen[name] for name in range(3)]
        assert late[-1][1] == "run.ended"


def test_a_question_is_answered(client, shared):
    """Approve goes on with the run; what failed is resumed; a second answer is a conflict."""
    run_id = begin(client, "asks")
    wait_until(lambda: client.get(f"/runs/{run_id}").json()["waiting_for"] == ["sure"])
    assert client.post(f"/runs/{run_id}/approve", json={"by": "me"}).status_code == 200
    assert client.post(f"/runs/{run_id}/approve", json={}).status_code == 409
    assert ended(client, run_id)["steps"][-1]["error"]["type"] == "ValueError"
    (shared.folder / "repaired").touch()
    assert client.post(f"/runs/{run_id}/resume", json={}).status_code == 202
    wait_until(lambda: client.get(f"/runs/{run_id}").json()["state"] == "completed")
    assert client.post(f"/runs/{run_id}/resume", json={}).status_code == 409


def test_a_run_is_forked_and_cancelled(client):
    """A fork is a run of its own; cancel can be repeated."""
    run_id = begin(client, "greet", who="x")
    ended(client, run_id)
    fork = client.post(f"/runs/{run_id}/fork", json={}).json()
    assert fork["forked_from"] == run_id
    assert ended(client, fork["id"])["output"] == {"text": "hello x"}
    waiting = begin(client, "asks")
    wait_until(lambda: client.get(f"/runs/{waiting}").json()["waiting_for"] == ["sure"])
    assert client.post(f"/runs/{waiting}/cancel").status_code == 202
    assert ended(client, waiting)["state"] == "cancelled"
    assert client.post(f"/runs/{waiting}/cancel").status_code == 202


@pytest.mark.parametrize(
    ("body", "code", "param"),
    [
        pytest.param({"workflow": "nosuch"}, "unknown_workflow", "workflow", id="no such workflow"),
        pytest.param({"workflow": "greet"}, "invalid_request", "inputs", id="an input is missing"),
        pytest.param({"workflow": "greet", "inputs": {"who": 3}}, "invalid_request", "inputs", id="a wrong input"),
        pytest.param({"workflow": 3}, "invalid_field", "workflow", id="a wrong type"),
        pytest.param({}, "invalid_field", "workflow", id="nothing"),
        pytest.param(
            {"workflow": "greet", "callback_url": "http://x"},
            "unknown_field",
            "callback_url",
            id="what would be a promise",
        ),
    ],
)
def test_wrong_input_is_told(client, body, code, param):
    """400 with the field, and nothing is begun."""
    before = len(client.get("/runs", params={"limit": 100}).json()["data"])
    refused = client.post("/runs", json=body)
    assert refused.status_code == 400
    error = refused.json()["error"]
    assert (error["code"], error["param"]) == (code, param)
    assert error["request_id"] == refused.headers["x-request-id"]
    assert len(client.get("/runs", params={"limit": 100}).json()["data"]) == before


def test_what_is_not_there_is_404(client):
    """In our own shape, for routes and for things."""
    assert client.get("/runs/nosuch").json()["error"]["code"] == "run_not_found"
    assert client.get("/nosuch").json()["error"]["code"] == "no_such_route"
    assert client.delete("/runs").json()["error"]["code"] == "method_not_allowed"
    assert _json(client, b"{") == "invalid_json"


def _json(client, content):
    return client.post("/runs", content=content, headers={"Content-Type": "application/json"}).json()["error"]["code"]


def test_leaving_is_not_cancelling(serve):
    """A client that goes away at once after its request: the run goes on to its end."""
    server = serve("app:server")
    body = b'{"workflow": "greet", "inputs": {"who": "me"}}'
    head = f"POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
    address = httpx.URL(server.url)
    with socket.create_connection((address.host, address.port), PATIENCE) as hasty:
        hasty.sendall(head.encode() + b"Content-Type: application/json\r\nPrefer: wait=30\r\n\r\n" + body)
    with server.client() as client:
        run = wait_until(lambda: client.get("/runs").json()["data"])[0]
        assert ended(client, run["id"])["state"] == "completed"
