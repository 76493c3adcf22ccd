"""Decide what an attempt to deliver came to, and when to try again. Nothing here waits or touches the world."""

import math
import random
from collections.abc import Callable
from dataclasses import dataclass

from troth.errors import MisuseError
from troth.runtime.channels import Receipt
from troth.runtime.store.promise_records import DeliveryState, Settlement

__all__ = ["RetryPolicy", "judge", "problem_of"]

_DOUBLINGS = 1000  # 2.0 ** 1024 is no number any more, and a channel that is down for an hour is tried more often


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """When a delivery is tried again, and when it is given up.

    The pause doubles from `first` to `longest` seconds, give or take a quarter. A delivery is dead once it was tried
    `limit` times and `over` seconds have passed since the first time: a channel that is down for an hour costs nobody
    a result. `send_timeout` limits one `send`. `probe` is how often, at most, a channel that fails is tried again: one
    that recovers without a word is noticed after so many seconds.
    """

    limit: int = 10
    over: float = 86400.0
    first: float = 0.5
    longest: float = 60.0
    send_timeout: float = 30.0
    probe: float = 2.0

    def __post_init__(self) -> None:
        """Refuse numbers that would never try, or never stop."""
        numbers: tuple[object, ...] = (self.limit, self.over, self.first, self.longest, self.send_timeout, self.probe)
        if not all(isinstance(number, int | float) for number in numbers) or not (
            1 <= self.limit < math.inf
            and self.over >= 0  # without an end, it is never given up
            and 0 < self.first <= self.longest < math.inf
            and 0 < self.send_timeout < math.inf
            and 0 < self.probe < math.inf
        ):
            raise MisuseError(f"{self!r} would never try, or would try without a pause. Give numbers above 0.")

    def pause(self, attempt: int, chance: random.Random) -> float:
        """Seconds until the attempt after number `attempt`."""
        return self.usual_pause(attempt) * chance.uniform(0.75, 1.25)

    def usual_pause(self, attempt: int) -> float:
        """The same without chance."""
        return min(self.longest, self.first * 2.0 ** min(attempt - 1, _DOUBLINGS))

    def is_used_up(self, attempt: int, first_attempt_at: float, now: float) -> bool:
        """Whether there is no attempt left after number `attempt`."""
        return attempt >= self.limit and now - first_attempt_at >= self.over


def problem_of(answer: object) -> str | None:
    """Why what `send` returned is no delivery; nothing if it is a receipt that says otherwise."""
    if not isinstance(answer, Receipt):
        return f"`send` returned {_shown(answer, repr)}, and not a receipt"
    if answer.outcome == "refused":
        return f"refused: {_shown(answer.why, str)}"
    return None


def _shown(value: object, words: Callable[[object], str]) -> str:
    """A text of what a channel gave us that every store takes; its own `__repr__` and `__str__` may be broken."""
    try:
        text = words(value)
    except Exception as error:  # noqa: BLE001  what is told of the attempt must not depend on it
        text = f"a {type(value).__name__} that cannot be shown ({type(error).__name__})"
    return text.replace("\0", "\\0").encode("utf-8", "backslashreplace").decode()


def judge(
    answer: object, attempt: int, first_attempt_at: float, now: float, policy: RetryPolicy, chance: random.Random
) -> Settlement | None:
    """What becomes of the delivery. Nothing while somebody holds it in memory and may still acknowledge it.

    `answer` is what `send` returned, or the exception that it raised.
    """
    if isinstance(answer, Receipt) and answer.outcome == "done":
        return Settlement(DeliveryState.DELIVERED, receipt=_shown(answer.reference, str))
    if isinstance(answer, Receipt) and answer.outcome == "accepted":
        return None
    if isinstance(answer, BaseException):
        problem = f"`send` raised {type(answer).__name__}: {_shown(answer, str)}"
    else:
        problem = problem_of(answer) or "no receipt"
    if policy.is_used_up(attempt, first_attempt_at, now):
        return Settlement(DeliveryState.DEAD, problem=problem)
    after = policy.pause(attempt, chance)
    if not isinstance(answer, Receipt):
        after = min(after, policy.probe)  # the channel itself is in trouble, and is tried one delivery at a time
    elif answer.retry_after is not None:
        after = max(0.0, answer.retry_after) * chance.uniform(1.0, 1.1)
    return Settlement(DeliveryState.DUE, due_at=now + after, problem=problem)
