"""The ways to the server and back: a port of this machine, progress, and requests that are taken back."""

import contextlib
import json
import os
import socket
import struct
import subprocess
import sys
import time

import pytest
from tests.lsp.client import DEADLINE, PULL, Client

LOST = "async def f(): ...\n\n\nasync def g():\n    f()\n"


@pytest.fixture
def project(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'shop'\n")
    (tmp_path / "app.py").write_text(LOST)
    return tmp_path


class Wire:
    """JSON-RPC over a socket, one message at a time."""

    def __init__(self, connection):
        self._stream = connection.makefile("rwb")

    def send(self, **message):
        data = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._stream.write(b"Content-Length: %d\r\n\r\n" % len(data) + data)
        self._stream.flush()

    def hang_up(self):
        self._stream.close()

    def answer(self, number):
        while True:
            length = 0
            while (line := self._stream.readline()) not in (b"\r\n", b""):
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            assert line, "the server has hung up"
            message = json.loads(self._stream.read(length))
            if message.get("id") == number and "method" not in message:
                return message["result"]


def connected(process, port):
    end = time.monotonic() + DEADLINE
    while time.monotonic() < end and process.poll() is None:
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=DEADLINE)
        except ConnectionRefusedError:
            time.sleep(0.1)
    raise AssertionError("nobody listens")


def test_over_a_port_of_this_machine(project):
    """It listens on the loopback alone, serves one client, and ends with it."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = subprocess.Popen([sys.executable, "-m", "troth", "lsp", "--tcp", str(port)], cwd=project)
    try:
        with connected(process, port) as connection:
            wire = Wire(connection)
            folder = {"uri": project.as_uri(), "name": "shop"}
            wire.send(
                id=1,
                method="initialize",
                params={
                    "processId": os.getpid(),
                    "workspaceFolders": [folder],
                    "capabilities": {"textDocument": {"diagnostic": {}}},
                },
            )
            assert wire.answer(1)["capabilities"]["diagnosticProvider"]
            wire.send(method="initialized", params={})
            uri = (project / "app.py").as_uri()
            wire.send(id=2, method="textDocument/diagnostic", params={"textDocument": {"uri": uri}})
            assert [item["code"] for item in wire.answer(2)["items"]] == ["TR101"]
            wire.send(id=3, method="shutdown", params=None)
            assert wire.answer(3) is None
            wire.send(method="exit")
        assert process.wait(DEADLINE) == 0
    finally:
        process.kill()
        process.wait()


class RootPath(Client):
    """A client of the oldest kind: it names its folder by a path."""

    def request(self, method, params):
        if method == "initialize":
            params = {"processId": None, "rootPath": str(self.folder), "capabilities": params["capabilities"]}
        return super().request(method, params)


def test_a_folder_that_is_named_by_its_path(project):
    """It is looked at like any other."""
    with RootPath(project, PULL) as client:
        assert list(client.everything()) == [client.uri("app.py")]


@contextlib.contextmanager
def greeted(project):
    """A server behind a port, a client that has introduced itself to it, and the port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-m", "troth", "lsp", "--tcp", str(port)], cwd=project, stderr=subprocess.DEVNULL
    )
    try:
        with connected(process, port) as connection:
            wire = Wire(connection)
            wire.send(id=1, method="initialize", params={"processId": None, "rootUri": None, "capabilities": {}})
            assert wire.answer(1)["capabilities"]
            yield process, connection, wire, port
    finally:
        process.kill()
        process.wait()


def test_one_client_alone(project):
    """Nobody else is heard behind the port, so that nobody gets the answers that are meant for the first."""
    with greeted(project) as (process, _, wire, port):
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), timeout=DEADLINE)
        wire.send(id=2, method="shutdown", params=None)
        assert wire.answer(2) is None
        wire.send(method="exit")
        assert process.wait(DEADLINE) == 0


@pytest.mark.parametrize(
    ("last", "linger"),
    [
        pytest.param(b"", None, id="between two messages"),
        pytest.param(b"Content-Length: 100\r\n\r\n{", None, id="in the middle of a message"),
        pytest.param(b"Content-Le", None, id="in the middle of a header"),
        pytest.param(b"x" * 200_000, None, id="in a header without an end"),
        pytest.param(b"", struct.pack("ii", 1, 0), id="without a word to the network"),
    ],
)
def test_a_client_of_a_port_that_dies(project, last, linger):
    """The server ends by itself, and tells that nobody said goodbye."""
    with greeted(project) as (process, connection, wire, _):
        connection.sendall(last)
        if linger is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        wire.hang_up()
        connection.close()
        assert process.wait(DEADLINE) == 1


def test_a_port_that_is_taken(project):
    """It is said, and is no bug of ours."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        command = [sys.executable, "-m", "troth", "lsp", "--tcp", port]
        done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith(f"Cannot listen on port {port} of this machine: ")


def test_progress_of_the_first_check(project):
    """A client that shows progress hears when reading begins and when it is over."""
    for number in range(30):
        (project / f"part_{number}.py").write_text(LOST)
    with Client(project, PULL) as client:
        client.open("app.py")
        client.pull("app.py")

        def kinds():
            reports = [notice["params"] for notice in client.notices if notice["method"] == "$/progress"]
            return [report["value"]["kind"] for report in reports]

        def is_over():
            return "end" in kinds() or not any(
                request["method"] == "window/workDoneProgress/create" for request in client.requests
            )

        client.until(is_over, "the end of progress")
        if kinds():  # a check that is over before the client has answered shows none
            assert (kinds()[0], kinds()[-1]) == ("begin", "end")
            assert set(kinds()[1:-1]) <= {"report"}


def test_a_request_that_is_taken_back(project):
    """It is answered with an error or with its result, never with silence, and the server goes on."""
    with Client(project, PULL) as client:
        client.open("app.py")
        numbers = []
        for _ in range(20):
            place = {"textDocument": {"uri": client.uri("app.py")}, "position": {"line": 4, "character": 4}}
            numbers.append(client.send("textDocument/hover", place))
            client.notify("$/cancelRequest", {"id": numbers[-1]})
        client.until(lambda: all(number in client.answers for number in numbers), "all answers")
        answers = [client.answers.pop(number) for number in numbers]
        codes = {answer["error"]["code"] for answer in answers if "error" in answer}
        assert codes == {-32800}
        values = [answer["result"]["contents"]["value"] for answer in answers if "result" in answer]
        assert all("`f` is `async def`" in value for value in values)
        assert len(client.pull("app.py")) == 1
