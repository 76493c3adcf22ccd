"""Find which failures of a step are final, whatever its `retry` says: a limit that is reached stays reached."""

from dataclasses import dataclass, fields

from troth.runtime.agents.budget import BudgetExceeded
from troth.runtime.engine.retry import ONCE, Retry
from troth.runtime.workflows.execute.failures import BudgetExceededError

__all__ = ["is_final", "with_finals"]

_FINAL = (BudgetExceeded, BudgetExceededError)


def is_final(error: BaseException) -> bool:
    """Whether trying again could only fail the same way."""
    return isinstance(error, _FINAL)


@dataclass(frozen=True, slots=True)
class _WithFinals(Retry):
    """A policy that does not try again what is final."""

    def covers(self, error: BaseException) -> bool:
        """Whether an attempt that ended with `error` is worth another one."""
        return not is_final(error) and Retry.covers(self, error)


def with_finals(retry: Retry) -> Retry:
    """`retry`, which no longer tries again what is final."""
    return retry if retry is ONCE else _WithFinals(*(getattr(retry, field.name) for field in fields(Retry)))
