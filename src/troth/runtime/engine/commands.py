"""The words in which a decision asks for what it needs. Each is a value; nothing happens by making one.

def order(id, amount):
    receipt = yield Step("charge", charge, id, amount, retry=Retry(5), timeout=10)
    yield Sleep(3600)
    approved = yield Wait("approval", timeout=86400)
    left, right = yield Together(pack(id), Step("label", print_label, id))
    return receipt
"""

import math
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any, Literal, NamedTuple, Self

from troth import bridge
from troth.color import Color
from troth.errors import MisuseError
from troth.runtime.arguments import check_seconds
from troth.runtime.engine.errors import UnknownColorError
from troth.runtime.engine.governor import Governor
from troth.runtime.engine.retry import ONCE, Retry
from troth.runtime.store import RunState, StepRecord
from troth.runtime.store.json_codec import keep, plain_list
from troth.runtime.store.large_values import is_large

__all__ = [
    "Append",
    "Command",
    "Conclude",
    "Decision",
    "Finish",
    "Govern",
    "Join",
    "Shows",
    "Sleep",
    "Start",
    "Step",
    "Together",
    "Wait",
]


_NOTHING: Mapping[str, object] = {}
_NUMBERS = frozenset({int, float})

Shows = Literal["all", "begin", "end", "nothing"]
"""Which part of a command becomes an event that is shown to those who follow the run. All of it is recorded."""


def _check_name(kind: str, name: object) -> None:
    if not isinstance(name, str):
        raise MisuseError(f"{kind} needs a string as its name, not {name!r}.")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not math.isnan(value)


class _StepFields(NamedTuple):
    name: str
    call: Callable[..., object]
    args: tuple[object, ...]
    kwargs: Mapping[str, object]
    retry: Retry
    timeout: float | None
    key: str | None
    after_crash: Literal["rerun", "fail"]
    code: str | None
    color: Color
    recorded: str
    is_undo: bool
    shows: Shows


class Step(_StepFields):
    """Call `call(*args, **kwargs)` once, durably, and be sent what it returns, as JSON reads it back.

    `call` is sync or async. `name` and the arguments are written down before the call and compared on a replay, so
    they have to be JSON; what must not be written down goes into a `functools.partial`. The call may happen more than
    once in one case: a process that dies in the middle of it. The key of `current_step().key` is then the same, for
    the other side to recognise; `after_crash="fail"` makes the step fail instead (`StepFailedError`, outcome
    "interrupted"). `timeout` limits each attempt. `code`, a digest of what is called, is kept with each attempt; on a
    replay it is compared with that of a step that is settled, like the arguments. `is_undo` says that it takes
    something back: a governor lets it begin in any case. `shows` says which part of it is shown to those who follow
    the run.
    """

    __slots__ = ()

    def __new__(
        cls,
        name: str,
        call: Callable[..., object],
        /,
        *args: object,
        kwargs: Mapping[str, object] | None = None,
        retry: Retry = ONCE,
        timeout: float | None = None,
        key: str | None = None,
        after_crash: Literal["rerun", "fail"] = "rerun",
        code: str | None = None,
        is_undo: bool = False,
        shows: Shows = "all",
    ) -> Self:
        """Look at the call before anything happens: its color, its arguments, its time."""
        # A decision in a loop asks for the same sync function again and again: its color is told once.
        color = _colors.get(call) if type(call) is FunctionType else None
        if color is None:
            color = _color_of(name, call)
        if type(name) is not str:
            _check_name("A step", name)
        if timeout is not None:
            if type(timeout) not in _NUMBERS:
                check_seconds("timeout", timeout)
            if not timeout > 0:  # no number at all is no more than 0 either
                raise MisuseError(f"Step {name!r} has a timeout of {timeout!r} s; it would fail before it starts.")
            if timeout == math.inf:
                timeout = None
        recorded = plain_list(args) if not kwargs else None
        if recorded is None:
            arguments = _arguments(args, kwargs)
            # What is large is written down by whoever drives, beside its loop; until then it is not recorded.
            recorded = "" if is_large(arguments) else keep(arguments, f"arguments of step {name!r}")[0]
        given_names = kwargs or _NOTHING
        return tuple.__new__(
            cls,
            (name, call, args, given_names, retry, timeout, key, after_crash, code, color, recorded, is_undo, shows),
        )

    @property
    def arguments(self) -> list[object]:
        """The arguments, as they are written down."""
        return _arguments(self.args, self.kwargs)


def _arguments(args: tuple[object, ...], kwargs: Mapping[str, object] | None) -> list[object]:
    return [list(args), dict(kwargs)] if kwargs else list(args)


@dataclass(frozen=True, slots=True)
class Sleep:
    """Go on after `seconds`, also if the process dies meanwhile. The moment is written down, not the time left."""

    seconds: float
    name: str = "sleep"
    shows: Shows = "all"

    def __post_init__(self) -> None:
        """Refuse what is not a point in time."""
        _check_name("A sleep", self.name)
        if not _is_number(self.seconds) or math.isinf(self.seconds):
            raise MisuseError(f"A sleep of {self.seconds!r} s is not a valid duration. Give a number of seconds.")


@dataclass(frozen=True, slots=True)
class Wait:
    """Be sent the payload of the next signal of this name, sent before or after. `WaitTimeoutError` after `timeout`.

    What counts is when a signal was sent, also if nobody was there to receive it. One that was sent after the timeout
    is left for the next wait of that name.
    """

    signal: str
    timeout: float | None = None
    note: Mapping[str, object] | None = None
    """What is shown with it to those who follow the run; JSON."""
    is_the_end: Callable[[Any], bool] = lambda _answer: True
    """Whether an answer, or the silence (None), ends what waits here, so that it is shown as its end. Must not wait."""

    def __post_init__(self) -> None:
        """Refuse a signal that nobody could send."""
        _check_name("A signal", self.signal)
        if self.timeout is not None and not _is_number(self.timeout):
            raise MisuseError(f"The wait for {self.signal!r} has a timeout of {self.timeout!r}. Give seconds, or None.")


@dataclass(frozen=True, slots=True, init=False)
class Start:
    """Start another run and be sent its id. It goes on beside this one, also if this one ends."""

    decision: "Decision | str"
    args: tuple[object, ...]
    run_id: str | None
    label: str | None

    def __init__(
        self,
        decision: "Decision | str",
        /,
        *args: object,
        run_id: str | None = None,
        label: str | None = None,
    ) -> None:
        put = object.__setattr__
        put(self, "decision", decision)
        put(self, "args", args)
        put(self, "run_id", run_id)
        put(self, "label", label)


@dataclass(frozen=True, slots=True)
class Join:
    """Be sent the result of another run once it is over; `StepFailedError`, outcome "child", if it did not complete."""

    run_id: str


@dataclass(frozen=True, slots=True, init=False)
class Together:
    """Do several things at once and be sent the list of their answers: asks, or generators that ask in turn.

    All of them are brought to their end; if any failed, the first failure is then thrown, with the others as notes.
    `limit` bounds how many are at work at a time.
    """

    branches: "tuple[Command | Generator[Command, Any, object], ...]"
    limit: int | None
    name: str

    def __init__(
        self, *branches: "Command | Generator[Command, Any, object]", limit: int | None = None, name: str = "together"
    ) -> None:
        if limit is not None and limit < 1:
            raise MisuseError(f"`Together` with a limit of {limit!r} would never begin.")
        object.__setattr__(self, "branches", branches)
        object.__setattr__(self, "limit", limit)
        object.__setattr__(self, "name", name)

    @classmethod
    def of(
        cls,
        branches: "Iterable[Command | Generator[Command, Any, object]]",
        *,
        limit: int | None = None,
        name: str = "together",
    ) -> "Together":
        """The same from an iterable."""
        return cls(*branches, limit=limit, name=name)


@dataclass(frozen=True, slots=True)
class Append:
    """Append an event to a stream, in the same commit as whatever the decision asks for next."""

    stream: str
    kind: str
    payload: object = None
    shows: Shows = "nothing"
    note: Mapping[str, object] | None = None
    """What is shown with it to those who follow the run; JSON."""


@dataclass(frozen=True, slots=True)
class Conclude:
    """Have `word` asked for the word for how this run ended, if it does not complete. Not recorded.

    It is called in the commit that ends the run, with the state in which the run ends and what reads its steps as that
    commit sees them; None stands for the state itself. It must neither wait nor write.
    """

    word: Callable[[RunState, Callable[[], Sequence[StepRecord]]], str | None]


@dataclass(frozen=True, slots=True)
class Govern:
    """Have `governor` asked before every step of this run from here on, in the commit that begins it. Not recorded."""

    governor: Governor


@dataclass(frozen=True, slots=True)
class Finish:
    """End the run with `value`, in one commit with what came before; return right after it.

    If the run is to be cancelled, that is thrown here instead, and nothing has ended: so what a sync step did, which
    could not be stopped, can still be taken back. Only the trunk of a run can ask for it.
    """

    value: object


Command = Step | Sleep | Wait | Start | Join | Together | Append | Govern | Conclude | Finish
Decision = Callable[..., Generator[Command, Any, object]]


def _color_of(name: str, call: Callable[..., object]) -> Color:
    color = bridge.color_of(call)
    if color is Color.UNKNOWN:
        raise _unknown_color(name, call)
    if type(call) is FunctionType:
        if len(_colors) >= _REMEMBERED:
            _colors.clear()  # functions made on the fly must not be kept forever
        _colors[call] = color
    return color


_REMEMBERED = 512
_colors: dict[FunctionType, Color] = {}


def _unknown_color(name: str, call: object) -> UnknownColorError:
    verdict = bridge.explain(call)
    return UnknownColorError(
        f"Step {name!r} is to call {call!r}, and it is unclear whether that is sync or async: {verdict.because}.\n"
        f"It was not called. {verdict.advice[:1].upper()}{verdict.advice[1:]}."
    )
