"""The supervisor by itself: how it finds a program, and what it does when the disk is full."""

import errno
import json
import os
import shutil
import signal
import socket
import stat
import sys
import threading
import time
from pathlib import Path

import pytest

from troth.errors import MisuseError
from troth.runtime import Runtime
from troth.runtime.jobs import supervisor
from troth.runtime.jobs.job_files import JobFiles
from troth.runtime.jobs.supervisor_client import SupervisorClient

from .conftest import until

MINE = (os.getpid(), supervisor.start_time(os.getpid()))


def request(folder, command, **more):
    return {
        "id": "j",
        "folder": str(folder),
        "command": command,
        "cwd": str(folder.parent),
        "env": dict(os.environ),
        "timeout": None,
        "stops_with_owner": False,
        "is_kept": True,
        **more,
    }


@pytest.fixture
def folder(tmp_path):
    here = Path.cwd()  # the supervisor is a process of its own, and goes where it likes
    yield tmp_path / "job"
    os.chdir(here)


def start(folder, command, **more):
    return begun(request(folder, command, **more), supervisor._Spares())


def begun(request, spares):
    command = supervisor._Command(request, request["env"], spares)
    command.write_process(*MINE)
    return command


def ended(command):
    until(lambda: command.look(time.monotonic(), is_asked=False), 30)
    return JobFiles(Path(command.folder)).ending()


def script(path, text, mode=0o755):
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


def test_the_program_is_looked_for_in_the_commands_own_path(folder, tmp_path):
    """Not in that of the supervisor; what is no file, or cannot be run, is passed over."""
    (tmp_path / "a/tool").mkdir(parents=True)
    script(tmp_path / "b/tool", "#!/bin/sh\nexit 1", mode=stat.S_IRUSR)
    script(tmp_path / "c/tool", "#!/bin/sh\nexit 7")
    path = ":".join([str(tmp_path / "nowhere"), *(str(tmp_path / name) for name in "abc"), os.environ["PATH"]])
    command = start(folder, ["tool"], env={**os.environ, "PATH": path})
    assert ended(command).code == 7


def test_an_empty_entry_of_the_path_is_the_commands_folder(folder, tmp_path):
    """As for every shell."""
    script(tmp_path / "tool", "#!/bin/sh\nexit 8")
    assert ended(start(folder, ["tool"], env={"PATH": ":/bin:/usr/bin"})).code == 8


@pytest.mark.parametrize(
    ("command", "error"),
    [
        (["there-is-no-such-program"], FileNotFoundError),
        (["./nor-such-a-file"], FileNotFoundError),
        (["./no_program"], OSError),
        (["/"], PermissionError),
    ],
    ids=["no such program", "no such file", "no program", "a folder"],
)
def test_a_program_that_cannot_be_run_is_an_error(folder, tmp_path, command, error):
    """Before anything is said to have started."""
    script(tmp_path / "no_program", "\0\0\0\0")
    with pytest.raises(error):
        start(folder, command)
    assert JobFiles(folder).ending().problem is not None
    assert JobFiles(folder).process() is None


def test_a_command_has_its_own_group_and_no_descriptor_too_many(runtime):
    """Those of the supervisor, and what the program has left open for its children, are not for its commands."""
    program = """
import os
def is_open(number):
    try: os.fstat(number)
    except OSError: return False
    return True
print(os.getpgid(0) == os.getpid(), os.getsid(0), [number for number in range(64) if is_open(number)])
"""
    reading, writing = os.pipe()
    try:
        os.set_inheritable(writing, True)
        job = runtime.jobs.start([sys.executable, "-c", program]).promise.id
        assert runtime.jobs.wait(job, 60).exit_code == 0
        os.close(writing)
        assert os.read(reading, 1) == b"", "the supervisor does not hold it either"
    finally:
        os.close(reading)
    is_leader, session, descriptors = runtime.jobs.read(job).text.split(maxsplit=2)
    assert (is_leader, descriptors) == ("True", "[0, 1, 2]\n")
    assert int(session) != os.getsid(0), "it does not end with our terminal"


def test_a_signal_that_python_ignores_ends_a_command(folder):
    """SIGPIPE is how a pipe is told that nobody reads any more."""
    assert ended(start(folder, ["sh", "-c", "kill -PIPE $$; exit 3"])).code == -signal.SIGPIPE


def full_disk(monkeypatch, name, times):
    """`times` writes of one of a command's files fail."""
    write, left = supervisor.write_whole, [times]

    def fails(path, value, draft=None):
        if path.endswith(f"/{name}") and left[0] > 0:
            left[0] -= 1
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        write(path, value, draft)

    monkeypatch.setattr(supervisor, "write_whole", fails)


def test_an_end_that_cannot_be_written_is_written_later(folder, monkeypatch, capfd):
    """The exit status is kept until the disk takes it: a full disk does not make a job one that was lost."""
    full_disk(monkeypatch, supervisor.EXIT, 3)
    command = start(folder, ["sh", "-c", "exit 5"])
    until(lambda: command.look(time.monotonic(), is_asked=False) or command.is_unwritten, 30)
    assert command.is_timed, "it is looked at again although nothing happens"
    assert JobFiles(folder).ending() is None
    assert [command.look(time.monotonic(), is_asked=False) for _ in range(3)] == [False, False, True]
    assert JobFiles(folder).ending().code == 5
    assert capfd.readouterr().err.count("could not be written yet") == 1


def test_a_full_disk_has_room_for_the_end(folder):
    """Its file is made before: only what is written over it is written then."""
    command = start(folder, ["sh", "-c", "exit 7"])
    draft = folder / "exit.new"
    assert draft.stat().st_blocks or draft.stat().st_size >= 512
    size = draft.stat().st_size
    assert ended(command).code == 7
    assert (folder / "exit").stat().st_size == size
    assert not draft.exists()


def test_a_command_that_nobody_could_find_again_is_ended(folder, monkeypatch):
    """If the file that says who it is cannot be written, it is told as one that could not be started."""
    full_disk(monkeypatch, supervisor.PROCESS, 1)
    command = start(folder, ["sleep", "60"])
    assert supervisor.start_time(command.pid) is None
    assert command.is_timed, "its end is written although nothing happens"
    problem = ended(command).problem
    assert (problem["type"], "No space left" in problem["message"]) == ("OSError", True)


def test_what_is_asked_of_a_command_before_its_file_is_written_is_done(folder):
    """Whoever was answered may stop it at once, when nobody can be called yet."""
    given = request(folder, ["sleep", "60"])
    command = supervisor._Command(given, given["env"], supervisor._Spares())
    JobFiles(folder).stop("stop")
    command.write_process(*MINE)
    assert ended(command)[1:] == (-signal.SIGTERM, "stop", None)


@pytest.mark.parametrize("asked", ["nothing", "a signal", "the end of its owner"])
def test_whoever_asked_is_answered_before_the_process_is_written_down(folder, asked):
    """Two processes that were just woken have nobody in their way; whatever is wanted of the command comes after it."""
    (ours, theirs), (news, _news) = socket.socketpair(), socket.socketpair()
    with ours, theirs, news, _news:
        served = supervisor._Supervisor(theirs.fileno(), news.fileno())
        served._start(request(folder, ["sleep", "60"]))
        assert json.loads(ours.recv(1 << 16))["pid"] == served._commands["j"].pid
        assert JobFiles(folder).process() is None
        command = served._commands["j"]
        if asked == "the end of its owner":
            served._detach()
        elif asked == "a signal":
            served._write_processes(is_asked=True)
        else:
            assert 0 <= served._patience() <= supervisor._CALM
            until(lambda: served._write_processes(is_asked=False) or command.write_at is None, 30)
        assert JobFiles(folder).process().pid == command.pid
        command.stop("stop")
        assert ended(command).reason == "stop"


def test_a_job_of_the_same_program_has_its_process_at_once(runtime):
    """Its file is written after the answer; who asks in between is not told that it is still starting."""
    records = [runtime.jobs.get(runtime.jobs.start(["true"]).promise.id) for _ in range(20)]
    assert all(record.pid is not None for record in records)


def test_a_job_that_ends_while_it_is_looked_at_has_its_process(runtime, monkeypatch):
    """Its files are read too early, and what this program remembers of it is gone a moment later."""
    job = runtime.jobs.start(["true"]).promise.id
    runtime.jobs.wait(job, 60)

    def too_early(_files):
        runtime.jobs._ended(job)

    runtime.jobs._pids[job] = [123456]
    monkeypatch.setattr(JobFiles, "process", too_early)
    assert runtime.jobs.get(job).pid == 123456


def test_prepared_folders_that_somebody_removed_are_made_anew(folder, tmp_path):
    """A person who cleans up between two commands does not keep the next one from starting."""
    spares = supervisor._Spares()
    spares.claim(str(folder)).close()
    while spares.make_at is not None:
        spares.prepare(spares.make_at)
    shutil.rmtree(tmp_path / ".spare")
    assert ended(begun(request(folder.with_name("next"), ["sh", "-c", "exit 6"]), spares)).code == 6


def spares_of(root):
    folder = root / ".spare"
    return sorted(folder.iterdir()) if folder.exists() else []


def test_folders_are_made_before_their_commands_come(folder):
    """A command that finds one takes it; what is prepared and not taken is removed with its supervisor."""
    spares = supervisor._Spares()
    spares.claim(str(folder))
    while spares.make_at is not None:
        spares.prepare(spares.make_at)
    ready = spares_of(folder.parent)
    assert len(ready) == 4
    command = begun(request(folder.with_name("next"), ["sh", "-c", "exit 4"]), spares)
    assert len(spares_of(folder.parent)) == 3
    assert ended(command).code == 4
    assert sorted(path.name for path in Path(command.folder).iterdir()) == ["exit", "output", "process", "stdin"]
    spares.close()
    assert spares_of(folder.parent) == []


def test_what_a_killed_supervisor_had_prepared_is_removed(folder):
    """By the next one, and nothing that belongs to a process that lives."""
    orphan = folder.parent / ".spare" / "1-0-0-0"
    orphan.mkdir(parents=True)
    (orphan / supervisor.OUTPUT).touch()
    living = supervisor.make_spare(str(folder.parent), ["output"])
    spares = supervisor._Spares()
    spares.claim(str(folder))
    spares.prepare(spares.make_at)
    assert not orphan.exists()
    assert Path(living).exists()


@pytest.mark.parametrize("is_prepared", [True, False], ids=["a spare folder", "none"])
def test_a_job_that_was_given_up_is_not_started(folder, is_prepared):
    """Whoever has the folder first decides, whether it was made before or not."""
    spares = supervisor._Spares()
    if is_prepared:
        spares.claim(str(folder.with_name("before")))
        spares.prepare(spares.make_at)
    assert JobFiles(folder).give_up()
    with pytest.raises(FileExistsError):
        begun(request(folder, ["touch", "ran"]), spares)
    assert not (folder.parent / "ran").exists()
    assert not JobFiles(folder).give_up(), "once is enough"
    assert len(spares_of(folder.parent)) == 0


def test_a_job_that_was_started_is_not_given_up(folder):
    """The folder is taken, and nothing in it is lost."""
    command = start(folder, ["sh", "-c", "exit 6"])
    assert not JobFiles(folder).give_up()
    assert ended(command).code == 6
    assert spares_of(folder.parent) == []


def test_the_age_of_a_start_is_not_that_of_its_folder(folder):
    """A folder may wait for hours; the job in it was begun when it was taken."""
    spares = supervisor._Spares()
    spares.claim(str(folder.with_name("before")))
    spares.prepare(spares.make_at)
    (spare,) = spares_of(folder.parent)
    os.utime(spare, (1.0, 1.0))
    begun = time.time()
    spares.claim(str(folder))
    assert JobFiles(folder).made_at() >= begun - 1


def test_a_disk_that_takes_no_folder_refuses_the_start(folder, monkeypatch, capfd):
    """Preparing tells the log; the command that needs the folder is refused."""
    spares = supervisor._Spares()
    spares.claim(str(folder))

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(supervisor, "make_spare", full)
    spares.prepare(spares.make_at)
    assert spares.make_at is None
    assert "No space left" in capfd.readouterr().err
    with pytest.raises(OSError, match="No space left"):
        begun(request(folder.with_name("next"), ["true"]), spares)


@pytest.mark.parametrize("command", [["true"], ["sleep", "60"]], ids=["over", "under way"])
def test_nothing_that_was_prepared_is_left_after_the_end(tmp_path, command):
    """The folder of a runtime that was closed can be deleted at once."""
    with Runtime(tmp_path / "r.db") as runtime:
        job = runtime.jobs.start(command, on_shutdown="stop").promise.id
        until(lambda: spares_of(tmp_path / "r.db.jobs"), 30)
        if command == ["true"]:
            runtime.jobs.wait(job, 60)
    assert spares_of(tmp_path / "r.db.jobs") == []


@pytest.fixture
def client(tmp_path):
    ended = []
    client = SupervisorClient(tmp_path / "jobs", ended.append)
    client.seen_to_end = ended
    yield client
    client.close()


def asked(client, name, command, **more):
    return request(client._folder / name, command, **more) | {"id": name, "cwd": str(client._folder.parent)}


def start_first(client):
    assert "pid" in client.start(asked(client, "first", ["true"]))
    until(lambda: client.seen_to_end == ["first"])


def test_what_is_announced_is_begun_when_it_is_asked_for(client, tmp_path):
    """And not before; one that nobody asks for is never begun, and the next ones are what they were asked to be."""
    start_first(client)
    for name in ("forgotten", "kept"):
        command = ["sh", "-c", f"echo $NAME >> {tmp_path / 'begun'}"]
        announced = asked(client, name, command, env={**os.environ, "NAME": name})
        assert client.announce(announced)
        if name == "kept":
            assert not (client._folder / name).exists()
            assert "pid" in client.start(announced)
        client.end_announcement()
    same_environment = asked(client, "after", command, env={**os.environ, "NAME": "kept"})
    assert "pid" in client.start(same_environment)
    until(lambda: sorted(client.seen_to_end) == ["after", "first", "kept"])
    assert (tmp_path / "begun").read_text() == "kept\nkept\n"
    assert not (client._folder / "forgotten").exists()


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_supervisor_killed_about_an_announcement_is_replaced(client, tmp_path, when):
    """The new one was told nothing: it gets the whole request, and the command runs once."""
    start_first(client)
    announced = asked(client, "job", ["sh", "-c", f"echo once >> {tmp_path / 'begun'}"])
    killed = JobFiles(client._folder / "first").process()
    for step in ("before", "announce", "after"):
        if step == "announce":
            assert client.announce(announced)
        elif step == when:
            os.kill(killed.supervisor, signal.SIGKILL)
            until(lambda: not killed.is_supervised)
    assert "pid" in client.start(announced)
    client.end_announcement()
    until(lambda: client.seen_to_end == ["first", "job"])
    assert (tmp_path / "begun").read_text() == "once\n"


def test_while_one_is_announced_others_are_asked_for_later(client):
    """Two threads that start jobs at once: only one announces, and each gets its own command."""
    start_first(client)
    announced, other = asked(client, "announced", ["true"]), asked(client, "other", ["true"])
    assert client.announce(announced)
    others, waiting = [], threading.Event()

    def ask():
        others.append(client.announce(other))
        waiting.set()
        others.append(client.start(other))

    thread = threading.Thread(target=ask)
    thread.start()
    assert waiting.wait(60)
    answer = client.start(announced)
    client.end_announcement()
    thread.join(60)
    assert others[0] is False
    assert [answer["id"], others[1]["id"]] == ["announced", "other"]
    until(lambda: sorted(client.seen_to_end) == ["announced", "first", "other"])


def test_a_program_is_looked_up_when_it_is_announced_and_missing_ones_are_told(client, tmp_path):
    """A folder that is not there, and a program that is not there, are problems of the start."""
    start_first(client)
    for name, more in (("no folder", {"cwd": str(tmp_path / "gone")}), ("no program", {"command": ["no-such"]})):
        announced = asked(client, name, ["true"]) | more
        assert client.announce(announced)
        answer = client.start(announced)
        client.end_announcement()
        assert answer["problem"]["type"] == "FileNotFoundError"


def test_a_job_that_could_not_be_written_down_is_never_begun(tmp_path):
    """Its id is taken: the supervisor has heard of it, and starts only what comes after it."""
    with Runtime(tmp_path / "r.db") as runtime:
        job = runtime.jobs.start(["true"], job_id="j").promise.id
        runtime.jobs.wait(job, 60)
        with pytest.raises(MisuseError, match="already a promise"):
            runtime.jobs.start(["touch", str(tmp_path / "never")], job_id="j", env={"WHICH": "2"})
        following = runtime.jobs.start("echo $WHICH", env={"WHICH": "3"}).promise.id
        runtime.jobs.wait(following, 60)
        assert runtime.jobs.read(following).text == "3\n"
    assert not (tmp_path / "never").exists()


def test_half_of_an_announcement_spoils_nothing(client, tmp_path):
    """The supervisor had no time to read all of it: what is asked for next is a line of its own."""
    start_first(client)
    process = JobFiles(client._folder / "first").process().supervisor
    job = asked(client, "job", ["sh", "-c", f"echo once >> {tmp_path / 'begun'}"])
    os.kill(process, signal.SIGSTOP)
    client._connection.asks.settimeout(0.05)
    assert client.announce({**job, "note": "x" * 10_000_000})
    os.kill(process, signal.SIGCONT)
    client._connection.asks.settimeout(60)
    assert "pid" in client.start(job)
    client.end_announcement()
    until(lambda: client.seen_to_end == ["first", "job"])
    assert JobFiles(client._folder / "job").process().supervisor == process
    assert (tmp_path / "begun").read_text() == "once\n"
