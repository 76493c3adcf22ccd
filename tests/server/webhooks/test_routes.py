"""Webhooks over HTTP: registered, called when work is done, also after a crash, and nobody else's business."""

import contextlib

import openai
import pytest
from standardwebhooks.webhooks import Webhook
from tests.server.openai_api.conftest import client_of, fill_agents
from tests.server.service import Served, wait_until
from tests.server.webhooks.receiver import until


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    served = Served(fill_agents(tmp_path_factory.mktemp("hooks")), "agents:server")
    yield served
    served.close()


@pytest.fixture
def client(shared):
    """Somebody who leaves no receivers behind."""
    with shared.client() as made:
        yield made
        for one in made.get("/webhooks").json()["data"]:
            made.delete(f"/webhooks/{one['id']}")


def register(client, url, **more):
    answer = client.post("/webhooks", json={"url": url, **more})
    assert answer.status_code == 201, answer.text
    assert answer.headers["Location"] == f"/v1/webhooks/{answer.json()['id']}"
    return answer.json()


def test_a_run_is_told_when_it_is_done(client, receiver):
    """The client is answered at once, and called later, under the run's id."""
    made = register(client, receiver.url)
    run = client.post("/runs", json={"workflow": "greet", "inputs": {"who": "ann"}})
    assert run.status_code == 202
    until(lambda: receiver.seen)
    said = Webhook(made["secret"]).verify(receiver.seen[0][1], receiver.seen[0][0])
    assert said["type"] == "promise.done"
    assert said["data"]["id"] == run.json()["id"]
    assert said["data"]["result"] == {"text": "hello ann"}
    assert client.get(f"/runs/{run.json()['id']}").json()["state"] == "completed"


def test_a_repeated_request_is_told_once(client, receiver):
    """The key makes it the same run, and the same delivery."""
    register(client, receiver.url)
    asked = {"json": {"workflow": "greet", "inputs": {"who": "key"}}, "headers": {"Idempotency-Key": "told-once"}}
    ids = {client.post("/runs", **asked).json()["id"] for _ in range(2)}
    assert len(ids) == 1
    until(lambda: receiver.seen)
    assert len(set(receiver.ids())) == 1


def test_the_secret_is_told_once_and_rotated(client, receiver):
    """It is in no other answer. While it is rotated, a receiver with the old one still verifies."""
    made = register(client, receiver.url, description="ours")
    shown = client.get(f"/webhooks/{made['id']}").json()
    assert shown == {key: value for key, value in made.items() if key != "secret"}
    assert client.get("/webhooks").json() == {"data": [shown]}
    rotated = client.post(f"/webhooks/{made['id']}/rotate").json()
    assert rotated["secret"] != made["secret"]
    client.post("/runs", json={"workflow": "greet", "inputs": {"who": "x"}})
    until(lambda: receiver.seen)
    for secret in (made["secret"], rotated["secret"]):
        assert Webhook(secret).verify(receiver.seen[0][1], receiver.seen[0][0])


def test_a_key_repeats_a_registration(client, receiver):
    """The same receiver, with its secret: the first answer may have been lost."""
    asked = {"json": {"url": receiver.url}, "headers": {"Idempotency-Key": "hook-1"}}
    first, second = (client.post("/webhooks", **asked).json() for _ in range(2))
    assert first == second


def test_a_key_repeats_a_rotation(client, receiver):
    """The same secret, and the one that the receiver knows still verifies; without the key it is another secret."""
    made = register(client, receiver.url)
    key = {"Idempotency-Key": "rotation-1"}
    first, second = (client.post(f"/webhooks/{made['id']}/rotate", headers=key) for _ in range(2))
    assert first.json() == second.json()
    assert second.headers["Idempotent-Replayed"] == "true"
    client.post("/runs", json={"workflow": "greet", "inputs": {"who": "x"}})
    until(lambda: receiver.seen)
    for secret in (made["secret"], first.json()["secret"]):
        assert Webhook(secret).verify(receiver.seen[0][1], receiver.seen[0][0])
    other = client.post(f"/webhooks/{made['id']}/rotate", headers=key, json={"keep": 60})
    assert (other.status_code, other.json()["error"]["code"]) == (422, "idempotency_key_reused")
    assert client.post(f"/webhooks/{made['id']}/rotate").json()["secret"] != first.json()["secret"]


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        pytest.param({"url": "http://10.0.0.1/"}, 400, "webhook_refused", id="plain http inside"),
        pytest.param({"url": "https://10.0.0.1/"}, 400, "webhook_refused", id="inside"),
        pytest.param({"url": "https://[::ffff:169.254.169.254]/"}, 400, "webhook_refused", id="metadata in disguise"),
        pytest.param({"url": "https://user@127.0.0.1/"}, 400, "webhook_refused", id="a user"),
        pytest.param({"url": "nonsense"}, 400, "webhook_refused", id="no address"),
        pytest.param({}, 400, "invalid_field", id="nothing"),
        pytest.param({"url": 7}, 400, "invalid_field", id="a number"),
        pytest.param({"url": "https://127.0.0.1/", "events": ["x"]}, 400, "unknown_field", id="a promise nobody keeps"),
    ],
)
def test_what_cannot_be_called_is_refused(client, body, status, code):
    """With what is wrong, and nothing is kept."""
    answer = client.post("/webhooks", json=body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert client.get("/webhooks").json() == {"data": []}


def test_a_second_receiver_for_the_same_is_refused(client, receiver):
    """A delivery goes to one."""
    register(client, receiver.url)
    answer = client.post("/webhooks", json={"url": receiver.url + "2"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "webhook_exists")


@pytest.mark.parametrize("verb", ["rotate", "enable", "disable", "deliveries/x/replay"])
def test_an_unknown_receiver_is_404(client, verb):
    """For every verb."""
    assert client.post(f"/webhooks/wh_none/{verb}").status_code == 404
    assert client.get("/webhooks/wh_none").status_code == 404
    assert client.get("/webhooks/wh_none/failures").status_code == 404
    assert client.delete("/webhooks/wh_none").status_code == 404


def test_failures_are_listed_and_replayed(client, receiver):
    """With the reason; 410 disables, which is told; enabled again, what waited comes."""
    receiver.answers = [(503, {"Retry-After": "3600"}), (410, {})]
    made = register(client, receiver.url)
    client.post("/runs", json={"workflow": "greet", "inputs": {"who": "x"}})
    (failure,) = wait_until(lambda: client.get(f"/webhooks/{made['id']}/failures").json()["data"])
    assert failure["state"] == "due"
    assert "503" in failure["problem"]
    replay = f"/webhooks/{made['id']}/deliveries/{failure['delivery']}/replay"
    assert client.post(replay).status_code == 202
    wait_until(lambda: client.get(f"/webhooks/{made['id']}").json()["state"] == "disabled")
    assert "410" in client.get(f"/webhooks/{made['id']}").json()["disabled_because"]
    assert client.post(f"/webhooks/{made['id']}/enable").json()["state"] == "enabled"
    until(lambda: len(receiver.seen) == 3)
    wait_until(lambda: not client.get(f"/webhooks/{made['id']}/failures").json()["data"])
    assert len(set(receiver.ids())) == 1
    wait_until(
        lambda: client.post(replay).status_code == 202
    )  # delivered, once its receipt is written, and asked for anew
    until(lambda: len(receiver.seen) == 4)


@pytest.mark.parametrize(
    "point",
    [
        "conversation.start.before",
        pytest.param("conversation.start.after", marks=pytest.mark.soak),
        "server.response.settle.written",
        pytest.param("server.response.settle.after", marks=pytest.mark.soak),
        "channel.send.after",
    ],
)
def test_a_response_is_told_after_a_crash(tmp_path, receiver, point):
    """The server is killed around the promise and its end; the client comes back with its key, and is called once."""
    folder = fill_agents(tmp_path)
    asked = {"model": "parrot", "input": "x", "background": True, "extra_headers": {"Idempotency-Key": "crash"}}
    doomed = Served(folder, "agents:server", env={"TROTH_FAILPOINTS": f"{point}=kill"})
    try:
        with doomed.client() as plain:
            register(plain, receiver.url)
        with client_of(doomed, timeout=30.0) as client, contextlib.suppress(openai.APIError):
            client.responses.create(**asked)  # the answer dies with the server, or not
        doomed.process.wait(60)
    finally:
        doomed.close()
    again = Served(folder, "agents:server")
    try:
        with client_of(again) as client:
            response = client.responses.create(**asked)
            wait_until(lambda: client.responses.retrieve(response.id).status == "completed")
        until(lambda: receiver.seen)
        with again.client() as plain:
            wait_until(lambda: "troth_deliveries_owed 0" in plain.get("/metrics").text)
    finally:
        again.stop()
        again.close()
    assert set(receiver.ids()) == {f"{response.id}-done-1"}
    assert len(receiver.seen) <= (2 if point == "channel.send.after" else 1)
