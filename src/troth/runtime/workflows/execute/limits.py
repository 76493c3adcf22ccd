"""What a workflow may use, and says clearly when something is used up: time, steps, tokens or cost."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace

from troth.errors import MisuseError
from troth.runtime.workflows.document.durations import parse_duration, show_duration
from troth.runtime.workflows.document.problems import did_you_mean
from troth.runtime.workflows.execute.failures import BudgetExceededError
from troth.runtime.workflows.execute.usage import Meter
from troth.runtime.workflows.spec import LIMITS, RunBudget

__all__ = ["Allowance", "Allowances", "raised", "time_until"]


@dataclass(frozen=True, slots=True)
class Allowance:
    """What one workflow of a run may use: the run's own, or one that runs as a step of it."""

    workflow: str
    budget: RunBudget
    prefix: str = ""
    """How the places of its steps begin."""
    base: int = 0
    """How many actions the run had performed before it."""
    deadline: float | None = None

    def check_steps(self, used: int) -> None:
        """Refuse another action when all have been performed; `used` is what the run has performed so far."""
        limit = self.budget.steps
        if limit is not None and used - self.base >= limit:
            raise self.refused("steps", str(limit), f"{used - self.base} performed")

    def check_time(self, now: float) -> None:
        """Refuse to begin anything once the time is up."""
        if self.deadline is not None and now >= self.deadline:
            raise self.too_long()

    def check_usage(self, meter: Meter) -> None:
        """Refuse an agent's next turn when tokens or cost are used up."""
        if self.budget.tokens is None and self.budget.cost is None:
            return
        used = meter.total(self.prefix)
        tokens = used.input_tokens + used.output_tokens
        if self.budget.tokens is not None and tokens >= self.budget.tokens:
            raise self.refused("tokens", str(self.budget.tokens), f"{tokens} used")
        if self.budget.cost is not None and used.cost >= self.budget.cost:
            raise self.refused("cost", f"{self.budget.cost:g}", f"{used.cost:g} used")

    def too_long(self) -> BudgetExceededError:
        """What is raised when the time is up."""
        return self.refused("time", show_duration(self.budget.time or 0), "all of it used")

    def refused(self, limit: str, allowed: str, so_far: str) -> BudgetExceededError:
        """What is raised when `limit` is used up."""
        return BudgetExceededError(
            f"The budget of {self.workflow!r} for {limit} is used up: {allowed} allowed, {so_far}.\n"
            "No further step was started; completed steps are kept.",
            self.workflow,
            limit,
        )


@dataclass(frozen=True, slots=True)
class Allowances:
    """What may be used at one place: of the run, and of each workflow in it that the place lies in."""

    each: tuple[Allowance, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.each)

    def with_one(self, allowance: Allowance) -> "Allowances":
        """The same, and `allowance` innermost."""
        return Allowances((*self.each, allowance))

    def of(self, workflow: object) -> Allowance | None:
        """The innermost one of that workflow."""
        return next((allowance for allowance in reversed(self.each) if allowance.workflow == workflow), None)

    def check_steps(self, used: int) -> None:
        """Refuse another action when all have been performed."""
        for allowance in self.each:
            allowance.check_steps(used)

    def check_time(self, now: float) -> None:
        """Refuse to begin anything once the time is up."""
        for allowance in self.each:
            allowance.check_time(now)

    def check_usage(self, meter: Meter) -> None:
        """Refuse an agent's next turn when tokens or cost are used up."""
        for allowance in self.each:
            allowance.check_usage(meter)

    @property
    def are_metered(self) -> bool:
        """Whether tokens or cost have a limit."""
        return any(allowance.budget.tokens is not None or allowance.budget.cost is not None for allowance in self.each)

    def first_deadline(self) -> Allowance | None:
        """The one whose time is up first; None where time has no limit."""
        limited = [allowance for allowance in self.each if allowance.deadline is not None]
        return min(limited, key=lambda allowance: allowance.deadline or 0.0, default=None)

    def time_left(self, timeout: float | None, clock: Callable[[], float]) -> float | None:
        """A step's own limit or what is left of the run's, whichever is less. No replay compares it."""
        last = self.first_deadline()
        if last is None or last.deadline is None:
            return timeout
        remaining = time_until(last.deadline, clock)
        return remaining if timeout is None else min(timeout, remaining)


def time_until(deadline: float, clock: Callable[[], float]) -> float:
    """Seconds that are left; a moment at least, because no limit is less than that."""
    return max(deadline - clock(), 0.001)


def raised(budget: RunBudget, limits: Mapping[str, object]) -> RunBudget:
    """`budget` with the limits in `limits`: numbers, or a span of time for `time`; None takes a limit away."""
    return replace(budget, **dict(_limits(limits)))  # type: ignore[arg-type]  # each was checked by `_limits`


def _limits(limits: Mapping[str, object]) -> Iterator[tuple[str, float | int | None]]:
    for name, value in limits.items():
        if name not in LIMITS:
            raise MisuseError(f"A budget has no limit {name!r}. {did_you_mean(name, LIMITS, kind='limit')}")
        if value is None:
            yield name, None
            continue
        number = parse_duration(value) if name == "time" and isinstance(value, str) else value
        whole = name in ("steps", "tokens")
        is_number = isinstance(number, int) or (isinstance(number, float) and not whole)
        if not is_number or isinstance(number, bool) or not number > 0:  # type: ignore[operator]
            expected = "a duration like `90s`" if name == "time" else "a whole number" if whole else "a number"
            raise MisuseError(f"The limit `{name}` of a budget has to be {expected} above 0, not {value!r}.")
        yield name, number  # type: ignore[misc]


assert set(LIMITS) < {field.name for field in fields(RunBudget)}
