"""`troth chat` in a real terminal: what ends in the background arrives, and Ctrl-C stops the turn and nothing else."""

import os
import select
import signal
import subprocess
import sys
import time

import pytest

from troth.runtime import Runtime
from troth.runtime.jobs.job_files import JobFiles
from troth.runtime.jobs.machine import folder_of

AGENTS = """
import asyncio
import sys
import time


class Helper:
    def __init__(self, runtime):
        self.runtime = runtime

    def answer(self, conversation):
        message = conversation.messages()[-1]
        if message.role == "system":
            return f"I see: {message.text.splitlines()[0]}"
        if message.text.startswith("start "):
            job = self.runtime.jobs.start(message.text.removeprefix("start ")).promise.id
            return f"started {job}"
        if message.text == "fail":
            raise ValueError("no idea")
        if message.text == "leave":
            sys.exit(3)
        return f"you said {message.text}"


class Sync(Helper):
    def step(self, conversation):
        if conversation.messages()[-1].text == "think":
            conversation.say("thinking")
            while True:
                time.sleep(0.01)
        conversation.say(self.answer(conversation))


class Async(Helper):
    async def astep(self, conversation):
        if conversation.messages()[-1].text == "think":
            await conversation.asay("thinking")
            await asyncio.sleep(60)
        await conversation.asay(await asyncio.to_thread(self.answer, conversation))


no_agent = 5
"""


class Silent:
    """An agent that is only looked through."""

    def step(self, conversation):
        """Say nothing."""


class Terminal:
    """A program in a terminal of its own."""

    def __init__(self, folder, *args):
        self.master, slave = os.openpty()
        command = [sys.executable, "-m", "troth", "chat", *args]
        name = os.ttyname(slave)
        self.pid = os.posix_spawn(
            sys.executable,
            command,
            {**os.environ, "PYTHONPATH": str(folder), "TROTH_STORE": str(folder / "troth.db"), "NO_COLOR": "1"},
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, name, os.O_RDWR, 0),  # the first one that a new session opens controls it
                (os.POSIX_SPAWN_DUP2, 0, 1),
                (os.POSIX_SPAWN_DUP2, 0, 2),
            ],
            setsid=True,
        )
        os.close(slave)
        self.shown = ""
        self.at = 0
        self.code = None

    def until(self, text, seconds=30.0):
        """Read until `text` is shown, after what was waited for before."""
        deadline = time.monotonic() + seconds
        while (place := self.shown.find(text, self.at)) < 0:
            assert time.monotonic() < deadline, f"{text!r} is not in {self.shown[self.at :]!r}"
            if select.select([self.master], [], [], 0.1)[0]:
                try:
                    self.shown += os.read(self.master, 4096).decode(errors="replace").replace("\r", "")
                except OSError:  # the other end is closed
                    assert text in self.shown[self.at :], self.shown
        self.at = place + len(text)

    def type(self, text):
        os.write(self.master, text.encode())

    def wait(self, seconds=30.0):
        deadline = time.monotonic() + seconds
        while self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.code = os.waitstatus_to_exitcode(status)
            assert time.monotonic() < deadline, f"it does not end: {self.shown!r}"
            if select.select([self.master], [], [], 0.02)[0]:
                try:
                    self.shown += os.read(self.master, 4096).decode(errors="replace").replace("\r", "")
                except OSError:
                    time.sleep(0.01)
        return self.code

    def close(self):
        if self.code is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.master)


@pytest.fixture
def terminal(tmp_path):
    (tmp_path / "talkers.py").write_text(AGENTS, "utf-8")
    opened = []

    def open_(*args):
        opened.append(Terminal(tmp_path, *args))
        return opened[-1]

    yield open_
    for one in opened:
        one.close()
    for folder in folder_of(tmp_path / "troth.db").glob("*/process"):
        process = JobFiles(folder.parent).process()
        if process.lives:
            os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.parametrize("agent", ["Sync", "Async"])
def test_a_talk(terminal, tmp_path, agent):
    """What ends arrives while nobody types; Ctrl-C ends the turn, not the job; what ended meanwhile comes later."""
    go = tmp_path / "go"
    talk = terminal(f"talkers:{agent}", "--conversation", "c-1")
    talk.until("conversation c-1")
    talk.until("> ")
    talk.type("hello\n")
    talk.until("you said hello")
    talk.type("start sleep 0.2; exit 7\n")
    talk.until("started j-")
    talk.until("* `sleep 0.2; exit 7` ended with exit code 7.")
    talk.until("I see: `sleep 0.2; exit 7` ended with exit code 7.")
    talk.type(f"start while ! [ -e {go} ]; do sleep 0.02; done; exit 9\n")
    talk.until("started j-")
    talk.type("think\n")
    talk.until("thinking")
    talk.type("\x03")
    talk.until("Interrupted. Jobs keep running")
    talk.until("> ")
    talk.type("\x03")
    talk.until("Nothing is running here")
    talk.type("fail\n")
    talk.until("The agent failed: ValueError: no idea")
    talk.until("> ")
    talk.type("leave\n")
    talk.until("! The agent failed:")
    talk.until("> ")
    talk.type("\x04")
    assert talk.wait() == 0
    assert "\\x" not in talk.shown  # what clears the line is not shown as letters
    assert "1 job keeps running" in talk.shown
    assert f"`troth chat talkers:{agent} --conversation c-1` continues the conversation" in talk.shown
    go.touch()
    again = terminal(f"talkers.py:{agent}" if agent == "Async" else f"talkers:{agent}", "--conversation", "c-1")
    again.until("ended with exit code 9.")
    again.until("I see:")
    again.until("> ")
    again.type("\x04")
    assert again.wait() == 0
    with Runtime(tmp_path / "troth.db", in_process=False) as runtime:
        counts = runtime.outbox.counts()
        assert (counts.promised, counts.delivered, counts.is_balanced) == (2, 2, True)


@pytest.mark.parametrize("point", ["channel.send.before", "channel.send.after"])
def test_killed_while_something_arrives(terminal, tmp_path, monkeypatch, point):
    """The next talk shows it, also where it was written into the log before: there it stands once."""
    monkeypatch.setenv("TROTH_FAILPOINTS", f"{point}=kill")
    talk = terminal("talkers:Sync", "--conversation", "c-1")
    talk.until("> ")
    go = tmp_path / "go"
    talk.type(f"start while ! [ -e {go} ]; do sleep 0.02; done; exit 7\n")
    talk.until("started j-")
    talk.until("> ")
    go.touch()
    assert talk.wait() == -signal.SIGKILL
    monkeypatch.delenv("TROTH_FAILPOINTS")
    again = terminal("talkers:Sync", "--conversation", "c-1")
    again.until("* `while ")
    if point == "channel.send.before":  # otherwise the killed program may have begun the agent's turn
        again.until("I see: `while ")
    again.until("> ")
    deadline = time.monotonic() + 30
    with Runtime(tmp_path / "troth.db", in_process=False) as runtime:
        while runtime.outbox.counts().delivered < 1:
            assert time.monotonic() < deadline
            time.sleep(0.02)
    again.type("\x04")
    assert again.wait() == 0
    with Runtime(tmp_path / "troth.db", in_process=False) as runtime:
        messages = runtime.conversations.open(Silent(), "c-1").messages()
        assert [message.role for message in messages].count("system") == 1


def test_a_talk_through_pipes(terminal, tmp_path):
    """Lines in, lines of JSON out; ends with the input."""
    command = [sys.executable, "-m", "troth", "chat", "talkers:Sync", "--json", "--store", str(tmp_path / "troth.db")]
    done = subprocess.run(
        command, input="hello\n", capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert '{"role": "assistant", "text": "you said hello"}' in done.stdout.splitlines()


@pytest.mark.parametrize(
    ("agent", "says"),
    [
        pytest.param("talkers", "names no agent", id="no name"),
        pytest.param("talkers:nobody", "names no agent", id="nothing of that name"),
        pytest.param("nowhere:x", "names no agent", id="no such module"),
        pytest.param("talkers:no_agent", "neither `step` nor `astep`", id="no agent"),
    ],
)
def test_wrong_use(terminal, tmp_path, agent, says):
    """Told, with exit code 2, before anything is written."""
    done = subprocess.run(
        [sys.executable, "-m", "troth", "chat", agent, "--store", str(tmp_path / "troth.db")],
        capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert says in done.stderr
