"""Jobs whose files somebody removes or writes into, and jobs whose supervisor is killed: their end is told all the same."""

import os
import re
import shutil
import signal
import time

import pytest

from troth.errors import MisuseError
from troth.runtime import bind
from troth.runtime.jobs import JobStartError, JobState, monitor
from troth.runtime.jobs.job_files import JobFiles
from troth.runtime.jobs.jobs import Jobs
from troth.runtime.jobs.machine import folder_of

from .conftest import until


def started(runtime, path, command, **more):
    """A job that runs, and its files."""
    job = runtime.jobs.start(command, **more).promise.id
    files = JobFiles(folder_of(path) / job)
    until(files.process)
    return job, files


def kill_supervisor(files):
    process = files.process()
    os.kill(process.supervisor, signal.SIGKILL)
    until(lambda: not process.is_supervised)


def remove(folder):
    """Remove all of it, whatever the supervisor makes there meanwhile for the next job."""
    deadline = time.monotonic() + 60
    while folder.exists():
        assert time.monotonic() < deadline
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize("everything", [False, True], ids=["its folder", "the folder of all jobs"])
def test_a_job_whose_folder_is_removed_tells_its_exit_code(runtime, path, everything):
    """Its output is gone, and that is told; nobody waits for ever."""
    job, files = started(runtime, path, "read line; exit 3")
    with files.folder.joinpath("stdin").open("wb", buffering=0) as pipe:
        remove(folder_of(path) if everything else files.folder)
        pipe.write(b"go on\n")
    record = runtime.jobs.wait(job, 60)
    assert (record.state, record.exit_code) == (JobState.FAILED, 3)
    delivery = runtime.outbox.read(f"{job}-done-1")
    assert "was removed" in delivery.text
    again = runtime.jobs.start("exit 4").promise.id
    assert runtime.jobs.wait(again, 60).exit_code == 4


def test_output_that_was_removed_is_told(runtime, path):
    """An empty text would say that nothing was printed."""
    job, files = started(runtime, path, "echo hello; read line")
    files.output.unlink()
    runtime.jobs.write(job, end=True)
    runtime.jobs.wait(job, 60)
    assert "its output is gone" in runtime.outbox.read(f"{job}-done-1").text
    output = runtime.jobs.read(job)
    assert (output.text, output.is_removed) == ("", True)
    assert "was removed" in output.note


def test_what_was_done_at_once_names_no_file(runtime):
    """All of its output is in the answer, and its files are gone."""
    result = runtime.jobs.start("echo here", detach="never").result
    assert (result["output"], result["output_cut"], result["output_file"]) == ("here\n", 0, None)


def test_a_job_that_did_not_start_has_no_output_that_was_removed(runtime):
    """Nothing was printed, so nothing is missing."""
    with pytest.raises(JobStartError):
        runtime.jobs.start(["no-such-program"], job_id="never")
    assert runtime.jobs.read("never").note is None


def test_a_job_of_which_nothing_is_left_is_lost(runtime, path, monkeypatch):
    """Neither files nor a supervisor: nobody will ever know how it ended, and that is told."""
    monkeypatch.setattr(monitor, "_LONGEST_START", 0.5)
    job, files = started(runtime, path, "sleep 60")
    process = files.process()
    kill_supervisor(files)
    remove(files.folder)  # before it ends: with its files there, it would be known to have ended
    os.killpg(process.pid, signal.SIGKILL)
    record = runtime.jobs.wait(job, 60)
    assert (record.state, record.reason) == (JobState.FAILED, "gone")
    assert "its files were removed" in record.text


@pytest.mark.parametrize("name", ["process", "stop"])
def test_a_file_that_somebody_has_written_into_says_nothing(runtime, path, name):
    """It is no error of whoever asks for the job."""
    job, files = started(runtime, path, "read line; exit 5")
    (files.folder / name).write_text('{"pid"')
    assert runtime.jobs.get(job).state in (JobState.RUNNING, JobState.STARTING)
    runtime.jobs.write(job, "go on\n")
    assert runtime.jobs.wait(job, 60).exit_code == 5


@pytest.mark.parametrize(
    ("command", "signal_of_end"),
    [("exec sleep 60", "TERM"), ("trap '' TERM; while :; do sleep 0.05; done", "KILL")],
    ids=["obedient", "stubborn"],
)
def test_a_stop_that_a_dying_supervisor_did_not_carry_out_is_carried_out(runtime, path, command, signal_of_end):
    """The supervisor may be killed between being asked and acting."""
    job, files = started(runtime, path, command)
    process = files.process()
    os.kill(process.supervisor, signal.SIGSTOP)
    runtime.jobs.stop(job, timeout=0.1)
    os.kill(process.supervisor, signal.SIGKILL)
    record = runtime.jobs.wait(job, 60)
    assert (record.state, record.reason) == (JobState.STOPPED, "stop"), signal_of_end
    assert not process.lives


def test_the_timeout_of_a_job_outlives_its_supervisor(runtime, path):
    """Whoever looks after the job ends it then."""
    job, files = started(runtime, path, ["sleep", "600"], timeout=1.0)
    kill_supervisor(files)
    record = runtime.jobs.wait(job, 60)
    assert (record.state, record.reason) == (JobState.FAILED, "timeout")


def test_a_supervisor_that_is_killed_is_replaced_without_an_error(runtime, path):
    """Also where it dies after it was asked, and before it has begun."""
    job, files = started(runtime, path, "sleep 60")
    process = files.process()
    os.kill(process.supervisor, signal.SIGSTOP)
    killer = f"sleep 0.3; kill -KILL {process.supervisor}"
    pid = os.posix_spawn("/bin/sh", ["sh", "-c", killer], os.environ)
    begun = time.monotonic()
    try:
        assert runtime.jobs.wait(runtime.jobs.start("exit 6").promise.id, 60).exit_code == 6
    finally:
        os.waitpid(pid, 0)
    assert time.monotonic() - begun > 0.25, "it was asked while it was halted"
    runtime.jobs.stop(job)


@pytest.mark.parametrize(
    "words", [["echo", os.fsdecode(b"caf\xe9")], "printf '%s' '\udce9'"], ids=["a list", "a text for the shell"]
)
def test_names_of_files_that_are_no_text_are_words_of_commands(runtime, path, words):
    """File names are bytes; Python gives those that are no UTF-8 as halves of letters."""
    job, files = started(runtime, path, words)
    record = runtime.jobs.wait(job, 60)
    assert (record.exit_code, files.output.read_bytes().rstrip(b"\n").endswith(b"\xe9")) == (0, True)
    assert "\\udce9" in record.text


def test_a_session_with_half_a_letter_is_refused():
    """No store keeps it, so nothing is promised to it."""
    with pytest.raises(MisuseError, match="half of a character"), bind("\ud83d"):
        pass


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ({"timeout": float("inf")}, "`timeout` is inf"),
        ({"timeout": "3"}, "`timeout` is '3'"),
        ({"watch": 3}, "`watch` is 3"),
        ({"watch": re.compile(b"bytes")}, "`watch` has"),
        ({"job_id": "supervisor.log"}, "is not an id of a job"),
        ({"cwd": 5}, "`cwd` is 5"),
        ({"env": "PATH"}, "`env` is 'PATH'"),
        ({"retention": "a week"}, "not 'a week'"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_cannot_be_meant_is_refused_in_words(runtime, more, problem):
    """Before anything is written down."""
    with pytest.raises(MisuseError, match=re.escape(problem)):
        runtime.jobs.start("true", **more)
    assert runtime.outbox.counts().promised == 0


@pytest.mark.parametrize("command", [None, 5, b"true", [b"true"], {"true": 1}, {"true"}], ids=repr)
def test_what_is_no_command_is_refused(runtime, command):
    """Neither a text nor a list of words."""
    with pytest.raises(MisuseError, match="is not a command"):
        runtime.jobs.start(command)
    assert runtime.outbox.counts().promised == 0


def test_reading_beyond_the_end_reads_nothing(runtime, path):
    """However far, and however much is asked for."""
    job, _ = started(runtime, path, "echo hello")
    runtime.jobs.wait(job, 60)
    beyond = runtime.jobs.read(job, 10**30)
    assert (beyond.text, beyond.size) == ("", 6)
    assert beyond.note.startswith("6 bytes come before this")
    assert runtime.jobs.read(job, limit=10**30).text == "hello\n"


def test_a_failed_start_is_told_once(runtime, monkeypatch):
    """The caller gets the error; looking after jobs in that moment, here or in another program, delivers nothing."""
    looked, fail = [], Jobs._fail

    def after_a_look(jobs, new, *rest):
        jobs.look_after()
        monitor = jobs._monitor
        until(lambda: monitor._jobs.get(new.id) is not None)
        job = monitor._jobs[new.id]
        looked.append(job.files.ending().problem["type"])
        assert not monitor._look(job, is_urgent=True)
        fail(jobs, new, *rest)

    monkeypatch.setattr(Jobs, "_fail", after_a_look)
    with pytest.raises(JobStartError):
        runtime.jobs.start(["/etc/passwd"])
    assert looked == ["PermissionError"]
    assert runtime.outbox.counts().stored == 0
