"""The port of an engine: what carries out decisions durably, whatever it stands on.

Every verb comes in two colors with one meaning, `run` and `arun`. What an engine has to do is written down as a suite,
`troth.testing.engine_conformance`.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from troth.runtime.engine.commands import Decision
from troth.runtime.engine.invoke.worker_pool import WorkerPool
from troth.runtime.store import (
    CommitPoint,
    HistoryEntry,
    Notifier,
    RunRecord,
    RunState,
    StepRecord,
    Transaction,
)

__all__ = ["Engine", "Handle", "LocalEngine"]


class Handle(Protocol):
    """A run that goes on by itself."""

    @property
    def id(self) -> str:
        """The run's id."""

    def result(self, timeout: float | None = None) -> Any:
        """What the run returned, waiting for it; RunFailedError or RunCancelledError if it did not complete."""

    async def aresult(self, timeout: float | None = None) -> Any:
        """`result` for a task."""


class Engine(Protocol):
    """Carries out decisions. A run is started once, whoever asks: who comes later with the same id attaches to it."""

    def open(self) -> None:
        """Begin to look after runs; whatever begins a run does so, too. Does nothing the second time."""

    def register(self, decision: Decision, name: str | None = None) -> str:
        """Make a decision known, so that its runs can go on after a restart."""

    def decisions(self) -> Sequence[str]:
        """The names of the decisions that it knows."""

    def run(
        self,
        decision: Decision | str,
        /,
        *args: object,
        run_id: str | None = None,
        label: str | None = None,
        promise: Callable[[Transaction], object] | None = None,
    ) -> Any:
        """Carry out a run to its end, here, and return its result. With the id of an older run, go on with that one.

        `promise` writes more in the commit that writes down the run, which has to be new then.
        """

    async def arun(
        self, decision: Decision | str, /, *args: object, run_id: str | None = None, label: str | None = None
    ) -> Any:
        """`run` on the caller's loop. Cancelling it interrupts the run, which can then go on elsewhere."""

    @property
    def workers(self) -> WorkerPool:
        """The threads in which sync steps are called."""

    def start(
        self,
        decision: Decision | str,
        /,
        *args: object,
        run_id: str | None = None,
        label: str | None = None,
        promise: Callable[[Transaction], object] | None = None,
    ) -> Handle:
        """Begin a run and return. It is written down before this returns.

        `promise` writes what is promised of the run, in the commit that writes down the run itself.
        """

    async def astart(
        self, decision: Decision | str, /, *args: object, run_id: str | None = None, label: str | None = None
    ) -> Handle:
        """`start`; the run goes on on the caller's loop."""

    def result(self, run_id: str, timeout: float | None = None) -> Any:
        """Wait for a run, whoever carries it out, and return its result."""

    async def aresult(self, run_id: str, timeout: float | None = None) -> Any:
        """`result` for a task."""

    def signal(
        self, run_id: str, name: str, payload: object = None, *, key: str | None = None, awaited: bool = False
    ) -> bool:
        """Send a run a message, durably. Answers whether it is new; `key` makes a second sending harmless.

        `awaited=True` sends it only if the run waits for it just now, and refuses it otherwise: `TooLateError` if the
        time of the wait is up, `NotAwaitedError` if there is no such wait, or if its answer was sent already.
        """

    async def asignal(
        self, run_id: str, name: str, payload: object = None, *, key: str | None = None, awaited: bool = False
    ) -> bool:
        """`signal` for a task."""

    def cancel(self, run_id: str) -> bool:
        """Command for a run's cancellation, durably. Answers whether there was anything left to cancel."""

    async def acancel(self, run_id: str) -> bool:
        """`cancel` for a task."""

    def resume(self, run_id: str) -> Any:
        """Go on with a run that failed, was cancelled or interrupted, from where it stopped; return its result."""

    async def aresume(self, run_id: str) -> Any:
        """`resume` on the caller's loop."""

    def fork(self, run_id: str, before: int | str, *, fork_id: str | None = None) -> Handle:
        """Begin a new run that has the answers of another one up to, not including, the trunk step `before`."""

    async def afork(self, run_id: str, before: int | str, *, fork_id: str | None = None) -> Handle:
        """`fork` for a task."""

    def reopen(
        self,
        run: RunRecord,
        again: Sequence[StepRecord],
        *,
        gives_back: Callable[[StepRecord], bool] = ...,
        also: Callable[[Transaction, float], object] | None = None,
    ) -> bool:
        """Make a run that ended one that can go on, without the answers of `again`; nobody carries it out yet.

        Answers whether it was at that end still. `gives_back` says of which steps the signal that they had received can
        be received again; `also` writes more in the same commit, in any case.
        """

    def write_fork(self, run: RunRecord, fork_id: str, args: Sequence[object], before: int) -> None:
        """Write a new run down that has the answers of `run` up to a trunk step; nobody carries it out yet."""

    def find(self, run_id: str) -> RunRecord | None:
        """A run as it is now."""

    def find_with_steps(self, run_id: str) -> tuple[RunRecord, Sequence[StepRecord]] | None:
        """A run and its steps, as they were at one moment; nothing if there is no such run."""

    def is_held(self, run_id: str) -> bool:
        """Whether somebody has taken the run, dead or alive, and has not let it go."""

    def is_driving(self, run_id: str) -> bool:
        """Whether the run is carried out by this very engine."""

    def is_carried_out(self, run_id: str) -> bool:
        """Whether somebody living carries the run out, here or elsewhere."""

    def orphans(self, decisions: Iterable[str]) -> Sequence[str]:
        """Runs of these decisions that are not over and that nobody living carries out, oldest first."""

    def time_in(self, run_id: str) -> float:
        """What time it is in a run; it never goes back."""

    def history(self, run_id: str, *, after: int = 0, limit: int = 500) -> Sequence[HistoryEntry]:
        """What has happened in a run since entry `after` of its history; costs as much as there is to read."""

    def last_entry(self, run_id: str) -> int:
        """The number of the last entry of a run's history; 0 if there is none."""

    def listening(self, bell: Notifier, run_id: str) -> AbstractContextManager[Notifier]:
        """Ring `bell` when the history of a run grows or its state changes, here or elsewhere."""

    def tell_callback_failed(self, run_id: str, name: str, error: BaseException) -> None:
        """Write into a run's history that somebody who was told of it raised."""

    async def afind(self, run_id: str) -> RunRecord | None:
        """`find` for a task."""

    def list(
        self,
        *,
        states: Iterable[RunState] | None = None,
        decision: str | None = None,
        label: str | None = None,
        family: str | None = None,
        word: str | None = None,
        before: tuple[float, str] | None = None,
        limit: int = 100,
    ) -> Sequence[RunRecord]:
        """Runs, newest first. `before` is the `(created_at, id)` of the last one of the page before.

        `family` is how the names of their decisions begin, up to the first colon; with it, `word` is the word for how
        they stand: what their decision said of their end, else their state.
        """

    async def alist(
        self,
        *,
        states: Iterable[RunState] | None = None,
        decision: str | None = None,
        label: str | None = None,
        family: str | None = None,
        word: str | None = None,
        before: tuple[float, str] | None = None,
        limit: int = 100,
    ) -> Sequence[RunRecord]:
        """`list` for a task."""

    def steps(self, run_id: str) -> Sequence[StepRecord]:
        """What a run has asked for, in order, with every failed attempt."""

    async def asteps(self, run_id: str) -> Sequence[StepRecord]:
        """`steps` for a task."""

    def close(self) -> None:
        """Interrupt what is being carried out here, and let go of everything. May be called twice."""

    async def aclose(self) -> None:
        """`close` for a task."""


class LocalEngine(Engine, Protocol):
    """An engine that carries runs out in this process and commits each of them to its store itself."""

    def commits_to(self, store: object) -> bool:
        """Whether that is the store it commits to."""
        ...

    def run_short(
        self, begin_point: CommitPoint, decision: Decision | str, /, *args: object, run_id: str | None = None
    ) -> Any:
        """`run` with one commit less, for a run of one short step: it is written down together with that step.

        `begin_point` is the point of that commit.
        """
