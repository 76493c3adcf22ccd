"""A server with agents that OpenAI's own client talks to."""

import contextlib

import openai
import pytest
from tests.server.service import Served, fill

AGENTS = '''
import asyncio
import os
from pathlib import Path

from troth.runtime import Runtime
from troth.runtime.agents import Agent, ToolCallingAgent
from troth.runtime.promises import RetryPolicy
from troth.server import Server
from troth.server.webhooks import Webhooks
from troth.testing.scripted import ScriptedModel, call

HERE = Path(__file__).parent


class Parrot(Agent):
    """Says the last message again, word by word."""

    async def astep(self, conversation):
        text = conversation.messages()[-1].text
        for word in text.split():
            conversation.token(word + " ")
        await conversation.asay(text)


class Recaller(Agent):
    """Says everything that it was told."""

    def step(self, conversation):
        conversation.say(" | ".join(f"{m.role}: {m.text}" for m in conversation.messages()))


class Waiter(Agent):
    """Begins to answer, and ends when the file is there that the message names. Writes a line for each beginning."""

    async def astep(self, conversation):
        name = conversation.messages()[-1].text
        with (HERE / f"{name}.begun").open("a") as file:
            file.write("begun\\n")
        conversation.token("waiting")
        while not (HERE / name).exists():
            await asyncio.sleep(0.02)
        if "fail" in name:
            raise ValueError("a secret")
        await conversation.asay("waiting is over")


class Twice(Agent):
    """Says two things."""

    def step(self, conversation):
        conversation.say("one")
        conversation.say("two")


class Broken(Agent):
    def step(self, conversation):
        with (HERE / "broken.begun").open("a") as file:
            file.write("begun\\n")
        raise ValueError("a secret")


class Knowing(Agent):
    """Calls a tool, as a model would ask it to."""

    async def astep(self, conversation):
        model = ScriptedModel("It is sunny.") if conversation.messages()[-1].role == "tool" else ScriptedModel(call("weather"))
        return await ToolCallingAgent(model, [weather]).astep(conversation)


def weather() -> str:
    """The weather."""
    return "sun"


runtime = Runtime(HERE / "shop.db", in_process=False)
WORKFLOWS = sorted(HERE.glob("*.yaml"))
ALL = {
    "parrot": Parrot(), "recaller": Recaller(), "waiter": Waiter(), "twice": Twice(), "broken": Broken(),
    "knowing": Knowing(),
}
QUICK = RetryPolicy(limit=1000, first=0.05, longest=0.5)


def server():
    hooks = Webhooks(allow=["127.0.0.0/8"], policy=QUICK)
    return Server(runtime, agents=ALL, workflows=WORKFLOWS, keys=False, webhooks=hooks)


def keyed():
    return Server(runtime, agents=ALL, workflows=WORKFLOWS)


def traced():
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor

    provider = TracerProvider()
    out = (HERE / "spans.json").open("w")
    provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(out=out, formatter=lambda s: s.to_json(indent=None) + "\\n")))
    trace.set_tracer_provider(provider)
    return server()
'''


def fill_agents(folder):
    fill(folder)
    (folder / "agents.py").write_text(AGENTS)
    return folder


def client_of(served, key="unused", **options):
    return openai.OpenAI(api_key=key, base_url=f"{served.url}/v1", **{"timeout": 60.0, "max_retries": 0, **options})


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """One server for all tests of a module that leave it as it is."""
    served = Served(fill_agents(tmp_path_factory.mktemp("agents")), "agents:server")
    yield served
    served.close()


@pytest.fixture
def client(shared):
    with client_of(shared) as made:
        yield made


@pytest.fixture
def start(tmp_path):
    """Start a server of one's own, as often as one likes, in one folder."""
    fill_agents(tmp_path)
    with contextlib.ExitStack() as stack:

        def begin(name="agents:server", **options):
            served = Served(tmp_path, name, **options)
            stack.callback(served.close)
            return served

        begin.folder = tmp_path
        yield begin
