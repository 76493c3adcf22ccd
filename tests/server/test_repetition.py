"""Requests that are repeated: after an answer that was lost, while the first one is at work, after a crash."""

import asyncio
import concurrent.futures
import contextlib

import httpx
import pytest
from tests.server.service import frames, wait_until
from tests.server.test_conversations import finished, talk

from troth.runtime import Runtime
from troth.runtime.agents import Agent
from troth.runtime.store import SqliteStore
from troth.server import Server

KEY = {"Idempotency-Key": "a key of the client"}
RUN = {"workflow": "gated"}


class Parrot(Agent):
    async def astep(self, conversation):
        await conversation.asay("hello")


def lines(path):
    return path.read_text().splitlines() if path.exists() else []


def test_the_same_answer_again(client):
    """Same key and body: the same run, the same answer, and a header that says so. Another body is 422."""
    body = {"workflow": "greet", "inputs": {"who": "once"}}
    headers = {"Idempotency-Key": "again"}
    first, again = (client.post("/runs", json=body, headers=headers) for _ in range(2))
    assert (again.status_code, again.text, again.headers["Location"]) == (202, first.text, first.headers["Location"])
    assert again.headers["Idempotent-Replayed"] == "true"
    other = client.post("/runs", json={"workflow": "gated"}, headers=headers)
    assert (other.status_code, other.json()["error"]["code"]) == (422, "idempotency_key_reused")
    route = client.post("/conversations", json={"agent": "parrot"}, headers=headers)
    assert route.status_code == 422
    assert client.post("/runs", json=body, headers={"Idempotency-Key": ""}).status_code == 400


def test_a_refused_request_leaves_its_key_free(client):
    """What was wrong did nothing, so the corrected request may have the same key."""
    headers = {"Idempotency-Key": "corrected"}
    assert client.post("/runs", json={"workflow": "greet"}, headers=headers).status_code == 400
    body = {"workflow": "greet", "inputs": {"who": "me"}}
    assert client.post("/runs", json=body, headers=headers).status_code == 202


def test_two_keys_are_none(client):
    """Nobody can tell which one is meant."""
    keys = [("Idempotency-Key", "a"), ("Idempotency-Key", "b")]
    answer = client.post("/conversations", json={"agent": "parrot"}, headers=keys)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_idempotency_key")


def test_while_the_first_is_at_work(serve):
    """409 with `Retry-After`; the answer once it is there. A message is sent once."""
    server = serve("app:server")
    with server.client() as client, concurrent.futures.ThreadPoolExecutor() as pool:
        talk_id = talk(client, "patient")

        def send(**headers):
            body = {"text": "hello", "run": True}
            return client.post(f"/conversations/{talk_id}/messages", json=body, headers={**KEY, **headers})

        first = pool.submit(send, Prefer="wait=60")
        wait_until((server.folder / "steps.txt").exists)
        second = send(Prefer="wait=60")
        assert (second.status_code, second.headers["Retry-After"]) == (409, "1")
        (server.folder / "go").touch()
        assert first.result().status_code == 202
        assert send(Prefer="wait=60").text == first.result().text
        said = [one["text"] for one in finished(client, talk_id)["messages"]]
        assert said == ["hello", "done"]


def test_a_client_that_only_counts_is_joined(serve):
    """OpenAI's client repeats without a key: the repetition waits for the request that it repeats."""
    server = serve("app:server")
    with server.client() as client, concurrent.futures.ThreadPoolExecutor() as pool:

        def post(count):
            headers = {"x-stainless-retry-count": str(count), "Prefer": "wait=60"}
            return client.post("/runs", json=RUN, headers=headers)

        first = pool.submit(post, 0)
        wait_until((server.folder / "gates.txt").exists)
        again = pool.submit(post, 1)
        with contextlib.suppress(TimeoutError):
            again.result(0.5)
        assert not again.done()
        (server.folder / "go").touch()
        assert again.result().json()["id"] == first.result().json()["id"]
        assert post(2).json()["id"] == first.result().json()["id"]
        assert post(0).json()["id"] != first.result().json()["id"]  # a new request of the client's
        assert len(set(lines(server.folder / "gates.txt"))) == 2


@pytest.mark.parametrize(
    ("count", "patience", "age", "is_joined"),
    [
        pytest.param(1, "600", 700, True, id="as long as one attempt may take"),
        pytest.param(1, "600", 800, False, id="older than any attempt of this request"),
        pytest.param(2, "600", 1400, True, id="two attempts take twice as long"),
        pytest.param(1, "5", 130, False, id="a client that waits for five seconds"),
        pytest.param(1, "5", 120, True, id="and may be told to wait for two minutes"),
        pytest.param(1, "not given", 700, True, id="a wait that cannot be read is the usual one"),
        pytest.param(1, "-1", 700, True, id="nor can a negative one"),
        pytest.param(0, "600", 1, False, id="a first attempt repeats nothing"),
        pytest.param(0, "600", -5, False, id="also where a clock was set back"),
    ],
)
def test_what_came_long_ago_is_not_what_is_repeated(tmp_path, count, patience, age, is_joined):
    """Somebody asked the same an hour ago. The first attempt of this client was lost: its second one is a new request."""
    now = [1_000_000.0]
    store = SqliteStore(tmp_path / "x.db", clock=lambda: now[0])
    with store, Runtime(store, in_process=False) as runtime:
        server = Server(runtime, agents={"parrot": Parrot()}, keys=False, pages=False)

        async def ask(number):
            headers = {"x-stainless-retry-count": str(number), "x-stainless-read-timeout": patience}
            transport = httpx.ASGITransport(server.app)
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
                return (await client.post("/v1/conversations", json={"agent": "parrot"}, headers=headers)).json()["id"]

        async def ask_twice():
            first = await ask(0)
            now[0] += age
            again = await ask(count)
            await server.context.stop()
            return first == again

        assert asyncio.run(ask_twice()) is is_joined


CRASHES = [
    "server.request.claim.written",
    "server.request.claim.after",
    "server.claim.after",
    "run.start.after@6",  # the first five are the workflows that are loaded
    "server.request.answer.before",
    "server.request.answer.after",
]
MORE = [
    f"{point}.{when}"
    for point in ("server.request.claim", "server.claim", "server.request.answer")
    for when in ("before", "written", "after")
] + [f"run.start.{when}@6" for when in ("before", "written", "after")]


def failpoint(point):
    name, at, number = point.partition("@")
    return f"{name}=kill{at}{number}"


def crash_and_come_back(serve, point):
    """The server dies at `point`; the client repeats its request with its key and gets one run, done once."""
    dying = serve("app:server", env={"TROTH_FAILPOINTS": failpoint(point)})
    (dying.folder / "go").touch()
    with dying.client() as client, pytest.raises(httpx.TransportError):
        client.post("/runs", json=RUN, headers=KEY)
    dying.process.wait(60)
    server = serve("app:server")
    with server.client() as client:
        answer = wait_until(
            lambda: (got := client.post("/runs", json=RUN, headers=KEY)).status_code == 202 and got, "the answer"
        )
        run_id = answer.json()["id"]
        wait_until(lambda: client.get(f"/runs/{run_id}").json()["state"] == "completed", "the end of the run")
        assert client.post("/runs", json=RUN, headers=KEY).json()["id"] == run_id
        assert [run["id"] for run in client.get("/runs").json()["data"]] == [run_id]
        told = frames(client.get(f"/runs/{run_id}/events").text)
        assert [kind for _, kind, _ in told].count("run.ended") == 1
    assert len(set(lines(server.folder / "gates.txt"))) == 1  # a step that was cut off is taken again, with its key


@pytest.mark.parametrize("point", CRASHES)
def test_a_run_survives_the_server(serve, point):
    """Nothing is lost and nothing is done twice, wherever the server dies."""
    crash_and_come_back(serve, point)


@pytest.mark.soak
@pytest.mark.parametrize("point", MORE)
def test_a_run_survives_the_server_at_every_point(serve, point):
    """The same at each commit point that the request reaches."""
    crash_and_come_back(serve, point)


SENDING = [
    "server.turn.begin.after",
    "conversation.say.after",
    "conversation.start.after",
    "server.request.answer.before",
]


@pytest.mark.parametrize("point", SENDING)
def test_a_message_survives_the_server(serve, point):
    """It is said once and answered once, whether the client comes back or not."""
    before = serve("app:server")
    (before.folder / "go").touch()
    with before.client() as client:
        talk_id = talk(client, "parrot")
    before.stop()
    dying = serve("app:server", env={"TROTH_FAILPOINTS": failpoint(point)})
    body = {"text": "hello", "run": True}
    with dying.client() as client, pytest.raises(httpx.TransportError):
        client.post(f"/conversations/{talk_id}/messages", json=body, headers=KEY)
    dying.process.wait(60)
    server = serve("app:server")
    with server.client() as client:
        sent = wait_until(
            lambda: (
                (got := client.post(f"/conversations/{talk_id}/messages", json=body, headers=KEY)).status_code == 202
                and got
            ),
            "the answer",
        )
        now = wait_until(
            lambda: (
                (now := client.get(f"/conversations/{talk_id}").json())["status"] == "finished"
                and len(now["messages"]) > 1
                and now
            )
        )
        assert [one["text"] for one in now["messages"]] == ["hello", "hello"]
        again = client.post(f"/conversations/{talk_id}/messages", json=body, headers=KEY)
        assert again.json() == sent.json()
        assert len(client.get(f"/conversations/{talk_id}").json()["messages"]) == 2


def test_a_turn_that_was_cut_off_goes_on_by_itself(serve):
    """The server is killed in the middle of a turn; the next one goes on with it, unasked."""
    first = serve("app:server")
    with first.client() as client:
        talk_id = talk(client, "patient")
        client.post(f"/conversations/{talk_id}/messages", json={"text": "hello", "run": True})
        wait_until((first.folder / "steps.txt").exists)
    first.kill()
    (first.folder / "go").touch()
    server = serve("app:server")
    with server.client() as client:
        assert [one["text"] for one in finished(client, talk_id)["messages"]] == ["hello", "done"]


def test_another_server_on_the_store_goes_on(serve):
    """Two processes on one store: each tells of what the other began, and goes on with it when the other dies."""
    one, two = serve("app:server"), serve("app:server")
    with one.client() as first, two.client() as second:
        run_id = first.post("/runs", json=RUN).json()["id"]
        talk_id = talk(first, "patient")
        first.post(f"/conversations/{talk_id}/messages", json={"text": "hello", "run": True})
        wait_until((one.folder / "steps.txt").exists)
        wait_until((one.folder / "gates.txt").exists)
        assert second.get(f"/runs/{run_id}").json()["state"] == "running"
        assert second.get(f"/conversations/{talk_id}").json()["status"] == "running"
        one.kill()
        (one.folder / "go").touch()
        wait_until(lambda: second.get(f"/runs/{run_id}").json()["state"] == "completed", "the run")
        assert [one["text"] for one in finished(second, talk_id)["messages"]] == ["hello", "done"]
