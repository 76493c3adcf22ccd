"""Conversations over HTTP: send, run, interrupt, follow."""

import threading

import pytest
from tests.server.service import PATIENCE, frames, wait_until

from troth.runtime.store import SqliteStore


def talk(client, agent):
    opened = client.post("/conversations", json={"agent": agent})
    assert opened.status_code == 201, opened.text
    assert opened.headers["Location"] == f"/v1/conversations/{opened.json()['id']}"
    return opened.json()["id"]


def say(client, talk_id, text, **more):
    sent = client.post(f"/conversations/{talk_id}/messages", json={"text": text, **more})
    assert sent.status_code == 202, sent.text
    return sent.json()


def finished(client, talk_id, status="finished"):
    return wait_until(
        lambda: (now := client.get(f"/conversations/{talk_id}").json())["status"] == status and now, status
    )


def test_an_agent_answers(client):
    """What is sent is safe at once; the agent answers, and the log tells it piece by piece."""
    talk_id = talk(client, "parrot")
    number = say(client, talk_id, "hello you", run=True)["number"]
    now = finished(client, talk_id)
    assert [(one["role"], one["text"]) for one in now["messages"]] == [
        ("user", "hello you"),
        ("assistant", "hello you"),
    ]
    told = frames(client.get(f"/conversations/{talk_id}/events", params={"follow": False}).text)
    assert [one for one, _, _ in told] == list(range(1, now["last_event"] + 1))
    assert told[number - 1][2]["text"] == "hello you"
    assert "".join(data["text"] for _, kind, data in told if kind == "tokens") == "hello you "
    assert talk_id in [one["id"] for one in client.get("/conversations").json()["data"]]


def test_waiting_for_the_answer(client):
    """`Prefer: wait=N` comes back with the answer."""
    talk_id = talk(client, "parrot")
    body = {"text": "now", "run": True}
    sent = client.post(f"/conversations/{talk_id}/messages", json=body, headers={"Prefer": "wait=30"})
    assert sent.json()["status"] == "finished"


def test_one_run_at_a_time(serve):
    """`run` is 409 while one runs; what is sent meanwhile is seen by it; an interruption says what it can promise."""
    server = serve("app:server")
    with server.client() as client:
        talk_id = talk(client, "patient")
        say(client, talk_id, "one")
        assert client.post(f"/conversations/{talk_id}/run").status_code == 202
        refused = client.post(f"/conversations/{talk_id}/run")
        assert (refused.status_code, refused.json()["error"]["code"]) == (409, "already_running")
        assert say(client, talk_id, "two", run=True)["status"] == "running"
        wait_until((server.folder / "steps.txt").exists)
        assert client.post(f"/conversations/{talk_id}/interrupt").json() == {"stopping": "will stop"}
        finished(client, talk_id, "interrupted")
        assert client.post(f"/conversations/{talk_id}/interrupt").json() == {"stopping": "stopped"}
        (server.folder / "go").touch()
        assert client.post(f"/conversations/{talk_id}/run").status_code == 202
        assert finished(client, talk_id)["messages"][-1]["text"] == "done"


def test_another_server_interrupts(serve):
    """The run is in the first process, in the middle of a step that would wait for ever."""
    first, second = serve("app:server"), serve("app:server")
    with first.client() as here, second.client() as there:
        talk_id = talk(here, "patient")
        say(here, talk_id, "x", run=True)
        wait_until((first.folder / "steps.txt").exists)
        assert there.post(f"/conversations/{talk_id}/interrupt").json() == {"stopping": "will stop"}
        for client in (here, there):
            wait_until(lambda: client.get(f"/conversations/{talk_id}").json()["status"] == "interrupted")


def test_an_agent_that_fails_is_told(client):
    """The error is in the conversation, and nobody retries it."""
    talk_id = talk(client, "broken")
    say(client, talk_id, "x", run=True)
    assert finished(client, talk_id, "failed")["error"]["type"] == "ValueError"


def test_a_stream_follows_and_goes_on(client):
    """A reader who was there before, leaves, and comes back with its cursor, has each entry once."""
    talk_id = talk(client, "parrot")
    first, at_hand = [], threading.Event()

    def read():
        with client.stream("GET", f"/conversations/{talk_id}/events") as stream:
            at_hand.set()
            text = ""
            for chunk in stream.iter_text():
                text += chunk
                if "run.ended" in text:
                    break
            first.extend(frames(text))

    reader = threading.Thread(target=read)
    reader.start()
    at_hand.wait(PATIENCE)
    say(client, talk_id, "a b", run=True)
    reader.join(PATIENCE)
    cursor = first[-1][0]
    assert [one[0] for one in first] == list(range(1, cursor + 1))
    say(client, talk_id, "c", run=True)
    finished(client, talk_id)
    rest = frames(client.get(f"/conversations/{talk_id}/events", params={"follow": False, "after": cursor}).text)
    whole = frames(client.get(f"/conversations/{talk_id}/events", params={"follow": False}).text)
    assert first + rest == whole


def test_what_is_wrong_is_told(client):
    """An agent that is not there, a field that promises something, a conversation that never was."""
    assert client.post("/conversations", json={"agent": "nobody"}).json()["error"]["code"] == "unknown_agent"
    talk_id = talk(client, "parrot")
    refused = client.post(f"/conversations/{talk_id}/messages", json={"text": "x", "background": True})
    assert refused.json()["error"]["param"] == "background"
    assert client.get("/conversations/nosuch").status_code == 404
    assert client.get("/conversations/nosuch/events").status_code == 404
    role = client.post(f"/conversations/{talk_id}/messages", json={"text": "x", "role": "assistant"})
    assert (role.status_code, role.json()["error"]["param"]) == (400, "role")


def test_a_trimmed_cursor_is_told(shared, client):
    """A `gap` says from where to where, and the stream goes on with what is left."""
    talk_id = talk(client, "parrot")
    say(client, talk_id, "a", run=True)
    last = finished(client, talk_id)["last_event"]
    with SqliteStore(shared.folder / "shop.db") as store:
        assert store.trim(f"conversation/{talk_id}", 2) == last - 2
    told = frames(client.get(f"/conversations/{talk_id}/events", params={"follow": False}).text)
    assert told[0][1:] == ("gap", {"after": 0, "next": last - 1, "last": last})
    assert [number for number, _, _ in told] == [last - 2, last - 1, last]


def test_a_client_of_somebody_elses_reads_the_stream(client):
    """`httpx-sse` has the same events, and their ids."""
    httpx_sse = pytest.importorskip("httpx_sse")
    talk_id = talk(client, "parrot")
    say(client, talk_id, "a", run=True)
    last = finished(client, talk_id)["last_event"]
    with httpx_sse.connect_sse(client, "GET", f"/conversations/{talk_id}/events", params={"follow": False}) as source:
        events = list(source.iter_sse())
    assert [int(event.id) for event in events] == list(range(1, last + 1))
    assert events[-1].event == "run.ended"
