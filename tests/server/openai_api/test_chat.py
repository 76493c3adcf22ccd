"""Chat completions, asked for by OpenAI's own client."""

import asyncio
import contextlib
import threading

import httpx
import openai
import pytest
from tests.server.service import wait_until

from .conftest import client_of


@contextlib.contextmanager
def asking(client, asked):
    """Ask in a thread of its own, as long as the block runs. The server may die meanwhile."""

    def ask():
        with contextlib.suppress(openai.APIError, httpx.TransportError):
            list(client.chat.completions.create(**asked))

    thread = threading.Thread(target=ask)
    thread.start()
    yield
    thread.join()


def log_of_the_talk(served):
    """All that was written in the only conversation of a server."""
    with served.client() as plain:
        talks = plain.get("/conversations").json()["data"]
        return "".join(plain.get(f"/conversations/{talk['id']}/events?follow=false").text for talk in talks)


def say(text, role="user"):
    return [{"role": role, "content": text}]


def test_models(client):
    """Every agent is a model; one that is not there is told as OpenAI tells it."""
    assert [model.id for model in client.models.list()] == [
        "parrot",
        "recaller",
        "waiter",
        "twice",
        "broken",
        "knowing",
    ]
    assert client.models.retrieve("parrot").object == "model"
    with pytest.raises(openai.NotFoundError) as missing:
        client.models.retrieve("nobody")
    assert missing.value.code == "model_not_found"


def test_an_answer(client):
    """The client gets what the agent says."""
    answer = client.chat.completions.create(model="parrot", messages=say("hello you"))
    assert answer.choices[0].message.content == "hello you"
    assert answer.choices[0].finish_reason == "stop"
    assert answer.object == "chat.completion"
    assert answer.model == "parrot"
    assert answer.id.startswith("chatcmpl_")


def test_the_agent_is_told_the_whole_talk(client):
    """In its order, with the roles that there are here; parts of text are one text."""
    answer = client.chat.completions.create(
        model="recaller",
        messages=[
            {"role": "assistant", "content": "welcome"},
            {"role": "developer", "content": "be brief"},
            {"role": "user", "content": [{"type": "text", "text": "one "}, {"type": "text", "text": "two"}]},
        ],
    )
    assert answer.choices[0].message.content == "assistant: welcome | system: be brief | user: one two"


def test_tools_of_the_agent_stay_its_own(client):
    """What it did in between is not told, what it used is."""
    answer = client.chat.completions.create(model="knowing", messages=say("how is it?"))
    assert answer.choices[0].message.content == "It is sunny."
    assert answer.usage.prompt_tokens == 20
    assert answer.usage.total_tokens == 30


@pytest.mark.parametrize("model", ["parrot", "twice", "recaller", "knowing"])
def test_a_stream_tells_the_same(client, model):
    """Its pieces make up the answer that there is without it, and the usage comes last if it is asked for."""
    whole = client.chat.completions.create(model=model, messages=say("a b c"))
    chunks = list(
        client.chat.completions.create(
            model=model, messages=say("a b c"), stream=True, stream_options={"include_usage": True}
        )
    )
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text.rstrip() == whole.choices[0].message.content
    assert chunks[0].choices[0].delta.role == "assistant"
    assert chunks[-2].choices[0].finish_reason == "stop"
    assert chunks[-1].usage == whole.usage
    assert len({chunk.id for chunk in chunks}) == 1


def test_a_stream_ends_with_done(shared):
    """As every client of this protocol expects."""
    body = {"model": "parrot", "messages": say("x"), "stream": True}
    with shared.client() as plain:
        answer = plain.post("/chat/completions", json=body)
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.text.endswith("data: [DONE]\n\n")
    assert "event:" not in answer.text


def test_both_colors(shared):
    """The async client is answered alike, many at once."""

    async def main():
        async with openai.AsyncOpenAI(api_key="unused", base_url=f"{shared.url}/v1", timeout=60) as client:
            answers = await asyncio.gather(
                *(client.chat.completions.create(model="parrot", messages=say(f"n{n}")) for n in range(10))
            )
            stream = await client.chat.completions.create(model="parrot", messages=say("x y"), stream=True)
            pieces = [chunk.choices[0].delta.content or "" async for chunk in stream]
            return [answer.choices[0].message.content for answer in answers], "".join(pieces)

    texts, streamed = asyncio.run(main())
    assert texts == [f"n{n}" for n in range(10)]
    assert streamed.strip() == "x y"


REFUSED = [
    ({"tools": [{"type": "function", "function": {"name": "f"}}]}, "unsupported_parameter", "tools"),
    ({"n": 2}, "unsupported_parameter", "n"),
    ({"n": True}, "unsupported_parameter", "n"),
    ({"max_tokens": 5}, "unsupported_parameter", "max_tokens"),
    ({"max_completion_tokens": 5}, "unsupported_parameter", "max_completion_tokens"),
    ({"stop": ["x"]}, "unsupported_parameter", "stop"),
    ({"response_format": {"type": "json_object"}}, "unsupported_parameter", "response_format"),
    ({"logprobs": True}, "unsupported_parameter", "logprobs"),
    ({"store": True}, "unsupported_parameter", "store"),
    ({"background": True}, "unknown_field", "background"),
    ({"callback_url": "https://example.com"}, "unknown_field", "callback_url"),
    ({"webhook": "x"}, "unknown_field", "webhook"),
    ({"messages": []}, "invalid_field", "messages"),
    ({"messages": [{"role": "assistant", "content": "x"}]}, "invalid_field", "messages"),
    (
        {"messages": [{"role": "tool", "content": "x", "tool_call_id": "y"}]},
        "unsupported_parameter",
        "messages[0].role",
    ),
    ({"messages": [{"role": ["user"], "content": "x"}]}, "unsupported_parameter", "messages[0].role"),
    ({"messages": [{"role": "user", "content": "x", "name": "ann"}]}, "unsupported_parameter", "messages[0].name"),
    (
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]},
        "unsupported_parameter",
        "messages[0].content[0]",
    ),
    ({"messages": [{"role": "user", "content": 7}]}, "invalid_field", "messages[0].content"),
    ({"messages": "x"}, "invalid_field", "messages"),
    ({"stream_options": {"include_usage": True}}, "invalid_field", "stream_options"),
]


@pytest.mark.parametrize(
    ("more", "code", "param"), REFUSED, ids=[next(iter(more)) + str(n) for n, (more, _, _) in enumerate(REFUSED)]
)
def test_what_cannot_be_kept_is_refused(client, more, code, param):
    """With 400, in OpenAI's shape, and before any agent begins."""
    body = {"model": "broken", "messages": say("x"), **more}
    with pytest.raises(openai.BadRequestError) as refused:
        client.post("/chat/completions", body=body, cast_to=object)
    assert refused.value.code == code
    assert refused.value.param == param
    assert refused.value.request_id


def test_hints_are_let_through(client):
    """What only advises a model, or asks for what there is anyway."""
    answer = client.chat.completions.create(
        model="parrot",
        messages=say("x"),
        temperature=0.2,
        top_p=1,
        seed=7,
        user="ann",
        n=1,
        tools=[],
        tool_choice="auto",
        response_format={"type": "text"},
        reasoning_effort="low",
        service_tier="auto",
        presence_penalty=0,
        stop=None,
        max_tokens=None,
        store=False,
    )
    assert answer.choices[0].message.content == "x"


def test_an_unknown_agent(client):
    """Is told with the names that there are."""
    with pytest.raises(openai.NotFoundError) as missing:
        client.chat.completions.create(model="nobody", messages=say("x"))
    assert missing.value.code == "model_not_found"
    assert "parrot" in missing.value.body["advice"]


def test_an_agent_that_fails(shared):
    """Is told once, without what it said; the client's retries do not run it again."""
    begun = shared.folder / "broken.begun"
    before = len(begun.read_text().splitlines()) if begun.exists() else 0
    with client_of(shared, max_retries=2) as client, pytest.raises(openai.InternalServerError) as failed:
        client.chat.completions.create(model="broken", messages=say("fails"))
    assert failed.value.code == "agent_failed"
    assert "secret" not in str(failed.value.body)
    assert len(begun.read_text().splitlines()) == before + 1
    assert "a secret" not in shared.stderr(), "what agents say is not logged"


def test_a_stream_that_breaks_raises(shared, client):
    """Its client takes a stream that just ends for a whole one, so an error is sent."""
    with client.chat.completions.create(model="waiter", messages=say("chat-fail"), stream=True) as stream:
        chunks = iter(stream)
        assert next(chunks).choices[0].delta.role == "assistant"
        assert next(chunks).choices[0].delta.content == "waiting"
        (shared.folder / "chat-fail").touch()
        with pytest.raises(openai.APIError) as broken:
            list(chunks)
    assert "ValueError" in broken.value.message
    assert "secret" not in str(broken.value.body)


def test_a_retry_of_the_client_is_joined(shared):
    """It gives up waiting and asks again, without any key. The agent begins once, and its answer goes to the retry."""
    requests = []

    def count(request):
        requests.append(request.headers.get("x-stainless-retry-count"))
        if len(requests) == 2:
            (shared.folder / "joined").touch()

    hooks = {"request": [count]}
    http_client = openai.DefaultHttpxClient(event_hooks=hooks, trust_env=False)
    with client_of(shared, max_retries=5, timeout=5.0, http_client=http_client) as client:
        answer = client.chat.completions.create(model="waiter", messages=say("joined"))
    assert answer.choices[0].message.content == "waiting is over"
    assert requests[:2] == ["0", "1"]
    assert (shared.folder / "joined.begun").read_text().splitlines() == ["begun"]


def test_the_same_question_asked_twice_is_answered_twice(shared, client):
    """Only a repetition is joined: somebody who asks again wants to be answered again."""
    ids = {client.chat.completions.create(model="parrot", messages=say("again")).id for _ in range(2)}
    assert len(ids) == 2


def test_one_after_the_other_is_never_too_much(client):
    """Only what is at work counts against the limit of an owner, not what was answered a moment ago."""
    for number in range(40):
        assert client.chat.completions.create(model="parrot", messages=say(f"n{number}")).choices
    for number in range(10):
        assert list(client.chat.completions.create(model="parrot", messages=say(f"s{number}"), stream=True))


def test_the_talk_can_be_looked_at(shared):
    """A header names the conversation, which is its owner's as any other."""
    with shared.client() as plain:
        answer = plain.post("/chat/completions", json={"model": "parrot", "messages": say("look")})
        talk = plain.get(f"/conversations/{answer.headers['x-troth-conversation']}").json()
    assert [message["text"] for message in talk["messages"]] == ["look", "look"]


def test_an_idempotency_key_works_for_streams(shared):
    """The same key gives the same completion, from its start."""
    body = {"model": "parrot", "messages": say("k e y"), "stream": True}
    headers = {"Idempotency-Key": "stream-1"}
    with shared.client() as plain:
        first = plain.post("/chat/completions", json=body, headers=headers)
        second = plain.post("/chat/completions", json=body, headers=headers)
        other = plain.post("/chat/completions", json={**body, "stream": False}, headers=headers)
    assert first.text == second.text
    assert second.headers["Idempotent-Replayed"] == "true"
    assert other.status_code == 422


def test_leaving_is_not_cancelling(shared):
    """The agent goes on when the client is gone, and the same request is given its answer."""
    body = {"model": "waiter", "messages": say("left")}
    headers = {"Idempotency-Key": "left-1"}
    with shared.client() as plain:
        with pytest.raises(httpx.TimeoutException):
            plain.post("/chat/completions", json=body, headers=headers, timeout=1.0)
        wait_until((shared.folder / "left.begun").exists)
        (shared.folder / "left").touch()

        def answered():
            answer = plain.post("/chat/completions", json=body, headers=headers)
            return answer if answer.status_code != 409 else None

        answer = wait_until(answered)
    assert answer.json()["choices"][0]["message"]["content"] == "waiting is over"
    assert (shared.folder / "left.begun").read_text().splitlines() == ["begun"]


def test_a_server_that_ends_says_so_in_the_stream(start):
    """An error frame, and not an end that looks like one; the answer is there at the next start."""
    served = start()
    asked = {
        "model": "waiter",
        "messages": say("ending"),
        "stream": True,
        "extra_headers": {"Idempotency-Key": "ending-1"},
    }
    with client_of(served) as client:
        chunks = iter(client.chat.completions.create(**asked))
        next(chunks)
        next(chunks)
        served.process.terminate()
        with pytest.raises(openai.APIError) as broken:
            list(chunks)
        assert broken.value.code == "closing"
    (start.folder / "ending").touch()
    assert served.process.wait(60) == 0
    with client_of(start()) as client:
        chunks = list(client.chat.completions.create(**asked))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "waiting is over"
    assert chunks[-1].choices[0].finish_reason == "stop"


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_that_a_crash_cut_off_is_told_once(start, stream):
    """The agent says everything again, and whoever asks again with the same key is told it once."""
    served = start()
    headers = {"Idempotency-Key": "cut-1"}
    asked = {"model": "waiter", "messages": say("cut"), "extra_headers": headers, "stream": stream}
    with client_of(served) as client, asking(client, asked):
        wait_until(lambda: "event: tokens" in log_of_the_talk(served))
        served.kill()
    (start.folder / "cut").touch()
    with client_of(start(), max_retries=10) as client:
        answer = client.chat.completions.create(**asked)
        said = (
            "".join(c.choices[0].delta.content or "" for c in answer) if stream else answer.choices[0].message.content
        )
    assert said == "waiting is over"
    assert (start.folder / "cut.begun").read_text().splitlines() == ["begun"] * 2, "it was not gone on with"
