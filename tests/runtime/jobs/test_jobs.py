"""What `jobs.start` answers, what becomes of a command, and what each verb does."""

import asyncio
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from troth.errors import MisuseError
from troth.runtime import Capability, Inline, PromiseRefused, Pushed, Runtime, Stored, bind
from troth.runtime.channels import stateless
from troth.runtime.jobs import ForeignJobError, JobInputError, JobStartError, JobState, UnknownJobError
from troth.runtime.jobs.job_files import JobFiles
from troth.runtime.jobs.machine import folder_of
from troth.runtime.jobs.supervisor import start_time
from troth.runtime.jobs.supervisor_client import SupervisorClient
from troth.runtime.promises.errors import ForeignPromiseError, NotSettledError
from troth.runtime.store import SqliteStore
from troth.runtime.store.promise_records import DeliveryState, PromiseState
from troth.testing import failpoints

from .conftest import QUICK, Chat, until


@pytest.mark.parametrize(
    ("command", "options", "state", "code", "says"),
    [
        pytest.param("exit 0", {}, JobState.DONE, 0, "ended with exit code 0", id="done"),
        pytest.param("exit 3", {}, JobState.FAILED, 3, "ended with exit code 3", id="another exit code"),
        pytest.param(["sh", "-c", "exit 4"], {}, JobState.FAILED, 4, "exit code 4", id="a list of words"),
        pytest.param("kill -9 $$", {}, JobState.FAILED, -9, "by signal SIGKILL", id="a signal"),
        pytest.param("no-such-program", {}, JobState.FAILED, 127, "exit code 127", id="the shell finds nothing"),
        pytest.param("sleep 60", {"timeout": 0.1}, JobState.FAILED, -15, "its timeout was over", id="a timeout"),
    ],
)
def test_how_a_command_ends(runtime, command, options, state, code, says):
    """The true exit code, in the record, in the promise and in what is told."""
    outcome = runtime.jobs.start(command, **options)
    assert isinstance(outcome, Pushed)
    record = runtime.jobs.wait(outcome.promise.id, 30)
    assert (record.state, record.exit_code) == (state, code)
    assert says in record.text
    delivery = runtime.inbox.take(20)
    assert (delivery.promise, delivery.kind) == (record.id, "done")
    assert says in delivery.text
    assert delivery.data["result"]["exit_code"] == code
    promised = outcome.promise.get()
    assert promised.state is (PromiseState.DONE if code == 0 else PromiseState.FAILED)
    assert runtime.jobs.get(record.id) == record


@pytest.mark.parametrize(
    ("command", "options", "error", "says"),
    [
        pytest.param(["/no/such/program"], {}, JobStartError, "No such file", id="no such program"),
        pytest.param(["/etc/passwd"], {}, JobStartError, "Permission denied", id="no program at all"),
        pytest.param("", {}, MisuseError, "is not a command", id="nothing"),
        pytest.param([], {}, MisuseError, "is not a command", id="an empty list"),
        pytest.param(["a\0b"], {}, MisuseError, "is not a command", id="a word with NUL"),
        pytest.param([1], {}, MisuseError, "is not a command", id="a number"),
        pytest.param("true", {"cwd": "/no/such/folder"}, MisuseError, "does not exist", id="no such folder"),
        pytest.param("true", {"timeout": 0}, MisuseError, "above 0", id="no time"),
        pytest.param("true", {"on_shutdown": "die"}, MisuseError, "'survive' or 'stop'", id="a shutdown"),
        pytest.param("true", {"watch": [""]}, MisuseError, "`watch` has ''", id="an empty text"),
        pytest.param("true", {"env": {"A=B": "c"}}, MisuseError, "not the name of a variable", id="a variable"),
        pytest.param("true", {"job_id": "../x"}, MisuseError, "names a folder", id="an id"),
        pytest.param("true", {"job_id": 5}, MisuseError, "names a folder", id="a number for an id"),
        pytest.param("true", {"cwd": sys.executable}, MisuseError, "is a file", id="a file for a folder"),
        pytest.param(
            "true", {"watch": "\ud800"}, MisuseError, "neither a string nor a compiled pattern", id="half a letter"
        ),
        pytest.param("true", {"detach": "perhaps"}, MisuseError, "`detach` is", id="detach"),
    ],
)
def test_a_start_that_fails_is_an_error(runtime, command, options, error, says):
    """F14: never "started". Nothing is owed, and what was written down says what happened."""
    with pytest.raises(error, match=re.escape(says)):
        runtime.jobs.start(command, **options)
    assert runtime.outbox.counts().stored == 0
    for record in runtime.jobs.list():
        assert record.state is JobState.FAILED
        assert says in record.text
    assert len(runtime.jobs.list()) == (1 if error is JobStartError else 0)


@pytest.mark.parametrize("color", ["sync", "async"])
@pytest.mark.parametrize(
    ("capability", "detach", "kind"),
    [
        pytest.param(Capability.PUSH, "may", Pushed, id="push"),
        pytest.param(Capability.STORE, "must", Stored, id="store"),
        pytest.param(Capability.PUSH, "never", Inline, id="never"),
        pytest.param(Capability.NONE, "may", Inline, id="none, may"),
        pytest.param(Capability.NONE, "must", PromiseRefused, id="none, must"),
    ],
)
def test_exactly_one_outcome(runtime, chat, capability, detach, kind, color):
    """F17, F18: pushed, stored, inline or refused; both colors agree."""

    def begin():
        if color == "sync":
            return runtime.jobs.start("echo hello; exit 5", detach=detach)
        return asyncio.run(runtime.jobs.astart("echo hello; exit 5", detach=detach))

    with bind("s", chat, capability):
        if kind is PromiseRefused:
            with pytest.raises(PromiseRefused):
                begin()
            assert runtime.jobs.list() == []
            return
        outcome = begin()
    assert type(outcome) is kind
    if kind is Inline:
        assert (outcome.result["exit_code"], outcome.result["output"]) == (5, "hello\n")
        assert runtime.outbox.counts().promised == 0
        assert list(folder_of(runtime.engine.store.path).glob("inline-*")) == []
    else:
        assert runtime.jobs.wait(outcome.promise.id, 30).exit_code == 5


def test_inline_work_that_cannot_be_started_raises(runtime):
    """There is nobody else to tell."""
    with stateless(), pytest.raises(JobStartError):
        runtime.jobs.start(["/no/such/program"])


def test_everything_is_in_the_row_before_the_process_exists(runtime, path):
    """F1, F12, F13: promise, notify and watch are written down, and gettable, before anything runs."""
    seen = {}

    def look(_):
        record = runtime.jobs.get("j-1")
        seen.update(state=record.state, watch=record.watch, notify=record.notify)
        seen["folder"] = (folder_of(path) / "j-1").exists()
        seen["promise"] = runtime.promises.get("j-1").state

    with failpoints.armed("job.exec.before", look):
        runtime.jobs.start("echo ready", watch="ready", job_id="j-1")
    assert seen == {
        "state": JobState.STARTING,
        "watch": ["ready"],
        "notify": True,
        "folder": False,
        "promise": PromiseState.OPEN,
    }
    kinds = sorted(runtime.inbox.take(20).kind for _ in range(2))
    assert kinds == ["done", "watch"]


def test_a_job_that_ends_at_once_is_told(runtime):
    """F13: however short it is."""
    ids = {runtime.jobs.start("true").promise.id for _ in range(20)}
    assert {runtime.inbox.take(30).promise for _ in ids} == ids


def test_without_notify_nobody_is_told(runtime):
    """It can be asked for, and nothing is owed."""
    outcome = runtime.jobs.start("echo quiet", notify=False)
    assert isinstance(outcome, Stored)
    assert "notify=False" in outcome.note
    assert runtime.jobs.wait(outcome.promise.id, 30).state is JobState.DONE
    assert runtime.outbox.counts().stored == 0
    assert runtime.inbox.take(0.05) is None
    assert runtime.jobs.read(outcome.promise.id).text == "quiet\n"


def test_environment_and_folder(runtime, tmp_path, monkeypatch):
    """F28: `env` is added to ours, None takes away; a job is somebody's worker unless it says otherwise."""
    monkeypatch.setenv("TROTH_TEST_GONE", "1")
    monkeypatch.delenv("TROTH_DELIVERY", raising=False)
    command = 'echo "$PWD $TROTH_TEST_NEW ${TROTH_TEST_GONE-gone} $TROTH_DELIVERY"'
    env = {"TROTH_TEST_NEW": "new", "TROTH_TEST_GONE": None}
    job = runtime.jobs.start(command, cwd=tmp_path, env=env).promise.id
    runtime.jobs.wait(job, 30)
    assert runtime.jobs.read(job).text == f"{tmp_path} new gone store\n"
    written = runtime.engine.store.events(f"job:{job}")[0].payload["env"]
    assert written == ["TROTH_TEST_GONE", "TROTH_TEST_NEW"]  # names only: values may be secret


def test_write_and_the_end_of_input(runtime):
    """What is written is read; after the end nobody reads, and that is an error."""
    job = runtime.jobs.start("cat").promise.id
    runtime.jobs.write(job, "one\n")
    until(lambda: runtime.jobs.read(job).text == "one\n")
    with pytest.raises(MisuseError, match="neither a string nor bytes"):
        runtime.jobs.write(job, 5)
    runtime.jobs.write(job, b"two\n", end=True)
    assert runtime.jobs.wait(job, 30).exit_code == 0
    assert runtime.jobs.read(job).text == "one\ntwo\n"
    with pytest.raises(JobInputError, match="is closed"):
        runtime.jobs.write(job, "three")


def test_a_job_that_does_not_read_is_told(runtime):
    """How much was taken is said."""
    job = runtime.jobs.start("sleep 60").promise.id
    with pytest.raises(JobInputError, match=r"took \d+ of 300000 bytes"):
        runtime.jobs.write(job, "x" * 300_000, timeout=0.2)
    runtime.jobs.stop(job)


def test_reading_consumes_nothing_and_marks_what_is_cut(runtime):
    """F22: by byte offsets, letters whole, as often as one likes."""
    text = "äöü€\n" * 20
    job = runtime.jobs.start(["printf", "%s", text]).promise.id
    runtime.jobs.wait(job, 30)
    size = len(text.encode())
    for _ in range(2):
        pieces, after = [], 0
        while after < size:
            piece = runtime.jobs.read(job, after, limit=7)
            assert "\N{REPLACEMENT CHARACTER}" not in piece.text
            assert (piece.note is None) == (piece.start == 0 and piece.end == size)
            pieces.append(piece.text)
            after = piece.end
        assert "".join(pieces) == text
    whole = runtime.jobs.read(job)
    assert (whole.text, whole.note, whole.is_over) == (text, None, True)
    assert runtime.inbox.take(20).promise == job  # reading acknowledged nothing
    for wrong in ({"after": -1}, {"limit": 0}):
        with pytest.raises(MisuseError, match="whole number, "):
            runtime.jobs.read(job, **wrong)


def test_half_a_letter_is_read_when_the_rest_is_there(runtime):
    """Also of a job that goes on: whoever follows its output gets every letter whole."""
    job = runtime.jobs.start(r"printf 'a\342\202'; read line; printf '\254b'").promise.id
    until(lambda: runtime.jobs.get(job).output_bytes == 3)
    first = runtime.jobs.read(job)
    assert (first.text, first.end) == ("a", 1)
    assert runtime.jobs.read(job, first.end).text == ""
    runtime.jobs.write(job, "on\n")
    runtime.jobs.wait(job, 60)
    assert runtime.jobs.read(job, first.end).text == "€b"
    assert runtime.jobs.read(job, first.end, limit=1).text == "€"  # a letter is never cut, however little is asked for
    assert runtime.jobs.read(job, limit=1).text == "a"


def test_bytes_that_are_no_text(runtime):
    """Shown as that; the file has them as they are."""
    job = runtime.jobs.start(r"printf 'a\377\376b\n'", watch="b").promise.id
    record = runtime.jobs.wait(job, 30)
    assert runtime.jobs.read(job).text == "a\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}b\n"
    assert Path(record.output_file).read_bytes() == b"a\xff\xfeb\n"
    assert record.hits == 1


def test_ten_megabytes(runtime):
    """All of it is there; what is told says how much was left out, and where it is."""
    job = runtime.jobs.start("yes 0123456789abcde | head -c 10485760; echo; echo the end", watch="the end").promise.id
    record = runtime.jobs.wait(job, 60)
    assert (record.output_bytes, record.hits) == (10485760 + 9, 1)
    told = {delivery.kind: delivery for delivery in (runtime.inbox.take(20), runtime.inbox.take(20))}
    result = told["done"].data["result"]
    assert result["output"].endswith("the end\n")
    assert result["output_cut"] + len(result["output"]) == record.output_bytes
    assert f"the first {result['output_cut']} of {record.output_bytes} bytes" in told["done"].text
    assert record.output_file in told["done"].text
    assert runtime.jobs.read(job, record.output_bytes - 8).text == "the end\n"


VERBS = {
    "get": lambda jobs, job, **who: jobs.get(job, **who),
    "wait": lambda jobs, job, **who: jobs.wait(job, 0.01, **who),
    "read": lambda jobs, job, **who: jobs.read(job, **who),
    "write": lambda jobs, job, **who: jobs.write(job, "x", **who),
    "stop": lambda jobs, job, **who: jobs.stop(job, **who),
}


@pytest.mark.parametrize("verb", VERBS)
def test_another_session_is_refused(runtime, chat, verb):
    """F22, F27: for every verb, in a turn of another session or by name; nothing is done."""
    with bind("mine", chat):
        job = runtime.jobs.start("cat").promise.id
    with bind("theirs", chat), pytest.raises(ForeignJobError):
        VERBS[verb](runtime.jobs, job)
    with pytest.raises(ForeignJobError):
        VERBS[verb](runtime.jobs, job, session="theirs")
    assert runtime.jobs.get(job).state is JobState.RUNNING  # the program itself sees everything
    assert runtime.jobs.read(job).size == 0
    with bind("theirs", chat):
        assert runtime.jobs.list() == []
    with bind("mine", chat):
        assert [record.id for record in runtime.jobs.list()] == [job]
        runtime.jobs.stop(job)
    with pytest.raises(UnknownJobError, match="never was"):
        VERBS[verb](runtime.jobs, "j-nobody")


def test_stopping_ends_everything_that_it_has_started(runtime, tmp_path):
    """Told as stopped; the grandchildren are gone, too; a second stop changes nothing."""
    child = tmp_path / "child"
    job = runtime.jobs.start(f"sleep 60 & echo $! > {child}.new; mv {child}.new {child}; wait").promise.id
    pid = int(until(lambda: child.exists() and child.read_text()))
    record = runtime.jobs.stop(job)
    assert (record.state, record.reason) == (JobState.STOPPED, "stop")
    assert start_time(pid) is None
    assert "was stopped" in runtime.inbox.take(20).text
    assert runtime.promises.get(job).state is PromiseState.CANCELLED
    assert runtime.jobs.stop(job) == record


def test_a_command_that_does_not_listen_is_killed(runtime, tmp_path):
    """SIGTERM is ignored; after a grace the group is killed."""
    ready = tmp_path / "ready"
    job = runtime.jobs.start(f"trap '' TERM; touch {ready}; while :; do sleep 1; done").promise.id
    until(ready.exists)
    record = runtime.jobs.stop(job, timeout=30)
    assert (record.state, record.exit_code) == (JobState.STOPPED, -9)


def test_cancelling_the_promise_stops_the_job(runtime):
    """One thing under two names."""
    promise = runtime.jobs.start("sleep 60").promise
    assert promise.cancel()
    assert promise.wait(30).state is PromiseState.CANCELLED
    assert runtime.jobs.get(promise.id).state is JobState.STOPPED


@pytest.mark.parametrize("verb", ["get", "wait", "cancel"])
def test_the_promise_of_another_sessions_job_is_refused(runtime, chat, verb):
    """F22: no way around the verbs of jobs."""
    with bind("mine", chat):
        promise = runtime.jobs.start("exec sleep 60").promise
    with bind("theirs", chat), pytest.raises(ForeignPromiseError):
        getattr(runtime.promises, verb)(promise.id)
    assert runtime.jobs.get(promise.id).state is JobState.RUNNING
    with bind("mine", chat):
        assert promise.cancel()
    assert promise.wait(30).state is PromiseState.CANCELLED


def test_a_turn_that_names_a_session_acts_for_it(runtime, chat):
    """`session=` decides for every verb, also for those that wait through the promise."""
    with bind("mine", chat):
        jobs = [runtime.jobs.start("exec sleep 60").promise.id for _ in range(3)]
    with bind("theirs", chat):
        assert runtime.jobs.stop(jobs[0], session="mine").state is JobState.STOPPED
        assert asyncio.run(runtime.jobs.astop(jobs[1], session="mine")).state is JobState.STOPPED
        with pytest.raises(NotSettledError):
            runtime.jobs.wait(jobs[2], 0.01, session="mine")
        with pytest.raises(NotSettledError):
            asyncio.run(runtime.jobs.await_end(jobs[2], 0.01, session="mine"))
        assert runtime.promises.cancel(jobs[2], session="mine")
        assert runtime.jobs.wait(jobs[2], 30, session="mine").state is JobState.STOPPED


def test_waiting_has_an_end(runtime):
    """Both colors say that it goes on."""
    job = runtime.jobs.start("sleep 60").promise.id
    with pytest.raises(NotSettledError):
        runtime.jobs.wait(job, 0.05)
    with pytest.raises(NotSettledError):
        asyncio.run(runtime.jobs.await_end(job, 0.05))
    stopped = asyncio.run(runtime.jobs.astop(job))
    assert asyncio.run(runtime.jobs.await_end(job, 5)) == stopped == asyncio.run(runtime.jobs.aget(job))


def test_a_process_id_is_believed_only_with_its_start_time(runtime, tmp_path):
    """Another process that got the id is neither taken for the job nor signalled."""
    stranger = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)
    try:
        folder = tmp_path / "forged"
        folder.mkdir()
        about = {"pid": stranger.pid, "started": "1", "supervisor": stranger.pid, "supervisor_started": "1"}
        (folder / "process").write_text(str({**about, "begun_at": 1.0}).replace("'", '"'))
        files = JobFiles(folder)
        assert not files.process().lives
        assert not files.process().is_supervised
        files.stop("stop")
        files.end_input()
        assert stranger.poll() is None
        assert start_time(stranger.pid) is not None
    finally:
        os.killpg(stranger.pid, signal.SIGKILL)
        stranger.wait()


@pytest.mark.parametrize("hours", [-1, 1])
def test_how_long_it_took_goes_by_one_clock(path, hours):
    """That of its machine: the clock of the store may be another one, or be set meanwhile."""
    with SqliteStore(path, clock=lambda: time.time() + 3600.0 * hours) as store, Runtime(store) as runtime:
        job = runtime.jobs.start("sleep 0.2").promise
        assert 0.2 <= job.wait(60).result["seconds"] < 1800


def test_after_retention_it_is_expired_since_then(path):
    """F15: counted from the end; asking says since when, the files are gone, nothing is unknown."""
    with Runtime(path, delivery=QUICK, in_process=False) as runtime:
        job = runtime.jobs.start("echo x", retention=0.05).promise.id
        record = until(lambda: (now := runtime.jobs.get(job)).state is JobState.EXPIRED and now)
        assert "has expired since" in record.text
        with pytest.raises(MisuseError, match="has expired since"):
            runtime.jobs.read(job)
        until(lambda: not (folder_of(path) / job).exists())


def test_tools(runtime, chat):
    """Start, look, read, wait, write, stop, list; each in the caller's own session; where nothing is told, it says so."""
    tools = {tool.name: lambda *a, tool=tool, **k: asyncio.run(tool(*a, **k)) for tool in runtime.jobs.tools()}
    with bind("s", chat):
        started = tools["start_job"]("cat; exit 2", watch=["hello"])
        assert started["delivery"] == "pushed"
        job = started["job"]
        assert tools["look_at_job"](job)["state"] == "running"
        assert tools["wait_for_job"](job, 0.01)["state"] == "running"
        assert tools["write_to_job"](job, "hello\n", end=True)["written"] == 6
        waited = tools["wait_for_job"](job, 30)
        assert (waited["exit_code"], waited["output"]) == (2, "hello\n")
        assert tools["read_job"](job, 2)["output"] == "llo\n"
        assert [one["job"] for one in tools["list_jobs"]()] == [job]
        until(lambda: sorted(delivery.kind for delivery in chat.sent) == ["done", "watch"])
    with bind("other", chat), pytest.raises(ForeignJobError):
        tools["look_at_job"](job)
    with bind("s", chat, Capability.STORE):
        stored = tools["start_job"]("sleep 60")
        assert "wait_for_job" in stored["note"]
        assert tools["stop_job"](stored["job"])["state"] == "stopped"
    with stateless():
        assert tools["start_job"]("echo now")["result"]["output"] == "now\n"
        long = tools["start_job"]("seq 1 100000")
        assert long["result"]["output"].endswith("99999\n100000\n")
        assert len(long["result"]["output"]) + int(re.search(r"first (\d+) char", long["note"])[1]) == 588895


def test_what_ended_in_a_stored_turn_is_offered_to_the_next_channel(runtime, chat):
    """F19, F25: refused a push at the start, told when the session comes back on a channel that can."""
    with bind("s", Chat("elsewhere")):
        outcome = runtime.jobs.start("echo hi")
    assert isinstance(outcome, Stored)
    runtime.jobs.wait(outcome.promise.id, 30)
    assert runtime.outbox.find(f"{outcome.promise.id}-done-1").state is DeliveryState.STORED
    with bind("s", chat):
        until(lambda: [delivery.promise for delivery in chat.sent] == [outcome.promise.id])


def test_elsewhere_a_clear_refusal(runtime, monkeypatch):
    """Not POSIX: refused before anything is written."""
    monkeypatch.setattr("troth.runtime.jobs.jobs._IS_POSIX", False)
    with pytest.raises(MisuseError, match="Jobs need POSIX"):
        runtime.jobs.start("true")
    assert runtime.jobs.list() == []


def test_a_job_that_ends_before_it_is_answered_for_is_forgotten(path):
    """Nothing is remembered of a process that is over, whichever of the two threads was first."""
    heard = threading.Event()

    class Ending(SupervisorClient):
        def start(self, request):
            answer = super().start(request)
            assert heard.wait(60)  # its end is told before the caller has its id
            return answer

    with Runtime(path, in_process=False) as runtime:
        jobs = runtime.jobs

        def ended(job_id):
            jobs._ended(job_id)
            heard.set()

        jobs._client = Ending(jobs._folder, ended)
        job = jobs.start(["true"]).promise.id
        assert jobs.wait(job, 60).state is JobState.DONE
        heard.set()
        with pytest.raises(JobStartError):
            jobs.start(["no-such-program"])
        assert jobs._pids == {}
