"""Any order of sending, running, pausing, failing and reopening, against a small model of what must be true."""

import asyncio
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from troth.runtime.agents import Agent
from troth.runtime.conversations import Conversations, Status


class Answering(Agent):
    """Answers one message per step; fails when it is told to."""

    def __init__(self):
        self.fail = False

    def step(self, conversation):
        if self.fail:
            self.fail = False
            raise ConnectionError("down")
        talk = conversation.messages()
        asked = [message.text for message in talk if message.role == "user"]
        answered = sum(message.role == "assistant" for message in talk)
        if answered < len(asked):
            conversation.say(asked[answered])
        return answered + 1 < len(asked)


class AsyncAnswering(Answering):
    async def astep(self, conversation):
        await asyncio.sleep(0)
        return Answering.step(self, conversation)


class Talk(RuleBasedStateMachine):
    """The model: which messages were sent, and whether the last run ended well after the last of them."""

    @initialize(color=st.sampled_from([Answering, AsyncAnswering]))
    def begin(self, color):
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "talk.db"
        self.home = Conversations(self.path)
        self.agent = color()
        self.talk = self.home.open(self.agent, "t")
        self.sent: list[str] = []
        self.all_answered = True

    @rule(text=st.text(max_size=5))
    def send(self, text):
        self.talk.send(text)
        self.sent.append(text)
        self.all_answered = False

    @rule(entry=st.sampled_from(["run", "arun"]))
    def run_it(self, entry):
        end = self.talk.run() if entry == "run" else asyncio.run(self.talk.arun())
        assert end.outcome is Status.FINISHED
        self.all_answered = True

    @rule()
    def run_and_fail(self):
        self.agent.fail = True
        try:
            self.talk.run()
        except ConnectionError:
            assert self.talk.status is Status.FAILED
        else:  # pragma: no cover - a failure was swallowed
            raise AssertionError("the step's error was lost")

    @rule()
    def reopen(self):
        self.home.close()
        self.home = Conversations(self.path)
        self.talk = self.home.open(self.agent, "t")

    @invariant()
    def the_log_is_whole(self):
        events = list(self.talk.events())
        assert [event.seq for event in events] == list(range(1, len(events) + 1))
        started = [event.payload["run"] for event in events if event.kind == "run.started"]
        ended = [event.payload["run"] for event in events if event.kind == "run.ended"]
        assert started == ended
        assert self.talk.status is not Status.RUNNING

    @invariant()
    def nothing_is_lost_or_doubled(self):
        talk = self.talk.messages()
        assert [message.text for message in talk if message.role == "user"] == self.sent
        answers = [message.text for message in talk if message.role == "assistant"]
        assert answers == self.sent[: len(answers)]
        if self.all_answered:
            assert answers == self.sent

    def teardown(self):
        if hasattr(self, "home"):
            self.home.close()
            self.folder.cleanup()


TestTalk = Talk.TestCase
TestTalk.settings = settings(max_examples=25, stateful_step_count=15, deadline=None)
