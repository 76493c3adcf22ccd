"""How a row of the file becomes a record, and tells one that cannot be read as damaged, by name.

Bytes change on a disk, and SQLite gives back what is there: text that is no UTF-8, a number where a text was, JSON that
ends in the middle. One such row is an error that says which run, step or stream it belongs to.
"""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from types import NoneType
from typing import Any

from troth.runtime.store.errors import DamagedStoreError
from troth.runtime.store.identity import Owner
from troth.runtime.store.json_codec import decode, read
from troth.runtime.store.records import (
    Attempt,
    Event,
    Happened,
    HistoryEntry,
    Place,
    RunRecord,
    RunState,
    Signal,
    StepRecord,
    StepState,
)

__all__ = [
    "EVENT",
    "HISTORY",
    "OWNER",
    "RUN",
    "SIGNAL",
    "STEP",
    "attempt_of",
    "damaged_run",
    "entry_of",
    "event_of",
    "events_of",
    "is_moment",
    "owner_of",
    "run_of",
    "run_state_of",
    "signal_of",
    "step_of",
    "text_of",
    "text_or_bytes",
]

_Name = Callable[[Sequence[Any]], str]
"""Names the row in an error. It is made only where there is one: a long list has no time for it."""

_TEXT, _WHOLE, _NUMBER, _MOMENT = (str,), (int,), (float, int), (float, int)
_MAYBE_TEXT, _MAYBE_WHOLE, _MAYBE_MOMENT = (str, NoneType), (int, NoneType), (float, int, NoneType)
_FAR = 1e11  # seconds since 1970; nothing that was kept happened later, and no calendar shows it
_BRANCH = re.compile(r"(?:\d+\.\d+/)*")


class _Columns:
    """The columns of one kind of row, with the types that each can have."""

    def __init__(self, **types: tuple[type, ...]) -> None:
        self.sql = ", ".join(types)
        self._types = types
        self._moments = [index for index, kinds in enumerate(types.values()) if kinds in (_MOMENT, _MAYBE_MOMENT)]
        self._good: set[tuple[type, ...]] = set()  # what was found right once need not be looked at column by column

    def check(self, row: Sequence[Any], name: "_Name") -> None:
        """Refuse a row in which a column has another type than it was written with; `name` tells whose row it is."""
        kinds = tuple(map(type, row))
        if kinds not in self._good:
            for (column, types), kind in zip(self._types.items(), kinds, strict=True):
                if kind not in types:
                    raise DamagedStoreError(name(row), f"`{column}` is {_kind(kind)}")
            self._good.add(kinds)
        for index in self._moments:
            moment = row[index]
            if moment is not None and not -_FAR < moment < _FAR:
                raise DamagedStoreError(name(row), f"`{list(self._types)[index]}` is no time: {moment!r}")


def _kind(kind: type) -> str:
    if kind is bytes:
        return "not text in UTF-8"
    return "missing" if kind is NoneType else f"of type {kind.__name__}"


RUN = _Columns(
    id=_TEXT,
    decision=_TEXT,
    label=_MAYBE_TEXT,
    state=_TEXT,
    args=_TEXT,
    result=_MAYBE_TEXT,
    error=_MAYBE_TEXT,
    code=_MAYBE_TEXT,
    parent=_MAYBE_TEXT,
    forked_from=_MAYBE_TEXT,
    cancel_requested=_WHOLE,
    waiting_for=_MAYBE_TEXT,
    wake_at=_MAYBE_MOMENT,
    created_at=_MOMENT,
    updated_at=_MOMENT,
    finished_at=_MAYBE_MOMENT,
    ending=_MAYBE_TEXT,
)
STEP = _Columns(
    run_id=_TEXT,
    branch=_TEXT,
    seq=_WHOLE,
    kind=_TEXT,
    name=_TEXT,
    state=_TEXT,
    key=_TEXT,
    attempt=_WHOLE,
    args=_TEXT,
    code=_MAYBE_TEXT,
    color=_MAYBE_TEXT,
    result=_MAYBE_TEXT,
    error=_MAYBE_TEXT,
    started_at=_MOMENT,
    finished_at=_MAYBE_MOMENT,
    wake_at=_MAYBE_MOMENT,
)
_ATTEMPT = _Columns(
    branch=_TEXT,
    seq=_WHOLE,
    number=_WHOLE,
    outcome=_TEXT,
    error=_MAYBE_TEXT,
    started_at=_MAYBE_MOMENT,
    finished_at=_MOMENT,
    next_at=_MAYBE_MOMENT,
    code=_MAYBE_TEXT,
)
HISTORY = _Columns(
    run_id=_TEXT,
    seq=_WHOLE,
    sub=_WHOLE,
    what=_TEXT,
    at=_MOMENT,
    branch=_MAYBE_TEXT,
    step=_MAYBE_WHOLE,
    name=_MAYBE_TEXT,
    data=_MAYBE_TEXT,
    kind=_MAYBE_TEXT,
    key=_MAYBE_TEXT,
    args=_MAYBE_TEXT,
    color=_MAYBE_TEXT,
    code=_MAYBE_TEXT,
    attempt=_MAYBE_WHOLE,
    outcome=_MAYBE_TEXT,
    began_at=_MAYBE_MOMENT,
    wake_at=_MAYBE_MOMENT,
    note=_MAYBE_TEXT,
    done_by=_MAYBE_TEXT,
)
SIGNAL = _Columns(id=_WHOLE, run_id=_TEXT, name=_TEXT, payload=_TEXT, sent_at=_MOMENT, taken_by=_MAYBE_TEXT)
EVENT = _Columns(id=_WHOLE, stream=_TEXT, seq=_WHOLE, kind=_TEXT, payload=_TEXT, at=_MOMENT)
OWNER = _Columns(id=_TEXT, machine=_TEXT, pid=_WHOLE, pid_started=_WHOLE, beat_at=_MOMENT)


def is_moment(value: float) -> bool:
    """Whether a number can be a time at which something happened."""
    return -_FAR < value < _FAR


def text_or_bytes(data: bytes) -> str | bytes:
    """For a connection: text as SQLite gives it, and what is no text as it is, so that one row does not hide others."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def text_of(value: Any, what: str) -> str:
    """A column that has to be text."""
    if type(value) is not str:
        raise DamagedStoreError(what, f"it is {_kind(type(value))}")
    return value


def run_state_of(value: Any, run_id: str) -> RunState:
    """The written state of a run."""
    try:
        return RunState(value)
    except ValueError:
        raise DamagedStoreError(f"run {run_id!r}", f"{value!r} is not a state of a run") from None


def run_of(row: Sequence[Any], *, is_owned: bool) -> RunRecord:
    """A run, with its state as it is now."""
    RUN.check(row, _run_name)
    (
        run_id, decision, label, written_state, written_args, result, error, code, parent, forked_from,
        cancel_requested, waiting_for, wake_at, created_at, updated_at, finished_at, ending,
    ) = row  # fmt: skip
    state = run_state_of(written_state, run_id)
    if state is RunState.RUNNING and not is_owned:
        state = RunState.INTERRUPTED
    args = _json(written_args, row, _run_name)
    if type(args) is not list:
        raise DamagedStoreError(_run_name(row), "its arguments are not a list")
    return RunRecord(
        id=run_id,
        decision=decision,
        label=label,
        state=state,
        args=tuple(args),
        result=_json(result, row, _run_name),
        error=_error(error, row, _run_name),
        code=code,
        parent=parent,
        forked_from=forked_from,
        is_cancel_requested=bool(cancel_requested),
        waiting_for=waiting_for,
        wake_at=wake_at,
        created_at=created_at,
        updated_at=updated_at,
        finished_at=finished_at,
        ending=ending,
    )


def damaged_run(row: Sequence[Any], damage: DamagedStoreError) -> RunRecord:
    """What can still be told of a run whose row is damaged: its id where that can be read, and what is wrong."""
    text = partial(_still_text, row)
    # What is no time at all stands where SQLite sorts it, so that a page which ends on it is followed by the next one.
    created = row[13] if type(row[13]) in _MOMENT else -math.inf if row[13] is None else math.inf
    return RunRecord(
        id=text(0) or repr(row[0]),
        decision=text(1) or "",
        label=text(2),
        state=RunState.DAMAGED,
        args=(),
        result=None,
        error={"type": type(damage).__qualname__, "message": str(damage)},
        code=None,
        parent=text(8),
        forked_from=text(9),
        is_cancel_requested=False,
        waiting_for=None,
        wake_at=None,
        created_at=created,
        updated_at=created,
        finished_at=None,
    )


def _still_text(row: Sequence[Any], index: int) -> str | None:
    return row[index] if type(row[index]) is str else None


def step_of(row: Sequence[Any], attempts: tuple[Attempt, ...]) -> StepRecord:
    """A step of a run."""
    STEP.check(row, _step_name)
    run_id, branch, seq, kind, name, state, key, attempt, args, code, color, result, error, started, finished, wake = (
        row
    )
    if branch and _BRANCH.fullmatch(branch) is None:
        raise DamagedStoreError(_step_name(row), f"{branch!r} is not a branch of a run")
    try:
        step_state = StepState(state)
    except ValueError:
        raise DamagedStoreError(_step_name(row), f"{state!r} is not a state of a step") from None
    return StepRecord(
        place=Place(run_id, branch, seq),
        kind=kind,
        name=name,
        state=step_state,
        key=key,
        attempt=attempt,
        args=args,
        code=code,
        color=color,
        result=_json(result, row, _step_name),
        error=_error(error, row, _step_name),
        started_at=started,
        finished_at=finished,
        wake_at=wake,
        attempts=attempts,
    )


def attempt_of(run_id: str, row: Sequence[Any]) -> Attempt:
    """An attempt that did not succeed, of the step whose place the row begins with."""

    def name(row: Sequence[Any]) -> str:
        return f"an attempt of {_step_name((run_id, *row))}"

    _ATTEMPT.check(row, name)
    _, _, number, outcome, error, started, finished, next_at, code = row
    return Attempt(number, outcome, _error(error, row, name), started, finished, next_at, code)


def signal_of(row: Sequence[Any]) -> Signal:
    """A message to a run."""
    SIGNAL.check(row, _signal_name)
    number, run_id, name, payload, sent_at, taken_by = row
    return Signal(number, run_id, name, _json(payload, row, _signal_name), sent_at, taken_by)


def event_of(row: Sequence[Any]) -> Event:
    """An entry of a stream."""
    EVENT.check(row, _event_name)
    number, stream, seq, kind, payload, at = row
    return Event(number, stream, seq, kind, _json(payload, row, _event_name), at)


def events_of(rows: Iterable[Sequence[Any]], stream: str, after: int, last: int | None = None) -> list[Event]:
    """The entries of a stream that follow number `after`, without a gap, and up to `last` where that is known."""
    events = [event_of(row) for row in rows]
    for number, event in enumerate(events, start=after + 1):
        if event.seq != number:
            raise DamagedStoreError(f"stream {stream!r}", f"entry {number} is missing")
    if last is not None and last > after + len(events):
        raise DamagedStoreError(f"stream {stream!r}", f"entry {after + len(events) + 1} is missing")
    return events


def entry_of(row: Sequence[Any]) -> HistoryEntry:
    """An entry of a run's history."""
    HISTORY.check(row, _entry_name)
    run_id, seq, _, what, at, branch, step, name, data, kind, *_, code, attempt, outcome, _, wake_at, note, done_by = (
        row
    )
    try:
        happened = Happened(what)
    except ValueError:
        raise DamagedStoreError(_entry_name(row), f"{what!r} is not an event of a run") from None
    value = _json(data, row, _entry_name)
    if happened in _WITH_ERROR and value is not None and type(value) is not dict:
        raise DamagedStoreError(_entry_name(row), "its error is not a mapping")
    place = None if branch is None else Place(run_id, branch, step)
    shown = _json(note, row, _entry_name)
    return HistoryEntry(
        run_id,
        seq,
        happened,
        at,
        place,
        kind or "step",
        name,
        attempt or 1,
        outcome,
        wake_at,
        value,
        shown,
        code,
        done_by,
    )


_WITH_ERROR = frozenset({Happened.FAILED, Happened.ATTEMPT, Happened.RUN_ENDED, Happened.CALLBACK_FAILED})


def owner_of(row: Sequence[Any]) -> Owner:
    """Whoever holds leases."""
    OWNER.check(row, _owner_name)
    return Owner(*row)


def _json(text: str | None, row: Sequence[Any], name: _Name) -> Any:
    try:
        return None if text is None else decode(text)
    except (ValueError, RecursionError):
        return read(text, name(row))  # raises, with the name


def _error(text: str | None, row: Sequence[Any], name: _Name) -> dict[str, Any] | None:
    error = _json(text, row, name)
    if error is not None and type(error) is not dict:
        raise DamagedStoreError(name(row), "its error is not a mapping")
    return error


def _run_name(row: Sequence[Any]) -> str:
    return f"run {row[0]!r}"


def _step_name(row: Sequence[Any]) -> str:
    run_id, branch, seq = row[:3]
    return f"step {branch}{seq} of run {run_id!r}" if type(branch) is str else f"a step of run {run_id!r}"


def _signal_name(row: Sequence[Any]) -> str:
    return f"signal {row[0]!r} to run {row[1]!r}"


def _entry_name(row: Sequence[Any]) -> str:
    return f"entry {row[1]!r} of the history of run {row[0]!r}"


def _event_name(row: Sequence[Any]) -> str:
    return f"entry {row[2]!r} of stream {row[1]!r}"


def _owner_name(row: Sequence[Any]) -> str:
    return f"the owner {row[0]!r}"
