"""What is too large, too slow, too much at once, or wrong on purpose."""

import contextlib
import select
import socket
import time

import httpx
import pytest
from tests.server.service import PATIENCE, Served, fill, frames, wait_until
from tests.server.test_conversations import finished, say, talk
from tests.server.test_runs import begin


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    served = Served(fill(tmp_path_factory.mktemp("small")), "app:small")
    yield served
    served.close()


def dial(server):
    address = httpx.URL(server.url)
    return socket.create_connection((address.host, address.port), PATIENCE)


def rest(connection):
    """Everything that comes until the server closes the connection."""
    connection.settimeout(PATIENCE)
    data = b""
    try:
        while piece := connection.recv(65536):
            data += piece
    except ConnectionResetError:
        pass
    return data


HEAD = b"POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


def test_a_body_that_is_too_large(small):
    """413, by its declared length before it is sent, and by what comes."""
    with small.client() as client:
        refused = client.post("/runs", json={"workflow": "x" * 30_000})
        assert (refused.status_code, refused.json()["error"]["code"]) == (413, "body_too_large")
    with dial(small) as connection:
        connection.sendall(HEAD + b"Content-Length: 1000000000\r\n\r\n")
        assert rest(connection).startswith(b"HTTP/1.1 413")
    with dial(small) as connection:
        connection.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"4e20\r\n" + b"x" * 20_000 + b"\r\n")
        connection.sendall(b"4e20\r\n" + b"x" * 20_000 + b"\r\n")
        assert rest(connection).startswith(b"HTTP/1.1 413")


def test_a_body_that_lies_about_its_length(small):
    """Too little comes: 408 after the limit. Too much: the rest is no request."""
    with dial(small) as connection:
        connection.sendall(HEAD + b"Content-Length: 1000\r\n\r\n{}")
        assert rest(connection).startswith(b"HTTP/1.1 408")
    with dial(small) as connection:
        connection.sendall(HEAD + b"Content-Length: 2\r\n\r\n{}{}{}\r\n\r\n")
        assert b"HTTP/1.1 400" in rest(connection)


def test_a_client_that_leaves_within_its_body(small):
    """It is no fault of the server, so nothing of it is in the log; whoever comes next is answered."""
    for body in (b"Content-Length: 100\r\n\r\n{}", b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n"):
        for path in (b"/v1/runs", b"/v1/sessions/none/terminate"):
            with dial(small) as connection:
                connection.sendall(HEAD.replace(b"/v1/runs", path) + body)
                connection.shutdown(socket.SHUT_WR)
                rest(connection)
    with small.client() as client:
        assert client.get("/health").status_code == 200
    assert "Traceback" not in small.stderr()


def test_a_body_that_comes_byte_by_byte(small):
    """The time of a body runs from its beginning, however many pieces follow."""
    with dial(small) as connection:
        connection.sendall(HEAD + b"Content-Length: 10000\r\n\r\n")
        connection.settimeout(0.1)
        got = b""
        for _ in range(int(PATIENCE / 0.1)):
            with contextlib.suppress(TimeoutError):
                connection.sendall(b"x")
                got = connection.recv(65536)
            if got:
                break
        assert got.startswith(b"HTTP/1.1 408")


def test_a_head_that_comes_byte_by_byte(small):
    """The time of a head runs from its first byte, however many follow; a connection without one is closed, too."""
    with dial(small) as connection:
        begun = time.monotonic()
        connection.settimeout(0.1)
        got = b""
        for byte in HEAD * 50:
            try:
                connection.sendall(bytes([byte]))
                got += connection.recv(65536)
            except TimeoutError:
                pass
            except OSError:
                break
            if got or time.monotonic() - begun > PATIENCE:
                break
        assert got.startswith(b"HTTP/1.1 408")
    with dial(small) as silent:
        assert rest(silent) == b""


@pytest.mark.parametrize(
    "head",
    [
        pytest.param(b"GET /v1/runs HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n", id="two hosts"),
        pytest.param(b"GET /v1/runs HTTP/1.1\r\n\r\n", id="no host"),
        pytest.param(b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03\r\n\r\n", id="TLS"),
        pytest.param(
            b"GET /v1/runs HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 200_000 + b"\r\n\r\n", id="a huge header"
        ),
    ],
)
def test_what_is_no_request_is_400(small, head):
    """And the server goes on."""
    with dial(small) as connection:
        with contextlib.suppress(ConnectionError):
            connection.sendall(head)
        answer = rest(connection)
        assert not answer or answer.split(b" ")[1] in (b"400", b"403", b"431"), answer
    with small.client() as client:
        assert client.get("/health").status_code == 200


def test_a_body_with_two_lengths(small):
    """A proxy may have believed the one and this server the other: what follows would be somebody else's request."""
    head = b"POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    body = b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
    with dial(small) as connection:
        connection.sendall(head + body)
        answer = rest(connection)
    assert b"400 Bad Request" in answer
    assert b"ambiguous_length" in answer
    assert b"connection: close" in answer.lower()


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b'{"workflow": "\xff"}', "byte 14 is not UTF-8"),
        (b'{"workflow": ' + b"[" * 5000 + b"]" * 5000 + b"}", "nested too deeply"),
        (b'{"workflow": ' + b"9" * 5000 + b"}", "too many digits"),
        (b"[]", "The body is not a JSON object"),
        (b"{", "The body is not JSON"),
    ],
    ids=["no text", "deep", "a long number", "a list", "half of it"],
)
def test_a_body_that_cannot_be_read(small, body, says):
    """What is wrong with it is told."""
    with small.client() as client:
        for path in ("/runs", "/webhooks"):
            answer = client.post(path, content=body, headers={"Content-Type": "application/json"})
            assert answer.status_code == 400
            assert says in answer.json()["error"]["message"]
            assert answer.json()["error"]["param"] == "body"


@pytest.mark.parametrize("depth", [200, 9_000])
def test_deep_json(small, depth):
    """4xx, never 500."""
    body = '{"workflow": "greet", "inputs": {"who": ' + "[" * depth + "]" * depth + "}}"
    with small.client() as client:
        answer = client.post("/runs", content=body, headers={"Content-Type": "application/json"})
        assert answer.status_code == 400, answer.text


def test_one_turn_too_many(serve):
    """429 with `Retry-After`, for the owner who has enough at work."""
    server = serve("app:small")
    with server.client() as client:
        begin(client, "gated")
        talk_id = talk(client, "patient")
        say(client, talk_id, "x", run=True)
        refused = client.post("/runs", json={"workflow": "gated"})
        assert (refused.status_code, refused.headers["Retry-After"]) == (429, "1")
        (server.folder / "go").touch()
        wait_until(lambda: client.post("/runs", json={"workflow": "gated"}).status_code == 202)


def test_turns_that_are_over_do_not_count(small):
    """Also where nobody has waited for their end, and the server has not taken notice of it yet."""
    with small.client() as client:
        for _ in range(8):
            talk_id = talk(client, "parrot")
            say(client, talk_id, "x", run=True)
            finished(client, talk_id)


def test_one_stream_too_many(small):
    """503 with `Retry-After`; one that leaves makes room."""
    with small.client() as client:
        talk_id = talk(client, "parrot")
        streams = [client.stream("GET", f"/conversations/{talk_id}/events") for _ in range(5)]
        for stream in streams:
            assert stream.__enter__().status_code == 200

        def status():
            with client.stream("GET", f"/conversations/{talk_id}/events") as another:
                return another.status_code

        wait_until(lambda: status() == 503, "the limit")
        for stream in streams:
            stream.__exit__(None, None, None)
        wait_until(lambda: status() == 200, "room")


def test_a_quiet_stream_says_that_it_lives(small):
    """Comments, which no client takes for events."""
    with small.client() as client:
        talk_id = talk(client, "parrot")
        with client.stream("GET", f"/conversations/{talk_id}/events") as stream:
            text = ""
            for chunk in stream.iter_text():
                text += chunk
                if text.count(": keep-alive") >= 2:
                    break
        assert [kind for _, kind, _ in frames(text)] == ["opened"]


def test_a_reader_who_never_reads_is_let_go(small):
    """Its connection is closed; others are not slowed down, and it goes on from its cursor."""
    with small.client() as client:
        talk_id = talk(client, "loud")
        with dial(small) as connection:
            connection.sendall(f"GET /v1/conversations/{talk_id}/events HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            say(client, talk_id, "go", run=True)
            finished(client, talk_id)
            wait_until(lambda: "troth_server_streams 0" in client.get("/metrics").text, "the server lets it go")
            got = rest(connection)
        last = max(int(line[4:]) for line in got.splitlines() if line.startswith(b"id: ") and line[4:].isdigit())
        whole = client.get(f"/conversations/{talk_id}").json()["last_event"]
        assert last < whole
        url = f"/conversations/{talk_id}/events"
        later = frames(client.get(url, params={"after": last, "follow": False}).text)
        assert later[-1][0] == whole


@pytest.mark.parametrize(
    ("times", "more"),
    [
        pytest.param(1, "", id="one large answer"),
        pytest.param(3, "", id="several, asked for at once"),
        pytest.param(1, "Connection: close\r\n", id="the last one of its connection"),
    ],
)
def test_an_answer_that_nobody_reads(small, times, more):
    """It is not kept in memory for as long as a client likes: its connection is cut, and no request hangs."""
    with small.client() as client:
        said = client.post("/responses", json={"model": "loud", "input": "go"}).json()
        with dial(small) as connection:
            path = f"/v1/responses/{said['id']}"
            connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{more}\r\n".encode() * times)
            ended = select.poll()
            ended.register(connection, select.POLLERR)
            wait_until(lambda: ended.poll(0), "the server cuts the connection")
        assert client.get("/health").status_code == 200


@pytest.mark.soak
def test_a_thousand_idle_sockets(serve):
    """They are let go of after the limit, and others are answered meanwhile."""
    server = serve("app:small")
    idle = [dial(server) for _ in range(1000)]
    try:
        with server.client() as client:
            assert client.get("/health").status_code == 200
        for connection in idle:
            assert rest(connection) == b""
    finally:
        for connection in idle:
            connection.close()
