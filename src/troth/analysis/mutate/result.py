"""What became of a mutant."""

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["COUNTED", "MutantVerdict", "Result"]


class MutantVerdict(StrEnum):
    """What became of one mutant; only the first three say something about the checker or the tests."""

    CAUGHT = "caught"  # on its line by a checker, or a test command that passed fails now
    ELSEWHERE = "elsewhere"  # a checker spoke of it, but on another line of the function
    SURVIVED = "survived"  # nobody noticed
    BROKEN = "broken"  # the mutated file does not parse
    CRASHED = "crashed"  # the checker crashed or ran out of time on it
    UNREACHED = "unreached"  # no test runs the line
    HUNG = "hung"  # the tests did not end


COUNTED = frozenset((MutantVerdict.CAUGHT, MutantVerdict.ELSEWHERE, MutantVerdict.SURVIVED))


@dataclass(frozen=True, slots=True)
class Result:
    """The verdict on one mutant, with the words it rests on; `seconds` is the time of its own test run, if any."""

    key: str
    verdict: MutantVerdict
    said: tuple[str, ...] = ()
    seconds: float = 0.0
