"""A small shop with everything that a page shows: runs of every ending, agents, a session, promises, a job."""

import os
import sqlite3
import subprocess
import sys

from tests.server.service import TROTH, Served, wait_until

STEPS = """
import asyncio
import time
from pathlib import Path

HERE = Path(__file__).parent


def charge(order):
    return {"order": order, "total": 42.5}


def refund(order):
    return "refunded"


def no_refund(order):
    raise ConnectionError("the bank does not answer")


def weigh(order):
    return 198 if order == "A7" else 3


def ship(weight):
    if weight > 100 and not (HERE / "repaired").exists():
        raise ValueError(f"parcel too heavy: {weight} kg, and the truck takes 100")
    return {"tracking": "TR-001"}


def long_error(order):
    lines = "\\n".join(f"  line {number} of what the service has to say about {order}" for number in range(40))
    raise ValueError(f"the service does not take the order:\\n{lines}")


def flaky(order):
    raise ConnectionError(f"the warehouse did not answer for {order}")


def slow():
    time.sleep(2)


async def gate():
    while not (HERE / "go").exists():
        await asyncio.sleep(0.02)
    return "open"


def left():
    raise RuntimeError("the left hand dropped it")


def right():
    raise KeyError("the right hand never had it")


def hostile(text):
    raise ValueError(text)


def echo(text):
    return {"said": text}


def line(letters):
    return "y" * letters
"""

FLOWS = {
    "order": """
troth: 1
name: order
inputs: {order: string}
on_error: stop
steps:
  - {id: charge, function: 'steps:charge', inputs: {order: inputs.order}, undo: 'steps:refund'}
  - {id: weigh, function: 'steps:weigh', inputs: {order: inputs.order}}
  - {id: ship, function: 'steps:ship', inputs: {weight: steps.weigh}, retry: {attempts: 3, delay: 100ms}}
output: {parcel: steps.ship}
""",
    "rolls": """
troth: 1
name: rolls
inputs: {order: string}
steps:
  - {id: charge, function: 'steps:charge', inputs: {order: inputs.order}, undo: 'steps:refund'}
  - {id: ship, function: 'steps:ship', inputs: {weight: 500}}
""",
    "resists": """
troth: 1
name: resists
inputs: {order: string}
steps:
  - {id: charge, function: 'steps:charge', inputs: {order: inputs.order}, undo: 'steps:no_refund'}
  - {id: ship, function: 'steps:ship', inputs: {weight: 500}}
""",
    "both": """
troth: 1
name: both
on_error: stop
steps:
  - id: hands
    parallel:
      - {id: left, function: 'steps:left'}
      - {id: right, function: 'steps:right'}
""",
    "late": """
troth: 1
name: late
on_error: stop
steps:
  - {id: slow, function: 'steps:slow', timeout: 50ms}
""",
    "spent": """
troth: 1
name: spent
on_error: stop
budget: {steps: 1}
inputs: {order: string}
steps:
  - {id: charge, function: 'steps:charge', inputs: {order: inputs.order}}
  - {id: weigh, function: 'steps:weigh', inputs: {order: inputs.order}}
""",
    "inner": """
troth: 1
name: inner
on_error: stop
inputs: {order: string}
steps:
  - {id: outer, workflow: flaky.yaml, inputs: {order: inputs.order}}
""",
    "long_error": """
troth: 1
name: long_error
on_error: stop
inputs: {order: string}
steps:
  - {id: tell, function: 'steps:long_error', inputs: {order: inputs.order}}
""",
    "flaky": """
troth: 1
name: flaky
on_error: stop
inputs: {order: string}
steps:
  - {id: fetch, function: 'steps:flaky', inputs: {order: inputs.order}, retry: {attempts: 2, delay: 50ms}}
""",
    "asks": """
troth: 1
name: asks
on_error: stop
inputs: {order: string}
steps:
  - {id: charge, function: 'steps:charge', inputs: {order: inputs.order}}
  - {id: agreed, approval: 'Ship 198 kg by plane?', show: {total: steps.charge.total}}
  - {id: done, function: 'steps:echo', inputs: {text: inputs.order}}
""",
    "split": """
troth: 1
name: split
on_error: stop
steps:
  - id: hands
    parallel:
      - {id: agreed, approval: 'Ship 198 kg by plane?'}
      - {id: gate, function: 'steps:gate'}
""",
    "nap": """
troth: 1
name: nap
steps:
  - {id: rest, sleep: 2h}
""",
    "silence": """
troth: 1
name: silence
on_error: stop
steps:
  - {id: agreed, approval: 'Ship 198 kg by plane?', timeout: 100ms}
""",
    "gated": """
troth: 1
name: gated
steps:
  - {id: gate, function: 'steps:gate'}
""",
    "hostile": """
troth: 1
name: hostile
on_error: stop
inputs: {text: string}
steps:
  - {id: say, function: 'steps:echo', inputs: {text: inputs.text}}
  - {id: fall, function: 'steps:hostile', inputs: {text: inputs.text}}
""",
    "megabytes": """
troth: 1
name: megabytes
on_error: stop
inputs: {letters: integer}
steps:
  - {id: make, function: 'steps:line', inputs: {letters: inputs.letters}}
  - {id: say, function: 'steps:echo', inputs: {text: steps.make}}
  - {id: fall, function: 'steps:hostile', inputs: {text: steps.make}}
""",
    "many": """
troth: 1
name: many
inputs: {items: list}
steps:
  - id: all
    each: inputs.items
    item: item
    steps:
      - {id: one, function: 'steps:echo', inputs: {text: item}}
""",
}

APP = '''
import asyncio
from pathlib import Path

from troth.runtime import Action, Capability, Channel, Receipt, Runtime, bind
from troth.runtime.agents import Agent, Budget, Message, Reply, ToolCall, ToolCallingAgent, Usage
from troth.runtime.promises.attempt import RetryPolicy
from troth.server import Server

HERE = Path(__file__).parent
runtime = Runtime(HERE / "shop.db", in_process=False)


class Clerk(Agent):
    """Says back what it is told, word by word; waits for a file where it is told to."""

    async def astep(self, conversation):
        last = conversation.messages()[-1]
        if last.role == "assistant":
            return
        if last.text.startswith("say letters "):
            await conversation.asay("w" * int(last.text.split()[-1]))
            return
        for word in last.text.split():
            conversation.token(word + " ")
            await asyncio.sleep(0.06)
        if "wait" in last.text:
            while not (HERE / "go").exists():
                await asyncio.sleep(0.02)
        await conversation.asay(f"You said: {last.text}")


def lift(weight):
    return f"lifted {weight}"


def sell():
    raise AssertionError("nobody here may sell anything")


class Scales:
    """A model that asks two tools at once, one of which fails, and then says what it has found out."""

    def reply(self, request):
        if request.messages[-1].role == "user":
            asks = (ToolCall("c1", "weigh", '{"parcel": "A7"}'), ToolCall("c2", "price", '{"parcel": "A7"}'))
            return Reply(Message("assistant", "I look at the scales.", asks), Usage(120, 30, 0.002))
        words = "Parcel A7 weighs 198 kg. What it costs I could not find out."
        return Reply(Message("assistant", words), Usage(180, 25, 0.003))


def weigh(parcel: str) -> str:
    """Weigh a parcel."""
    return "198 kg"


def price(parcel: str) -> str:
    """The price of a parcel."""
    raise ConnectionError("the price list does not answer")


class Pager(Channel):
    """Writes to a file, where that is allowed; says why not where it is not."""

    name = "pager"
    capability = Capability.PUSH

    def send(self, delivery):
        if not (HERE / "pager-on").exists():
            raise ConnectionError("the pager is switched off")
        (HERE / "paged.txt").write_text(delivery.text)
        return Receipt.done("page-1")


def make():
    runtime.hypervisor.register(Action("lift", lift, read_only=True))
    runtime.hypervisor.register(Action("sell", sell))
    pager = Pager()
    runtime.open_channel(pager, policy=RetryPolicy(limit=1, over=0.0, first=0.1))
    if not (HERE / "promised").exists():
        (HERE / "promised").write_text("")
        with bind("conversation-1", pager):
            runtime.promises.start(str(HERE / "order.yaml"), inputs={"order": "B1"}, promise_id="parcel-1", detach="must")
            runtime.jobs.start(["sh", "-c", "echo packing; echo done"], job_id="pack-1")
    return runtime


def server(**options):
    make()
    flows = sorted(HERE.glob("*.yaml"))
    budget = Budget(turns=20, tokens=1000, seconds=365 * 86_400.0)
    desk = ToolCallingAgent(Scales(), [weigh, price], system="You weigh parcels.", budget=budget)
    return Server(runtime, agents={"clerk": Clerk(), "desk": desk}, workflows=flows, **options)


def open_server():
    return server(keys=False)


def keyed():
    return server()


def bare():
    return server(keys=False, pages=False)
'''


def fill(folder):
    """The files of the shop."""
    for name, text in FLOWS.items():
        (folder / f"{name}.yaml").write_text(text.lstrip())
    (folder / "steps.py").write_text(STEPS)
    (folder / "app.py").write_text(APP)
    return folder


class Shop:
    """A shop with its server, and what is done in it."""

    def __init__(self, folder, app="app:open_server", key=None):
        self.folder = fill(folder)
        self.app, self.key = app, key
        self.served = Served(self.folder, app, key=key)

    @property
    def url(self):
        return self.served.url

    @property
    def port(self):
        return int(self.url.rsplit(":", 1)[1])

    def close(self):
        self.served.close()

    def kill(self):
        """SIGKILL, as from a machine that loses its power."""
        self.port_before = self.port
        self.served.kill()
        self.served.close()

    def come_back(self):
        """Start again at the same address."""
        self.served = Served(self.folder, self.app, key=self.key, port=self.port_before)

    def start(self, workflow, **inputs):
        """Begin a run; its id."""
        with self.served.client() as client:
            answer = client.post("/runs", json={"workflow": workflow, "inputs": inputs})
            assert answer.status_code in (200, 202), answer.text
            return answer.json()["id"]

    def run(self, workflow, until=None, **inputs):
        """Begin a run, and wait until it is over, or in the state `until`; its id."""
        run_id = self.start(workflow, **inputs)
        self.wait_for(run_id, until)
        return run_id

    def wait_for(self, run_id, until=None):
        going_on = ("running", "waiting", "interrupted")
        with self.served.client() as client:

            def look():
                state = client.get(f"/runs/{run_id}").json()["state"]
                return state == until if until else state not in going_on

            wait_until(look, f"{run_id} {until or 'over'}")

    def post(self, path, **body):
        with self.served.client() as client:
            answer = client.post(path, json=body)
            assert answer.status_code < 300, answer.text
            return answer.json()

    def get(self, path):
        with self.served.client() as client:
            return client.get(path).json()

    def damage(self, run_id):
        """Make what is kept of a run unreadable."""
        with sqlite3.connect(self.folder / "shop.db") as connection:
            connection.execute("UPDATE runs SET args = 'no json' WHERE id = ?", (run_id,))

    def begin_elsewhere(self):
        """A run `killed-1` that another process carries out; that process."""
        env = {**os.environ, "PYTHONPATH": str(self.folder)}
        command = [TROTH, "run", "gated.yaml", "--store", "shop.db", "--id", "killed-1"]
        process = subprocess.Popen(
            command, cwd=self.folder, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        with self.served.client() as client:

            def is_at_work():
                steps = client.get("/runs/killed-1").json().get("steps", ())
                return any(step["state"] == "running" for step in steps)

            wait_until(is_at_work, "the run of another process, in the middle of its step")
        return process

    def interrupted(self):
        """A run whose process was killed in the middle."""
        process = self.begin_elsewhere()
        process.kill()
        process.wait(60)
        return "killed-1"


def add_session(shop):
    """A session with two agents, one of which was refused something."""
    session = shop.post("/sessions")["id"]
    shop.post(f"/sessions/{session}/members", agent="mover", score=0.9, actions=["lift"])
    shop.post(f"/sessions/{session}/members", agent="novice", score=0.3)
    shop.post(f"/sessions/{session}/activate")
    shop.post(f"/sessions/{session}/execute", agent="mover", action="lift", inputs={"weight": 3})
    with shop.served.client() as client:
        answer = client.post(f"/sessions/{session}/execute", json={"agent": "mover", "action": "sell", "inputs": {}})
        assert answer.status_code == 403, answer.text
    return session


def add_talk(shop, text="What does parcel A7 weigh?", agent="clerk"):
    """A conversation with an answer in it."""
    talk = shop.post("/conversations", agent=agent)["id"]
    shop.post(f"/conversations/{talk}/messages", text=text, run=True)
    wait_until(lambda: shop.get(f"/conversations/{talk}")["status"] == "finished", "the answer")
    return talk


MID_SAGA = """
import asyncio
import sys
from pathlib import Path

from troth.runtime import Hypervisor, Saga

HERE = Path(__file__).parent


def lift():
    return "lifted"


def put_down():
    (HERE / "put-down.txt").write_text("put down")


async def carry():
    (HERE / "carrying").write_text("")
    while not (HERE / "let-go").exists():
        await asyncio.sleep(0.02)


saga = Saga("carry")
saga.step("lift", do=lift, undo=put_down)
saga.step("carry", do=carry, undo=None)
with Hypervisor(HERE / "shop.db") as hypervisor:
    session = hypervisor.create("boss", session_id="mid-saga")
    hypervisor.join(session, "mover", score=0.9)
    hypervisor.activate(session)
    try:
        hypervisor.member(session, "mover").run(saga)
    except Exception as ended:
        print(type(ended).__name__, flush=True)
"""


ASKING_MEMBER = """
from pathlib import Path

from troth.runtime import Hypervisor, Workflow, step

flow = Workflow("move", step("agreed", approval="Carry it over the lawn?"), step("carry", function=lambda: "carried"))
with Hypervisor(Path(__file__).parent / "shop.db") as hypervisor:
    session = hypervisor.create("boss", session_id="garden")
    hypervisor.join(session, "mover", score=0.9)
    hypervisor.activate(session)
    hypervisor.member(session, "mover").run(flow, run_id="move-1")
"""


def begin_program(shop, name, program):
    """A process of its own that works on the shop's store."""
    (shop.folder / f"{name}.py").write_text(program)
    env = {**os.environ, "PYTHONPATH": str(shop.folder), "TROTH_AUDIT_KEY": "k" * 32}
    with (shop.folder / f"{name}.log").open("w") as log:
        return subprocess.Popen([sys.executable, f"{name}.py"], cwd=shop.folder, env=env, stdout=log, stderr=log)


def begin_saga(shop):
    """An agent in the middle of a saga, in a process of its own."""
    process = begin_program(shop, "mid_saga", MID_SAGA)
    wait_until((shop.folder / "carrying").exists, "the middle of the saga")
    return process
