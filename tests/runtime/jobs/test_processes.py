"""Real processes that are killed: the program, the supervisor, or both, while a job runs and after it has ended."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from troth.runtime import Runtime, bind
from troth.runtime.jobs import JobState
from troth.runtime.jobs.job_files import JobFiles
from troth.runtime.jobs.machine import folder_of
from troth.runtime.jobs.supervisor import DRAFT, PROCESS, start_time, write_whole
from troth.runtime.store import StoreError
from troth.testing import failpoints

from .conftest import QUICK, Chat, until


def killed(program, **values):
    """Run a program that kills itself."""
    head = "import os, sys, time\nfrom troth.runtime import Runtime, bind\n"
    text = head + textwrap.dedent(program).format(**values)
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr


START = """
runtime = Runtime({path!r}, in_process=False)
with bind("s"):
    runtime.jobs.start({command!r}, job_id="j-1", watch="hit", on_shutdown={on_shutdown!r})
os.kill(os.getpid(), 9)
"""


@pytest.fixture
def again(path):
    """The program, started again, with somebody who is told."""

    def start():
        runtime = Runtime(path, delivery=QUICK, in_process=False)
        runtimes.append(runtime)
        chat = Chat()
        runtime.open_channel(chat)
        with bind("s", chat):
            until(lambda: chat.of("done"), 30)
        return runtime, chat

    runtimes = []
    yield start
    for runtime in runtimes:
        runtime.close()


@pytest.mark.parametrize("when", ["while it runs", "after it has ended"])
def test_killed_with_a_job_under_way(path, tmp_path, again, when):
    """F1, F2: the true exit code, the whole output and every hit are there, and told, after any death of ours."""
    go = tmp_path / "go"
    command = f"echo hit 1; while ! [ -e {go} ]; do sleep 0.02; done; echo hit 2; seq 1 1000; exit 42"
    killed(START, path=str(path), command=command, on_shutdown="survive")
    files = JobFiles(folder_of(path) / "j-1")
    if when == "after it has ended":
        go.touch()
        until(files.ending)
    else:
        assert until(files.process).lives
    go.touch()
    runtime, chat = again()
    record = runtime.jobs.get("j-1")
    assert (record.state, record.exit_code, record.hits) == (JobState.FAILED, 42, 2)
    assert [delivery.data["line"] for delivery in chat.of("watch")] == ["hit 1", "hit 2"]
    assert len(runtime.jobs.read("j-1").text.splitlines()) == 1002
    until(lambda: runtime.outbox.counts().delivered == 3)


def test_a_job_that_stops_with_its_program_is_told_after_the_restart(path, again):
    """F3: killed or closed, the program's end ends the job; its end is delivered by the next one."""
    killed(START, path=str(path), command="exec sleep 60", on_shutdown="stop")
    runtime, chat = again()
    assert runtime.jobs.get("j-1").state is JobState.STOPPED
    assert "when the program that started it shut down" in chat.of("done")[0].text
    with bind("s"):
        runtime.jobs.start("exec sleep 60", job_id="j-2", on_shutdown="stop")
        runtime.jobs.start("exec sleep 60", job_id="j-3")
    runtime.close()
    until(lambda: not JobFiles(folder_of(path) / "j-2").process().lives)
    assert JobFiles(folder_of(path) / "j-3").process().lives
    runtime, chat = again()
    assert [delivery.promise for delivery in chat.of("done")] == ["j-2"]
    assert runtime.jobs.get("j-2").reason == "shutdown"
    assert runtime.jobs.stop("j-3").state is JobState.STOPPED  # by another program than the one that started it


def test_killed_before_the_command_was_started(path, again):
    """The promise is there, so it is kept: told that nothing ran."""
    killed(
        """
        from troth.testing import failpoints
        with failpoints.armed("job.exec.before", "kill"), Runtime({path!r}, in_process=False) as runtime, bind("s"):
            runtime.jobs.start("touch {path}.ran", job_id="j-1")
        """,
        path=str(path),
    )
    runtime, chat = again()
    assert "could not be started" in chat.of("done")[0].text
    assert runtime.jobs.get("j-1").state is JobState.FAILED
    assert not Path(f"{path}.ran").exists()


def test_a_job_whose_supervisor_was_killed(runtime, tmp_path):
    """Nobody knows how it ended, and that is told; as long as it runs, it runs, and it can be stopped."""
    go = tmp_path / "go"
    first = runtime.jobs.start(f"while ! [ -e {go} ]; do sleep 0.02; done; echo done").promise.id
    second = runtime.jobs.start("exec sleep 600").promise.id
    process = JobFiles(folder_of(runtime.engine.store.path) / first).process()
    until(JobFiles(folder_of(runtime.engine.store.path) / second).process)  # written a moment after the start
    os.kill(process.supervisor, signal.SIGKILL)
    until(lambda: start_time(process.supervisor) != process.supervisor_started)
    assert runtime.jobs.get(first).state is JobState.RUNNING
    go.touch()
    record = runtime.jobs.wait(first, 30)
    assert (record.state, record.exit_code, record.reason) == (JobState.FAILED, None, "lost")
    assert "with an unknown result" in runtime.inbox.take(20).text
    assert runtime.jobs.read(first).text == "done\n"
    stopped = runtime.jobs.stop(second, timeout=60)
    assert (stopped.state, stopped.reason) == (JobState.STOPPED, "stop")
    third = runtime.jobs.start("exit 1").promise.id  # with a supervisor of its own
    assert runtime.jobs.wait(third, 30).exit_code == 1


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looked up in /proc")
@pytest.mark.parametrize("is_stopped", [True, False])
def test_a_job_whose_supervisor_was_killed_before_it_wrote_down_which_process_it_is(runtime, tmp_path, is_stopped):
    """Right after the start, before the file `process` is there: the command runs, so it can be found and stopped."""
    go = tmp_path / "go"
    command = f"while ! [ -e {go} ]; do sleep 0.02; done"
    others = [runtime.jobs.start(command).promise.id for _ in range(2)]
    job = runtime.jobs.start(command).promise.id
    files = JobFiles(folder_of(runtime.engine.store.path) / job)
    process = until(files.process)
    os.kill(process.supervisor, signal.SIGKILL)
    until(lambda: not process.is_supervised)
    supervisor = {"supervisor": process.supervisor, "supervisor_started": process.supervisor_started}
    (files.folder / DRAFT).write_text(json.dumps(supervisor).ljust(512))
    (files.folder / PROCESS).unlink()
    if is_stopped:
        assert runtime.jobs.stop(job, timeout=60).state is JobState.STOPPED
        assert not process.lives
    else:
        until(files.process)
        assert files.process()[:4] == process[:4]
    go.touch()
    for other in (*others, *([] if is_stopped else [job])):
        assert runtime.jobs.wait(other, 60).reason == "lost"


def test_a_stop_that_was_only_written_down_is_carried_out(runtime, path):
    """Killed between the commit and the signal: whoever looks after the job sees to it."""
    job = runtime.jobs.start("exec sleep 60").promise.id
    from troth.runtime.jobs.commit_points import JOB_STOP

    runtime.engine.store.commit(JOB_STOP, lambda tx: tx.append_event(f"job:{job}", "stop", {"reason": "stop"}, 1.0))
    assert runtime.jobs.wait(job, 30).state is JobState.STOPPED


@pytest.mark.parametrize("point", ["job.watch.written", "job.end.written"])
def test_a_full_disk_is_not_a_lost_end(runtime, chat, point):
    """What could not be written is found again, and told once."""

    def full(_):
        raise StoreError("the disk is full")

    with failpoints.armed(point, full), bind("s", chat):
        job = runtime.jobs.start("echo hit; sleep 0.3; exit 8", watch="hit").promise.id
        until(lambda: chat.of("done"))
    assert [delivery.kind for delivery in chat.sent] == ["watch", "done"]
    assert runtime.jobs.get(job).exit_code == 8


def test_a_start_that_fails_on_a_full_disk_is_told_through_the_promise(runtime, chat):
    """It could not be started, and that could not be written down: the caller hears of the store, and the session later."""
    left = [2]

    def full(_):
        left[0] -= 1
        if left[0] >= 0:
            raise StoreError("the disk is full")

    with failpoints.armed("job.end.written", full), bind("s", chat):
        with pytest.raises(StoreError, match="the disk is full"):
            runtime.jobs.start(["there-is-no-such-program"], job_id="j")
        until(lambda: chat.of("done"))
    until(lambda: runtime.outbox.counts().delivered == 1)
    assert runtime.jobs.get("j").state is JobState.FAILED
    assert "No such file" in runtime.jobs.get("j").text


def test_a_file_that_is_locked_delays_and_loses_nothing(runtime, path):
    """Another program writes for a while: the start waits for it, and so does the end."""
    other = sqlite3.connect(path, isolation_level=None)
    try:
        job = runtime.jobs.start("exit 8").promise.id
        other.execute("BEGIN IMMEDIATE")
        files = JobFiles(folder_of(path) / job)
        until(files.ending)
        other.execute("ROLLBACK")
    finally:
        other.close()
    assert runtime.jobs.wait(job, 30).exit_code == 8
    assert runtime.inbox.take(20).promise == job


def test_threads_that_switch_all_the_time(path):
    """Two programs look at many jobs, threads switching every microsecond: each end is told once."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with Runtime(path, delivery=QUICK) as one, Runtime(path, delivery=QUICK) as two:
            chat = Chat()
            one.open_channel(chat)
            with bind("s", chat):
                jobs = [one.jobs.start("echo hit", watch="hit").promise.id for _ in range(10)]
                two.jobs.look_after()
                until(lambda: len(chat.of("done")) == len(jobs), 60)
            ids = sorted(delivery.id for delivery in chat.sent)
            assert ids == sorted(f"{job}-{kind}-1" for job in jobs for kind in ("watch", "done"))
    finally:
        sys.setswitchinterval(before)


def test_writing_one_file_from_several_threads_at_once(tmp_path):
    """A stop that the program asks for and the one that its monitor passes on are written at the same moment."""
    path = tmp_path / "stop"
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: write_whole(str(path), {"reason": number}), range(400)))
    assert json.loads(path.read_text())["reason"] in range(400)
    assert [file.name for file in tmp_path.iterdir()] == ["stop"]


def test_a_child_that_was_forked_has_no_jobs(runtime):
    """It is told so, and the parent's supervisor stays the parent's."""
    job = runtime.jobs.start("exec sleep 60", on_shutdown="stop").promise.id
    program = f"""
import os, sys
from troth.runtime import Runtime
with Runtime({str(runtime.engine.store.path) + ".other"!r}, in_process=False) as runtime:
    runtime.jobs.start("true").promise.wait(30)
    child = os.fork()
    if child == 0:
        try:
            runtime.jobs.start("true")
        except Exception as refused:
            os._exit(0 if "forked" in str(refused) else 1)
        os._exit(2)
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], timeout=60, check=False)
    assert done.returncode == 0
    assert runtime.jobs.get(job).state is JobState.RUNNING
    runtime.jobs.stop(job)
