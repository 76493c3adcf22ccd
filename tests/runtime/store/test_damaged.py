"""Bytes change on a disk: what cannot be read any more is an error with a name, and hides nothing beside it."""

import contextlib
import json
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time

import pytest

from troth.errors import TrothError
from troth.runtime import Runtime, Workflow, step
from troth.runtime.agents import Agent
from troth.runtime.conversations import Conversations
from troth.runtime.engine import EmbeddedEngine, Step, StepFailedError, Wait
from troth.runtime.store import DamagedStoreError, RunState, SqliteStore, StoreError

RUNS = ("asked", "failed", "stopped", "answered")


class Echo(Agent):
    """Says one word."""

    def step(self, conversation):
        conversation.say(f"heard {len(conversation.messages())}")


def ident(value):
    return value


def fail():
    raise ValueError("no: ünïcode")


def plain(number):
    yield Step("one", ident, number)
    with contextlib.suppress(StepFailedError):
        yield Step("two", fail)
    yield Wait("never", timeout=0.001)


A = {"function": ident, "inputs": {"value": "inputs.text"}}
ASKING = Workflow(
    "asking",
    step("a", **A, undo=lambda: None),
    step("e", each="inputs.items", item="it", steps=[step("i", function=ident, inputs={"value": "it"})]),
    step("ok", approval="Go?", timeout="1h"),
    step("z", function=ident, inputs={"value": "steps.a"}),
    inputs={"text": "string", "items": {"type": "list", "items": "integer"}},
)
FAILING = Workflow(
    "failing",
    step("a", **A, undo=lambda: None),
    step("b", function=fail, retry={"attempts": 2, "delay": "1ms"}),
    inputs={"text": "string"},
)
STOPPING = Workflow(
    "stopping", step("t", agent="echo", inputs={"prompt": "inputs.text"}), step("b", function=fail),
    inputs={"text": "string"}, on_error="stop", budget={"time": "1h", "tokens": 1000},
)  # fmt: skip


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """A store with something of everything in it."""
    path = tmp_path_factory.mktemp("sound") / "runs.db"
    with Runtime(path, agents={"echo": Echo()}) as runtime:
        runtime.run(ASKING, {"text": "ä" * 9, "items": [1, 2]}, run_id="asked", wait=False)
        runtime.run(ASKING, {"text": "é" * 9, "items": [3]}, run_id="answered", wait=False)
        runtime.approve("answered", by="ann")
        runtime.attach("answered")
        runtime.run(FAILING, {"text": "ü" * 9}, run_id="failed", check=False)
        runtime.run(STOPPING, {"text": "ö" * 9}, run_id="stopped", check=False)
    with EmbeddedEngine(path) as engine, contextlib.suppress(TrothError):
        engine.run(plain, 1, run_id="plain")
    with Conversations(path) as home:
        conversation = home.open(Echo(), "talk")
        conversation.send("hello ü" * 4)
        conversation.run()
    return path


@pytest.fixture
def path(sound, tmp_path):
    return shutil.copy(sound, tmp_path / "runs.db")


def change(path, statement, *values):
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        assert connection.execute(statement, values).rowcount > 0


# ---- one row


DAMAGES = [
    pytest.param("UPDATE runs SET args = substr(args, 1, 9) WHERE id = 'failed'", id="JSON that ends in the middle"),
    pytest.param("UPDATE runs SET args = '{}' WHERE id = 'failed'", id="other JSON"),
    pytest.param("UPDATE runs SET result = '{' , state = 'completed' WHERE id = 'failed'", id="a result"),
    pytest.param("UPDATE runs SET error = '[1]' WHERE id = 'failed'", id="an error that is no mapping"),
    pytest.param("UPDATE runs SET label = CAST(x'ff41' AS TEXT) WHERE id = 'failed'", id="text that is no UTF-8"),
    pytest.param("UPDATE runs SET state = 'fbiled' WHERE id = 'failed'", id="a state that there is not"),
    pytest.param("UPDATE runs SET created_at = 1e300 WHERE id = 'failed'", id="a time that is none"),
    pytest.param("UPDATE runs SET created_at = -1e300 WHERE id = 'failed'", id="a time long ago"),
    pytest.param("UPDATE runs SET created_at = 'then' WHERE id = 'failed'", id="a text for a time"),
    pytest.param("UPDATE runs SET decision = x'00ff' WHERE id = 'failed'", id="bytes for a name"),
    pytest.param("UPDATE history SET args = '[' WHERE run_id = 'failed' AND args IS NOT NULL", id="a step's arguments"),
    pytest.param("UPDATE history SET data = 'x' WHERE run_id = 'failed' AND what = 'done'", id="a step's result"),
    pytest.param("UPDATE history SET what = 'dome' WHERE run_id = 'failed' AND what = 'done'", id="a step's state"),
    pytest.param("UPDATE history SET branch = 'x.0/' WHERE run_id = 'failed' AND step = 1", id="a step's branch"),
    pytest.param(
        "UPDATE history SET data = CAST(x'ff' AS TEXT) WHERE run_id = 'failed' AND what = 'attempt'", id="an attempt"
    ),
    pytest.param("DELETE FROM history WHERE run_id = 'failed' AND seq = 2 AND sub = 0", id="a gap in its history"),
    pytest.param("UPDATE events SET payload = '{}' WHERE stream LIKE 'workflow:failing%'", id="its workflow"),
    pytest.param("DELETE FROM events WHERE stream LIKE 'workflow:failing%'", id="its workflow is gone"),
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_row_is_named_and_hides_nothing(path, damage):
    """The list has the damaged run as such, and every other as it is."""
    change(path, damage)
    with Runtime(path, recover=False) as runtime:
        states = {run.id: run.state for run in runtime.runs()}
        assert states == {"asked": "waiting", "answered": "completed", "stopped": "failed", "failed": "damaged"}
        (damaged,) = runtime.runs(state="damaged")
        assert "'failed'" in damaged.error.message
        with pytest.raises(DamagedStoreError, match="run 'failed'"):
            runtime.show("failed")
        assert runtime.show("answered").succeeded


def test_a_damaged_row_on_the_command_line(path):
    """Exit 1, the run by its name, and the others beside it; as JSON too."""
    change(path, "UPDATE runs SET args = '[\"' WHERE id = 'failed'")

    def troth(*words):
        command = [sys.executable, "-m", "troth", "runs", *words, "--store", str(path)]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    listed = troth("list")
    assert listed.returncode == 1
    assert all(name in listed.stdout for name in RUNS)
    assert "? damaged" in listed.stdout
    assert "failed: The record of run 'failed' is damaged" in listed.stderr
    as_json = troth("list", "--json")
    assert as_json.returncode == 1
    assert {run["id"]: run["state"] for run in json.loads(as_json.stdout)}["failed"] == "damaged"
    shown = troth("show", "failed")
    assert (shown.returncode, "run 'failed' is damaged" in shown.stderr) == (1, True)
    assert troth("show", "answered").returncode == 0


@pytest.mark.parametrize(
    ("damage", "what"),
    [
        pytest.param("UPDATE events SET payload = '{' WHERE stream = 'conversation/talk' AND seq = 2", "entry 2", id="JSON"),
        pytest.param("UPDATE events SET payload = '[]' WHERE stream = 'conversation/talk' AND seq = 2", "entry 2", id="other JSON"),
        pytest.param("UPDATE events SET kind = x'ff' WHERE stream = 'conversation/talk' AND seq = 3", "entry 3", id="bytes"),
        pytest.param("DELETE FROM events WHERE stream = 'conversation/talk' AND seq = 2", "entry 2 is missing", id="a gap"),
    ],
)  # fmt: skip
def test_a_damaged_entry_of_a_log(path, damage, what):
    """Reading it, sending to it and running it say which entry; another conversation in the file works."""
    change(path, damage)
    with Conversations(path) as home:
        for use in (lambda one: one.messages(), lambda one: one.status, lambda one: one.run()):
            with pytest.raises(DamagedStoreError, match=what) as told:
                use(home.open(Echo(), "talk"))
            assert "conversation/talk" in str(told.value)
        other = home.open(Echo(), "other")
        other.send("hello")
        assert other.run().outcome == "finished"


def test_a_damaged_signal_is_not_taken(path):
    """It stays where it is, the run does not go on with it, and says why."""
    with Runtime(path, recover=False) as runtime:
        runtime.approve("asked")
    change(path, "UPDATE signals SET payload = '{' WHERE run_id = 'asked'")
    with Runtime(path, recover=False) as runtime:
        with pytest.raises(DamagedStoreError, match="to run 'asked'"):
            runtime.resume("asked", ASKING)
        assert runtime.show("asked").step("ok").state == "waiting"


def test_a_damaged_run_is_not_taken_up_and_keeps_no_other_from_it(path):
    """An engine that goes on with what it finds tells it once, and goes on with the rest."""
    change(path, "UPDATE runs SET state = 'running', args = '[' WHERE id = 'plain'")
    with SqliteStore(path) as store:
        (damaged,) = [run for run in store.runs() if run.state is RunState.DAMAGED]
        assert damaged.id == "plain"
        assert [run.id for run in store.runs(states=[RunState.DAMAGED])] == ["plain"]
    with EmbeddedEngine(path, decisions=[plain]) as engine:
        with pytest.raises(DamagedStoreError, match="run 'plain'"):
            engine.result("plain", 30)
        with contextlib.suppress(TrothError):
            engine.run(plain, 2, run_id="another")
        assert engine.find("another").state is RunState.FAILED


# ---- bytes at random


def look_at_all(path):
    with Runtime(path, recover=False) as runtime:
        runtime.runs()
        for run_id in RUNS:
            with contextlib.suppress(TrothError):
                runtime.show(run_id)


class StillWaitingError(TrothError):
    """A run waits: for a signal whose name has changed, or for an owner that cannot be read."""


@contextlib.contextmanager
def patience(seconds):
    """Ends a wait that would be right, and endless."""

    def ring(*_):
        raise StillWaitingError

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def go_on(path):
    with Runtime(path, agents={"echo": Echo()}) as runtime:
        for flow in (ASKING, FAILING, STOPPING):
            runtime.load(flow)
        for verb in (
            lambda: runtime.approve("asked"),
            lambda: runtime.attach("asked", check=False),
            lambda: runtime.resume("stopped", check=False),
            lambda: runtime.resume("failed", check=False),
            lambda: runtime.cancel("stopped"),
            lambda: list(runtime.events("answered", timeout=0)),
        ):
            with contextlib.suppress(TrothError), patience(2.0):
                verb()


def talk(path):
    with Conversations(path) as home:
        for name in ("talk", "new"):
            with contextlib.suppress(TrothError):
                conversation = home.open(Echo(), name)
                conversation.send("again")
                conversation.run()
                conversation.messages()


def decide(path):
    with EmbeddedEngine(path, decisions=[plain]) as engine:
        for verb in (
            engine.list,
            lambda: engine.resume("plain"),
            lambda: engine.fork("plain", 2).result(30),
            lambda: engine.run(plain, 1, run_id="plain"),
        ):
            with contextlib.suppress(TrothError):
                verb()


USES = [look_at_all, go_on, talk, decide]


def flip(data, chance):
    """Single bits, or letters that mean something to JSON, anywhere behind the head of the file."""
    changed = bytearray(data)
    for _ in range(chance.choice([1, 3, 10, 40])):
        place = chance.randrange(100, len(changed))
        changed[place] = (
            chance.choice(b'"{}[]:,0\xff') if chance.random() < 0.4 else changed[place] ^ 1 << chance.randrange(8)
        )
    return bytes(changed)


def use_damaged(sound, folder, seed, use):
    damaged = folder / f"{use.__name__}-{seed}.db"
    damaged.write_bytes(flip(sound.read_bytes(), random.Random(seed)))
    began = time.monotonic()
    with contextlib.suppress(TrothError):  # anything else is a fault of ours
        use(damaged)
    assert time.monotonic() - began < 60, "it hung"


@pytest.mark.parametrize("use", USES)
def test_flipped_bytes_end_in_words(sound, tmp_path, use):
    """Whatever was hit: it works, or it says so as an error of Troth's."""
    for seed in range(20):
        use_damaged(sound, tmp_path, seed, use)


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("use", USES)
def test_many_flipped_bytes_end_in_words(sound, tmp_path, use):
    """The same six hundred times."""
    for seed in range(1000, 1600):
        use_damaged(sound, tmp_path, seed, use)


def test_a_head_that_cannot_be_read(sound, tmp_path):
    """The names of the tables are text too; SQLite's own message about them may be none."""
    damaged = tmp_path / "runs.db"
    data = sound.read_bytes()
    place = data.index(b"CREATE TABLE runs")
    damaged.write_bytes(data[:place] + b"\xff\xfe\xff" + data[place + 3 :])
    with pytest.raises(StoreError, match="could not be read"):
        look_at_all(damaged)
