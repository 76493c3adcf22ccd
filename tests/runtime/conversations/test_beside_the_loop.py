"""On a database, async code of ours never reads or commits on the loop: everybody else there would wait."""

import asyncio

import pytest

from troth.runtime import Runtime, Workflow, step
from troth.runtime.agents import Agent
from troth.runtime.conversations import Conversations
from troth.runtime.store.postgres.store import PostgresStore


class WatchedStore(PostgresStore):
    """Notes what is asked and committed while a loop waits for it."""

    def __init__(self, address):
        self.on_a_loop = []
        super().__init__(address)

    def _note(self, what):
        if asyncio._get_running_loop() is not None:
            self.on_a_loop.append(what)

    def events(self, stream, **options):
        self._note(f"events of {stream}")
        return super().events(stream, **options)

    def last_event(self, stream):
        self._note(f"the last event of {stream}")
        return super().last_event(stream)

    def commit(self, point, work):
        self._note(point)
        return super().commit(point, work)


@pytest.fixture
def store(postgres_server):
    with WatchedStore(postgres_server.address()) as opened:
        yield opened


class Echo(Agent):
    """Says again what was said last."""

    async def astep(self, conversation):
        talk = await conversation.amessages()
        await conversation.asay(f"you said: {talk[-1].text}")


def test_an_agent_that_looks_at_the_talk(store):
    """`amessages` has what `messages` has, also what the agent has just said."""

    class Asks(Agent):
        async def astep(self, conversation):
            first = await conversation.amessages()
            await conversation.asay("and you?")
            second = await conversation.amessages()
            await conversation.asay(f"{len(first)}, then {len(second)}")

    async def main():
        talk = await home.aopen(Asks())
        await talk.asend("hello")
        await talk.arun()
        return await talk.amessages()

    with Conversations(store) as home:
        messages = asyncio.run(main())
    assert [message.text for message in messages] == ["hello", "and you?", "1, then 2"]
    assert store.on_a_loop == []


@pytest.mark.parametrize("way", ["arun", "run"])
def test_an_agent_in_a_workflow(store, way):
    """Its talk is opened, read and run beside the loop that the step is on."""
    workflow = Workflow("talk", step("ask", agent="echo", inputs={"prompt": {"value": "hello"}}))
    with Runtime(store, agents={"echo": Echo()}) as runtime:
        report = asyncio.run(runtime.arun(workflow)) if way == "arun" else runtime.run(workflow)
    assert report.output == "you said: hello"
    assert store.on_a_loop == []
