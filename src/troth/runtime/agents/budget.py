"""How much an agent may use, and refuses the next turn when it is used up."""

import time
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

from troth.errors import MisuseError, RunError
from troth.runtime.agents.model import Usage

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Budget", "BudgetExceeded", "Spent"]


class BudgetExceeded(RunError):  # noqa: N818 - a state, said as users say it
    """The next turn would go beyond what the agent may use. Everything before it is done and recorded."""


@dataclass(frozen=True, slots=True)
class Spent:
    """What was used so far."""

    turns: int = 0
    usage: Usage = field(default_factory=Usage)
    since: float | None = None
    """When the first turn was taken, in seconds since the epoch."""


@dataclass(frozen=True, slots=True)
class Budget:
    """What one conversation may use: model turns, tokens (in and out together), cost, seconds since its first turn.

    None means no limit. The check comes before a turn, so the last turn allowed may go beyond tokens, cost and time by
    what that one turn uses; it is never followed by another.
    """

    turns: int | None = 50
    tokens: int | None = None
    cost: float | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        for setting in fields(self):
            limit = getattr(self, setting.name)
            if limit is not None and not limit > 0:
                raise MisuseError(
                    f"The budget allows {limit!r} {setting.name}, so that no turn would be possible.\n"
                    f"Give `{setting.name}` a number above 0, or None for no limit."
                )

    def check(self, spent: Spent, now: float | None = None) -> None:
        """Raise `BudgetExceeded` if there is nothing left for another turn."""
        used: Iterable[tuple[str, float, float | None]] = (
            ("turns", spent.turns, self.turns),
            ("tokens", spent.usage.input_tokens + spent.usage.output_tokens, self.tokens),
            ("cost", spent.usage.cost, self.cost),
            ("seconds", 0.0 if spent.since is None else (now or time.time()) - spent.since, self.seconds),
        )
        for name, amount, limit in used:
            if limit is not None and amount >= limit:
                raise BudgetExceeded(
                    f"The budget of {limit:g} {name} is used up ({amount:g} so far).\n"
                    "No further turn was taken; everything done before is recorded.\n"
                    f"Give the agent a larger `Budget({name}=…)` and run the conversation again to continue."
                )
