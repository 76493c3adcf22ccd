"""`kill -9` at every place where a conversation commits: nothing that was acknowledged is lost, nothing happens twice."""

import os
import signal
import subprocess
import sys

import pytest

from troth.runtime.agents.agent import Agent
from troth.runtime.conversations import AlreadyRunning, Conversations, Status
from troth.runtime.store import SqliteStore
from troth.runtime.store.failpoints import points

SCRIPT = """
import asyncio, sys
from pathlib import Path
from troth.runtime.agents.agent import Agent
from troth.runtime.conversations import Conversations
from troth.runtime.store import SqliteStore

folder, color = Path(sys.argv[1]), sys.argv[2]

def work(conversation):
    answered = sum(m.role == "assistant" for m in conversation.messages())
    asked = [m for m in conversation.messages() if m.role == "user"]
    if answered < len(asked):
        return asked[answered].text

class Sync(Agent):
    def step(self, conversation):
        if text := work(conversation):
            conversation.say(f"answer to {text}")
            return True

class Async(Agent):
    async def astep(self, conversation):
        if text := work(conversation):
            await conversation.asay(f"answer to {text}")
            return True

with SqliteStore(folder / "troth.db") as store, Conversations(store) as home:
    conversation = home.open(Sync() if color == "sync" else Async(), "c")
    for text in ("one", "two"):
        conversation.send(text)
        with open(folder / "sent", "a") as sent:
            sent.write(text + "\\n")
    conversation.run() if color == "sync" else asyncio.run(conversation.arun())
    with open(folder / "finished", "w") as done:
        done.write("yes")
"""


def start(folder, color, failpoint=None):
    env = {**os.environ, "TROTH_FAILPOINTS": f"{failpoint}=kill" if failpoint else ""}
    return subprocess.run(
        [sys.executable, "-c", SCRIPT, folder, color], env=env, timeout=60, capture_output=True, text=True, check=False
    )


FAILPOINTS = sorted(
    name for point in points().values() if point.name.startswith("conversation.") for name in point.failpoints
)
QUIET = {  # the first comes after two seconds, if at all; the others with tools: see tests/runtime/agents/test_tool_steps.py
    f"conversation.{name}.{when}" for name in ("beat", "answer", "attempt") for when in ("before", "written", "after")
}


def test_there_are_failpoints():
    """The matrix below is not empty, and has every commit of conversations."""
    assert len(FAILPOINTS) == 3 * 10


@pytest.mark.parametrize("color", ["sync", "async"])
@pytest.mark.parametrize("failpoint", [name for name in FAILPOINTS if name not in QUIET])
def test_killed_and_run_again(tmp_path, failpoint, color):
    """What was sent is there; each message is answered once; no run is left open."""
    first = start(tmp_path, color, failpoint)
    if first.returncode == 0:
        assert failpoint.startswith("conversation.retire"), f"{failpoint} was never reached"
    else:
        assert first.returncode == -signal.SIGKILL, first.stderr
    acknowledged = (tmp_path / "sent").read_text().split() if (tmp_path / "sent").exists() else []

    class Answering(Agent):
        def step(self, conversation):
            talk = conversation.messages()
            asked = [m.text for m in talk if m.role == "user"]
            answered = sum(m.role == "assistant" for m in talk)
            if answered < len(asked):
                conversation.say(f"answer to {asked[answered]}")
                return True
            return False

    with SqliteStore(tmp_path / "troth.db") as store, Conversations(store) as home:
        conversation = home.open(Answering(), "c")
        assert conversation.status is not Status.RUNNING
        conversation.run()
        talk = conversation.messages()
        asked = [m.text for m in talk if m.role == "user"]
        assert asked[: len(acknowledged)] == acknowledged
        assert [m.text for m in talk if m.role == "assistant"] == [f"answer to {text}" for text in asked]
        started = [e.payload["run"] for e in conversation.events() if e.kind == "run.started"]
        ended = [e.payload["run"] for e in conversation.events() if e.kind == "run.ended"]
        assert started == ended
        assert conversation.status is Status.FINISHED


HOLDING = """
import sys, time
from pathlib import Path
from troth.runtime.agents.agent import Agent
from troth.runtime.conversations import Conversations
from troth.runtime.store import SqliteStore

class Held(Agent):
    def step(self, conversation):
        print("holding", flush=True)
        time.sleep(60)

with SqliteStore(Path(sys.argv[1]) / "troth.db") as store, Conversations(store) as home:
    home.open(Held(), "c").run()
"""


def test_another_process_is_seen_and_taken_over_when_it_dies(tmp_path):
    """Running while it lives, interrupted at once when it was killed, and then run by whoever asks."""

    class Done(Agent):
        def step(self, conversation):
            return None

    with (
        SqliteStore(tmp_path / "troth.db") as store,
        Conversations(store) as home,
        subprocess.Popen([sys.executable, "-c", HOLDING, tmp_path], stdout=subprocess.PIPE, text=True) as other,
    ):
        assert other.stdout.readline() == "holding\n"
        conversation = home.open(Done(), "c")
        assert conversation.status is Status.RUNNING
        with pytest.raises(AlreadyRunning, match=f"process {other.pid}"):
            conversation.run()
        other.send_signal(signal.SIGKILL)
        other.wait(30)
        assert conversation.status is Status.INTERRUPTED
        assert conversation.run().outcome is Status.FINISHED
        outcomes = [e.payload["outcome"] for e in conversation.events() if e.kind == "run.ended"]
        assert outcomes == ["interrupted", "finished"]
