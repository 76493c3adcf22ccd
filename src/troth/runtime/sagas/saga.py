"""What a saga consists of: steps, each with the function that does it and the one that undoes it.

An undo has to tolerate an effect that never happened. It is also called for a step whose outcome is not known (it timed
out, was cancelled, or its process died half-way), and it is called again if its own outcome is not known.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from troth.errors import MisuseError
from troth.runtime.arguments import check_count, check_seconds
from troth.runtime.engine.retry import ONCE, Retry
from troth.runtime.sagas.checked_callable import CheckedCallable, judge

__all__ = ["ResultOf", "Saga", "SagaStep", "Tried", "result"]


@dataclass(frozen=True, slots=True)
class ResultOf:
    """Stands in a step's arguments for what an earlier step returned, or a part of it."""

    step: str
    parts: tuple[str | int, ...] = ()

    def of(self, results: Mapping[str, object]) -> object:
        """The value, once the step is done."""
        value = results[self.step]
        for part in self.parts:
            value = value[part]  # type: ignore[index]  # the shape of a result is the user's own
        return value


def result(step: str, *parts: str | int) -> ResultOf:
    """What `step` returned, for the arguments of a later step; `parts` lead further into it."""
    return ResultOf(step, parts)


@dataclass(frozen=True, slots=True)
class Tried:
    """An action, and how often and how long it is tried."""

    action: CheckedCallable
    retry: Retry
    timeout: float | None


@dataclass(frozen=True, slots=True)
class SagaStep:
    """One step. `arguments` may hold `result("other", …)`."""

    name: str
    do: Tried
    undo: Tried | None
    arguments: Mapping[str, object] = field(default_factory=dict)


class Saga:
    """Steps that all happen, or are undone in reverse. Every function is judged here, before any of them runs."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._steps: dict[str, SagaStep] = {}

    @property
    def steps(self) -> tuple[SagaStep, ...]:
        """The steps in their order."""
        return tuple(self._steps.values())

    def step(
        self,
        name: str,
        *,
        do: Callable[..., object],
        undo: Callable[..., object] | None,
        arguments: Mapping[str, object] | None = None,
        retry: Retry | int = 1,
        timeout: float | None = None,
        undo_retry: Retry | int = 3,
        undo_timeout: float | None = None,
    ) -> "Saga":
        """Add a step and return the saga.

        `do` is called with `arguments`; `undo` with those of them it has parameters for, and with `result` if its own
        signature has a parameter of that name (None where the outcome is not known). What `undo` returns is not kept.
        `undo=None` says that there is nothing to undo.
        """
        _check_name(self.name, name)
        if name in self._steps:
            raise MisuseError(f"The saga {self.name!r} already has a step {name!r}. Give this one another name.")
        step_arguments = dict(arguments or {})
        for value in step_arguments.values():
            if isinstance(value, ResultOf) and value.step not in self._steps:
                raise MisuseError(
                    f"The step {name!r} needs the result of {value.step!r}, "
                    "which is not an earlier step of this saga.\n"
                    f"Earlier steps: {', '.join(map(repr, self._steps)) or 'none'}."
                )
        do_call = _tried(do, f"`do` of {name!r}", retry, timeout)
        _refuse(
            f"The `do` of step {name!r}", do_call.action.surplus(step_arguments), do_call.action.missing(step_arguments)
        )
        undo_call = None if undo is None else _tried(undo, f"`undo` of {name!r}", undo_retry, undo_timeout)
        if undo_call is not None:
            _refuse(f"The `undo` of step {name!r}", [], undo_call.action.missing({*step_arguments, "result"}))
        self._steps[name] = SagaStep(name, do_call, undo_call, step_arguments)
        return self


def _check_name(saga: str, name: object) -> None:
    if not isinstance(name, str) or not name:
        raise MisuseError(f"A step of the saga {saga!r} is named {name!r}; give it a string as its name.")


def _tried(call: Callable[..., object], title: str, retry: Retry | int, timeout: float | None) -> Tried:
    check_seconds(f"timeout of {title}".replace("`", ""), timeout)
    if timeout is not None and not 0 < timeout < float("inf"):
        raise MisuseError(f"The timeout of {title} is {timeout!r}. Give more than 0 s, or None for no limit.")
    return Tried(judge(call, title), _policy(retry), timeout)


def _policy(retry: Retry | int) -> Retry:
    if isinstance(retry, Retry):
        return retry
    check_count("retry", retry)
    return ONCE if retry == 1 else Retry(attempts=retry)


def _refuse(subject: str, surplus: list[str], missing: list[str]) -> None:
    if surplus:
        raise MisuseError(f"{subject} does not take {surplus[0]!r}, which the step's arguments have.\nNothing ran.")
    if missing:
        raise MisuseError(f"{subject} needs {missing[0]!r}, which is not among the step's arguments.\nNothing ran.")
