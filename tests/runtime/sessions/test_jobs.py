"""A governed session that ends, or kills its member, stops the jobs that the member began."""

import os
import signal
import threading
import time

import pytest

from troth.runtime import Runtime, SessionConfig
from troth.runtime.jobs import JobState
from troth.runtime.jobs.job_files import JobFiles
from troth.runtime.jobs.jobs import folder_of
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
