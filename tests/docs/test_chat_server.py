"""The chat service of the how-to page, behind a real server: in the background, word by word, and stopped."""

import importlib.util
import json
import socket
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import uvicorn

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples/chat_server/chat_server.py"
LIMIT = 30  # seconds after which a test that hangs is given up


@contextmanager
def served(store):
    """The address of the example, served by uvicorn on a thread."""
    spec = importlib.util.spec_from_file_location("chat_server_example", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    with pytest.MonkeyPatch.context() as patch, socket.socket() as listener:
        patch.setenv("CHATS", str(store))
        spec.loader.exec_module(module)
        listener.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(module.app, log_level="warning", timeout_graceful_shutdown=1))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            deadline = time.monotonic() + LIMIT
            while not server.started:
                assert thread.is_alive(), "the server did not start"
                assert time.monotonic() < deadline, "the server did not start in time"
                time.sleep(0.005)
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(LIMIT)
            del sys.modules[spec.name]
    assert not thread.is_alive()


@pytest.fixture
def client(tmp_path):
    with served(tmp_path / "chats.db") as address, httpx.Client(base_url=address, timeout=LIMIT) as opened:
        yield opened


def entries(response):
    """The events of a stream as they come: (number, kind, payload)."""
    fields = {}
    for line in response.iter_lines():
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        else:
            yield int(fields["id"]), fields["event"], json.loads(fields["data"])


def until_the_end(response):
    told = []
    for entry in entries(response):
        told.append(entry)
        if entry[1] == "run.ended":
            return told
    raise AssertionError(f"the run did not end: {told}")


def test_a_message_is_answered_in_the_background(client):
    """The request is over before the answer is; its pieces are followed, and a second reader goes on from a number."""
    sent = client.post("/chats/1/messages", json={"text": "one two three"})
    assert sent.status_code == 202
    with client.stream("GET", "/chats/1/events") as response:
        told = until_the_end(response)
    assert [number for number, _, _ in told] == list(range(1, len(told) + 1))
    assert "".join(payload["text"] for _, kind, payload in told if kind == "tokens").split() == ["one", "two", "three"]
    assert told[-1][2]["outcome"] == "finished"
    with client.stream("GET", "/chats/1/events", headers={"Last-Event-ID": str(told[-2][0])}) as response:
        assert next(entries(response)) == told[-1]
    assert client.get("/chats/1").json() == {
        "status": "finished",
        "messages": [{"role": role, "text": "one two three"} for role in ("user", "assistant")],
    }


def test_the_stop_button(client):
    """Another request, with a handle of its own, stops what the first one began."""
    client.post("/chats/1/messages", json={"text": "word " * 1000})
    with client.stream("GET", "/chats/1/events") as response:
        following = entries(response)
        assert any(kind == "tokens" for _, kind, _ in following)
        assert client.get("/chats/1").json()["status"] == "running"
        assert client.post("/chats/1/messages", json={"text": "wait"}).status_code == 202
        assert client.post("/chats/1/stop").json() == {"stopping": "will stop"}
        outcomes = [payload["outcome"] for _, kind, payload in _up_to_the_end(following) if kind == "run.ended"]
    assert outcomes == ["interrupted"]
    assert client.post("/chats/1/stop").json() == {"stopping": "stopped"}
    assert client.post("/chats/2/stop").json() == {"stopping": "stopped"}


def _up_to_the_end(following):
    for entry in following:
        yield entry
        if entry[1] == "run.ended":
            return


def test_what_was_cut_off_goes_on_after_a_restart(tmp_path):
    """The message is still there, and the next turn answers it."""
    with served(tmp_path / "chats.db") as address, httpx.Client(base_url=address, timeout=LIMIT) as client:
        client.post("/chats/1/messages", json={"text": "word " * 1000})
    with served(tmp_path / "chats.db") as address, httpx.Client(base_url=address, timeout=LIMIT) as client:
        assert client.get("/chats/1").json()["status"] in ("interrupted", "cancelled")
        number = client.post("/chats/1/messages", json={"text": "short"}).json()["number"]
        with client.stream("GET", f"/chats/1/events?after={number}") as response:
            assert until_the_end(response)[-1][2]["outcome"] == "finished"
        assert client.get("/chats/1").json()["messages"][-1] == {"role": "assistant", "text": "short"}


def test_the_page_shows_the_example():
    """Byte for byte."""
    page = (ROOT / "docs/how-to/serve-conversations-from-fastapi.md").read_text(encoding="utf-8")
    assert EXAMPLE.read_text(encoding="utf-8") in page
