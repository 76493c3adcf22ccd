"""Commit ordinary steps by one statement, which is a transaction by itself: one round trip, for one step or for many.

An ordinary commit of a run has the answer of one step and the intent of the next, under the run's lease, and nothing
else. Whether a piece of work is one is found out by calling it with a recorder instead of a transaction: the recorder
takes these two calls, and refuses everything else before anything has happened. Work may be called more than once, so
what was refused is then committed the long way.
"""

import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from troth.runtime.store.large_values import LARGE
from troth.runtime.store.records import BegunStep, Place, StepState

__all__ = ["OrdinaryStep", "encode", "in_order", "ordinary_step"]


class OrdinaryStep(NamedTuple):
    """A commit of one statement: who must hold which lease, and what is written."""

    run_id: str
    resource: str
    token: str
    settled: tuple[str, float, str, int, str, str | None] | None
    """State, moment, branch, number, name and answer of the step that ended, if one did."""
    begun: tuple[float, str, int, str, str | None, str, str | None, str | None]
    """Moment, branch, number, name, key, arguments, color and code of the step that begins."""


_make = tuple.__new__  # of a NamedTuple, without the ceremony of its constructor
_SETTLED = ("w", "a", "b", "s", "n", "d")
_BEGUN = ("aa", "bb", "ss", "nn", "k", "g", "c", "v")
"""How the statement for many steps calls them."""


class _NotOrdinaryError(Exception):
    """The work does more, or something else."""


class _Unknown:
    """The answer of a statement that was not sent yet. Work that looks at it is not ordinary."""

    def __bool__(self) -> bool:
        raise _NotOrdinaryError

    def __eq__(self, _: object) -> bool:
        raise _NotOrdinaryError

    __hash__ = object.__hash__


_UNKNOWN = _Unknown()


class _Recorder:
    """Takes the calls of an ordinary commit, in their order."""

    __slots__ = ("run_id", "settled", "step")

    def __init__(self) -> None:
        self.run_id: str | None = None
        self.settled: tuple[str, float, str, int, str, str | None] | None = None
        self.step: OrdinaryStep | None = None

    def settle_step(
        self,
        place: Place,
        state: StepState,
        now: float,
        *,
        kind: str,
        name: str,
        attempt: int = 1,
        result: str | None = None,
        error: str | None = None,
        note: str | None = None,  # noqa: ARG002  a step of this kind has none
        is_shown: bool = True,
    ) -> None:
        """As the transaction's."""
        data = result if error is None else error
        is_ordinary = is_shown and kind == "step" and attempt == 1 and (data is None or len(data) <= LARGE)
        if not is_ordinary or self.settled is not None or self.step is not None:
            raise _NotOrdinaryError
        self.run_id, branch, number = place
        self.settled = state._value_, now, branch, number, name, data

    def begin_held_step(self, place: Place, resource: str, token: str, begun: BegunStep) -> _Unknown:
        """As the transaction's."""
        name, key, args, color, code, now, is_shown = begun
        run_id, branch, number = place
        settled = self.settled
        if not is_shown or self.step is not None or len(args) > LARGE or (settled and self.run_id != run_id):
            raise _NotOrdinaryError
        own_key = None if key == f"{run_id}:{branch}{number}:{name}" else key  # what can be told is not kept
        intent = (now, branch, number, name, own_key, args, color, code)
        self.step = _make(OrdinaryStep, (run_id, resource, token, settled, intent))
        return _UNKNOWN

    def __getattr__(self, name: str) -> Any:
        raise _NotOrdinaryError(name)


def ordinary_step(work: Callable[[Any], object]) -> OrdinaryStep | None:
    """What a piece of work writes, if it is an ordinary step; nothing if it is anything else."""
    recorder = _Recorder()
    try:
        answer = work(recorder)
    except Exception:  # noqa: BLE001  if it is an error of the work's own, it is raised again the long way
        return None
    return recorder.step if answer is _UNKNOWN else None


def in_order(step: OrdinaryStep) -> list[str | None]:
    """The values of one step that has an answer before it, as the statement for one takes them."""
    run_id, resource, token, settled, (began_at, *intent) = step
    assert settled is not None
    state, at, branch, number, name, data = settled
    intent[1] = repr(intent[1])
    return [resource, token, run_id, state, repr(at), branch, repr(number), name, data, repr(began_at), *intent]  # type: ignore[list-item]


def encode(steps: Sequence[OrdinaryStep]) -> str:
    """The rows as the statement takes them, numbered from 0."""
    rows = []
    for index, (run_id, resource, token, settled, begun) in enumerate(steps):
        row: dict[str, object] = {"i": index, "r": run_id, "o": resource, "t": token}
        if settled is not None:
            row.update(zip(_SETTLED, settled, strict=True))
        row.update(zip(_BEGUN, begun, strict=True))
        rows.append(row)
    return json.dumps(rows)
