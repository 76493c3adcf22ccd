"""Responses, asked for by OpenAI's own client: in the foreground, in the background, and followed from any number on."""

import asyncio
import json
import subprocess

import openai
import pytest
from tests.server.service import TROTH, frames, wait_until
from tests.server.webhooks.receiver import Receiver, until

from troth.runtime.store import SqliteStore

from .conftest import client_of


def begun(served, name):
    """Wait until the agent has begun with the message `name`; how often it has."""
    wait_until((served.folder / f"{name}.begun").exists)
    return len((served.folder / f"{name}.begun").read_text().splitlines())


def ended(client, response_id):
    """The response, once it is over."""

    def look():
        response = client.responses.retrieve(response_id)
        return response if response.status not in ("queued", "in_progress") else None

    return wait_until(look)


def test_a_response(client):
    """It says what the agent says, and can be asked for again."""
    response = client.responses.create(model="parrot", input="hello you", metadata={"a": "b"}, temperature=0.5)
    assert response.output_text == "hello you"
    assert response.status == "completed"
    assert response.error is None
    assert not response.background
    assert response.metadata == {"a": "b"}
    assert client.responses.retrieve(response.id) == response


def test_two_things_said_are_two_items(client):
    """In their order."""
    response = client.responses.create(model="twice", input="x")
    assert [item.content[0].text for item in response.output] == ["one", "two"]
    assert {item.status for item in response.output} == {"completed"}


def test_messages_and_instructions(client):
    """The input can be messages; instructions are said first."""
    response = client.responses.create(
        model="recaller",
        instructions="be brief",
        input=[
            {"role": "user", "content": "one"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "two"}]},
            {"role": "user", "content": [{"type": "input_text", "text": "three"}]},
        ],
    )
    assert response.output_text == "system: be brief | user: one | assistant: two | user: three"
    assert response.instructions == "be brief"


def test_a_talk_goes_on_and_branches(client):
    """From its last response in the same conversation; from an older one in a copy of what was said up to it."""
    first = client.responses.create(model="parrot", input="a")
    second = client.responses.create(model="parrot", input="b", previous_response_id=first.id)
    third = client.responses.create(model="recaller", input="c", previous_response_id=second.id)
    assert third.output_text == "user: a | assistant: a | user: b | assistant: b | user: c"
    assert third.conversation == second.conversation == first.conversation
    branch = client.responses.create(model="recaller", input="d", previous_response_id=first.id)
    assert branch.output_text == "user: a | assistant: a | user: d"
    assert branch.conversation != first.conversation
    assert branch.previous_response_id == first.id


def test_a_conversation_goes_on(shared, client):
    """One that was opened by another route, and the other way round."""
    with shared.client() as plain:
        talk = plain.post("/conversations", json={"agent": "recaller"}).json()["id"]
        said = client.responses.create(model="recaller", input="x", conversation=talk)
        assert said.output_text == "user: x"
        assert client.responses.create(model="parrot", input="y", conversation={"id": talk}).output_text == "y"
        messages = plain.get(f"/conversations/{talk}").json()["messages"]
        other = client.responses.create(model="parrot", input="z")
        assert plain.get(f"/conversations/{other.conversation.id}").json()["messages"][-1]["text"] == "z"
    assert [message["text"] for message in messages] == ["x", "user: x", "y", "y"]


def test_one_answer_at_a_time(shared, client):
    """What would be mixed with another answer is refused, and not tried again by the client."""
    running = client.responses.create(model="waiter", input="busy", background=True)
    begun(shared, "busy")
    with client_of(shared, max_retries=2) as trying:
        with pytest.raises(openai.ConflictError) as refused:
            trying.responses.create(model="parrot", input="x", conversation=running.conversation.id)
        assert refused.value.code == "conversation_locked"
        with pytest.raises(openai.ConflictError) as refused:
            trying.responses.create(model="parrot", input="x", previous_response_id=running.id)
        assert refused.value.code == "response_not_over"
    (shared.folder / "busy").touch()
    assert ended(client, running.id).output_text == "waiting is over"


def test_a_stream_tells_the_response(client):
    """Its events are counted without gaps, its pieces make up the text, and its end has the whole."""
    events = list(client.responses.create(model="parrot", input="hello you", stream=True))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert [event.type for event in events[:2]] == ["response.created", "response.in_progress"]
    pieces = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert "".join(pieces).strip() == "hello you"
    assert events[-1].type == "response.completed"
    assert events[-1].response.output_text == "hello you"
    assert client.responses.retrieve(events[0].response.id) == events[-1].response


def test_the_clients_own_stream_helper_understands_it(client):
    """It puts the pieces together by itself, and would raise at an event out of order."""
    with client.responses.stream(model="twice", input="x") as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_response()
    assert kinds.count("response.output_text.done") == 2
    assert [item.content[0].text for item in final.output] == ["one", "two"]


def test_background(shared, client):
    """It is answered at once, goes on by itself, and is followed by anybody from any number on."""
    response = client.responses.create(model="waiter", input="back", background=True)
    assert response.status in ("queued", "in_progress")
    assert response.background
    begun(shared, "back")
    assert client.responses.retrieve(response.id).status == "in_progress"
    early = client.responses.retrieve(response.id, stream=True)
    first = [next(early) for _ in range(5)]  # as far as `waiting`
    (shared.folder / "back").touch()
    events = [*first, *early]
    assert events[-1].type == "response.completed"
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert ended(client, response.id).output_text == "waiting is over"
    for after in (0, 3, len(events) - 2):
        rest = list(client.responses.retrieve(response.id, stream=True, starting_after=after))
        assert rest == events[after + 1 :], "a late reader sees something else"
    assert list(client.responses.retrieve(response.id, stream=True, starting_after=len(events) - 1)) == []


def test_a_browser_goes_on_by_itself(shared, client):
    """Each frame has its number as `id`, and `Last-Event-ID` is understood."""
    response = client.responses.create(model="parrot", input="x y")
    with shared.client() as plain:
        path = f"/responses/{response.id}?stream=true"
        whole = frames(plain.get(path).text)
        rest = frames(plain.get(path, headers={"Last-Event-ID": "2"}).text)
    assert [number for number, _, _ in whole] == list(range(len(whole)))
    assert rest == whole[3:]


def test_a_response_whose_log_was_trimmed_is_gone(start):
    """410, and not 404: it was there."""
    served = start()
    with client_of(served) as client:
        response = client.responses.create(model="parrot", input="x")
        with SqliteStore(start.folder / "shop.db") as store:
            store.trim(f"conversation/{response.conversation.id}", 1)
        with pytest.raises(openai.APIStatusError) as gone:
            client.responses.retrieve(response.id)
    assert gone.value.status_code == 410
    assert gone.value.code == "response_trimmed"


def test_what_one_owner_began_is_nobody_elses(start):
    """Responses and webhooks of another owner are answered as if they never were."""
    keys = {owner: make_key(start.folder, owner) for owner in ("ann", "bob")}
    served = start("agents:keyed")
    with client_of(served, keys["ann"]) as ann, client_of(served, keys["bob"]) as bob:
        mine = ann.responses.create(model="parrot", input="mine")
        assert ann.responses.retrieve(mine.id).output_text == "mine"
        for ask in (
            lambda: bob.responses.retrieve(mine.id),
            lambda: bob.responses.cancel(mine.id),
            lambda: bob.responses.create(model="parrot", input="x", previous_response_id=mine.id),
            lambda: bob.responses.create(model="parrot", input="x", conversation=mine.conversation.id),
        ):
            with pytest.raises(openai.NotFoundError):
                ask()
    with client_of(served, "wrong") as nobody, pytest.raises(openai.AuthenticationError) as refused:
        nobody.models.list()
    assert refused.value.code == "invalid_key"
    with served.client(keys["ann"]) as ann, served.client(keys["bob"]) as bob:
        body = {"url": "https://93.184.216.34/hook"}
        made = ann.post("/webhooks", json=body).json()
        assert bob.get(f"/webhooks/{made['id']}").status_code == 404
        assert bob.delete(f"/webhooks/{made['id']}").status_code == 404
        assert bob.get("/webhooks").json() == {"data": []}
        assert bob.post("/webhooks", json=body).status_code == 201


def make_key(folder, owner):
    done = subprocess.run(
        [TROTH, "keys", "create", owner, "--scopes", "read,run,act", "--store", "shop.db", "--json"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return json.loads(done.stdout)["key"]


def test_a_background_stream_survives_its_reader(shared, client):
    """Created as a stream, left at the first event, and gone on with from there."""
    stream = client.responses.create(model="waiter", input="leaves", background=True, stream=True)
    created = next(stream)
    stream.close()
    (shared.folder / "leaves").touch()
    response = ended(client, created.response.id)
    assert response.status == "completed"
    rest = list(client.responses.retrieve(response.id, stream=True, starting_after=created.sequence_number))
    assert rest[-1].response.output_text == "waiting is over"


def test_cancel_can_be_repeated(shared, client):
    """The response stays cancelled, whatever comes after; its stream ends and says so."""
    response = client.responses.create(model="waiter", input="cancelled", background=True)
    begun(shared, "cancelled")
    stream = client.responses.retrieve(response.id, stream=True)
    next(stream)
    cancelled = client.responses.cancel(response.id)
    assert cancelled.status == "cancelled"
    assert list(stream)[-1].response.status == "cancelled"
    (shared.folder / "cancelled").touch()
    assert client.responses.cancel(response.id) == cancelled
    assert client.responses.retrieve(response.id) == cancelled
    done = ended(client, client.responses.create(model="parrot", input="x", background=True).id)
    assert client.responses.cancel(done.id) == done
    follow_up = client.responses.create(model="parrot", input="on", previous_response_id=response.id)
    assert follow_up.output_text == "on"


def test_cancelled_at_another_server(start):
    """Two servers on one store: whoever follows the response at the one that answers it learns of its end."""
    first, second = start(), start()
    with client_of(first) as here, client_of(second) as there:
        stream = here.responses.create(model="waiter", input="never", background=True, stream=True)
        created = next(stream)
        assert there.responses.cancel(created.response.id).status == "cancelled"
        assert list(stream)[-1].response.status == "cancelled"


def test_only_background_can_be_cancelled(client):
    """As OpenAI has it; another verb stops a conversation."""
    response = client.responses.create(model="parrot", input="x")
    with pytest.raises(openai.BadRequestError) as refused:
        client.responses.cancel(response.id)
    assert refused.value.code == "not_in_background"


def test_an_agent_that_fails(shared, client):
    """In the background the response says so, and its stream ends with it; in the foreground alike."""
    response = client.responses.create(model="broken", input="x", background=True)
    failed = ended(client, response.id)
    assert failed.status == "failed"
    assert failed.error.code == "server_error"
    assert "secret" not in failed.model_dump_json()
    assert list(client.responses.retrieve(response.id, stream=True))[-1].type == "response.failed"
    assert client.responses.create(model="broken", input="x").status == "failed"


REFUSED = [
    ({"tools": [{"type": "web_search"}]}, "unsupported_parameter", "tools"),
    ({"max_output_tokens": 9}, "unsupported_parameter", "max_output_tokens"),
    ({"store": False}, "unsupported_parameter", "store"),
    ({"store": False, "background": True}, "unsupported_parameter", "store"),
    ({"text": {"format": {"type": "json_object"}}}, "unsupported_parameter", "text"),
    ({"truncation": "auto"}, "unsupported_parameter", "truncation"),
    ({"include": ["file_search_call.results"]}, "unsupported_parameter", "include"),
    ({"callback_url": "https://example.com"}, "unknown_field", "callback_url"),
    (
        {"input": [{"type": "function_call_output", "call_id": "x", "output": "y"}]},
        "unsupported_parameter",
        "input[0].type",
    ),
    ({"input": [{"role": {}, "content": "x"}]}, "unsupported_parameter", "input[0].role"),
    (
        {"input": [{"role": "user", "content": [{"type": "input_image"}]}]},
        "unsupported_parameter",
        "input[0].content[0]",
    ),
    ({"previous_response_id": "resp_x", "conversation": "conv_x"}, "invalid_field", "previous_response_id"),
    ({"instructions": "x", "previous_response_id": "resp_x"}, "unsupported_parameter", "instructions"),
    ({"input": 5}, "invalid_field", "input"),
    ({"input": ["x"]}, "invalid_field", "input.0"),
    ({"conversation": {"id": 5}}, "invalid_field", "conversation.id"),
    ({"conversation": {"id": "x", "more": 1}}, "unknown_field", "conversation.more"),
]


@pytest.mark.parametrize(
    ("more", "code", "param"), REFUSED, ids=[f"{n} {next(iter(row[0]))}" for n, row in enumerate(REFUSED)]
)
def test_what_cannot_be_kept_is_refused(client, more, code, param):
    """With 400, in OpenAI's shape, and before any agent begins."""
    with pytest.raises(openai.BadRequestError) as refused:
        client.post("/responses", body={"model": "parrot", "input": "x", **more}, cast_to=object)
    assert refused.value.code == code
    assert refused.value.param == param


@pytest.mark.parametrize(
    "ask",
    [
        pytest.param(lambda client: client.responses.retrieve("resp_none"), id="retrieve"),
        pytest.param(lambda client: client.responses.retrieve("resp_none", stream=True), id="stream"),
        pytest.param(lambda client: client.responses.cancel("resp_none"), id="cancel"),
        pytest.param(
            lambda client: client.responses.create(model="parrot", input="x", previous_response_id="resp_none"),
            id="go on",
        ),
        pytest.param(
            lambda client: client.responses.create(model="parrot", input="x", conversation="conv_none"),
            id="conversation",
        ),
        pytest.param(lambda client: client.responses.create(model="nobody", input="x"), id="model"),
    ],
)
def test_what_is_not_there_is_404(client, ask):
    """Told as OpenAI tells it."""
    with pytest.raises(openai.NotFoundError):
        ask(client)


@pytest.mark.parametrize("name", ["starting_after", "Last-Event-ID"])
def test_a_number_that_was_never_told_is_refused(shared, client, name):
    """Nobody is left waiting for what follows an event that there is not, nor is anything kept from him."""
    response = client.responses.create(model="parrot", input="a b")
    count = len(list(client.responses.retrieve(response.id, stream=True)))
    in_query, header = ({"starting_after": count}, {}) if name == "starting_after" else ({}, {name: str(count)})
    with shared.client() as plain:
        answer = plain.get(f"/responses/{response.id}", params={"stream": True, **in_query}, headers=header)
    assert (answer.status_code, answer.json()["error"]["code"], answer.json()["error"]["param"]) == (
        400,
        "invalid_cursor",
        name,
    )


def test_both_colors(shared):
    """The async client is answered alike, and many readers of one response each see all of it."""

    async def main():
        async with openai.AsyncOpenAI(
            api_key="unused", base_url=f"{shared.url}/v1", timeout=60, max_retries=0
        ) as client:
            response = await client.responses.create(model="waiter", input="many", background=True)

            async def read():
                return [event async for event in await client.responses.retrieve(response.id, stream=True)]

            readers = [asyncio.create_task(read()) for _ in range(5)]
            (shared.folder / "many").touch()
            return await asyncio.gather(*readers)

    seen = asyncio.run(main())
    assert seen[0][-1].type == "response.completed"
    assert all(events == seen[0] for events in seen)


def test_it_is_the_same_after_a_crash(start):
    """SIGKILL in the middle: the next server goes on, under the same id, and a reader goes on from its number."""
    served = start()
    with client_of(served) as client:
        response = client.responses.create(model="waiter", input="crash", background=True)
        stream = client.responses.retrieve(response.id, stream=True)
        seen = [next(stream) for _ in range(5)]
        assert seen[-1].delta == "waiting"
        served.kill()
    (start.folder / "crash").touch()
    again = start()
    with client_of(again) as client:
        done = ended(client, response.id)
        rest = list(client.responses.retrieve(response.id, stream=True, starting_after=4))
    assert done.status == "completed"
    assert done.output_text == "waiting is over"  # what was heard before the crash is said again, and counts once
    assert [item.status for item in done.output] == ["completed"]
    assert rest[0].sequence_number == 5
    cut = next(event for event in rest if event.type == "response.output_item.done")
    assert (cut.output_index, cut.item.status) == (0, "incomplete")
    assert rest[-1].response == done
    assert begun(again, "crash") == 2, "it was not gone on with"


def test_a_webhook_tells_of_a_background_response(start):
    """Registered over HTTP, verified and read by OpenAI's own client; nothing is told of the foreground."""
    receiver = Receiver()
    try:
        served = start()
        with served.client() as plain, client_of(served) as client:
            made = plain.post("/webhooks", json={"url": receiver.url})
            assert made.status_code == 201
            secret = made.json()["secret"]
            assert "secret" not in plain.get(made.headers["Location"].removeprefix("/v1")).json()
            client.responses.create(model="parrot", input="foreground")
            response = client.responses.create(model="parrot", input="background", background=True)
            until(lambda: receiver.seen)
            headers, body, _ = receiver.seen[0]
            event = client.webhooks.unwrap(body, headers, secret=secret)
            assert event.type == "response.completed"
            assert event.data.id == response.id
            assert plain.get(f"/webhooks/{made.json()['id']}/failures").json() == {"data": []}
            assert plain.delete(f"/webhooks/{made.json()['id']}").status_code == 204
            client.responses.create(model="parrot", input="untold", background=True)
        assert len(receiver.seen) == 1
    finally:
        receiver.close()


def test_a_trace_goes_through(start):
    """The request's span joins the client's trace, and the turn lies below it."""
    pytest.importorskip("opentelemetry.sdk")
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    served = start("agents:traced")
    with client_of(served) as client:
        client.responses.create(
            model="parrot", input="x", extra_headers={"traceparent": f"00-{trace}-00f067aa0ba902b7-01"}
        )

    def spans():
        lines = (start.folder / "spans.json").read_text().splitlines()
        found = [span for span in map(json.loads, lines) if span["context"]["trace_id"] == f"0x{trace}"]
        return found if {"troth.request", "troth.turn"} <= {span["name"] for span in found} else None

    found = {span["context"]["span_id"]: span for span in wait_until(spans)}
    request, turn = (
        next(one for one in found.values() if one["name"] == f"troth.{name}") for name in ("request", "turn")
    )
    names = {json.loads(line)["name"] for line in (start.folder / "spans.json").read_text().splitlines()}
    assert {name.partition(".")[0] for name in names} == {"troth"}, "FastAPI's own would tell addresses, and all twice"
    assert request["parent_id"] == "0x00f067aa0ba902b7"
    assert request["attributes"]["http.route"] == "/v1/responses"
    assert request["attributes"]["http.response.status_code"] == 200
    above = turn["parent_id"]  # FastAPI may have spans of its own in between
    while above in found and above != request["context"]["span_id"]:
        above = found[above]["parent_id"]
    assert above == request["context"]["span_id"]


def test_the_numbers(shared, client):
    """Prometheus reads them from the route `metrics`."""
    parser = pytest.importorskip("prometheus_client.parser")
    client.responses.create(model="parrot", input="counted")
    with shared.client() as plain:
        answer = plain.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    families = {family.name: family for family in parser.text_string_to_metric_families(answer.text)}
    assert families["troth_turns"].samples[-1].value >= 1
