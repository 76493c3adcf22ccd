"""The `openai` SDK against a server on this machine that speaks the protocol."""

import asyncio
import gc
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import openai
import pytest

from troth.errors import MisuseError
from troth.runtime.agents.model import Message, Model, ModelError, Request, ToolCall, Usage
from troth.runtime.agents.openai import OpenAIModel, Price
from troth.runtime.tools import tool


def chunk(delta=None, finish=None, usage=None):
    choices = [] if usage else [{"index": 0, "delta": delta or {}, "finish_reason": finish}]
    row = {"id": "1", "object": "chat.completion.chunk", "created": 0, "model": "m", "choices": choices, "usage": usage}
    return f"data: {json.dumps(row)}\n\n"


USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
TALK = [
    chunk({"role": "assistant", "content": "Hel"}),
    ": keep-alive\n\n",
    chunk({"content": "lo"}),
    chunk(finish="stop"),
    chunk(usage=USAGE),
    "data: [DONE]\n\n",
]


def part(index, **call):
    function = {key: call[key] for key in ("name", "arguments") if key in call}
    row = {"index": index, "function": function}
    if "id" in call:
        row |= {"id": call["id"], "type": "function"}
    return chunk({"tool_calls": [row]})


CALLS = [
    part(0, id="a", name="search", arguments=""),
    part(0, arguments='{"city": '),
    part(1, id="b", name="book", arguments="{}"),
    part(0, arguments='"Rome"}'),
    chunk(finish="tool_calls"),
    chunk(usage=USAGE),
    "data: [DONE]\n\n",
]


class Server:
    """Plays back one script for every request and keeps what was asked; `refusals` come first, one for each."""

    def __init__(self):
        self.script: list[str] | tuple[int, dict] = []
        self.refusals: list[tuple[int, dict]] = []
        self.asked: list[dict] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"  # so that a connection can be used again

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                about = {"path": self.path, "key": self.headers["authorization"], "from": self.client_address}
                outer.asked.append({**about, "mine": self.headers["x-mine"], **body})
                script = outer.refusals.pop(0) if outer.refusals else outer.script
                status, reply = script if isinstance(script, tuple) else (200, None)
                self.send_response(status)
                self.send_header("content-type", "application/json" if reply else "text/event-stream")
                self.send_header("transfer-encoding", "chunked")
                if status != 200:
                    self.send_header("retry-after", "0.0125")
                self.end_headers()
                for piece in [*([json.dumps(reply)] if reply else script), ""]:
                    self.wfile.write(f"{len(piece.encode()):x}\r\n{piece}\r\n".encode())
                    self.wfile.flush()

            def log_message(self, *_):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}/v1"
        self.thread = threading.Thread(target=self.http.serve_forever)
        self.thread.start()


@pytest.fixture(scope="module")
def running():
    server = Server()
    yield server
    server.http.shutdown()
    server.thread.join()
    server.http.server_close()


@pytest.fixture
def server(running):
    running.asked.clear()
    running.refusals.clear()
    return running


@pytest.fixture(params=["reply", "areply"])
def ask(request, server):
    """Asks the model in one color or the other; what comes back is the same."""

    models = []

    def send(asked: Request, **options):
        model = OpenAIModel("m", base_url=server.url, api_key="k", **options)
        models.append(model)
        assert isinstance(model, Model)
        if request.param == "reply":
            return model.reply(asked)
        return asyncio.run(model.areply(asked))

    yield send
    for model in models:
        if "_client" in vars(model):  # the traceback of an expected error holds it in a cycle, and its sockets with it
            model._client.close()


HELLO = Request([Message("system", "Be kind."), Message("user", "Hi")])


def test_a_text_comes_in_pieces_and_whole(server, ask):
    """Tokens are heard as they come; the reply has all of them, and what they cost."""
    server.script = TALK
    heard = []
    reply = ask(Request(HELLO.messages, on_token=heard.append), price=Price(input=1.0, output=2.0))
    assert heard == ["Hel", "lo"]
    assert reply.message == Message("assistant", "Hello")
    assert reply.usage == Usage(7, 3, 13 / 1_000_000)
    assert server.asked[0]["path"] == "/v1/chat/completions"
    assert server.asked[0]["key"] == "Bearer k"
    assert server.asked[0]["messages"] == [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hi"}]
    assert "tools" not in server.asked[0]


def test_tool_calls_are_put_together_from_their_pieces(server, ask):
    """Two calls whose pieces come interleaved."""
    server.script = CALLS

    @tool
    def search(city: str) -> str:
        """Search."""
        return city

    talk = [
        Message("user", "go"),
        Message("assistant", "", (ToolCall("x", "search", "{}"),)),
        Message("tool", "none", call_id="x"),
    ]
    reply = ask(Request(talk, tools=[search]), options={"temperature": 0})
    assert reply.message.calls == (ToolCall("a", "search", '{"city": "Rome"}'), ToolCall("b", "book", "{}"))
    asked = server.asked[0]
    assert asked["temperature"] == 0
    assert asked["tools"][0]["function"]["name"] == "search"
    assert asked["messages"][1]["tool_calls"][0]["function"] == {"name": "search", "arguments": "{}"}
    assert asked["messages"][2] == {"role": "tool", "content": "none", "tool_call_id": "x"}


@pytest.mark.parametrize(
    ("script", "status", "says"),
    [
        pytest.param(TALK[:3], None, "interrupted after 5 characters", id="stream just ends"),
        pytest.param(
            [TALK[0], 'data: {"error": {"message": "overloaded"}}\n\n'], None, "overloaded", id="error in the stream"
        ),
        pytest.param([TALK[0], chunk(finish="length"), "data: [DONE]\n\n"], None, "length limit", id="too long"),
        pytest.param((401, {"error": {"message": "bad key"}}), 401, "Check the API key", id="401"),
        pytest.param((404, {"error": {"message": "no such model"}}), 404, "Check the model's name", id="404"),
    ],
)
def test_no_answer_is_never_half_an_answer(server, ask, script, status, says):
    """Every way to fail is a `ModelError` that says what to do, after exactly one request."""
    server.script = script
    with pytest.raises(ModelError, match=says) as caught:
        ask(HELLO)
    assert caught.value.status == status
    assert len(server.asked) == 1


BUSY = (429, {"error": {"message": "slow down"}})
DOWN = (503, {"error": {"message": "down"}})


def test_a_busy_provider_is_asked_again(server, ask, caplog):
    """After as long as it says itself."""
    caplog.set_level("INFO", "openai")
    server.script, server.refusals = TALK, [BUSY, DOWN]
    assert ask(HELLO).message.text == "Hello"
    assert len(server.asked) == 3
    assert [record.getMessage().count("in 0.012500 seconds") for record in caplog.records if "Retrying" in record.msg]


@pytest.mark.parametrize(
    ("script", "says"),
    [pytest.param(BUSY, "try again later", id="429"), pytest.param(DOWN, "A retry may work", id="503")],
)
@pytest.mark.parametrize("retries", [0, 1])
def test_patience_has_an_end(server, ask, script, says, retries):
    """As many times as it may, and then it is said with the status."""
    server.script = script
    with pytest.raises(ModelError, match=says) as caught:
        ask(HELLO, retries=retries)
    assert caught.value.status == script[0]
    assert len(server.asked) == 1 + retries


def test_one_async_client_serves_a_loop(server):
    """Its connections too; another loop has one of its own, and nothing is left open when a loop ends."""
    server.script = TALK
    model = OpenAIModel("m", base_url=server.url, api_key="k")

    async def twice():
        await model.areply(HELLO)
        await asyncio.gather(model.areply(HELLO), model.areply(HELLO))

    asyncio.run(twice())
    first = {asked["from"] for asked in server.asked}
    assert len(server.asked) == 3
    assert server.asked[0]["from"] in {asked["from"] for asked in server.asked[1:]}
    asyncio.run(model.areply(HELLO))
    assert server.asked[3]["from"] not in first
    assert model._loop_clients._open == {}
    gc.collect()  # an open connection would be told of here


def clients(server, **more):
    return {"base_url": server.url, "api_key": "mine", "default_headers": {"x-mine": "yes"}, **more}


@pytest.mark.parametrize("entry", ["reply", "areply"])
@pytest.mark.parametrize("color", ["client", "async_client"])
def test_a_ready_client_is_used(server, entry, color):
    """In both colors, whichever of the two it has."""
    server.script = TALK

    async def main():
        async with openai.AsyncOpenAI(**clients(server)) as client:
            model = OpenAIModel("m", async_client=client)
            return model.reply(HELLO) if entry == "reply" else await model.areply(HELLO)

    if color == "async_client":
        reply = asyncio.run(main())
    else:
        with openai.OpenAI(**clients(server)) as client:
            model = OpenAIModel("m", client=client)
            reply = model.reply(HELLO) if entry == "reply" else asyncio.run(model.areply(HELLO))
    assert reply.message.text == "Hello"
    assert (server.asked[0]["key"], server.asked[0]["mine"]) == ("Bearer mine", "yes")


def test_azure(server):
    """As its own client asks for it."""
    server.script = TALK
    endpoint = server.url.removesuffix("/v1")
    with openai.AzureOpenAI(azure_endpoint=endpoint, api_key="k", api_version="2024-10-21") as client:
        assert OpenAIModel("m", client=client).reply(HELLO).message.text == "Hello"
    assert server.asked[0]["path"] == "/openai/deployments/m/chat/completions?api-version=2024-10-21"


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        pytest.param(
            {"base_url": "http://x", "retries": 3}, "`base_url`, `retries` beside it", id="settings beside it"
        ),
        pytest.param({"timeout": 3}, "`timeout` beside it", id="a timeout beside it"),
    ],
)
def test_settings_that_nobody_would_look_at_are_refused(settings, says):
    """A ready client has its own."""
    with openai.OpenAI(api_key="k") as client, pytest.raises(MisuseError, match=says):
        OpenAIModel("m", client=client, **settings)


def test_a_client_of_the_other_color_is_refused():
    """With the name of the right parameter."""
    with openai.OpenAI(api_key="k") as client, pytest.raises(MisuseError, match=r"Pass it as `client=`"):
        OpenAIModel("m", async_client=client)
    with pytest.raises(MisuseError, match=r"Pass it as `async_client=`"):
        OpenAIModel("m", client=openai.AsyncOpenAI(api_key="k"))


def test_nobody_there():
    """A refused connection is an error of the world, and is said as one."""
    with pytest.raises(ModelError, match="did not answer"):
        OpenAIModel("m", base_url="http://127.0.0.1:9/v1", api_key="k", retries=0).reply(HELLO)


def test_without_a_key(monkeypatch):
    """The message names both ways to give one, and the way that needs none."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(MisuseError, match=r"OPENAI_API_KEY(.|\n)*ScriptedModel"):
        OpenAIModel("m")


def test_messages_survive_the_event_log():
    """To JSON and back."""
    message = Message("assistant", "x", (ToolCall("a", "t", "{}"),))
    assert Message.from_json(json.loads(json.dumps(message.to_json()))) == message
    assert Message.from_json(Message("tool", "y", call_id="a").to_json()) == Message("tool", "y", call_id="a")
