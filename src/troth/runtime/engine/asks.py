"""The words in which a decision asks for what it needs. Each is a value; nothing happens by making one.

def order(id, amount):
    receipt = yield Step("charge", charge, id, amount, retry=Retry(5), timeout=10)
    yield Sleep(3600)
    approved = yield Wait("approval", timeout=86400)
    left, right = yield Together(pack(id), Step("label", print_label, id))
    return receipt
"""

import math
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass
from types import FunctionType
from typing import Any, Literal, NamedTuple, Self

from troth import bridge
from troth.color import Color
from troth.errors import MisuseError
from troth.runtime.engine.errors import UnknownColorError
from troth.runtime.engine.retry import ONCE, Retry
from troth.runtime.store.payload import keep, plain_list

__all__ = ["Append", "Ask", "Decision", "Join", "Sleep", "Start", "Step", "Together", "Wait"]


_NOTHING: Mapping[str, object] = {}


def _check_name(what: str, name: object) -> None:
    if not isinstance(name, str):
        raise MisuseError(f"{what} has a text for a name, and {name!r} is none.")


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


class Step(_StepFields):
    """Call `call(*args, **kwargs)` once, durably, and be sent what it returns, as JSON reads it back.

    `call` is sync or async. `name` and the arguments are written down before the call and compared on a replay, so
    they have to be JSON; what must not be written down goes into a `functools.partial`. The call may happen more than
    once in one case: a process that dies in the middle of it. The key of `current_step().key` is then the same, for
    the other side to recognise; `after_crash="fail"` makes the step fail instead (`StepFailedError`, outcome
    "interrupted"). `timeout` limits each attempt. `code`, if given, is compared on a replay like the arguments.
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
    ) -> Self:
        """Look at the call before anything happens: its color, its arguments, its time."""
        # A decision in a loop asks for the same plain function again and again: its color is told once.
        color = _colors.get(call) if type(call) is FunctionType else None
        if color is None:
            color = _color_of(name, call)
        if type(name) is not str:
            _check_name("A step", name)
        if timeout is not None:
            if not timeout > 0:  # no number at all is no more than 0 either
                raise MisuseError(f"Step {name!r} has a timeout of {timeout!r} s; it would fail before it begins.")
            if timeout == math.inf:
                timeout = None
        recorded = plain_list(args) if not kwargs else None
        if recorded is None:
            given = [list(args), dict(kwargs)] if kwargs else list(args)
            recorded, _ = keep(given, f"arguments of step {name!r}")
        return tuple.__new__(
            cls, (name, call, args, kwargs or _NOTHING, retry, timeout, key, after_crash, code, color, recorded)
        )


@dataclass(frozen=True, slots=True)
class Sleep:
    """Go on after `seconds`, also if the process dies meanwhile. The moment is written down, not the time left."""

    seconds: float
    name: str = "sleep"

    def __post_init__(self) -> None:
        """Refuse what is no moment."""
        _check_name("A sleep", self.name)
        if not _is_number(self.seconds) or math.isinf(self.seconds):
            raise MisuseError(f"A sleep of {self.seconds!r} s never ends, or is none. Give a number of seconds.")


@dataclass(frozen=True, slots=True)
class Wait:
    """Be sent the payload of the next signal of this name, sent before or after. `WaitTimeoutError` after `timeout`."""

    signal: str
    timeout: float | None = None

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

    branches: "tuple[Ask | Generator[Ask, Any, object], ...]"
    limit: int | None
    name: str

    def __init__(
        self, *branches: "Ask | Generator[Ask, Any, object]", limit: int | None = None, name: str = "together"
    ) -> None:
        if limit is not None and limit < 1:
            raise MisuseError(f"`Together` with a limit of {limit!r} would never begin.")
        object.__setattr__(self, "branches", branches)
        object.__setattr__(self, "limit", limit)
        object.__setattr__(self, "name", name)

    @classmethod
    def of(
        cls,
        branches: "Iterable[Ask | Generator[Ask, Any, object]]",
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


Ask = Step | Sleep | Wait | Start | Join | Together | Append
Decision = Callable[..., Generator[Ask, Any, object]]


def _color_of(name: str, call: Callable[..., object]) -> Color:
    color = bridge.color_of(call)
    if color is Color.UNKNOWN:
        raise _unknown_color(name, call)
    if type(call) is FunctionType:
        if len(_colors) >= _REMEMBERED:
            _colors.clear()  # functions made on the fly must not be kept for ever
        _colors[call] = color
    return color


_REMEMBERED = 512
_colors: dict[FunctionType, Color] = {}


def _unknown_color(name: str, call: object) -> UnknownColorError:
    verdict = bridge.explain(call)
    return UnknownColorError(
        f"Step {name!r} is to call {call!r}, and nobody can say whether that is sync or async: {verdict.because}.\n"
        f"It was not called. {verdict.advice[:1].upper()}{verdict.advice[1:]}."
    )
