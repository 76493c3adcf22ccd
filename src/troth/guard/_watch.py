"""Watch: a block of code with `watch`, a whole process with `install`."""

import atexit
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

from troth.errors import MisuseError, RunError
from troth.guard._collect import collect, tell_what_is_left
from troth.guard._exit import EXIT_CODE, fail_at_exit
from troth.guard._hub import HUB
from troth.guard._sinks import Sink, deliver, json_lines, to_logging
from troth.guard.incident import Incident

if TYPE_CHECKING:
    from _typeshed import StrPath

__all__ = ["LostPromiseError", "Mode", "Report", "install", "uninstall", "watch"]

Mode = Literal["report", "raise"]
_MODES = ("report", "raise")
_BLOCKED = 0.25  # seconds; asyncio's debug mode takes 0.1, which a loaded machine exceeds without anybody's fault


class LostPromiseError(RunError):
    """Promises were lost in a block watched with `mode="raise"`; `losses` has them."""

    def __init__(self, losses: Sequence[Incident]) -> None:
        self.losses = tuple(losses)
        several = f"{len(self.losses)} promises were" if len(self.losses) > 1 else "A promise was"
        super().__init__(
            f"{several} lost in the watched block, so their work never happened:\n"
            + "".join(f"  {loss.place}  {loss}\n" for loss in self.losses)
            + "Await each of them, pass it to a task that you keep, or `close()` it if it is not needed."
        )


class Report:
    """What has been noticed so far. Safe to read from any thread, also while the watch goes on."""

    def __init__(self, *, depth: int, blocked: float | None, generators: bool, sinks: Sequence[Sink]) -> None:
        self.generators = generators
        self.depth = depth
        self.blocked = blocked
        self._sinks = tuple(sinks)
        self._incidents: list[Incident] = []

    @property
    def incidents(self) -> tuple[Incident, ...]:
        """Everything, in the order in which it was noticed."""
        return tuple(self._incidents)

    @property
    def losses(self) -> tuple[Incident, ...]:
        """The promises that were lost."""
        return tuple(incident for incident in self._incidents if incident.is_loss)

    @property
    def blocks(self) -> tuple[Incident, ...]:
        """The times a loop was blocked."""
        return tuple(incident for incident in self._incidents if not incident.is_loss)

    def notice(self, incident: Incident) -> bool:
        """Take in one incident; true if a sink has said it."""
        self._incidents.append(incident)  # one atomic step: a lock here could be held by the code we interrupt
        return deliver(incident, self._sinks)

    def __str__(self) -> str:
        if not self._incidents:
            return "nothing lost, nothing blocked"
        return "\n".join(f"{incident.place}  {incident}" for incident in self._incidents)


@contextmanager
def watch(
    *,
    mode: Mode = "report",
    blocked: float | None = None,
    sink: Sink | None = None,
    log: "StrPath | None" = None,
    depth: int = 1,
    generators: bool = False,
) -> Iterator[Report]:
    """Watch a block: `with guard.watch() as report:`, then look at `report.losses` and `report.blocks`.

    Everything dropped within the block counts, in every thread; what sits in a dead reference cycle is collected at
    both ends, so nothing from before is blamed on the block and nothing from the block is told too late. What the block
    still holds when it ends is not lost. With `mode="raise"`, leaving the block with losses raises `LostPromiseError`,
    or adds a note to the exception that is on its way. `generators=True` also tells of async generators that died in a
    cycle without ever having been iterated; many programs make these on purpose. Without `sink` and `log` Python's own
    warnings appear as usual.
    """
    report = Report(depth=depth, blocked=blocked, generators=generators, sinks=_sinks(sink, log))
    _refuse_nonsense(mode, depth, blocked, sink)
    collect(HUB)
    with HUB.watched_by(report):
        try:
            yield report
        except BaseException as error:
            collect(HUB)
            if mode == "raise" and report.losses:
                error.add_note(str(LostPromiseError(report.losses)))
            raise
        collect(HUB)
    if mode == "raise" and report.losses:
        raise LostPromiseError(report.losses)


def install(
    *,
    mode: Mode = "report",
    blocked: float | None = _BLOCKED,
    sink: Sink | None = None,
    log: "StrPath | None" = None,
    depth: int = 1,
    generators: bool = False,
) -> Report:
    """Watch the whole process until it ends, or until `uninstall`.

    Each incident goes to `sink` (by default the logger `troth.guard`) as it is noticed, and to the JSON lines file
    `log` if there is one; Python's own "never awaited" warning is then not shown a second time. `mode="raise"` makes
    the process exit with 120 if anything was lost. `blocked` is the number of seconds after which a loop is reported as
    blocked, None for never. `generators=True` also tells of async generators never iterated. A second call replaces the
    first.
    """
    _refuse_nonsense(mode, depth, blocked, sink)
    sinks = [*_sinks(sink, log), *([] if sink is not None else [to_logging])]
    with _guard_lock:
        uninstall()
        _installed.append(_Installed(Report(depth=depth, blocked=blocked, generators=generators, sinks=sinks), mode))
        return _installed[0].report


def uninstall() -> None:
    """End what `install` began and put back everything it touched; without it, nothing happens."""
    with _guard_lock:
        while _installed:
            _installed.pop().end()


class _Installed:
    """The one watch over the whole process."""

    def __init__(self, report: Report, mode: Mode) -> None:
        self.report = report
        self._mode = mode
        HUB.join(report)
        atexit.register(self._at_exit)

    def end(self) -> None:
        atexit.unregister(self._at_exit)
        HUB.leave(self.report)

    def _at_exit(self) -> None:
        tell_what_is_left(HUB)
        # Python cannot reach our hook any more when it takes down the modules that hold what was told of just now.
        warnings.filterwarnings("ignore", message=".* was never awaited", category=RuntimeWarning)
        if self._mode == "raise" and (losses := self.report.losses):
            _say(f"troth.guard: {len(losses)} lost; the exit code is {EXIT_CODE}")
            fail_at_exit()


def _say(line: str) -> None:
    if sys.stderr is not None and not sys.stderr.closed:
        sys.stderr.write(line + "\n")


def _sinks(sink: Sink | None, log: "StrPath | None") -> list[Sink]:
    return [*([sink] if sink is not None else []), *([json_lines(log)] if log is not None else [])]


def _refuse_nonsense(mode: str, depth: int, blocked: float | None, sink: object) -> None:
    if mode not in _MODES:
        raise MisuseError(
            f"There is no mode {mode!r}.\nThe guard was not started.\nThe modes are 'report' and 'raise'."
        )
    if depth < 1:
        raise MisuseError(
            f"A depth of {depth!r} would leave out the line that made the coroutine.\nThe guard was not started.\n"
            "1 is enough and cheapest; a larger depth also shows the callers."
        )
    if blocked is not None and not blocked > 0:  # no number at all is no more than 0 either
        raise MisuseError(
            f"A loop cannot be blocked for {blocked!r} seconds.\nThe guard was not started.\n"
            "Give a time in seconds, such as 0.25, or None to switch this off."
        )
    _refuse_sink(sink)


def _refuse_sink(sink: object) -> None:
    if sink is None:
        return
    import inspect  # late: most guards are started without a sink
    from functools import partial

    callee = sink if inspect.isroutine(sink) or isinstance(sink, partial) else vars(type(sink)).get("__call__")
    never_runs = (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction)
    if not callable(sink) or any(is_kind(callee) for is_kind in never_runs):
        raise MisuseError(
            f"The sink {sink!r} cannot be a sink: it is not a sync function.\n"
            "The guard was not started.\n"
            "A sink is called where a loss is noticed, usually in a finalizer. Pass the incident on from there."
        )


_guard_lock = threading.RLock()
_installed: list[_Installed] = []
