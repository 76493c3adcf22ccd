"""Decide when a failed attempt is tried again, and how long to wait before."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from troth.errors import MisuseError
from troth.runtime.arguments import check_count, check_seconds

__all__ = ["ONCE", "Retry", "class_names"]


@dataclass(frozen=True, slots=True)
class Retry:
    """Up to `attempts` attempts in all; before the second one `delay` seconds, then as long again or ever longer.

    `jitter` is the fraction by which a wait is lengthened or shortened at random, so that many runs do not all come
    back at once. `on` lists what is worth another attempt: exception types, or their names (`"TimeoutError"`,
    `"httpx.ConnectError"`). An error in the call itself, which would only fail again, is never retried.
    """

    attempts: int = 3
    delay: float = 1.0
    backoff: Literal["fixed", "exponential"] = "exponential"
    factor: float = 2.0
    max_delay: float = 60.0
    jitter: float = 0.1
    on: tuple[type[BaseException] | str, ...] = (Exception,)

    def __post_init__(self) -> None:
        check_count("attempts", self.attempts)
        for name in ("delay", "max_delay", "factor", "jitter"):
            check_seconds(name, getattr(self, name), may_be_none=False)
        wrong = (
            (self.attempts < 1, "`attempts` counts the first one too, so it is at least 1"),
            (self.delay < 0 or self.max_delay < 0, "a wait cannot be negative"),
            (self.factor < 1, "`factor` has to be at least 1, so that waits do not get shorter"),
            (not 0 <= self.jitter <= 1, "`jitter` is a fraction between 0 and 1"),
            (self.backoff not in {"fixed", "exponential"}, "`backoff` is 'fixed' or 'exponential'"),
            (not self.on, "an empty `on` never retries; use `attempts=1` for that"),
        )
        for is_wrong, why in wrong:
            if is_wrong:
                raise MisuseError(f"{self!r} is not a valid retry policy: {why}.")

    def covers(self, error: BaseException) -> bool:
        """Whether an attempt that ended with `error` is worth another one."""
        recorded: Sequence[str] | None = getattr(error, "troth_mro", None)
        if recorded is not None:  # it was raised in another process, and only the names of its classes are here
            return _MISUSE not in recorded and any(
                (kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__name__}") in recorded
                for kind in self.on
            )
        if isinstance(error, MisuseError):
            return False
        names = class_names(error)
        return any(kind in names if isinstance(kind, str) else isinstance(error, kind) for kind in self.on)

    def wait_after(self, failed: int, chance: random.Random) -> float:
        """Seconds to wait after the `failed`-th failed attempt."""
        grown = self.delay * (self.factor ** min(failed - 1, 64) if self.backoff == "exponential" else 1.0)
        return min(grown, self.max_delay) * (1.0 + self.jitter * (2.0 * chance.random() - 1.0))


def class_names(error: BaseException) -> frozenset[str]:
    """The names of all classes of `error`, bare and with their modules."""
    return frozenset(
        name for kind in type(error).__mro__ for name in (kind.__name__, f"{kind.__module__}.{kind.__name__}")
    )


_MISUSE = f"{MisuseError.__module__}.{MisuseError.__name__}"

ONCE = Retry(attempts=1, delay=0.0)
