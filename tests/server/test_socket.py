"""One WebSocket for events, subscriptions and messages; driven by `websockets`."""

import json

import pytest
from tests.server.service import PATIENCE, wait_until
from tests.server.test_conversations import finished, talk
from tests.server.test_runs import begin, ended
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect


def dial(server, **options):
    url = server.url.replace("http://", "ws://") + "/v1/socket"
    return connect(url, open_timeout=PATIENCE, close_timeout=PATIENCE, proxy=None, **options)


class Line:
    """A client of a socket."""

    def __init__(self, connection):
        self.connection = connection
        self.n = 0
        self.told = []

    def ask(self, **message):
        """Send, and return the answer; what comes meanwhile is kept."""
        self.n += 1
        self.connection.send(json.dumps({"n": self.n, **message}))
        return self.until(lambda one: one.get("of") == self.n)

    def until(self, condition):
        for one in self.told:
            if condition(one):
                self.told.remove(one)
                return one
        while True:
            message = json.loads(self.connection.recv(PATIENCE))
            if condition(message):
                return message
            self.told.append(message)


def test_events_come_with_numbers(shared, client):
    """The same events as over HTTP, with their numbers in the log; the end is told."""
    run_id = begin(client, "greet", who="socket")
    ended(client, run_id)
    with dial(shared) as connection:
        line = Line(connection)
        assert line.ask(type="subscribe", run=run_id)["type"] == "ack"
        assert line.until(lambda one: one["type"] == "end")["run"] == run_id
        assert [one["id"] for one in line.told] == list(range(1, len(line.told) + 1))
        assert [one["n"] for one in line.told] == list(range(1, len(line.told) + 1))
        assert line.told[-1]["event"] == "run.ended"
        whole = list(line.told)
        line.told.clear()
        line.ask(type="subscribe", run=run_id, after=2)
        line.until(lambda one: one["type"] == "end")
        assert [one["id"] for one in line.told] == [one["id"] for one in whole[2:]]


def test_a_subscription_that_is_over_counts_no_more(shared, client):
    """A socket that lives long follows one run after another, however many there are."""
    body = {"workflow": "greet", "inputs": {"who": "socket"}}
    runs = [client.post("/runs", json=body, headers={"Prefer": "wait=60"}).json()["id"] for _ in range(101)]
    with dial(shared) as connection:
        line = Line(connection)
        for run_id in runs:
            assert line.ask(type="subscribe", run=run_id)["type"] == "ack"
            line.until(lambda one, run_id=run_id: one["type"] == "end" and one["run"] == run_id)
            line.told.clear()


def test_a_message_is_answered(shared, client):
    """Send is acknowledged when the message is safe; repeated with its key, it is sent once."""
    talk_id = talk(client, "parrot")
    with dial(shared) as connection:
        line = Line(connection)
        line.ask(type="subscribe", conversation=talk_id)
        first = line.ask(type="send", conversation=talk_id, text="hello", run=True, key=f"k-{talk_id}")
        again = line.ask(type="send", conversation=talk_id, text="hello", run=True, key=f"k-{talk_id}")
        assert first["number"] == again["number"]
        line.until(lambda one: one.get("event") == "run.ended")
    assert [one["text"] for one in finished(client, talk_id)["messages"]] == ["hello", "hello"]


def test_an_unacknowledged_delivery_goes_back(serve):
    """A delivery is pushed while the socket is open, and owed again when it closes without a word."""
    server = serve("app:server")
    with server.client() as client:
        talk_id = talk(client, "promiser")
        with dial(server) as connection:
            line = Line(connection)
            line.ask(type="subscribe", conversation=talk_id)
            line.ask(type="send", conversation=talk_id, text="go", run=True)
            said = line.until(lambda one: one.get("data", {}).get("role") == "assistant")["data"]["text"]
            assert said.startswith("PUSH Pushed"), said
            (server.folder / "go").touch()
            delivery = line.until(lambda one: one["type"] == "delivery")["data"]
            assert delivery["promise"] in said
        wait_until(lambda: client.get(f"/deliveries/{delivery['id']}").json()["state"] in ("stored", "due"))
        with dial(server) as connection:
            line = Line(connection)
            line.ask(type="subscribe", conversation=talk_id)
            again = line.until(lambda one: one["type"] == "delivery")
            assert again["data"]["id"] == delivery["id"]
            connection.send(json.dumps({"type": "ack", "n": again["n"]}))
            wait_until(lambda: client.get(f"/deliveries/{delivery['id']}").json()["state"] == "delivered")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        pytest.param("{", "invalid_json", id="no JSON"),
        pytest.param("[" * 100_000, "invalid_json", id="deep JSON"),
        pytest.param("[]", "invalid_message", id="no object"),
        pytest.param(b"\xff\xfe", "invalid_message", id="bytes"),
        pytest.param('{"n": 1e999, "type": "fly"}', "unknown_type", id="a number that JSON has not"),
        pytest.param('{"n": 1, "type": "fly"}', "unknown_type", id="no such verb"),
        pytest.param('{"n": 1, "type": "subscribe"}', "invalid_field", id="of nothing"),
        pytest.param('{"n": 1, "type": "subscribe", "run": "never"}', "run_not_found", id="of what never was"),
        pytest.param('{"n": 1, "type": "send", "conversation": "x", "text": 3}', "invalid_field", id="a wrong text"),
        pytest.param('{"n": 1, "type": "unsubscribe", "run": "x"}', "not_subscribed", id="never subscribed"),
        pytest.param(
            '{"n": 1, "type": "send", "conversation": "x", "text": "x", "callback_url": "y"}',
            "unknown_field",
            id="a field that promises",
        ),
    ],
)
def test_a_wrong_message_is_answered(shared, text, code):
    """With an error, and the socket stays open."""
    with dial(shared) as connection:
        connection.send(text)
        assert json.loads(connection.recv(PATIENCE), parse_constant=pytest.fail)["error"]["code"] == code
        connection.send('{"n": 2, "type": "fly"}')
        assert json.loads(connection.recv(PATIENCE))["of"] == 2


def test_a_foreign_page_gets_no_socket(shared):
    """`Origin` is checked for sockets, too."""
    with pytest.raises(InvalidStatus) as refused, dial(shared, origin="https://evil.example"):
        pass
    assert refused.value.response.status_code == 403


def test_the_server_ends_and_says_so(serve):
    """SIGTERM: subscriptions are told, and the socket closes."""
    server = serve("app:server")
    with server.client() as client:
        talk_id = talk(client, "parrot")
    with dial(server) as connection:
        line = Line(connection)
        line.ask(type="subscribe", conversation=talk_id)
        server.process.terminate()
        assert line.until(lambda one: one.get("event") == "closing")["id"] >= 0
        with pytest.raises(ConnectionClosed):
            while True:
                connection.recv(PATIENCE)
    assert server.process.wait(PATIENCE) == 0
