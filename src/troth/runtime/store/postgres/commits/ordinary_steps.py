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
    """A commit of one statement: who must hold which lease, and the row that it is written from."""

    run_id: str
    resource: str
    token: str
    row: dict[str, Any]


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

    __slots__ = ("settled", "step")

    def __init__(self) -> None:
        self.settled: dict[str, Any] | None = None
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
        run_id, branch, number = place
        self.settled = {"r": run_id, "w": state._value_, "a": now, "b": branch, "s": number, "n": name, "d": data}

    def begin_held_step(self, place: Place, resource: str, token: str, begun: BegunStep) -> _Unknown:
        """As the transaction's."""
        name, key, args, color, code, now, is_shown = begun
        run_id, branch, number = place
        row = self.settled or {"r": run_id}
        if not is_shown or self.step is not None or row["r"] != run_id or len(args) > LARGE:
            raise _NotOrdinaryError
        row.update(o=resource, t=token, aa=now, bb=branch, ss=number, nn=name, g=args, c=color, v=code)
        if key != f"{run_id}:{branch}{number}:{name}":  # what can be told is not kept
            row["k"] = key
        self.step = OrdinaryStep(run_id, resource, token, row)
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
    row = step.row
    return [
        *(step.resource, step.token, step.run_id),
        *(row["w"], repr(row["a"]), row["b"], repr(row["s"]), row["n"], row["d"]),
        *(repr(row["aa"]), row["bb"], repr(row["ss"]), row["nn"], row.get("k"), row["g"], row["c"], row["v"]),
    ]


def encode(steps: Sequence[OrdinaryStep]) -> str:
    """The rows as the statement takes them, numbered from 0."""
    return json.dumps([{"i": number, **step.row} for number, step in enumerate(steps)])
