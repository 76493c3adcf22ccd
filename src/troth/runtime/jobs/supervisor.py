"""Supervise commands: start them, keep their output and exit status in files, and outlive whoever asked for them.

This is a program of its own. It runs in a session of its own, takes requests from the socket that is its stdin and
answers them there, tells on the one that is its stdout what has ended, and ends itself when nobody can ask any more and
its last command has ended. A request that `waits` is read while its owner writes it down, and begun when the owner says
`begin`. The program imports only the standard library: it is run by its path, in isolated mode. Each command has a
folder:

    process   who it is, and who supervises it: ids with the moments at which they started; its draft, `process.new`,
              says who supervises it before it is started
    output    everything it has printed, as it was printed
    stdin     a pipe, which is held open until somebody has said `end`
    stop      why it is to be stopped, written by whoever wants that
    exit      how it ended; written last, and at once whole

What the next command needs is made while nobody waits for it: a folder with the pipe and the empty files in it, open
already, which is renamed when the command comes. Making a file takes ten times as long as renaming one. Whoever asked
is answered as soon as the command runs; `process` is written a moment later, when that answer has been read, and before
anything is done with the command.
"""

import _thread
import errno
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

__all__ = [
    "DRAFT",
    "END",
    "EXIT",
    "GIVEN_UP",
    "GRACE",
    "LOG",
    "OUTPUT",
    "PROCESS",
    "STDIN",
    "STOP",
    "claim_folder",
    "find_command",
    "make_spare",
    "remove_spare",
    "start_time",
    "write_whole",
]

EXIT, END, OUTPUT, PROCESS, STDIN, STOP = "exit", "end", "output", "process", "stdin", "stop"
LOG = "supervisor.log"  # beside the folders of the jobs
GIVEN_UP = "given-up"  # in the folder of a job that is never started
GRACE = 3.0
"""Seconds between asking a command to end and ending it."""
DRAFT, _END_DRAFT = "process.new", "exit.new"  # what becomes `process` and `exit` in a spare folder
_ROOM = 512  # bytes that are in them before: a full disk has room for what is written over them
_SPARES = ".spare"
_MOST_SPARES = 4
_CALM = 0.001  # seconds until anything else is done: whoever was answered just now needs the processor first
_LOOK = 0.05  # seconds between looks at what is left of a command that is being stopped
_MOST_UNREAD = 1 << 20  # bytes that wait for an owner who does not read; what is told beyond them is in the files
_AGAIN = 1.0  # seconds after which a file that could not be written is tried again
_PROC = Path("/proc/self/stat").exists()
_IGNORED = [getattr(signal, name) for name in ("SIGPIPE", "SIGXFZ", "SIGXFSZ") if hasattr(signal, name)]
"""What Python ignores, and a command expects not to."""


def start_time(pid: int) -> str | None:
    """When the process of that id started; nothing if there is none. Two processes of one id differ in it."""
    if _PROC:
        fields = _stat(pid)
        return None if fields is None else fields[19].decode()
    asked = subprocess.run(["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    state, _, started = asked.stdout.strip().partition(" ")
    return None if not started or state.startswith("Z") else started.strip()


def _stat(pid: int | str) -> list[bytes] | None:
    """What Linux says of a process that lives, from its state on; nothing of one that is over."""
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:  # noqa: PTH123  it is read for every command
            fields = file.read(4096).rpartition(b")")[2].split()
    except OSError:
        return None
    return None if not fields or fields[0] in {b"Z", b"X"} else fields


def find_command(session: int, folder: str) -> int | None:
    """The command of a folder whose supervisor was killed before it could write down which process that is.

    It leads a group of its own in the session of its supervisor, and its input or output is in the folder.
    """
    if not _PROC:
        return None
    for pid in sorted(int(name) for name in os.listdir("/proc") if name.isdigit()):  # noqa: PTH208
        fields = _stat(pid)
        if fields is not None and int(fields[2]) == pid and int(fields[3]) == session and _uses(pid, folder):
            return pid
    return None


def _uses(pid: int, folder: str) -> bool:
    return any(_opened(pid, number).startswith(f"{folder}/") for number in range(3))


def _opened(pid: int, number: int) -> str:
    """Which file a process has open under that number; nothing if it has closed it, or is gone."""
    try:
        return os.readlink(f"/proc/{pid}/fd/{number}")  # noqa: PTH115
    except OSError:
        return ""


def write_whole(path: str, value: object, draft: str | None = None) -> None:
    """Write a file that is there whole, or not at all, whoever else writes it at the same time.

    `draft` is an empty file that nobody else writes; without it, a new one is made.
    """
    if draft is None:  # two stops of one job may write the same file at once
        draft, flags = f"{path}.{os.getpid()}-{_thread.get_ident()}.new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    else:
        flags = os.O_WRONLY
    data = json.dumps(value).encode()
    file = os.open(draft, flags, 0o600)
    try:
        while data:
            data = data[os.write(file, data) :]
    finally:
        os.close(file)
    os.replace(draft, path)  # noqa: PTH105


def make_spare(root: str, names: Iterable[str], pipes: Iterable[str] = ()) -> str:
    """Make a folder for a job that has no id yet, with empty files and pipes in it."""
    folder = f"{root}/{_SPARES}/{os.getpid()}-{start_time(os.getpid())}-{_thread.get_ident()}-{time.monotonic_ns()}"
    os.makedirs(folder, 0o700)  # noqa: PTH103
    for name in pipes:
        os.mkfifo(f"{folder}/{name}", 0o600)
    for name in names:
        os.close(os.open(f"{folder}/{name}", os.O_WRONLY | os.O_CREAT, 0o600))
    return folder


def claim_folder(spare: str, folder: str) -> None:
    """Make a spare folder that of a job. Who does so decides whether the job is started; `FileExistsError` for others.

    An empty folder would be replaced by the renaming: no job's folder is ever empty.
    """
    try:
        os.rename(spare, folder)  # noqa: PTH104
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), folder) from None


class _Spare(NamedTuple):
    """A folder for a command to come, and what is open in it: both ends of its stdin, and its output."""

    folder: str
    reading: int
    writing: int
    output: int

    @classmethod
    def make(cls, root: str) -> "_Spare":
        """Make the folder, and open what is in it."""
        folder = make_spare(root, (OUTPUT,), (STDIN,))
        opened: list[int] = []
        try:
            opened.append(os.open(f"{folder}/{STDIN}", os.O_RDONLY | os.O_NONBLOCK))
            opened.append(os.open(f"{folder}/{STDIN}", os.O_WRONLY | os.O_NONBLOCK))
            opened.append(os.open(f"{folder}/{OUTPUT}", os.O_WRONLY | os.O_APPEND))
            os.set_blocking(opened[0], True)
            supervisor = {"supervisor": os.getpid(), "supervisor_started": start_time(os.getpid())}
            for name, text in ((DRAFT, json.dumps(supervisor)), (_END_DRAFT, "")):
                draft = os.open(f"{folder}/{name}", os.O_WRONLY | os.O_CREAT, 0o600)
                try:
                    os.write(draft, text.ljust(_ROOM).encode())
                finally:
                    os.close(draft)
        except OSError:
            for file in opened:
                os.close(file)
            remove_spare(folder)
            raise
        return cls(folder, *opened)

    def close(self) -> None:
        """Close what is open in it."""
        for file in (self.reading, self.writing, self.output):
            os.close(file)

    def remove(self) -> None:
        """No command came for it."""
        self.close()
        remove_spare(self.folder)


def remove_spare(spare: str) -> None:
    """Remove a folder that no job came for."""
    for name in os.listdir(spare):  # noqa: PTH208
        os.unlink(f"{spare}/{name}")  # noqa: PTH108
    os.rmdir(spare)  # noqa: PTH106


def _remove_orphaned_spares(root: str) -> None:
    """Remove what supervisors that were killed have left."""
    for name in os.listdir(f"{root}/{_SPARES}"):  # noqa: PTH208
        pid, started = name.split("-")[:2]
        if start_time(int(pid)) != started:
            remove_spare(f"{root}/{_SPARES}/{name}")


class _Spares:
    """Folders for the next commands, made while nobody waits for them."""

    def __init__(self) -> None:
        self._root: str | None = None
        self._made: list[_Spare] = []
        self._is_tidy = False
        self.make_at: float | None = None
        """When the next one is to be made; nothing if there are enough."""

    def claim(self, folder: str) -> _Spare:
        """Make the folder of a command, of a spare one if there is one; the answer is what is open in it."""
        root = os.path.dirname(folder)  # noqa: PTH120
        if root != self._root:
            self.close()
            self._root = root
        self.make_at = time.monotonic() + _CALM
        while self._made:
            spare = self._made.pop()
            try:
                return self._give(spare, folder)
            except FileNotFoundError:
                spare.close()  # somebody has removed it
        return self._give(_Spare.make(root), folder)

    @staticmethod
    def _give(spare: _Spare, folder: str) -> _Spare:
        try:
            claim_folder(spare.folder, folder)
        except FileExistsError:
            spare.remove()
            raise
        return spare

    def prepare(self, now: float) -> None:
        """If it is time, make one folder. If that fails, the next command tries again, and its caller is told why."""
        if self.make_at is None or now < self.make_at:
            return
        assert self._root is not None
        try:
            if not self._is_tidy:
                self._is_tidy = True
                _remove_orphaned_spares(self._root)
            self._made.append(_Spare.make(self._root))
            self.make_at = time.monotonic() + _CALM if len(self._made) < _MOST_SPARES else None
        except OSError as error:
            self.make_at = None
            _log(f"The folder of a future command could not be made: {error}")

    def close(self) -> None:
        """Nobody asks for a command any more."""
        made, self._made, self.make_at = self._made, [], None
        for spare in made:
            try:
                spare.remove()
            except OSError as error:
                _log(f"{spare.folder} could not be removed: {error}")


def _log(line: str) -> None:
    try:
        os.write(2, f"{line}\n".encode(errors="replace"))
    except OSError:
        return  # the log is on the same disk, and what it would have said shows in the job


def _programs(name: str, env: dict[str, str]) -> Iterator[str]:
    """Where a program of that name may be, by the command's own PATH. What cannot be run there, the spawning says."""
    if "/" in name:
        yield name
        return
    for folder in env.get("PATH", os.defpath).split(":"):
        place = f"{folder or '.'}/{name}"
        if os.access(place, os.F_OK):  # half of what it takes to see whether it is a file
            yield place


def _programs_of(request: dict[str, Any], env: dict[str, str]) -> list[str]:
    """Where the program of an announced request is, looked up while nobody waits for it; nothing if that fails."""
    try:
        os.chdir(request["cwd"])
        try:
            return list(_programs(request["command"][0], env))
        finally:
            os.chdir("/")
    except OSError:
        return []  # whoever asks for the command is told


def _spawn(
    command: list[str], cwd: str, env: dict[str, str], reading: int, output: int, programs: Iterable[str]
) -> int:
    """Start a command as the leader of a group of its own; the answer is its process.

    It stays in our session, which has no terminal: where the kernel shares the processors out by sessions, a command in
    a new one waits for its turn before it is even loaded, for milliseconds on a busy machine. `subprocess.Popen` would
    do the same with more CPU.
    """
    fail = FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), command[0])
    problem: OSError | None = None
    os.chdir(cwd)
    try:
        for program in programs or _programs(command[0], env):
            try:
                return os.posix_spawn(
                    program,
                    command,
                    env,
                    file_actions=[
                        (os.POSIX_SPAWN_DUP2, reading, 0),
                        *((os.POSIX_SPAWN_DUP2, output, to) for to in (1, 2)),
                    ],
                    setpgroup=0,
                    setsigmask=(),
                    setsigdef=_IGNORED,
                )
            except (FileNotFoundError, NotADirectoryError) as missing:
                problem = problem or missing
            except OSError as error:  # of no permission, say: perhaps another one of that name can be run
                problem = (
                    problem if problem is not None and problem.errno not in (errno.ENOENT, errno.ENOTDIR) else error
                )
        raise problem or fail
    finally:
        os.chdir("/")  # no folder is kept from being removed


class _Command:
    """One command under way. Its process is the leader of a group of its own, which is not reaped before it is left."""

    def __init__(self, request: dict[str, Any], env: dict[str, str], spares: _Spares) -> None:
        self.id: str = request["id"]
        self.folder: str = request["folder"]
        self.stops_with_owner: bool = request["stops_with_owner"]
        self.is_kept: bool = request["is_kept"]
        self.stop_reason: str | None = None
        self.kill_at = 0.0
        self.ending: dict[str, Any] | None = None
        self.is_unwritten = False
        spare = spares.claim(self.folder)
        self.begun_at = time.time()
        try:
            programs = request.get("programs", ())
            self.pid = _spawn(request["command"], request["cwd"], env, spare.reading, spare.output, programs)
        except Exception as error:
            spare.close()
            self.ending = {"problem": _problem(error), "ended_at": time.time()}
            self._write_end()
            raise
        self.input: int | None = spare.writing
        os.close(spare.reading)
        os.close(spare.output)
        self.write_at: float | None = time.monotonic() + _CALM
        timeout = request["timeout"]
        self.deadline = None if timeout is None else time.monotonic() + timeout

    def write_process(self, supervisor: int, supervisor_started: str | None) -> None:
        """Write down who it is. If that fails nobody could find it again: it is ended, and told to have failed."""
        self.write_at = None
        about = {
            "pid": self.pid,
            "started": start_time(self.pid),
            "supervisor": supervisor,
            "supervisor_started": supervisor_started,
            "begun_at": self.begun_at,
        }
        try:
            write_whole(f"{self.folder}/{PROCESS}", about, f"{self.folder}/{DRAFT}")
        except OSError as error:
            self._signal(signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self.close_input()
            self.ending = {"problem": _problem(error), "ended_at": time.time()}
        else:
            self._obey()  # whoever wanted something of it before this could not call us

    @property
    def is_timed(self) -> bool:
        """Whether something is to be done with it although nothing has happened."""
        return self.stop_reason is not None or self.deadline is not None or self.ending is not None

    def stop(self, reason: str) -> None:
        """Ask the command and all that it has started to end."""
        if self.stop_reason is None:
            self.stop_reason = reason
            self.kill_at = time.monotonic() + GRACE
            self._signal(signal.SIGTERM)
            self._signal(signal.SIGCONT)  # one that is halted could not hear the other

    def _signal(self, number: int) -> None:
        try:
            os.killpg(self.pid, number)
        except (ProcessLookupError, PermissionError):
            return  # they are gone, or belong to somebody else by now

    def close_input(self) -> None:
        """Let whoever reads the command's stdin see its end."""
        if self.input is not None:
            os.close(self.input)
            self.input = None

    def look(self, now: float, *, is_asked: bool) -> bool:
        """See what is to be done. Answers whether the command is over; then its end is written."""
        if self.ending is None and not self._is_over(now, is_asked=is_asked):
            return False
        try:
            self._write_end()
        except OSError as error:  # the disk is full, say: until it is not, nobody is told that it has ended
            if not self.is_unwritten:
                _log(f"The end of {self.folder} could not be written yet: {error}")
            self.is_unwritten = True
            return False
        return True

    def _write_end(self) -> None:
        path, draft = f"{self.folder}/{EXIT}", f"{self.folder}/{_END_DRAFT}"
        if not os.path.isdir(self.folder):  # noqa: PTH112
            if not self.is_kept:
                return
            os.makedirs(self.folder, 0o700)  # noqa: PTH103  somebody has removed it: how it ended is told all the same
        write_whole(path, self.ending, draft if os.path.exists(draft) else None)  # noqa: PTH110

    def _is_over(self, now: float, *, is_asked: bool) -> bool:
        if is_asked:
            self._obey()
        if self.deadline is not None and now >= self.deadline:
            self.stop("timeout")
        if self.stop_reason is not None and now >= self.kill_at:
            self._signal(signal.SIGKILL)
        ended = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if ended is None or (self.stop_reason is not None and now < self.kill_at and _has_others(self.pid)):
            return False
        if self.stop_reason is not None:
            self._signal(signal.SIGKILL)  # nobody else can have got this id: its leader was not reaped
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        self.close_input()
        self.ending = {"code": code, "ended_at": time.time(), "reason": self.stop_reason}
        return True

    def _obey(self) -> None:
        if os.path.exists(f"{self.folder}/{END}"):  # noqa: PTH110
            self.close_input()
        try:
            with open(f"{self.folder}/{STOP}", encoding="utf-8") as file:  # noqa: PTH123
                self.stop(json.load(file)["reason"])
        except FileNotFoundError:
            return


def _problem(error: Exception) -> dict[str, str]:
    return {"type": type(error).__name__, "message": str(error)}


def _has_others(group: int) -> bool:
    """Whether a group has living members beside its leader; no, where that cannot be looked up."""
    if not _PROC:
        return False
    return any(name.isdigit() and int(name) != group and _group_of(name) == group for name in os.listdir("/proc"))  # noqa: PTH208


def _group_of(name: str) -> int | None:
    """The group of a process that lives."""
    fields = _stat(name)
    return None if fields is None else int(fields[2])


class _Supervisor:
    """The commands that one owner has asked for."""

    def __init__(self, connection: int, news: int) -> None:
        self._connection = connection
        self._news = news
        self._is_attached = True
        self._inbound = b""
        self._outbound = {connection: b"", news: b""}
        self._commands: dict[str, _Command] = {}
        self._env: dict[str, str] = {}
        self._announced: dict[str, Any] = {}
        self._spares = _Spares()
        self._mine = (os.getpid(), start_time(os.getpid()))

    def serve(self) -> None:
        """Work until nobody can ask any more, and nothing is under way."""
        os.set_blocking(self._connection, False)
        os.set_blocking(self._news, False)
        woken, waking = os.pipe()
        os.set_blocking(woken, False)
        os.set_blocking(waking, False)
        signal.set_wakeup_fd(waking, warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, signal.SIGUSR1, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: None)  # not SIG_IGN, which the commands would inherit
        while self._is_attached or self._commands:
            reads = [woken, self._connection] if self._is_attached else [woken]
            writes = [target for target, unsent in self._outbound.items() if unsent and self._is_attached]
            ready, _, _ = select.select(reads, writes, [], self._patience())
            signals = os.read(woken, 4096) if woken in ready else b""
            self._write_processes(is_asked=bool(signals))
            if self._connection in ready:
                self._receive()
            self._look(signals)
            for target in writes:
                self._send(target)
            if self._connection not in ready:
                self._spares.prepare(time.monotonic())

    def _patience(self) -> float | None:
        now = time.monotonic()
        commands = list(self._commands.values())
        moments = [now + _AGAIN for command in commands if command.ending is not None]
        commands = [command for command in commands if command.ending is None]
        moments += [command.deadline for command in commands if command.deadline is not None]
        moments += [now + _LOOK for command in commands if command.stop_reason is not None]
        moments += [command.write_at for command in commands if command.write_at is not None]
        if self._spares.make_at is not None:
            moments.append(self._spares.make_at)
        return max(0.0, min(moments) - now) if moments else None

    def _receive(self) -> None:
        try:
            data = os.read(self._connection, 1 << 16)
        except BlockingIOError:
            return
        except ConnectionError:
            data = b""
        if not data:
            self._detach()
            return
        *lines, self._inbound = (self._inbound + data).split(b"\n")
        for line in lines:
            try:
                message = json.loads(line)
            except ValueError:
                _log("half of a request came; its owner asks again")
                continue
            self._env = message.get("env", self._env)
            if message.get("waits"):
                # Its owner writes it down first. One that was announced before it was never asked for.
                self._announced = {**message, "programs": _programs_of(message, self._env)}
            elif "begin" in message:
                self._start(self._announced)
            else:
                self._start(message)

    def _detach(self) -> None:
        """Nobody can ask any more. The owner hears the end of the connection when it has nothing left to wait for."""
        self._is_attached = False
        self._write_processes(is_asked=True)
        for command in self._commands.values():
            if command.stops_with_owner:
                command.stop("shutdown")
        self._spares.close()
        nowhere = os.open(os.devnull, os.O_RDWR)
        for target in (self._connection, self._news):
            os.dup2(nowhere, target)
        os.close(nowhere)

    def _start(self, request: dict[str, Any]) -> None:
        """Start a command, and answer. An environment that is not in the request is that of the one before."""
        try:
            command = _Command(request, self._env, self._spares)
        except Exception as error:  # noqa: BLE001  it is the answer
            self._tell(self._connection, {"id": request["id"], "problem": _problem(error)})
            return
        self._commands[command.id] = command
        self._tell(self._connection, {"id": command.id, "pid": command.pid})

    def _write_processes(self, *, is_asked: bool) -> None:
        """Write down who the new commands are: when it is time, or when something may be wanted of them."""
        for command in self._commands.values():
            if command.write_at is not None and (is_asked or time.monotonic() >= command.write_at):
                command.write_process(*self._mine)

    def _look(self, signals: bytes) -> None:
        """See what became of the commands: of all after a signal, else of those whose time may be up."""
        now, is_asked = time.monotonic(), signal.SIGUSR1 in signals
        for command in list(self._commands.values()):
            is_due = command.write_at is None and (signals or command.is_timed)
            if is_due and command.look(now, is_asked=is_asked):
                del self._commands[command.id]
                if len(self._outbound[self._news]) < _MOST_UNREAD:
                    self._tell(self._news, {"ended": command.id})

    def _tell(self, target: int, message: dict[str, Any]) -> None:
        self._outbound[target] += json.dumps(message).encode() + b"\n"
        self._send(target)

    def _send(self, target: int) -> None:
        unsent = self._outbound[target]
        if not unsent or not self._is_attached:
            return
        try:
            self._outbound[target] = unsent[os.write(target, unsent) :]
        except BlockingIOError:
            return
        except ConnectionError:
            self._outbound[target] = b""  # whoever asked is gone; reading will notice


def _close_what_came_with_us() -> None:
    """Close what our starter has left open for its children: neither we nor our commands are to hold it."""
    os.closerange(3, max(map(int, os.listdir("/dev/fd"))) + 1)  # noqa: PTH208


if __name__ == "__main__":
    os.setsid()
    _close_what_came_with_us()
    _Supervisor(0, 1).serve()
    sys.exit(0)
