"""Run an agent in a process of its own, on the same store: a thread cannot be killed, and a process can.

The process reads what it has to do, the audit key included, from its stdin: neither its command line nor its
environment shows the key.
"""

import importlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from troth.errors import MisuseError
from troth.runtime.agents.model import Message
from troth.runtime.conversations import Conversation
from troth.runtime.sessions.commit_points import WORK
from troth.runtime.store import Store
from troth.runtime.store.identity import process_started

__all__ = ["Elsewhere", "IsolatedConversation", "check_reference", "end_process", "main"]

_PATIENCE = 5.0  # seconds in which the system takes a killed process away
_LOOK = 0.01


class Elsewhere:
    """Stands for an agent that runs in another process."""

    def step(self, conversation: Conversation) -> NoReturn:
        """Never: the agent is not here."""
        raise MisuseError(f"The agent of {conversation.id!r} runs in its own process. Nothing was run here.")


def check_reference(agent: object) -> str:
    """`agent` if it names one that another process can find."""
    if isinstance(agent, str) and all(agent.partition(":")):
        return agent
    raise MisuseError(
        f"An agent that runs in its own process is named `package.module:name`, "
        f"and {agent!r} is not such a name.\nNothing was opened."
    )


class IsolatedConversation:
    """A conversation whose agent runs in a process of its own. Wholly sync."""

    def __init__(self, store: Store, conversation: Conversation, request: Mapping[str, str]) -> None:
        self.id = conversation.id
        self._store = store
        self._conversation = conversation
        self._request = request
        self._process: subprocess.Popen[str] | None = None

    def send(self, text: str) -> int:
        """Say something to the agent."""
        return self._conversation.send(text)

    def messages(self) -> list[Message]:
        """The talk so far."""
        return self._conversation.messages()

    @property
    def is_running(self) -> bool:
        """Whether its process lives."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start the process, which runs the agent until it has nothing left to say. It is written down who that is."""
        if self.is_running:
            raise MisuseError(f"The conversation {self.id!r} is running already. Nothing was started.")
        # Not `-m`: the package imports this very module, and Python would warn of running it a second time.
        command = [sys.executable, "-c", f"from {__name__} import main; raise SystemExit(main())"]
        self._process = process = subprocess.Popen(command, stdin=subprocess.PIPE, text=True)
        started = json.dumps([process.pid, process_started(process.pid)])
        self._store.commit(WORK, lambda tx: tx.sessions.set_process(self.id, started))
        assert process.stdin is not None
        process.stdin.write(json.dumps(self._request))
        process.stdin.close()  # only now does the agent begin: before that nobody could have ended it

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the process; the answer is its exit code."""
        if self._process is None:
            raise MisuseError(f"The conversation {self.id!r} was not started here.")
        return self._process.wait(timeout)


def end_process(process: str) -> bool:
    """Kill a process that was written down, if it is still that one. Answers whether it is gone."""
    pid, started = json.loads(process)
    if started is None or process_started(pid) != started:
        return True
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return True
    deadline = time.monotonic() + _PATIENCE
    while process_started(pid) == started or _has_threads(pid):
        if time.monotonic() >= deadline:
            return False
        time.sleep(_LOOK)
    return True


def _has_threads(pid: int) -> bool:
    """Whether threads of a process are left whose first thread has ended: until they have, it is not gone."""
    try:
        return len(list(Path(f"/proc/{pid}/task").iterdir())) > 1
    except OSError:  # it is gone; or nothing tells, as beside Linux
        return False


def main() -> int:
    """Be the process: read what to do from stdin, and do it."""
    from troth.runtime.sessions.hypervisor import Hypervisor

    request = json.loads(sys.stdin.read())
    module, _, name = request["agent"].partition(":")
    agent = getattr(importlib.import_module(module), name)
    if isinstance(agent, type) or not (hasattr(agent, "step") or hasattr(agent, "astep")):
        agent = agent()
    key = request["key"].encode("latin-1")
    with Hypervisor(request["store"], audit_key=key, recover=False) as hypervisor:
        member = hypervisor.member(request["session"], request["member"])
        member.converse(agent, request["conversation"]).run()
    return 0
