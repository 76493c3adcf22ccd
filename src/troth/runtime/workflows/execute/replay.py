"""Replay a run from its record: the workflow decides anew, the record answers, and nothing is performed.

It shows that workflow and record still agree. Where they do not, the first step is named at which the workflow asks
for something else than it did.
"""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from troth.runtime.engine.commands import Command, Conclude, Decision, Govern, Together
from troth.runtime.engine.errors import NondeterministicError, RunCancelledError, StepFailedError, WaitTimeoutError
from troth.runtime.engine.interpreter.replay import check_same
from troth.runtime.store import StepRecord, StepState

__all__ = ["Replayed", "replay"]


@dataclass(frozen=True, slots=True)
class Replayed:
    """What came of a replay. `differs` is empty where workflow and record agree."""

    steps: int
    ending: str
    output: object
    differs: str = ""


class _RecordEnds(Exception):  # noqa: N818 -- an end, not an error
    """The record cannot be evaluated: the run had not come further."""


def replay(decision: Generator[Command, Any, object], rows: Sequence[StepRecord]) -> Replayed:
    """Drive `decision` with the answers in `rows` until it ends, or the record does."""
    table = {(row.place.branch, row.place.seq): row for row in rows}
    try:
        output = _play(decision, "", table)
    except _RecordEnds:
        return Replayed(len(rows), "the record ends here", None)
    except NondeterministicError as differs:
        return Replayed(len(rows), "the workflow asks for something else", None, str(differs))
    except RunCancelledError:
        return Replayed(len(rows), "cancelled", None)
    except Exception as failed:  # noqa: BLE001 -- whatever the decision ends with is the answer
        return Replayed(len(rows), f"failed: {failed}", None)
    finally:
        decision.close()
    return Replayed(len(rows), "completed", output)


def _play(
    decision: Generator[Command, Any, object], branch: str, table: Mapping[tuple[str, int], StepRecord]
) -> object:
    answer: Any = None
    failure: Exception | None = None
    seq = 0
    while True:
        try:
            ask = decision.send(answer) if failure is None else decision.throw(failure)
        except StopIteration as end:
            return end.value
        answer = failure = None
        if isinstance(ask, Conclude | Govern):
            continue  # nothing is written down of it
        seq += 1
        row = table.get((branch, seq))
        if row is None:
            raise _RecordEnds
        check_same(ask, row, _name)
        try:
            answer = _fan(ask, branch, seq, table) if isinstance(ask, Together) else _answer(row)
        except (StepFailedError, RunCancelledError) as error:
            failure = error


def _fan(ask: Together, branch: str, seq: int, table: Mapping[tuple[str, int], StepRecord]) -> list[object]:
    outcomes: list[object] = []
    for index, command in enumerate(ask.branches):
        inner = command if isinstance(command, Generator) else _alone(command)
        outcomes.append(_play(inner, f"{branch}{seq}.{index}/", table))
    return outcomes


def _alone(ask: Command) -> Generator[Command, Any, object]:
    return (yield ask)


def _answer(row: StepRecord) -> object:
    if row.state is StepState.DONE:
        return row.result
    if row.state is StepState.CANCELLED:
        has_begun = row.kind != "step" or bool(row.attempts)
        raise RunCancelledError(f"The run {row.place.run_id!r} was cancelled.", has_begun=has_begun)
    if row.state is StepState.FAILED:
        kind = WaitTimeoutError if row.kind == "wait" else StepFailedError
        raise kind(row.name, str(row.place), row.error or {})
    raise _RecordEnds


def _name(decision: Decision | str) -> str:
    return decision if isinstance(decision, str) else decision.__qualname__
