"""The kill switch kills: nothing lands after it, what is open is undone or handed over, and the answer is true."""

import asyncio
import threading
import time

import pytest

from troth import bridge
from troth.errors import MisuseError
from troth.runtime import Saga, SagaFailedError
from troth.runtime.engine import RunCancelledError
from troth.runtime.sessions import Action, CannotJoinError, Hypervisor, NotAMemberError, RefusedError

KEY = "a key that is only used in tests"


class Place:
    """A session with one agent at work in a thread."""

    def __init__(self, path, **options):
        self.effects = []
        self.begun = threading.Event()
        self.go_on = threading.Event()
        self.errors = []
        actions = [
            Action("wait", self.wait, undo=lambda: self.effects.append("undo wait")),
            Action("block", self.block, undo=lambda: self.effects.append("undo block")),
            Action("late", self.wait, undo=lambda: self.effects.append("undo late"), undo_window=0),
        ]
        self.hypervisor = Hypervisor(path, audit_key=KEY, actions=actions, **options)
        self.session = self.hypervisor.create("ops")
        self.member = self.hypervisor.join(self.session, "a", score=0.8)
        self.other = self.hypervisor.join(self.session, "b", score=0.8)
        self.hypervisor.activate(self.session)

    async def wait(self):
        self.begun.set()
        await asyncio.sleep(60)

    def block(self):
        self.begun.set()
        self.go_on.wait(30)
        self.effects.append("blocked")

    def at_work(self, work):
        def run():
            try:
                work()
            except BaseException as error:
                self.errors.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        assert self.begun.wait(10)
        return thread

    def kill(self, **options):
        return self.hypervisor.kill(self.session, "a", reason="a test", **options)


@pytest.fixture
def place(path):
    place = Place(path)
    yield place
    place.go_on.set()
    place.hypervisor.close()


def test_an_async_act_is_cancelled_and_undone(place):
    """For real, and told so; the caller hears of it."""
    thread = place.at_work(lambda: place.member.act("wait"))
    kill = place.kill()
    thread.join()
    assert (kill.terminated, kill.stopped, kill.undone, kill.left) == (True, ("act wait",), ("undo wait",), ())
    assert place.effects == ["undo wait"]
    assert isinstance(place.errors[0], RunCancelledError)
    assert place.hypervisor.verify_audit().is_valid


def test_nothing_lands_after_it(place):
    """No note, no act, no text, no message; and it does not join again unless it is readmitted."""
    conversation = place.member.converse(Echo())
    place.kill()
    for attempt in (
        lambda: place.member.record("note"),
        lambda: place.member.act("wait"),
        lambda: place.member.workspace.write("x", "y"),
        lambda: place.member.workspace.read("x"),
        lambda: conversation.send("hello"),
        lambda: place.member.converse(Echo()),
    ):
        with pytest.raises(RefusedError):
            attempt()
    with pytest.raises(CannotJoinError, match="killed"):
        place.hypervisor.join(place.session, "a", score=0.9)
    place.hypervisor.readmit(place.session, "a", reason="it was a mistake")
    place.hypervisor.join(place.session, "a", score=0.9).record("back")


class Echo:
    def step(self, conversation):
        conversation.say("heard")


def test_a_sync_step_is_left_and_said_so(place):
    """A thread cannot be killed: not terminated, and why. A second kill tries again."""
    thread = place.at_work(lambda: place.member.act("block"))
    kill = place.kill(timeout=0.1)
    assert not kill.terminated
    assert "sync step" in kill.left[0]
    place.go_on.set()
    thread.join()
    again = place.kill()
    assert (again.id, again.terminated, again.undone) == (kill.id, True, ("undo block",))
    assert place.effects == ["blocked", "undo block"]


def test_an_undo_window_that_has_passed_is_said(place):
    """Not ignored: it is not undone, and stands among what is left."""
    thread = place.at_work(lambda: place.member.act("late"))
    kill = place.kill()
    thread.join()
    assert (kill.terminated, kill.undone, place.effects) == (False, (), [])
    assert "could not be undone" in kill.left[0]


def test_a_saga_is_rolled_back(place):
    """In the middle of its second step."""
    saga = (
        Saga("trip")
        .step("one", do=lambda: place.effects.append("one"), undo=lambda: place.effects.append("undo one"))
        .step("two", do=place.wait, undo=lambda: place.effects.append("undo two"))
    )
    thread = place.at_work(lambda: place.member.run(saga))
    kill = place.kill()
    thread.join()
    assert (kill.terminated, kill.undone) == (True, ("undo two", "undo one"))
    assert place.effects == ["one", "undo two", "undo one"]
    assert isinstance(place.errors[0], SagaFailedError)


def test_open_work_goes_to_the_substitute(place):
    """Nothing is undone; what follows is judged as the substitute's."""
    saga = (
        Saga("trip")
        .step("one", do=place.block, undo=lambda: place.effects.append("undo one"))
        .step("two", do=lambda: place.effects.append("two"), undo=None)
    )
    thread = place.at_work(lambda: place.member.run(saga))
    with pytest.raises(NotAMemberError):
        place.kill(substitute="nobody")
    kill = place.kill(substitute="b")
    place.go_on.set()
    thread.join()
    assert (kill.terminated, kill.handed_over, kill.undone) == (True, ("run trip to b",), ())
    assert (place.effects, place.errors) == (["blocked", "two"], [])
    assert place.hypervisor.events(session=place.session)[-1].agent == "b"


def test_eight_kills_at_once_are_one(place):
    """The same answer and one record; one of somebody who has left is true as well."""
    thread = place.at_work(lambda: place.member.act("wait"))
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(place.kill())) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    thread.join()
    assert len(answers) == 8
    assert len(set(answers)) == 1
    assert place.effects == ["undo wait"]
    kinds = [row.kind for row in place.hypervisor.events()]
    assert (kinds.count("member.killed"), kinds.count("kill.answered")) == (1, 1)
    place.other.leave()
    kill = place.hypervisor.kill(place.session, "b", reason="a test")
    assert (kill.terminated, kill.stopped) == (True, ())


def test_callbacks_of_either_color_run_once(path):
    """One that fails is among what is left."""
    called = []

    async def acallback(kill):
        called.append(("async", kill))

    def broken(kill):
        called.append(("broken", kill))
        raise OSError("no network")

    place = Place(path, on_kill=[lambda kill: called.append(("sync", kill)), acallback, broken])
    try:
        kill = place.kill()
        assert (kill.terminated, "no network" in kill.left[0]) == (False, True)
        place.kill()
        assert called == [(color, kill.id) for color in ("sync", "async", "broken")]
    finally:
        place.hypervisor.close()
    with pytest.raises(MisuseError):
        Hypervisor(path, audit_key=KEY, on_kill=[object()])


class Sleeper:
    def __init__(self):
        self.begun = threading.Event()

    async def astep(self, conversation):
        self.begun.set()
        await asyncio.sleep(60)


def test_a_conversation_is_interrupted(place):
    """On a loop, with the kill awaited beside it."""

    async def main():
        sleeper = Sleeper()
        conversation = place.member.converse(sleeper)
        conversation.send("hello")
        run = asyncio.create_task(conversation.arun())
        while not sleeper.begun.is_set():
            await asyncio.sleep(0.01)
        kill = await bridge.call(place.kill)
        end = await run
        return kill, end

    kill, end = asyncio.run(main())
    assert (kill.terminated, end.outcome.value) == (True, "interrupted")
    assert kill.stopped[0].startswith("conversation")


def test_a_kill_hears_that_a_conversation_was_let_go(place, monkeypatch):
    """It is told by the commit, and does not look again and again: here the next look would come after an hour."""
    monkeypatch.setattr("troth.runtime.sessions.kill._ALIVE", 3600)
    store, looked = place.hypervisor.store, threading.Event()
    is_alive = store.is_alive

    def look(owner):
        looked.set()
        return is_alive(owner)

    monkeypatch.setattr(store, "is_alive", look)

    class Reluctant:
        def step(self, conversation):
            place.begun.set()
            while not conversation.is_interrupted:
                time.sleep(0.001)
            looked.clear()
            assert looked.wait(10)

    conversation = place.member.converse(Reluctant())
    conversation.send("hello")
    thread = place.at_work(conversation.run)
    kill = place.kill(timeout=20)
    thread.join()
    assert (kill.terminated, kill.left) == (True, ())


def test_terminate_undoes_what_is_open(place):
    """And says what resists: the session then stays terminating."""
    thread = place.at_work(lambda: place.member.act("wait"))
    assert place.hypervisor.terminate(place.session).state.value == "archived"
    thread.join()
    assert place.effects == ["undo wait"]


def test_what_resists_is_named(place):
    """And it ends once that has ended, in whatever process looks first."""
    from troth.runtime.sessions import SessionNotEndedError

    thread = place.at_work(lambda: place.member.act("block"))
    with pytest.raises(SessionNotEndedError) as resisted:
        place.hypervisor.terminate(place.session, timeout=0.1)
    assert "block" in resisted.value.left[0]
    assert place.hypervisor.get(place.session).state.value == "terminating"
    place.go_on.set()
    thread.join()
    deadline = time.monotonic() + 10
    while place.hypervisor.get(place.session).state.value != "archived":
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_an_agent_in_a_process_of_its_own_is_killed(place, tmp_path, monkeypatch):
    """One that does not listen: it blocks its thread for good, and its process is ended."""
    (tmp_path / "deaf_agent.py").write_text(
        "import time\n\n\nclass Deaf:\n    def step(self, conversation):\n        conversation.say('begun')\n"
        "        time.sleep(600)\n",
        encoding="utf-8",
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    conversation = place.member.converse("deaf_agent:Deaf", isolate="process")
    conversation.send("hello")
    conversation.start()
    deadline = time.monotonic() + 30
    while "begun" not in [message.text for message in conversation.messages()]:
        assert time.monotonic() < deadline
        assert conversation.is_running
        time.sleep(0.05)
    kill = place.kill(timeout=10)
    assert (kill.terminated, kill.left) == (True, ())
    assert kill.stopped[0].startswith("conversation")
    assert not conversation.is_running
    with pytest.raises(RefusedError):
        conversation.send("still there?")
    with pytest.raises(MisuseError, match="package.module:name"):
        place.other.converse(Echo(), isolate="process")
