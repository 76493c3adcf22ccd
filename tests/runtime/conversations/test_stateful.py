"""Any order of sending, running, starting, stopping, failing and reopening, through two handles of one conversation."""

import asyncio
import tempfile
import threading
import time
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from troth.runtime.agents import Agent
from troth.runtime.conversations import AlreadyRunning, Conversations, Status, Stopping

LIMIT = 20  # seconds after which a test that hangs is given up
HANDLE = st.sampled_from([0, 1])


class Answering(Agent):
    """Answers one message per step; fails when it is told to."""

    def __init__(self):
        self.fail = False
        self.hold = False
        self.began = threading.Event()

    def wait(self, conversation):
        """Whether it waited to be interrupted."""
        if not self.hold:
            return False
        self.began.set()
        deadline = time.monotonic() + LIMIT
        while not conversation.is_interrupted:
            assert time.monotonic() < deadline, "nobody stopped it"
            time.sleep(0.001)
        return True

    def step(self, conversation):
        if self.wait(conversation):
            return True
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
        if self.hold:
            self.began.set()
            async with asyncio.timeout(LIMIT):
                await asyncio.Event().wait()
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
        self.open()
        self.sent: list[str] = []
        self.all_answered = True

    def open(self):
        self.heard: list[int] = []
        self.talk = self.home.open(self.agent, "t", on_event=[lambda event: self.heard.append(event.seq)])
        self.heard_after = self.talk.look().cursor
        self.handles = [self.talk, self.home.open(self.agent, "t")]

    @rule(text=st.text(max_size=5), handle=HANDLE)
    def send(self, text, handle):
        self.handles[handle].send(text)
        self.sent.append(text)
        self.all_answered = False

    @rule(entry=st.sampled_from(["run", "arun"]), handle=HANDLE)
    def run_it(self, entry, handle):
        talk = self.handles[handle]
        end = talk.run() if entry == "run" else asyncio.run(talk.arun())
        assert end.outcome is Status.FINISHED
        self.all_answered = True

    @rule(handle=HANDLE)
    def start_it(self, handle):
        assert self.end_after(self.handles[handle].start()) == "finished"
        self.all_answered = True

    @rule(starts=HANDLE, stops=HANDLE, meanwhile=st.sampled_from(["nothing", "send", "run again"]))
    def start_and_stop(self, starts, stops, meanwhile):
        self.agent.began.clear()
        self.agent.hold = True
        number = self.handles[starts].start()
        assert self.agent.began.wait(LIMIT)
        assert self.handles[stops].status is Status.RUNNING
        if meanwhile == "send":
            self.send("meanwhile", stops)
        elif meanwhile == "run again":
            with pytest.raises(AlreadyRunning):
                self.handles[stops].run()
        assert self.handles[stops].interrupt() is Stopping.WILL_STOP
        assert self.end_after(number) == "interrupted"
        self.agent.hold = False

    def end_after(self, number):
        """How the run ended that began with entry `number`; nothing of it goes on any more."""
        for event in self.talk.subscribe(after=number, timeout=LIMIT):
            if event.kind == "run.ended":
                deadline = time.monotonic() + LIMIT
                while self.home._running:
                    assert time.monotonic() < deadline
                    time.sleep(0.001)
                return event.payload["outcome"]
        raise AssertionError("the run did not end")

    @rule()
    def run_and_fail(self):
        self.agent.fail = True
        try:
            end = self.talk.run()
        except ConnectionError:
            assert self.talk.status is Status.FAILED
        else:  # pragma: no cover - a failure was swallowed
            entries = [(event.seq, event.kind, event.payload) for event in self.talk.events()]
            raise AssertionError(f"the step's error was lost: {end}, {entries[-10:]}")

    @rule()
    def reopen(self):
        self.home.close()
        self.home = Conversations(self.path)
        self.open()

    @invariant()
    def callbacks_hear_every_entry_once(self):
        deadline = time.monotonic() + LIMIT
        expected = list(range(self.heard_after + 1, self.talk.look().cursor + 1))
        while len(self.heard) < len(expected) and time.monotonic() < deadline:
            time.sleep(0.001)
        assert self.heard == expected

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
