"""Every place where the runtime commits, and lets a test stop the process exactly there.

A commit point is declared once, as a constant, and the only way to commit is to name one. Each has three failpoints:

    NAME.before    nothing has been written yet
    NAME.written   everything is written, nothing is committed: a crash here must leave no trace
    NAME.after     committed, and nobody has been told: a crash here must lose nothing

An effect point stands around user code instead and has two, `NAME.before` and `NAME.after`. `troth.testing` arms
failpoints by name; so does the variable TROTH_FAILPOINTS, for processes one cannot reach into:
`TROTH_FAILPOINTS="step.begin.after=kill@3"` kills the process the third time that it gets there. While none is armed,
a failpoint costs one look at an empty dictionary.
"""

import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from troth.errors import MisuseError, RunError

__all__ = [
    "VARIABLE",
    "CommitPoint",
    "EffectPoint",
    "InjectedFaultError",
    "action_named",
    "arm",
    "armed",
    "commit_point",
    "disarm",
    "effect_point",
    "failpoint_names",
    "points",
    "reach",
]

VARIABLE = "TROTH_FAILPOINTS"


class InjectedFaultError(RunError):
    """A failpoint was armed to raise, and was reached. Only tests see this."""


@dataclass(frozen=True, slots=True)
class CommitPoint:
    """One place that commits. `why` says what the transaction keeps together."""

    name: str
    why: str
    before: str
    written: str
    after: str
    is_step: bool = False
    """Whether it mostly keeps the answer of a step and the intent of the next: a store may have a short way."""
    is_append: bool = False
    """Whether it mostly appends to one stream under a lease: the same."""

    @property
    def failpoints(self) -> tuple[str, ...]:
        """Its failpoints in the order in which they are reached."""
        return self.before, self.written, self.after


@dataclass(frozen=True, slots=True)
class EffectPoint:
    """One place that runs user code with effects."""

    name: str
    why: str
    before: str
    after: str

    @property
    def failpoints(self) -> tuple[str, ...]:
        """Its failpoints in the order in which they are reached."""
        return self.before, self.after


_Point = TypeVar("_Point", CommitPoint, EffectPoint)
_points: dict[str, CommitPoint | EffectPoint] = {}
armed: dict[str, Callable[[str], None]] = {}
_arming = threading.Lock()


def commit_point(name: str, why: str, *, is_step: bool = False, is_append: bool = False) -> CommitPoint:
    """Declare a place that commits. Written as a module constant, so that importing the module makes it known."""
    return _declare(CommitPoint(name, why, f"{name}.before", f"{name}.written", f"{name}.after", is_step, is_append))


def effect_point(name: str, why: str) -> EffectPoint:
    """Declare a place that runs user code."""
    return _declare(EffectPoint(name, why, f"{name}.before", f"{name}.after"))


def _declare(point: _Point) -> _Point:
    declared = _points.setdefault(point.name, point)
    if declared != point:
        raise MisuseError(
            f"The commit point {point.name!r} is declared twice: for {declared.why!r} and for {point.why!r}.\n"
            "A test that arms one of them would also stop at the other. Give one of them another name."
        )
    return point


def points() -> Mapping[str, CommitPoint | EffectPoint]:
    """Every point declared by the modules imported so far, by name."""
    return dict(_points)


def failpoint_names() -> list[str]:
    """Every failpoint declared so far."""
    return [name for point in _points.values() for name in point.failpoints]


def reach(name: str) -> None:
    """Say that the program has come to the failpoint `name`; does what it is armed with, if it is."""
    action = armed.get(name)
    if action is not None:
        action(name)


def arm(name: str, action: Callable[[str], None], *, nth: int = 1) -> None:
    """Make the `nth` arrival at `name` perform `action`; earlier and later ones pass."""
    remaining = nth
    counting = threading.Lock()

    def count(reached: str) -> None:
        nonlocal remaining
        with counting:
            remaining -= 1
            is_due = remaining == 0
        if is_due:
            action(reached)

    with _arming:
        armed[name] = count


def disarm(name: str) -> None:
    """Let `name` pass again."""
    with _arming:
        armed.pop(name, None)


def action_named(name: str) -> Callable[[str], None]:
    """The action that a word stands for: `raise`, `kill` (SIGKILL to this very process) or `exit`."""
    try:
        return _ACTIONS[name]
    except KeyError:
        raise MisuseError(
            f"A failpoint cannot be armed with {name!r}. It can be armed with {', '.join(sorted(_ACTIONS))}."
        ) from None


def _raise(name: str) -> None:
    raise InjectedFaultError(f"The failpoint {name!r} was armed to raise, and was reached.")


def _kill(name: str) -> None:  # noqa: ARG001  every action is told where it happens
    os.kill(os.getpid(), signal.SIGKILL)
    threading.Event().wait()  # the signal may be delivered to another thread first: nothing may happen meanwhile


def _exit(name: str) -> None:  # noqa: ARG001
    os._exit(70)


_ACTIONS: Mapping[str, Callable[[str], None]] = {"raise": _raise, "kill": _kill, "exit": _exit}


def _parse(setting: str) -> Iterator[tuple[str, str, int]]:
    for part in filter(None, setting.split(",")):
        name, _, action = part.partition("=")
        action, _, nth = action.partition("@")
        if not name or not action or not (nth or "1").isdigit():
            raise MisuseError(
                f"{VARIABLE} holds {part!r}, which is not NAME=ACTION or NAME=ACTION@N.\n"
                "The process was stopped at once: a crash test that does not crash proves nothing."
            )
        yield name.strip(), action.strip(), int(nth or "1")


for _name, _action, _nth in _parse(os.environ.get(VARIABLE, "")):
    arm(_name, action_named(_action), nth=_nth)
