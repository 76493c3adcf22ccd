"""Clients that behave badly, and worlds that fall apart: no crash, no wrong place, no process left."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.lsp.client import DEADLINE, PULL, PUSH, Client, RpcError

LOST = "async def f(): ...\n\n\nasync def g():\n    f()\n"


@pytest.fixture
def project(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'shop'\n")
    (tmp_path / "app.py").write_text(LOST)
    return tmp_path


def ends(process, seconds=DEADLINE) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if process.poll() is not None:
            return True
        time.sleep(0.05)
    return False


def test_a_client_that_dies(project):
    """Without a word, the server ends by itself."""
    with Client(project, PUSH) as client:
        client.open("app.py")
        client.pushed("app.py", 1)
        client.process.stdin.close()
        assert ends(client.process)


def test_an_editor_that_is_gone_while_its_pipe_is_held_open(project):
    """The process that the client named is looked after."""
    sleeper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    original, os.getpid = os.getpid, lambda: sleeper.pid
    try:
        client = Client(project, PUSH)
    finally:
        os.getpid = original
    with client:
        client.pushed("app.py")
        sleeper.kill()
        sleeper.wait()
        assert ends(client.process)


def test_a_client_that_never_reads(project):
    """Its pipe is full, and the server waits without growing; it ends with the client."""
    process = subprocess.Popen(
        [sys.executable, "-m", "troth", "lsp"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=project,
    )
    os.set_blocking(process.stdin.fileno(), False)
    data = (
        b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"processId":null,"rootUri":null,"capabilities":{}}}'
    )
    message = b"Content-Length: %d\r\n\r\n" % len(data) + data
    unread = b'{"jsonrpc":"2.0","id":2,"method":"no/such","params":{}}'
    message += (b"Content-Length: %d\r\n\r\n" % len(unread) + unread) * 5000
    end = time.monotonic() + 10
    while message and time.monotonic() < end:
        try:
            message = message[os.write(process.stdin.fileno(), message[:65536]) :]
        except BlockingIOError:
            break
        time.sleep(0.01)
    assert process.poll() is None
    process.stdout.close()
    process.stdin.close()
    assert ends(process)


@pytest.mark.parametrize("count", [1_000, pytest.param(10_000, marks=pytest.mark.soak)])
def test_a_burst_of_edits(project, count, tmp_path_factory):
    """So many edits are taken in, the last one counts, and afterwards as much is kept as before."""
    log = tmp_path_factory.mktemp("log") / "server.log"
    with Client(project, PULL, args=("--log", str(log))) as client:
        client.open("app.py")
        client.pull("app.py")
        objects = []
        for _ in range(5):
            for number in range(count):
                start = {"line": 0, "character": 0}
                end = {"line": 0, "character": 1 if number % 2 else 0}
                client.change("app.py", {"range": {"start": start, "end": end}, "text": "" if number % 2 else "#"})
            assert [finding["range"]["start"]["line"] for finding in client.pull("app.py")] == [4]
            objects.append(kept_objects(log))
        # Objects are counted, not bytes: how much memory the allocator holds depends on how quickly edits are read. The
        # first two bursts fill caches. The program of one single look has more than 500 objects.
        assert objects[-1] - objects[1] < 1_000, objects


def kept_objects(log: Path) -> int:
    """How many objects the server says it keeps, when it has nothing to do any more."""
    end = time.monotonic() + DEADLINE
    while time.monotonic() < end:
        last = log.read_text().splitlines()[-1]
        if match := re.search(r"(\d+) objects are kept", last):
            return int(match[1])
        time.sleep(0.05)
    raise AssertionError(log.read_text()[-2000:])


@pytest.mark.parametrize("length", [10_000, pytest.param(100_000, marks=pytest.mark.soak)])
def test_a_very_long_file(project, length):
    """A file of so many lines is judged, and edited at its end."""
    text = LOST + "x = 1\n" * length
    with Client(project, PULL) as client:
        client.open("app.py", text)
        assert len(client.pull("app.py")) == 1
        place = {"line": length + 5, "character": 0}
        client.change("app.py", {"range": {"start": place, "end": place}, "text": "async def h():\n    f()\n"})
        assert [one["range"]["start"]["line"] for one in client.pull("app.py")] == [4, length + 6]


MANY = {
    "in one function": lambda count: "async def g():\n" + "    f()\n" * count,
    "assigned": lambda count: "async def g():\n" + "".join(f"    x{number} = f()\n" for number in range(count)),
    "in a function each": lambda count: "".join(f"async def g{number}():\n    f()\n\n\n" for number in range(count)),
    "in a sync function each": lambda count: "".join(f"def g{number}():\n    f()\n\n\n" for number in range(count)),
}


@pytest.mark.parametrize("count", [3_000, pytest.param(20_000, marks=pytest.mark.soak)])
@pytest.mark.parametrize("shape", MANY)
def test_a_file_of_many_findings(project, shape, count):
    """All are told, before and after an edit, and what can be done about all of them is offered at once."""
    text = "async def f(): ...\n\n\n" + MANY[shape](count)
    with Client(project, PULL) as client:
        client.open("app.py", text)
        found = client.pull("app.py")
        assert len(found) == count
        client.change("app.py", text + "\n\nasync def last():\n    f()\n")
        assert len(client.pull("app.py")) == count + 1
        actions = client.actions("app.py", (0, 0), (text.count("\n"), 0), only=["quickfix"])
        assert sum(action["title"].startswith("Allow") for action in actions) == count
        assert len({str(action["edit"]) for action in actions if "edit" in action}) >= count


def test_a_workspace_without_python(tmp_path):
    """There is nothing to say, and a first file is seen when it comes."""
    with Client(tmp_path, PULL) as client:
        assert client.everything() == {}
        client.open("app.py", LOST)
        assert len(client.pull("app.py")) == 1


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_links_in_a_circle(project):
    """A folder that contains itself is read once."""
    (project / "inner").mkdir()
    (project / "inner" / "again").symlink_to(project, target_is_directory=True)
    with Client(project, PULL) as client:
        assert list(client.everything()) == [client.uri("app.py")]


def test_two_servers_and_a_cache_that_is_deleted(project):
    """Both answer, whatever becomes of the cache meanwhile."""
    with Client(project, PULL) as one, Client(project, PULL) as other:
        for client in (one, other):
            client.open("app.py")
            assert len(client.pull("app.py")) == 1
        shutil.rmtree(project / ".troth_cache", ignore_errors=True)
        for client in (one, other):
            client.change("app.py", LOST.replace("    f()", "    await f()"))
            assert client.pull("app.py") == []


@pytest.mark.parametrize(
    ("method", "params"),
    [
        pytest.param(
            "textDocument/hover",
            {"textDocument": {"uri": "untitled:x"}, "position": {"line": 0, "character": 0}},
            id="no file",
        ),
        pytest.param(
            "textDocument/hover",
            {"textDocument": {"uri": "file:///no/such.py"}, "position": {"line": 0, "character": 0}},
            id="an unknown file",
        ),
        pytest.param(
            "textDocument/codeLens", {"textDocument": {"uri": "file:///no/such.py"}}, id="lenses of an unknown file"
        ),
    ],
)
def test_odd_questions(project, method, params):
    """Nothing is known, and the server goes on."""
    with Client(project, PULL) as client:
        assert not client.request(method, params)
        client.open("app.py")
        hover = {"textDocument": {"uri": client.uri("app.py")}, "position": {"line": 999, "character": 999}}
        assert client.request("textDocument/hover", hover) is None
        client.notify(
            "textDocument/didChange",
            {"textDocument": {"uri": "file:///no.py", "version": 3}, "contentChanges": [{"text": ""}]},
        )
        assert len(client.pull("app.py")) == 1


def test_a_folder_that_is_deleted(project):
    """Open texts are answered, the folder is not made again for the sake of a cache, and it may come back."""
    more = LOST + "\n\nasync def h():\n    f()\n"
    with Client(project, PULL) as client:
        client.open("app.py")
        assert len(client.pull("app.py")) == 1
        shutil.rmtree(project)
        client.change("app.py", more)
        assert len(client.pull("app.py")) == 2
        client.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": client.uri("app.py"), "type": 3}]})
        client.pull("app.py")
        assert not project.exists()
        project.mkdir()
        (project / "app.py").write_text(LOST)
        client.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": client.uri("app.py"), "type": 1}]})
        assert len(client.pull("app.py")) == 2


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        pytest.param("textDocument/hover", {}, -32602, id="nothing in it"),
        pytest.param("textDocument/hover", None, -32602, id="no parameters"),
        pytest.param("textDocument/hover", [], -32602, id="a list"),
        pytest.param(
            "textDocument/hover",
            {"textDocument": {"uri": 5}, "position": {"line": -1, "character": -5}},
            -32602,
            id="values of the wrong kind",
        ),
        pytest.param("workspace/executeCommand", {"command": "no.such"}, -32602, id="an unknown command"),
        pytest.param("initialize", {"capabilities": {}}, -32600, id="a second greeting"),
        pytest.param("no/such", {}, -32601, id="an unknown method"),
    ],
)
def test_a_request_that_cannot_be_answered(project, method, params, code):
    """The client hears what is wrong with it, and never waits in vain."""
    with Client(project, PULL) as client:
        client.open("app.py")
        with pytest.raises(RpcError) as refusal:
            client.request(method, params)
        assert refusal.value.code == code
        assert len(client.pull("app.py")) == 1


@pytest.mark.parametrize(
    "uri",
    ["file://[no/app.py", "file:///a%00b.py", "no uri at all", "", "untitled:Untitled-1", "file:", "file:///%ff%fe.py"],
)
def test_odd_addresses(project, uri):
    """What has no file is kept like any other text, and the server goes on."""
    with Client(project, PULL) as client:
        item = {"uri": uri, "languageId": "python", "version": 1, "text": LOST}
        client.notify("textDocument/didOpen", {"textDocument": item})
        place = {"textDocument": {"uri": uri}, "position": {"line": 4, "character": 4}}
        client.request("textDocument/hover", place)
        client.request("textDocument/diagnostic", {"textDocument": {"uri": uri}})
        client.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
        client.open("app.py")
        assert len(client.pull("app.py")) == 1


@pytest.mark.parametrize(
    "body",
    [b"{nonsense}", b"[]", b"null", b"\xff\xfe", b'{"jsonrpc":"2.0"}', b'{"jsonrpc":"2.0","id":[],"method":{}}', b"7"],
)
def test_messages_that_are_none(project, body):
    """They are passed over."""
    with Client(project, PULL) as client:
        client.open("app.py")
        client.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        assert len(client.pull("app.py")) == 1


def test_too_early_and_too_late(project):
    """Before `initialize` and after `shutdown` a request is refused, with the codes that the protocol has for it."""
    requests = [
        {"id": 1, "method": "textDocument/hover", "params": {}},
        {"id": 2, "method": "initialize", "params": {"processId": None, "rootUri": None, "capabilities": {}}},
        {"id": 3, "method": "shutdown"},
        {"id": 4, "method": "textDocument/hover", "params": {}},
        {"method": "exit"},
    ]
    data = b""
    for request in requests:
        body = json.dumps({"jsonrpc": "2.0", **request}).encode()
        data += b"Content-Length: %d\r\n\r\n" % len(body) + body
    done = subprocess.run(
        [sys.executable, "-m", "troth", "lsp"], cwd=project, input=data, capture_output=True, check=False
    )
    answers = [json.loads(part.partition(b"\r\n\r\n")[2]) for part in done.stdout.split(b"Content-Length: ")[1:]]
    codes = {answer["id"]: answer.get("error", {}).get("code") for answer in answers if "id" in answer}
    assert codes == {1: -32002, 2: None, 3: None, 4: -32600}
    assert done.returncode == 0


def test_it_leaves_when_it_is_told_to(project):
    """Shutdown and exit end it with 0, exit alone with 1, Ctrl-C without a word."""
    with Client(project, PULL) as client:
        assert client.leave() == 0
    with Client(project, PULL) as client:
        client.notify("exit", None)
        assert client.process.wait(DEADLINE) == 1
    with Client(project, PULL) as client:
        client.process.send_signal(signal.SIGTERM)
        assert ends(client.process)
