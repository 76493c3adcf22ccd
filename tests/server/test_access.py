"""Who may do what: keys, scopes, owners, and pages of others."""

import json
import re
import subprocess
from pathlib import Path

import pytest
import websockets.sync.client
from tests.server.service import PATIENCE, TROTH, Served, fill, frames, wait_until
from websockets.exceptions import ConnectionClosed

from troth.runtime import Runtime, bind
from troth.runtime.store import SqliteStore
from troth.server import Keys, Scope


def keys(folder, *args):
    done = subprocess.run(
        [TROTH, "keys", *args, "--store", "shop.db", "--json"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def keyed(tmp_path_factory):
    folder = fill(tmp_path_factory.mktemp("keyed"))
    with SqliteStore(folder / "shop.db") as store:
        made = {
            "other": Keys(store).create("other", ["read", "run", "act", "kill"]),
            "reader": Keys(store).create("shop", ["read"]),
            "ops": Keys(store).create("ops", [Scope.ADMIN]),
            "revoked": Keys(store).create("shop", ["read"]),
        }
    shop = keys(folder, "create", "shop", "--scopes", "read,run,act")
    served = Served(folder, "app:keyed")
    served.keys = {"shop": shop["key"], **{name: one.secret for name, one in made.items()}}
    served.ids = {name: one.row.id for name, one in made.items()}
    yield served
    served.close()


@pytest.mark.parametrize(
    "header",
    [
        pytest.param({}, id="none"),
        pytest.param({"Authorization": "Bearer x"}, id="no key of ours"),
        pytest.param({"Authorization": "Bearer troth_000000000000_" + "x" * 43}, id="an id that is not there"),
        pytest.param({"Authorization": "Basic dTpw"}, id="another scheme"),
    ],
)
def test_without_a_key_nothing_is_told(keyed, header):
    """401, with what to do, for every route but health; also for routes that are not there."""
    with keyed.client() as client:
        client.headers.update(header)
        for path in ("/runs", "/runs/x", "/nosuch", "/openapi.json", "/conversations/x/events"):
            refused = client.get(path)
            assert refused.status_code == 401, path
            assert refused.json()["error"]["code"] == "invalid_key"
            assert refused.headers["www-authenticate"].startswith("Bearer")
        assert client.get("/health").status_code == 200


def test_the_secret_of_a_key_is_what_counts(keyed):
    """The id of a real key with another secret opens nothing."""
    wrong = keyed.keys["shop"][:-1] + ("A" if keyed.keys["shop"][-1] != "A" else "B")
    with keyed.client(wrong) as client:
        assert client.get("/runs").status_code == 401


@pytest.mark.parametrize("count", [500, pytest.param(10_000, marks=pytest.mark.soak)])
def test_many_wrong_keys(keyed, count):
    """401 for each, and whoever has a key is answered beside them."""
    with keyed.client("x") as guessing, keyed.client(keyed.keys["shop"]) as client:
        for number in range(count):
            guessing.headers["Authorization"] = f"Bearer troth_{number:012x}_{'x' * 43}"
            assert guessing.get("/runs").status_code == 401
        assert client.get("/runs").status_code == 200


def test_scopes(keyed):
    """A key that may read begins nothing; one that may not kill does not; metrics are for an admin."""
    with keyed.client(keyed.keys["reader"]) as reader:
        assert reader.get("/runs").status_code == 200
        refused = reader.post("/runs", json={"workflow": "greet", "inputs": {"who": "x"}})
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "missing_scope")
        assert reader.get("/metrics").status_code == 403
        assert reader.get("/audit").status_code == 403
    with keyed.client(keyed.keys["shop"]) as shop:
        assert shop.post("/sessions/x/terminate", json={}).status_code == 403
    with keyed.client(keyed.keys["ops"]) as ops:
        assert ops.get("/metrics").status_code == 200


def test_what_one_owner_began_is_not_seen_by_another(keyed):
    """Not in a list, not by its id, by no verb; another key of the same owner and an admin see it."""
    with (
        keyed.client(keyed.keys["shop"]) as shop,
        keyed.client(keyed.keys["other"]) as other,
        keyed.client(keyed.keys["reader"]) as same,
        keyed.client(keyed.keys["ops"]) as ops,
    ):
        run_id = shop.post("/runs", json={"workflow": "greet", "inputs": {"who": "x"}}).json()["id"]
        talk_id = shop.post("/conversations", json={"agent": "parrot"}).json()["id"]
        session_id = shop.post("/sessions", json={}).json()["id"]
        paths = [f"/runs/{run_id}", f"/conversations/{talk_id}", f"/sessions/{session_id}"]
        for path in paths:
            assert same.get(path).status_code == ops.get(path).status_code == 200
            hidden, never = other.get(path), other.get(f"{path.rpartition('/')[0]}/never")
            assert hidden.status_code == never.status_code == 404
            assert hidden.json()["error"]["code"] == never.json()["error"]["code"]
        for path in (
            f"/runs/{run_id}/events",
            f"/conversations/{talk_id}/events",
            f"/promises?session={talk_id}",
            f"/deliveries?session={run_id}",
            f"/jobs?session={talk_id}",
            f"/audit?session={session_id}",
        ):
            assert other.get(path).status_code == 404, path
        for path in (
            f"/runs/{run_id}/cancel",
            f"/runs/{run_id}/fork",
            f"/runs/{run_id}/approve",
            f"/runs/{run_id}/resume",
            f"/conversations/{talk_id}/run",
            f"/conversations/{talk_id}/interrupt",
            f"/sessions/{session_id}/terminate",
            f"/sessions/{session_id}/activate",
        ):
            assert other.post(path, json={}).status_code == 404, path
        for noun in ("runs", "conversations", "sessions"):
            assert other.get(f"/{noun}").json()["data"] == []
            assert ops.get(f"/{noun}").json()["data"]


BODIES = {
    "messages": {"text": "x"},
    "execute": {"agent": "a", "action": "add"},
    "kill": {"reason": "x"},
    "permit": {"path": "a.txt"},
    "snapshots": {"name": "n"},
    "members": {"agent": "b"},
    "{path}": {"text": "x"},
}


def begun(keyed, shop):
    """One thing of each kind that `shop` began, by the name that it has in the paths."""
    talk = shop.post("/conversations", json={"agent": "promiser"}).json()["id"]
    shop.post(f"/conversations/{talk}/messages", json={"text": "x", "run": True}, headers={"Prefer": "wait=30"})
    said = wait_until(lambda: shop.get(f"/conversations/{talk}").json()["messages"][1:], "the promise")
    session = shop.post("/sessions", json={}).json()["id"]
    shop.post(f"/sessions/{session}/members", json={"agent": "a", "score": 0.9})
    with Runtime(keyed.folder / "shop.db", in_process=False) as runtime, bind(talk):
        runtime.jobs.wait(runtime.jobs.start("true", job_id="j-export").promise.id, PATIENCE)
    return {
        "run_id": shop.post("/runs", json={"workflow": "greet", "inputs": {"who": "x"}}).json()["id"],
        "conversation_id": talk,
        "response_id": shop.post("/responses", json={"model": "parrot", "input": "x"}).json()["id"],
        "promise_id": said[-1]["text"].split()[-1],
        "delivery_id": "j-export-done-1",
        "job_id": "j-export",
        "session_id": session,
        "saga_id": shop.post("/sagas", json={"saga": "parcel"}).json()["id"],
        "agent": "a",
        "act_id": "act_0",
        "name": "n",
        "path": "a.txt",
    }


def test_what_is_somebody_elses_is_answered_as_what_never_was(keyed):
    """In the same words, on every route that takes an id: nobody learns what others have."""
    paths = json.loads((Path(__file__).parent / "openapi.json").read_text())["paths"]
    compared = set()
    with keyed.client(keyed.keys["shop"]) as shop, keyed.client(keyed.keys["other"]) as other:
        things = begun(keyed, shop)
        for template, methods in paths.items():
            names = re.findall(r"{(\w+)}", template)
            if not names or names[0] not in things or names == ["name"]:
                continue
            foreign = template.removeprefix("/v1").format(**things)
            never = template.removeprefix("/v1").format(**{**things, names[0]: "never"})
            body = BODIES.get(template.rpartition("/")[2], {})
            for method in methods:
                options = {"json": body} if method in ("post", "put") else {}
                answers = [other.request(method, path, **options) for path in (foreign, never)]
                words = [
                    re.sub(r"req_\w+", "", answer.text.replace(thing, "?").replace(" ", ""))
                    for answer, thing in zip(answers, (things[names[0]], "never"), strict=True)
                ]
                assert words[0] == words[1], (method, template)
                assert answers[0].status_code in (403, 404), (method, template, answers[0].text)
                if answers[0].status_code == 404:
                    compared.add(names[0])
    (keyed.folder / "go").touch()
    assert compared == set(things) - {"agent", "act_id", "name", "path"}


def test_a_revoked_key_opens_nothing(keyed):
    """Within a moment, in a server that runs, too."""
    with keyed.client(keyed.keys["revoked"]) as client:
        assert client.get("/runs").status_code == 200
        keys(keyed.folder, "revoke", keyed.ids["revoked"])
        wait_until(lambda: client.get("/runs").status_code == 401, "the key is refused")
    listed = {one["id"]: one for one in keys(keyed.folder, "list")}
    assert listed[keyed.ids["revoked"]]["revoked_at"] is not None
    assert not any(secret in json.dumps(list(listed.values())) for secret in keyed.keys.values())


def test_what_is_open_ends_with_its_key(keyed):
    """A stream and a socket that were opened with a key are told, and closed, when it is revoked: nothing more is said."""
    made = keys(keyed.folder, "create", "leaving", "--scopes", "read,run")
    with keyed.client(made["key"]) as client:
        talk = client.post("/conversations", json={"agent": "parrot"}).json()["id"]
        bearer = {"Authorization": f"Bearer {made['key']}"}
        address = keyed.url.replace("http", "ws", 1) + "/v1/socket"
        with (
            websockets.sync.client.connect(address, additional_headers=bearer, proxy=None) as socket,
            client.stream("GET", f"/conversations/{talk}/events") as stream,
        ):
            socket.send(json.dumps({"n": 1, "type": "subscribe", "conversation": talk}))
            assert json.loads(socket.recv(PATIENCE))["type"] == "ack"
            keys(keyed.folder, "revoke", made["id"])
            told = frames("".join(stream.iter_text()))
            with pytest.raises(ConnectionClosed) as closed:
                while True:
                    socket.recv(PATIENCE)
    assert told[-1][1] == "error"
    assert told[-1][2]["error"]["code"] == "invalid_key"
    assert closed.value.rcvd.code == 4401
    with keyed.client(keyed.keys["shop"]) as client:
        assert client.get("/runs").status_code == 200, "what others have open, and ask, is not touched"


def test_no_key_is_in_the_store_or_the_log(keyed):
    """Only digests are kept, and nothing of what was said is logged."""
    files = [*keyed.folder.glob("shop.db*"), *keyed.folder.glob("shop.db.jobs/*/*"), *keyed.folder.glob("*.log")]
    for file in filter(Path.is_file, files):
        data = file.read_bytes()
        for secret in keyed.keys.values():
            assert secret.encode() not in data
            assert secret.split("_", 2)[2].encode() not in data


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        pytest.param({"Host": "localhost:1"}, 200, id="localhost"),
        pytest.param({"Host": "[::1]:8700"}, 200, id="IPv6 loopback"),
        pytest.param({"Host": "evil.example"}, 403, id="a name that was pointed here"),
        pytest.param({"Host": "127.0.0.1.evil.example"}, 403, id="a name that looks like an address"),
        pytest.param({"Host": "10.0.0.1"}, 403, id="another address"),
        pytest.param({"Host": "["}, 403, id="no name at all"),
        pytest.param({"Host": "evil.example@127.0.0.1"}, 403, id="a name before the address"),
        pytest.param({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, 403, id="a picture elsewhere"),
        pytest.param({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, 200, id="a link elsewhere"),
        pytest.param({"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"}, 200, id="its own page"),
        pytest.param({"Origin": "https://evil.example"}, 403, id="a page of somebody else's"),
        pytest.param({"Origin": "null"}, 403, id="a page without an origin"),
        pytest.param({"Origin": "http://["}, 403, id="an origin that is no address"),
    ],
)
def test_without_keys_no_foreign_page_gets_in(client, headers, status):
    """`Host` and `Origin` are checked where nobody shows a key."""
    assert client.get("/runs", headers=headers).status_code == status


def test_its_own_page_gets_in(client, shared):
    """An `Origin` that is the server's own, and nothing else beside it."""
    assert client.get("/runs", headers={"Origin": shared.url}).status_code == 200
    two = [("Origin", shared.url), ("Origin", "https://evil.example")]
    assert client.get("/runs", headers=two).status_code == 403


@pytest.mark.parametrize(
    ("args", "says"),
    [
        pytest.param(["app:server", "--host", "0.0.0.0"], "loopback", id="without a key beyond loopback"),
        pytest.param(["app:keyed"], "no valid key", id="no key was made"),
        pytest.param(["app:nosuch"], "nosuch", id="no such name"),
        pytest.param(["app:AGENTS"], "dict", id="not a server"),
        pytest.param(["--workflows", "nowhere"], "nowhere", id="no such folder"),
        pytest.param(["app:server", "--no-key"], "--no-key", id="a server says that itself"),
        pytest.param(["app:server", "--port", "99999"], "99999", id="no port"),
    ],
)
def test_what_is_not_started_says_why(folder, args, says):
    """Exit 2, one message, nothing listens."""
    done = subprocess.run(
        [TROTH, "serve", *args],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        env={"PATH": "", "PYTHONPATH": str(folder), "HOME": str(folder)},
    )
    assert done.returncode == 2, done.stderr
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_a_port_that_is_taken_is_said(folder, shared):
    """Exit 1, with the number."""
    port = shared.url.rpartition(":")[2]
    done = subprocess.run(
        [TROTH, "serve", "app:server", "--port", port],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        env={"PATH": "", "PYTHONPATH": str(folder), "HOME": str(folder)},
    )
    assert done.returncode == 1, done.stderr
    assert port in done.stderr
