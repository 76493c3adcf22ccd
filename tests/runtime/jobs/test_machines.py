"""Jobs of several machines that share a store: each is a process of its own machine, and the others see how it ends."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from troth.runtime import Runtime, SessionConfig, bind
from troth.runtime.jobs import JobElsewhereError, JobState
from troth.runtime.jobs.job_files import JobFiles
from troth.runtime.jobs.machine import folder_of, machine_of
from troth.runtime.sessions import Action
from troth.runtime.store.promise_records import DeliveryState

from .conftest import QUICK, Chat, end_all, until


@pytest.fixture
def address(postgres_server):
    return postgres_server.address()


@pytest.fixture
def machine(address, tmp_path, monkeypatch):
    """Open a runtime on a machine of that name: its files are where no other machine has its own."""
    runtimes, paths = [], []

    def start(name, settings=""):
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / name))
        runtime = Runtime(address + settings, delivery=QUICK, in_process=False)
        runtimes.append(runtime)
        paths.append(runtime.store.path)
        runtime.jobs.list()  # from now on it looks after what is there
        return runtime

    yield start
    for runtime in runtimes:
        runtime.close()
    for path in set(paths):
        end_all(path)


def owed(runtime, session="s"):
    return [
        record for record in runtime.outbox.list(states=list(DeliveryState), session=session) if record.kind == "done"
    ]


def test_a_job_is_seen_from_another_machine(machine):
    """Where it is, that it runs, and how it ended; its output is where its process is."""
    here, there = machine("a"), machine("b")
    with bind("s"):
        here.jobs.start("echo begun; read line; echo $line; exit 3", job_id="j-1")
    until(lambda: here.jobs.get("j-1").output_bytes)
    seen = there.jobs.get("j-1")
    assert (seen.state, seen.machine) == (JobState.RUNNING, os.uname().nodename)
    assert seen.output_file == here.jobs.get("j-1").output_file
    assert here.jobs.get("j-1").machine == ""
    with pytest.raises(JobElsewhereError, match=r"are on the machine .*Nothing was read"):
        there.jobs.read("j-1")
    with pytest.raises(JobElsewhereError, match="Nothing was written"):
        there.jobs.write("j-1", "x\n")
    here.jobs.write("j-1", "answer\n")
    ended = there.jobs.wait("j-1", 60)
    assert (ended.state, ended.exit_code, ended.output_bytes) == (JobState.FAILED, 3, len("begun\nanswer\n"))
    assert "answer" in owed(there)[0].text
    assert [job.id for job in there.jobs.list()] == ["j-1"]


def test_a_job_is_not_lost_where_it_is_not(machine):
    """Another machine has neither its process nor its files, looks again and again, and leaves it alone."""
    here, there = machine("a"), machine("b")
    with bind("s"):
        here.jobs.start("exec sleep 600", job_id="j-1")
    for _ in range(3):
        there.jobs.look_after()
        time.sleep(1.1)  # longer than a monitor needs to miss a process
    assert here.jobs.get("j-1").state is JobState.RUNNING
    assert not list(folder_of(there.store.path).glob("j-1"))
    assert here.jobs.stop("j-1").state is JobState.STOPPED


def test_a_job_is_stopped_from_another_machine(machine):
    """The request is in its log, and is carried out where its process is."""
    here, there = machine("a"), machine("b")
    with bind("s"):
        here.jobs.start("exec sleep 600", job_id="j-1")
    process = JobFiles(folder_of(here.store.path) / "j-1")
    pid = until(process.process).pid
    record = there.jobs.stop("j-1", timeout=60)
    assert (record.state, record.reason) == (JobState.STOPPED, "stop")
    with pytest.raises(ProcessLookupError):
        os.killpg(pid, 0)


def test_killing_a_member_stops_its_job_on_another_machine(machine, monkeypatch):
    """Nothing is said to have ended before it has: the machine that has the process says so."""
    monkeypatch.setenv("TROTH_AUDIT_KEY", "ab" * 32)
    here, there = machine("a"), machine("b")
    session = here.hypervisor.create("ops", SessionConfig())
    member = here.hypervisor.join(session, "worker", score=0.8)
    here.hypervisor.activate(session)
    begin = Action("begin", lambda: here.jobs.start("exec sleep 600", job_id="j-1") and None, undo=lambda: None)
    here.hypervisor.register(begin)
    member.act("begin")
    pid = until(JobFiles(folder_of(here.store.path) / "j-1").process).pid
    kill = there.hypervisor.kill(session.id, "worker", reason="a test", timeout=60)
    assert kill.terminated
    assert "job `exec sleep 600`" in kill.stopped
    with pytest.raises(ProcessLookupError):
        os.killpg(pid, 0)
    assert not list(folder_of(there.store.path).glob("j-1"))


PROGRAM = """
import os, sys, time
from troth.runtime import Runtime, bind
runtime = Runtime(sys.argv[1], in_process=False)
with bind("s"):
    runtime.jobs.start("exec sleep 600", job_id="j-1")
print("started", flush=True)
time.sleep(600)
"""


def test_the_jobs_of_a_dead_machine_are_told_as_lost(machine, address, tmp_path):
    """Once, by whoever is left; when the machine comes back, what was told as over does not go on."""
    settings = "&machine_lifetime=3"
    there = machine("b", settings)
    home = tmp_path / "a"
    command = [sys.executable, "-c", textwrap.dedent(PROGRAM), address + settings]
    environment = {**os.environ, "XDG_STATE_HOME": str(home)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as program:
        assert program.stdout.readline() == "started\n"
        record = there.jobs.get("j-1")
        time.sleep(4)  # longer than a machine lives of which nothing is heard
        assert there.jobs.get("j-1").state is JobState.RUNNING
        os.kill(program.pid, signal.SIGKILL)
    lost = there.jobs.wait("j-1", 60)
    assert (lost.state, lost.reason) == (JobState.FAILED, "silent")
    assert "considered dead" in lost.text
    assert record.output_file in owed(there)[0].text
    (folder,) = home.glob("troth/stores/*/store.jobs/j-1")
    process = JobFiles(folder).process()
    assert process.lives  # only its machine was silent, which nobody could know
    machine("a", settings)
    until(lambda: not process.lives)
    chat = Chat()
    there.open_channel(chat)
    with bind("s", chat):
        until(lambda: chat.of("done"))
    assert len(owed(there)) == 1


def test_a_program_that_comes_back_goes_on_with_its_jobs(machine):
    """A job outlives its program on a machine that is heard of again in time."""
    first = machine("a")
    with bind("s"):
        first.jobs.start("exec sleep 600", job_id="j-1")
    first.close()
    other = machine("b")
    assert other.jobs.get("j-1").state is JobState.RUNNING
    again = machine("a")
    assert again.jobs.get("j-1").machine == ""
    assert again.jobs.stop("j-1", timeout=60).state is JobState.STOPPED
    assert other.jobs.get("j-1").state is JobState.STOPPED


def test_a_machine_has_one_name(tmp_path):
    """Whoever asks first; another folder is another machine, and where there is no job, there is no name."""
    assert machine_of(tmp_path / "a") == ""
    name = machine_of(tmp_path / "a", is_new=True)
    assert name == machine_of(tmp_path / "a") == machine_of(tmp_path / "a", is_new=True)
    assert name != machine_of(tmp_path / "b", is_new=True)
