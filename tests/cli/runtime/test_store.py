"""`troth store`: from a file to PostgreSQL, and what is checked."""

import contextlib
import json
import sqlite3
import subprocess
import sys
import time

import psycopg
import pytest

from troth.cli.app import run as main
from troth.runtime import Runtime
from troth.runtime.engine import EmbeddedEngine, Step, Wait
from troth.runtime.sessions import Hypervisor
from troth.runtime.store import RunState, commit_point, open_store
from troth.runtime.store.postgres.address import parse
from troth.runtime.store.promise_records import NewPromise, PromiseState
from troth.runtime.store.sqlite.message_index import index_messages
from troth.testing.postgres_server import PostgresServer

POINT = commit_point("test.cli.store", "what is moved to another store")


@pytest.fixture(scope="module")
def server():
    missing = PostgresServer.missing()
    if missing is not None:
        pytest.skip(missing)
    with PostgresServer() as server:
        yield server


@pytest.fixture
def run(capsys):
    def run(*words):
        code = main(list(words))
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def double(number):
    return number * 2


def waits(number):
    first = yield Step("double", double, number)
    second = yield Wait("more")
    return first + second


@pytest.fixture
def file(tmp_path, monkeypatch):
    """A file with a run that is over, one that waits, a conversation and a session."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    path = tmp_path / "troth.db"
    with EmbeddedEngine(path, decisions=[waits]) as engine:
        for run_id in ("done", "waiting"):
            engine.start(waits, 3, run_id=run_id)
        engine.signal("done", "more", 4)
        assert engine.result("done", 30) == 10
    with Runtime(path) as runtime:
        conversation = runtime.conversations.open(Parrot(), "talk")
        conversation.send("hello")
        conversation.run()
    with Hypervisor(path, audit_key="a key that is only used in tests") as hypervisor:
        session = hypervisor.create("ops")
        hypervisor.join(session, "a", score=0.8)
    return path


class Parrot:
    def step(self, conversation):
        conversation.say("hello yourself")


def test_a_file_is_moved_and_its_runs_go_on(server, run, file):
    """Counts and digests agree, the run that waited takes its signal in the new place, and numbers go on."""
    target = server.address()
    code, out, _ = run("store", "migrate", str(file), target)
    assert code == 0
    assert "counts and digests agree on both sides" in out
    with open_store(file) as old, open_store(target) as new:
        assert [run.id for run in new.runs()] == [run.id for run in old.runs()]
        assert new.history("done") == old.history("done")
        assert new.events("conversation/talk") == old.events("conversation/talk")
        audit = [store.read_sessions(lambda rows: rows.audit()) for store in (old, new)]
        assert audit[0] == audit[1] != []
    with EmbeddedEngine(target, decisions=[waits]) as engine:
        engine.signal("waiting", "more", 5)
        assert engine.result("waiting", 60) == 11
        assert engine.store.run("waiting").state is RunState.COMPLETED
    with Runtime(target) as runtime:
        conversation = runtime.conversations.open(Parrot(), "talk")
        conversation.send("again")
        conversation.run()
        events = list(conversation.events())
        assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert run("store", "check", "--store", target)[0] == 0


def test_promises_and_what_a_server_keeps_are_moved(server, run, tmp_path):
    """An open promise of a run is settled by its end in the new place, and new promises are numbered behind the old."""

    def promise(name, work):
        return NewPromise(name, "talk", work, name, "title", None, None, 60.0, 1.0)

    def write(tx):
        tx.add_run("run", "d", "[]", 1.0)
        tx.promises.add(promise("run", "run"))
        for name in ("over", "open"):
            tx.promises.add(promise(name, "task"))
        tx.promises.settle("task", "over", PromiseState.DONE, 2.0, result="[1]")
        tx.promises.add_delivery("open", "hit", 2.0, text="a hit")
        tx.server.claim("run", "run", "shop", 1.0, {"workflow": "w"})
        for number in range(4):
            tx.append_event("log", "said", number, 1.0)
        tx.trim("log", 2)

    path, target = tmp_path / "troth.db", server.address()
    with open_store(path) as old:
        old.commit(POINT, write)
        assert run("store", "migrate", str(path), target)[0] == 0
        with open_store(target) as new:
            assert new.promises.newest() == old.promises.newest()
            assert new.promises.counts() == old.promises.counts()
            assert new.promises.states() == old.promises.states() == {"done": 1, "open": 2}
            assert new.promises.deliveries() == old.promises.deliveries()
            assert new.promises.shortest_retention() == 60.0
            assert new.events("log") == old.events("log")
            assert new.read_server(lambda rows: rows.belonging("run", "run")).details == {"workflow": "w"}
            new.commit(POINT, lambda tx: tx.finish_run("run", RunState.COMPLETED, 3.0, result="2"))
            new.commit(POINT, lambda tx: tx.promises.add(promise("later", "task")))
            assert [found.id for found in new.promises.newest()] == ["later", "open", "over", "run"]
            assert new.promises.find("run").result == 2
            assert new.promises.counts().is_balanced


def test_it_can_be_moved_again(server, run, file):
    """The second time nothing is written; a store that holds something else is refused, and left as it is."""
    target = server.address()
    assert json.loads(run("store", "migrate", str(file), target, "--json")[1])["written"] is True
    again = json.loads(run("store", "migrate", str(file), target, "--json")[1])
    assert again["written"] is False
    assert {table["table"]: table["rows"] for table in again["tables"]}["runs"] == 2
    with EmbeddedEngine(file, decisions=[waits]) as engine:
        engine.start(waits, 1, run_id="later")
    code, _, err = run("store", "migrate", str(file), target)
    assert (code, "differs from" in err, "history, runs" in err) == (2, True, True)
    with open_store(target) as store:
        assert store.run("later") is None


def test_it_is_moved_again_after_the_store_has_gone_on(server, run, file):
    """What was moved is not moved a second time, and nothing that was done since is undone. A search is no change."""
    target = server.address()
    assert run("store", "migrate", str(file), target)[0] == 0
    with EmbeddedEngine(target, decisions=[waits]) as engine:
        engine.signal("waiting", "more", 5)
        assert engine.result("waiting", 60) == 11
    code, out, _ = run("store", "migrate", str(file), target)
    assert (code, "were moved to" in out, "which has changed since" in out) == (0, True, True)
    with open_store(file) as store:
        index_messages(store._ask, lambda work: store.commit(POINT, work))
    again = json.loads(run("store", "migrate", str(file), target, "--json")[1])
    assert (again["written"], again["has_gone_on"]) == (False, True)
    with open_store(target) as store:
        assert store.run("waiting").state is RunState.COMPLETED


def test_a_store_with_something_else_is_left_alone(server, run, file):
    """What is there did not come from a file."""
    target = server.address()
    with EmbeddedEngine(target, decisions=[waits]) as engine:
        engine.start(waits, 1, run_id="other")
    code, _, err = run("store", "migrate", str(file), target)
    assert (code, "is not empty: it has rows in history, runs" in err) == (2, True)


def test_it_is_killed_in_the_middle(server, run, file):
    """Nothing of it is there, and the next time everything is."""
    target = server.address()
    place = parse(target)
    open_store(target).close()
    with psycopg.connect(place.conninfo, autocommit=True) as other:
        other.execute("BEGIN")
        other.execute(
            f"LOCK TABLE {place.schema}.workspace IN SHARE MODE"
        )  # the last table of all: read, and not written
        moving = subprocess.Popen([sys.executable, "-m", "troth", "store", "migrate", str(file), target])
        try:
            deadline = time.monotonic() + 60
            while not other.execute(
                "SELECT 1 FROM pg_locks WHERE relation = %s::regclass AND NOT granted", (f"{place.schema}.workspace",)
            ).fetchone():
                assert moving.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.02)
        finally:
            moving.kill()
            moving.wait(60)
        other.execute("ROLLBACK")
    with open_store(target) as store:
        assert store.runs() == []
    moved = json.loads(run("store", "migrate", str(file), target, "--json")[1])
    assert moved["written"] is True
    assert {table["table"]: table["rows"] for table in moved["tables"]}["runs"] == 2


def test_a_file_in_use_is_not_moved(server, run, file):
    """Somebody works on it: what they write next would be lost."""
    with EmbeddedEngine(file, decisions=[waits]) as engine:
        engine.start(waits, 1, run_id="now")
        code, _, err = run("store", "migrate", str(file), server.address())
    assert (code, "works on 'run:" in err) == (2, True)


def test_what_cannot_be_moved(server, run, file, tmp_path):
    """Another kind of address, a file that is not there, a server that is not there; no password is shown."""
    assert run("store", "migrate", str(file), "mysql://x/y")[0] == 2
    assert run("store", "migrate", str(tmp_path / "none.db"), server.address())[0] == 2
    code, _, err = run("store", "migrate", str(file), "postgresql://app:pa55word@127.0.0.1:1/app")
    assert code == 1
    assert "could not be opened" in err
    assert "pa55word" not in err


def test_damage_is_told(run, file):
    """By the run that it belongs to."""
    assert run("store", "check", "--store", str(file))[0] == 0
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.execute("DELETE FROM history WHERE run_id = 'done' AND seq = 2")
        connection.execute("DELETE FROM events WHERE stream = 'conversation/talk' AND seq = 1")
        connection.commit()
    code, out, _ = run("store", "check", "--store", str(file), "--json")
    found = json.loads(out)
    assert (code, found["is_sound"]) == (1, False)
    assert any("run 'done'" in problem for problem in found["problems"])
    assert any("conversation/talk" in problem for problem in found["problems"])


def test_commands_take_an_address(server, run, tmp_path, monkeypatch):
    """`--store` and TROTH_STORE, wherever a file could stand; what is printed holds no password."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.py").write_text("def greet(name):\n    return f'hello {name}'\n")
    (tmp_path / "flow.yaml").write_text(
        "troth: 1\nname: greet\ninputs:\n  name: string\nsteps:\n  - id: say\n    function: shop:greet\n"
        "    inputs: {name: inputs.name}\n"
    )
    address = server.address().replace("troth@", "troth:pa55word@")
    code, out, err = run("run", "flow.yaml", "--input", "name=you", "--store", address)
    assert code == 0, err
    assert "pa55word" not in out + err
    monkeypatch.setenv("TROTH_STORE", address)
    code, out, err = run("runs", "list")
    assert (code, "greet" in out, "pa55word" in out + err) == (0, True, False)
    sys.modules.pop("shop", None)


@pytest.mark.parametrize("command", [["store", "check"], ["runs", "list"], ["worker", "--once"], ["audit", "verify"]])
@pytest.mark.parametrize(
    "address",
    [
        pytest.param("postgresql+psycopg://app:s3cret@db/app", id="of another library"),
        pytest.param("PostgreSQL://app:s3cret@db/app", id="capitals"),
        pytest.param("host=db user=app password=s3cret", id="a connection string"),
    ],
)
def test_what_looks_like_an_address_is_no_file(run, command, address, tmp_path, monkeypatch):
    """It is refused before a file of that name is looked for, and the password is not shown."""
    monkeypatch.chdir(tmp_path)
    code, out, err = run(*command, "--store", address)
    assert code == 2
    assert "postgresql://user@host/database" in err
    assert "s3cret" not in out + err
    assert list(tmp_path.iterdir()) == []
