"""The port of a governor: whoever is asked before every step of a run, and told of everything that it writes.

Each method but `consult` and `placed` is called inside a commit of the run, with its transaction, so that a rule is
judged on what that commit sees, and what the governor writes is kept together with what it tells of. None of them may
wait or call user code; `consult` can have it called.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from troth.runtime.store import RunState, StepState, Transaction
from troth.runtime.store.records import Place

if TYPE_CHECKING:
    from troth.runtime.engine.commands import Step

__all__ = ["Governor"]


class Governor(Protocol):
    """Whoever is asked."""

    def consult(self, step: "Step") -> object:
        """What `begins` is to be told, before the commit. A `Step` is called, without a record: its outcome is told."""

    def begins(
        self, tx: Transaction, place: Place, step: "Step", opinion: object, now: float
    ) -> Mapping[str, Any] | None:
        """Nothing if the step may begin; otherwise the error under which it fails, which is never tried again."""

    def placed(self, step: "Step") -> "Step":
        """The step as it is called: the governor can put something around its call. Its record stays as it is."""

    def settled(self, tx: Transaction, place: Place, step: "Step", state: StepState, now: float) -> None:
        """A step is done, or failed for good."""

    def appended(self, tx: Transaction, place: Place, stream: str, kind: str, payload: object, now: float) -> None:
        """The run has appended an event to a stream."""

    def finished(self, tx: Transaction, run_id: str, state: RunState, now: float) -> None:
        """The run is over."""
