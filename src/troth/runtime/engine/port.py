"""The port of an engine: what carries out decisions durably, whatever it stands on.

Every verb comes in two colors with one meaning, `run` and `arun`. What an engine has to do is written down as a suite,
`troth.testing.engine_conformance`.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from troth.runtime.engine.asks import Decision
from troth.runtime.store import RunRecord, RunState, StepRecord

__all__ = ["Engine", "Handle"]


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

    def register(self, decision: Decision, name: str | None = None) -> str:
        """Make a decision known, so that its runs can go on after a restart."""

    def run(
        self, decision: Decision | str, /, *args: object, run_id: str | None = None, label: str | None = None
    ) -> Any:
        """Carry out a run to its end, here, and return its result. With the id of an older run, go on with that one."""

    async def arun(
        self, decision: Decision | str, /, *args: object, run_id: str | None = None, label: str | None = None
    ) -> Any:
        """`run` on the caller's loop. Cancelling it interrupts the run, which can then go on elsewhere."""

    def start(
        self, decision: Decision | str, /, *args: object, run_id: str | None = None, label: str | None = None
    ) -> Handle:
        """Begin a run and return. It is written down before this returns."""

    async def astart(
        self, decision: Decision | str, /, *args: object, run_id: str | None = None, label: str | None = None
    ) -> Handle:
        """`start`; the run goes on on the caller's loop."""

    def result(self, run_id: str, timeout: float | None = None) -> Any:
        """Wait for a run, whoever carries it out, and return its result."""

    async def aresult(self, run_id: str, timeout: float | None = None) -> Any:
        """`result` for a task."""

    def signal(self, run_id: str, name: str, payload: object = None, *, key: str | None = None) -> bool:
        """Send a run a message, durably. Answers whether it is new; `key` makes a second sending harmless."""

    async def asignal(self, run_id: str, name: str, payload: object = None, *, key: str | None = None) -> bool:
        """`signal` for a task."""

    def cancel(self, run_id: str) -> bool:
        """Ask for a run's cancellation, durably. Answers whether there was anything left to cancel."""

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

    def find(self, run_id: str) -> RunRecord | None:
        """A run as it is now."""

    async def afind(self, run_id: str) -> RunRecord | None:
        """`find` for a task."""

    def list(
        self, *, states: Iterable[RunState] | None = None, decision: str | None = None, limit: int = 100
    ) -> Sequence[RunRecord]:
        """Runs, newest first."""

    async def alist(
        self, *, states: Iterable[RunState] | None = None, decision: str | None = None, limit: int = 100
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
