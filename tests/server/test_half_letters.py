"""Half of a letter, as is left where somebody cuts an emoji in two: refused where it comes in, shown where it comes out."""

import json

import pytest
from tests.server.service import Served, fill, frames, wait_until
from websockets.sync.client import connect

APP = """
import app
from troth.runtime.agents import Agent


class Half(Agent):
    async def astep(self, conversation):
        conversation.token("half \\ud83d")
        await conversation.asay("half \\ud83d")


def half():
    return app.Server(app.runtime, agents={**app.AGENTS, "half": Half()}, workflows=app.WORKFLOWS, keys=False)
"""
HALF = "half \ud83d"


@pytest.fixture(scope="module")
def odd(tmp_path_factory):
    folder = fill(tmp_path_factory.mktemp("odd"))
    (folder / "odd.py").write_text(APP)
    served = Served(folder, "odd:half")
    yield served
    served.close()


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        (
            "/chat/completions",
            {"model": "parrot", "messages": [{"role": "user", "content": HALF}]},
            "messages.0.content",
        ),
        ("/responses", {"model": "parrot", "input": HALF}, "input"),
        ("/responses", {"model": "parrot", "input": "x", "metadata": {HALF: "x"}}, "metadata.half \\ud83d"),
        ("/runs", {"workflow": "greet", "inputs": {"who": HALF}}, "inputs.who"),
        ("/sessions", {"otherwise": HALF}, "otherwise"),
        ("/webhooks", {"url": "https://example.com", "description": HALF}, "description"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_it_is_refused_with_its_field(odd, path, body, field):
    """No store keeps it. Nothing was done, and nothing of it is in a list."""
    with odd.client() as client:
        refused = client.post(path, content=json.dumps(body), headers={"Content-Type": "application/json"})
        error = refused.json()["error"]
        assert (refused.status_code, error["code"], error["param"]) == (400, "invalid_text", field)
        assert client.get("/runs").json()["data"] == []


@pytest.mark.parametrize("text", ["\U0001f600", "\\ud83d", "\ud83d\ude00"], ids=["a letter", "words", "a pair"])
def test_what_is_whole_is_no_half(odd, text):
    """A pair of escapes is a letter, and a backslash before a `u` is text."""
    content = json.dumps({"model": "parrot", "input": text})
    with odd.client() as client:
        answer = client.post("/responses", content=content, headers={"Content-Type": "application/json"})
    assert answer.status_code == 200, answer.text


def test_an_agent_that_says_it_is_shown(odd):
    """In answers, lists, streams and on sockets, as the escape that JSON has for it."""
    with odd.client() as client:
        said = client.post("/chat/completions", json={"model": "half", "messages": [{"role": "user", "content": "x"}]})
        assert said.json()["choices"][0]["message"]["content"] == HALF
        response = client.post("/responses", json={"model": "half", "input": "x"}).json()
        assert client.get(f"/responses/{response['id']}").json()["output"][0]["content"][0]["text"] == HALF
        talk = client.post("/conversations", json={"agent": "half"}).json()["id"]
        client.post(f"/conversations/{talk}/messages", json={"text": "x", "run": True})
        record = wait_until(
            lambda: (got := client.get(f"/conversations/{talk}").json())["status"] == "finished" and got, "the turn"
        )
        assert record["messages"][-1]["text"] == HALF
        text = ""
        with client.stream("GET", f"/conversations/{talk}/events") as stream:
            for piece in stream.iter_text():
                text += piece
                if "run.ended" in text:
                    break
        assert HALF in [data.get("text") for _, _, data in frames(text)]
    with connect(f"{odd.url.replace('http', 'ws')}/v1/socket") as socket:
        socket.send(json.dumps({"type": "subscribe", "conversation": talk, "n": 1}))
        told = []
        while "run.ended" not in told:
            message = json.loads(socket.recv(60))
            told.append(message.get("event"))
            if message.get("event") == "message" and message["data"]["role"] == "assistant":
                assert message["data"]["text"] == HALF
        assert "message" in told
        socket.send(json.dumps({"type": "send", "conversation": talk, "text": HALF, "n": 2}))
        while (message := json.loads(socket.recv(60)))["type"] != "error":
            pass
        assert message["error"]["code"] == "invalid_text"
