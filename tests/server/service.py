"""Servers as users start them: a process on a free port, and the clients that come to it."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx

TROTH = Path(sys.executable).with_name("troth")
PATIENCE = 60.0

FLOW = """\
troth: 1
name: greet
inputs:
  who: string
steps:
  - id: hello
    function: greeting:hello
    inputs: {who: inputs.who}
output: {text: steps.hello}
"""


def wait_until(condition, what="it", patience=PATIENCE):
    """Poll until `condition()` is true, and return its answer."""
    deadline = time.monotonic() + patience
    while True:
        answer = condition()
        if answer:
            return answer
        assert time.monotonic() < deadline, f"{what} did not happen within {patience} s"
        time.sleep(0.02)


class Served:
    """One `troth serve` process."""

    def __init__(self, folder, *args, env=None, key=None, port=0):
        self.folder = folder
        self.key = key
        self.log = (folder / f"server-{time.monotonic_ns()}.log").open("w+b")
        variables = {
            **os.environ,
            "PYTHONUNBUFFERED": "1",
            "PYTHONPATH": os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")])),
            "TROTH_AUDIT_KEY": "k" * 32,
            **(env or {}),
        }
        self.process = subprocess.Popen(
            [TROTH, "serve", *args, "--port", str(port)],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
            env=variables,
        )
        line = self.process.stdout.readline()
        assert "listens on " in line, f"{line!r}: {self.stderr()}"
        self.url = line.split("listens on ")[1].split()[0]

    def stderr(self):
        self.log.flush()
        return Path(self.log.name).read_text(errors="replace")

    def client(self, key=None, **options):
        secret = key or self.key
        headers = {"Authorization": f"Bearer {secret}"} if secret else {}
        return httpx.Client(base_url=f"{self.url}/v1", headers=headers, timeout=PATIENCE, trust_env=False, **options)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(PATIENCE)

    def stop(self):
        """SIGTERM, and wait for the end."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(PATIENCE)
        self.process.stdout.close()
        self.log.close()


APP = '''
import asyncio
from pathlib import Path

from troth.runtime import Action, Runtime, Saga, current
from troth.runtime.agents import Agent
from troth.server import Limits, Server

HERE = Path(__file__).parent


async def opened(name):
    """Wait until somebody makes the file."""
    while not (HERE / name).exists():
        await asyncio.sleep(0.02)


class Parrot(Agent):
    async def astep(self, conversation):
        last = conversation.messages()[-1]
        if last.role == "assistant":
            return  # said before a crash
        text = last.text
        for word in text.split():
            conversation.token(word + " ")
        await conversation.asay(text)


class Patient(Agent):
    """Answers when the file `go` is there; writes a line for each step that it begins."""

    async def astep(self, conversation):
        with (HERE / "steps.txt").open("a") as steps:
            steps.write(conversation.id + "\\n")
        await opened("go")
        await conversation.asay("done")


class Loud(Agent):
    """Says very much."""

    async def astep(self, conversation):
        for _ in range(16):
            conversation.token("x" * 1_000_000)
            await asyncio.sleep(0.06)  # so that each is an entry of its own
        await conversation.asay("done")


class Broken(Agent):
    def step(self, conversation):
        raise ValueError("no")


class Promiser(Agent):
    """Says what can be promised here, and promises it."""

    async def astep(self, conversation):
        binding = current()
        outcome = await runtime.promises.astart(str(HERE / "gated.yaml"), inputs={})
        await conversation.asay(f"{binding.capability.name} {type(outcome).__name__} {outcome.promise.id}")


def pay():
    return 7


def refund():
    pass


def ship():
    raise ValueError("no parcel")


runtime = Runtime(HERE / "shop.db", in_process=False)
saga = Saga("parcel")
saga.step("pay", do=pay, undo=refund)
saga.step("ship", do=ship, undo=None)
AGENTS = {"parrot": Parrot(), "patient": Patient(), "broken": Broken(), "loud": Loud(), "promiser": Promiser()}
WORKFLOWS = [*sorted(HERE.glob("*.yaml")), saga]


def add(a, b):
    with (HERE / "acts.txt").open("a") as acts:
        acts.write("add\\n")
    return a + b


def behaves(session, agent):
    return agent != "villain"


def governed():
    from troth.runtime import Hypervisor

    runtime.hypervisor = Hypervisor(runtime.store, verifier=behaves)
    runtime.hypervisor.register(Action("add", add, read_only=True))
    return server()


def server():
    return Server(runtime, agents=AGENTS, workflows=WORKFLOWS, keys=False)


def small():
    limits = Limits(
        body=20_000, header_time=1, body_time=1, idle_time=2, write_time=1, keep_alive=0.2, turns=2, streams=5, wait=5,
        lag=50,
    )
    return Server(runtime, agents=AGENTS, workflows=WORKFLOWS, keys=False, limits=limits)


def forgetful():
    return Server(runtime, agents=AGENTS, workflows=WORKFLOWS, keys=False, limits=Limits(keep=1.0))


def hasty():
    return Server(runtime, agents=AGENTS, workflows=WORKFLOWS, keys=False, limits=Limits(drain=0.1))


def keyed():
    return Server(runtime, agents=AGENTS, workflows=WORKFLOWS)
'''

STEPS = """
import asyncio
import time
from pathlib import Path

from troth.runtime import current_step

HERE = Path(__file__).parent


def hello(who):
    return f"hello {who}"


def gate():
    with (HERE / "gates.txt").open("a") as gates:
        gates.write(current_step().key + "\\n")
    while not (HERE / "go").exists():
        time.sleep(0.02)
    return "open"


async def agate():
    with (HERE / "gates.txt").open("a") as gates:
        gates.write(current_step().key + "\\n")
    while not (HERE / "go").exists():
        await asyncio.sleep(0.02)
    return "open"


def fail():
    if not (HERE / "repaired").exists():
        raise ValueError("not repaired")
    return "well"
"""

FLOWS = {
    "greet": FLOW,
    "gated": "troth: 1\nname: gated\nsteps:\n  - {id: gate, function: 'greeting:gate'}\n",
    "agated": "troth: 1\nname: agated\nsteps:\n  - {id: gate, function: 'greeting:agate'}\n",
    "asks": "troth: 1\nname: asks\non_error: stop\nsteps:\n  - {id: sure, approval: really?}\n  - {id: well, function: 'greeting:fail'}\n",
}


def fill(folder):
    """The files of a small service."""
    for name, text in FLOWS.items():
        (folder / f"{name}.yaml").write_text(text)
    (folder / "greeting.py").write_text(STEPS)
    (folder / "app.py").write_text(APP)
    return folder


def frames(text):
    """The frames of an event stream, as (id, event, data)."""
    found = []
    for block in text.replace("\r\n", "\n").split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if line and not line.startswith(":"))
        if fields:
            found.append((int(fields.get("id", -1)), fields.get("event"), json.loads(fields["data"])))
    return found
