"""What a member of a governed session begins belongs to the session, and its jobs are stopped with it."""

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest

from troth.runtime import (
    Capability,
    Channel,
    Receipt,
    Runtime,
    Saga,
    SagaFailedError,
    SessionConfig,
    Workflow,
    bind,
    current,
    step,
)
from troth.runtime.channels import stateless
from troth.runtime.engine import Step
from troth.runtime.jobs import ForeignJobError, JobState
from troth.runtime.jobs.job_files import JobFiles
from troth.runtime.jobs.machine import folder_of
from troth.runtime.promises.errors import ForeignPromiseError
from troth.runtime.sessions import Action, RefusedError
from troth.runtime.store import SqliteStore


@pytest.fixture
def runtime(path):
    with Runtime(path) as runtime:
        yield runtime
    for folder in folder_of(path).glob("*/process"):
        process = JobFiles(folder.parent).process()
        if process.lives:
            os.killpg(process.pid, signal.SIGKILL)


class Starter:
    """An agent that starts a job in its step."""

    def __init__(self, runtime):
        self.runtime = runtime
        self.jobs = []

    def step(self, conversation):
        self.jobs.append(self.runtime.jobs.start("exec sleep 60").promise.id)
        conversation.say("started")


def governed(runtime, **config):
    hypervisor = runtime.hypervisor
    session = hypervisor.create("ops", SessionConfig(**config))
    member = hypervisor.join(session, "a", score=0.8)
    hypervisor.join(session, "b", score=0.8)
    hypervisor.activate(session)
    return hypervisor, session, member


def in_conversation(runtime, member):
    agent = Starter(runtime)
    conversation = member.converse(agent)
    conversation.send("go")
    conversation.run()
    return agent.jobs[0]


def in_act(runtime, member):
    jobs = []

    def begin():
        jobs.append(runtime.jobs.start("exec sleep 60").promise.id)

    runtime.hypervisor.register(Action("begin", begin, undo=lambda: None))
    member.act("begin")
    return jobs[0]


@pytest.mark.parametrize("start", [in_conversation, in_act])
@pytest.mark.parametrize("how", ["kill", "kill with a substitute", "terminate"])
def test_what_a_member_began_is_stopped(runtime, start, how):
    """The process is gone when the call returns, the answer says so, and the promise is told as that."""
    hypervisor, session, member = governed(runtime)
    job = start(runtime, member)
    free = runtime.jobs.start("exec sleep 60").promise.id
    assert runtime.jobs.get(job).state is JobState.RUNNING
    if how == "terminate":
        hypervisor.terminate(session)
    else:
        kill = hypervisor.kill(session, "a", reason="a test", substitute="b" if "substitute" in how else None)
        assert kill.terminated
        assert "job `exec sleep 60`" in kill.stopped
    assert not JobFiles(folder_of(runtime.engine.store.path) / job).process().lives
    record = runtime.jobs.wait(job, 20)
    assert (record.state, record.reason) == (JobState.STOPPED, "session")
    assert runtime.jobs.get(free).state is JobState.RUNNING  # nobody's but the program's
    runtime.jobs.stop(free)
    kinds = [row.kind for row in hypervisor.events(session=session)]
    assert "job.begun" in kinds


def test_a_member_that_was_killed_starts_no_job(runtime):
    """Refused in the commit that would have written it down: nothing is promised and nothing runs."""
    hypervisor, session, member = governed(runtime)
    begun, go_on, refused = threading.Event(), threading.Event(), []

    class Late:
        def step(self, conversation):
            begun.set()
            go_on.wait(20)
            try:
                runtime.jobs.start("exec sleep 60")
            except RefusedError as error:
                refused.append(error.rule)

    conversation = member.converse(Late())
    conversation.send("go")
    thread = threading.Thread(target=lambda: _swallow(conversation.run))
    thread.start()
    assert begun.wait(20)
    hypervisor.kill(session, "a", reason="a test", timeout=0)
    go_on.set()
    thread.join(20)
    assert refused == ["membership"]
    assert runtime.jobs.list() == []
    assert runtime.outbox.counts().promised == 0


def _swallow(work):
    try:
        work()
    except RefusedError:
        return


def test_a_session_whose_time_is_up_stops_its_jobs(path):
    """Without anybody's word."""
    shift = [0.0]
    with SqliteStore(path, clock=lambda: time.time() + shift[0]) as store, Runtime(store) as runtime:
        hypervisor, session, member = governed(runtime, max_duration=600.0)
        job = in_conversation(runtime, member)
        shift[0] = 601.0
        assert runtime.jobs.wait(job, 60).reason == "session"
        deadline = time.monotonic() + 60
        while hypervisor.get(session).state != "archived":
            assert time.monotonic() < deadline
            time.sleep(0.02)


def test_a_conversation_of_a_session_is_told_there(runtime):
    """What is promised in it belongs to the governed session, not to one of its own."""
    _, session, member = governed(runtime)
    job = in_conversation(runtime, member)
    assert runtime.jobs.get(job).session == session.id
    assert runtime.jobs.stop(job).state is JobState.STOPPED


class Room(Channel):
    """A channel that somebody binds a turn to."""

    name = "room"
    capability = Capability.PUSH

    def __init__(self):
        self.told = []

    def send(self, delivery):
        self.told.append((delivery.promise, delivery.session))
        return Receipt.done(delivery.id)


def give(value):
    return (yield Step("give", str, value))


def by_act(member, hypervisor, call):
    hypervisor.register(Action("begin", call, undo=lambda: None))
    member.act("begin")


def by_act_in_time(member, hypervisor, call):
    hypervisor.register(Action("begin", call, undo=lambda: None, timeout=60.0))
    member.act("begin")


def by_async_act(member, hypervisor, call):
    async def begin():
        await asyncio.sleep(0)
        call()

    hypervisor.register(Action("begin", begin, undo=lambda: None))
    member.act("begin")


def by_act_that_answers_with_a_coroutine(member, hypervisor, call):
    async def begin():
        call()

    def prepare():
        return begin()

    hypervisor.register(Action("begin", prepare, undo=lambda: None))
    member.act("begin")


def by_saga(member, hypervisor, call):
    member.run(Saga("beginning").step("begin", do=call, undo=lambda: None))


def by_workflow(member, hypervisor, call):
    member.run(Workflow("beginning", step("begin", function=call)))


def by_undo(member, hypervisor, call):
    def fail():
        raise ValueError("it did not work")

    saga = Saga("beginning").step("begin", do=lambda: None, undo=call).step("fail", do=fail, undo=lambda: None)
    with pytest.raises(SagaFailedError):
        member.run(saga)


WAYS = [by_act, by_act_in_time, by_async_act, by_act_that_answers_with_a_coroutine, by_saga, by_workflow, by_undo]


@pytest.mark.parametrize("way", WAYS)
def test_what_a_member_begins_belongs_to_the_session(runtime, way):
    """Jobs and promises; another session's turn is refused, and the program itself sees both."""
    hypervisor, session, member = governed(runtime)
    other = hypervisor.create("other")
    began = []

    def begin():
        began.append(current().session)
        began.append(runtime.jobs.start("true").promise.id)
        began.append(runtime.promises.start(give, 7).promise.id)

    way(member, hypervisor, begin)
    seen_session, job, promise = began
    assert seen_session == session.id
    assert runtime.jobs.wait(job, 60).session == runtime.promises.wait(promise, 60).session == session.id
    assert current().session == "main"
    with bind(other.id, Room()):
        with pytest.raises(ForeignJobError):
            runtime.jobs.get(job)
        for foreign in (job, promise):
            with pytest.raises(ForeignPromiseError):
                runtime.promises.get(foreign)
    with bind(session.id, Room()):
        assert {record.id for record in runtime.promises.list()} == {job, promise}


def test_an_act_that_goes_on_after_a_kill_belongs_to_the_session_too(path):
    """The process that takes it over knows nothing of the turn in which it was asked for."""
    program = f"""
    import os, signal
    from troth.runtime import Runtime
    from troth.runtime.sessions import Action
    with Runtime({str(path)!r}) as runtime:
        hypervisor = runtime.hypervisor
        hypervisor.register(Action("begin", lambda: os.kill(os.getpid(), signal.SIGKILL), undo=lambda: None))
        session = hypervisor.create("ops", session_id="s-1")
        member = hypervisor.join(session, "a", score=0.8)
        hypervisor.activate(session)
        member.act("begin")
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], timeout=120, check=False)
    assert done.returncode == -signal.SIGKILL
    began, is_done = [], threading.Event()
    with Runtime(path) as runtime:

        def begin():
            began.append(runtime.jobs.start("true").promise.id)
            is_done.set()

        runtime.hypervisor.register(Action("begin", begin, undo=lambda: None))
        assert is_done.wait(60)
        assert runtime.jobs.wait(began[0], 60).session == "s-1"


def test_an_act_sees_nothing_of_another_session(runtime):
    """It is a turn of its session: what the program, or another session, has begun is refused."""
    hypervisor, _, member = governed(runtime)
    jobs = [runtime.jobs.start("true").promise.id]
    of_the_program = runtime.promises.start(give, 7).promise.id

    def look():
        with pytest.raises(ForeignJobError):
            runtime.jobs.stop(jobs[0])
        with pytest.raises(ForeignPromiseError):
            runtime.promises.get(of_the_program)
        return [runtime.jobs.list(), runtime.promises.list()]

    hypervisor.register(Action("look", look, read_only=True))
    assert member.act("look") == [[], []]
    assert runtime.jobs.wait(jobs[0], 60).state is JobState.DONE


@pytest.mark.parametrize("is_inside", [False, True], ids=["around the act", "in the act"])
def test_a_binding_decides_and_the_job_stays_the_members(runtime, is_inside):
    """Its session is the address of its channel, so both are as bound; a kill stops what was begun all the same."""
    hypervisor, session, member = governed(runtime)
    room, began = Room(), []
    runtime.open_channel(room)

    def start():
        assert current()[:2] == ("room-7", room)
        outcome = runtime.jobs.start("exec sleep 60")
        began.append((outcome.promise.id, outcome.channel))

    def begin():
        if is_inside:
            assert current().session == session.id
            with bind("room-7", room):
                start()
        else:
            start()

    hypervisor.register(Action("begin", begin, undo=lambda: None))
    if is_inside:
        member.act("begin")
    else:
        with bind("room-7", room):
            member.act("begin")
    job, channel = began[0]
    assert channel == "room"
    assert runtime.jobs.get(job).session == "room-7"
    assert hypervisor.kill(session, "a", reason="a test").terminated
    assert runtime.jobs.wait(job, 60).reason == "session"
    deadline = time.monotonic() + 60
    while room.told != [(job, "room-7")]:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_an_act_in_a_conversation_and_in_a_turn_that_opted_out(runtime):
    """The innermost step decides where nothing is bound; `stateless` and `bind(None)` go on to mean what they mean."""
    hypervisor, session, member = governed(runtime)
    seen = []
    hypervisor.register(Action("look", lambda: seen.append(current()), read_only=True))

    def unbound():
        with bind(None):
            seen.append(current())

    hypervisor.register(Action("unbound", unbound, read_only=True))

    class Agent:
        def step(self, conversation):
            member.act("look")
            seen.append(current())

    conversation = runtime.conversations.open(Agent(), "talk-1")
    conversation.send("hello")
    conversation.run()
    with stateless():
        member.act("look")
    member.act("unbound")
    in_act, in_talk, opted_out, inherits_nothing = seen
    assert (in_act.session, in_talk.session, inherits_nothing.session) == (session.id, "talk-1", "main")
    assert opted_out.capability is Capability.NONE


def test_a_job_that_ends_by_itself_is_no_open_work(runtime):
    """The session can end without anything left."""
    hypervisor, session, member = governed(runtime)

    class Quick:
        def step(self, conversation):
            job = runtime.jobs.start("true").promise.id
            runtime.jobs.wait(job, 20)

    conversation = member.converse(Quick())
    conversation.send("go")
    conversation.run()
    kill = hypervisor.kill(session, "a", reason="a test")
    assert not [what for what in kill.stopped if what.startswith("job")]
    assert kill.terminated
