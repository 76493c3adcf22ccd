"""What an operator is: one way of planting a mismatch, with its cases and the findings that see it."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from troth.analysis.mutate.mutant import Mutant
from troth.analysis.mutate.source.module import SourceModule
from troth.analysis.mutate.source.project import MutatedProject

__all__ = ["Operator", "OperatorCase", "OperatorKind"]


@dataclass(frozen=True, slots=True)
class OperatorCase:
    """A program and what the operator makes of it; `after` is None where it must leave the program alone."""

    name: str
    before: str
    after: str | None
    shape: str = ""


@dataclass(frozen=True, slots=True)
class OperatorKind:
    """The findings of one tool that are about this mismatch: by code, or by what the message speaks of.

    `never` wins over both: a linter that answers a lost `await` with "drop the async" has not seen it.
    """

    codes: str = ""
    words: str = ""
    never: str = ""

    def covers(self, code: str, message: str) -> bool:
        """Whether a finding with this code and message is of this kind."""
        if self.never and re.search(self.never, f"{code} {message}"):
            return False
        by_code = bool(self.codes) and re.fullmatch(self.codes, code) is not None
        by_words = bool(self.words) and re.search(self.words, message, re.IGNORECASE) is not None
        return by_code or by_words


@dataclass(frozen=True, slots=True)
class Operator:
    """One way of planting a mismatch.

    `find` lists every place of one file; which of them are used is decided elsewhere. `kinds` maps a tool to the
    findings that see the mismatch; a tool that is not in it has none. By shape, `cures` says what test would have
    caught a mutant that survived, and `needs` what a checker would have had to know; `{subject}` is what was called.
    """

    name: str
    summary: str
    shapes: tuple[str, ...]
    find: Callable[[SourceModule, MutatedProject], Iterable[Mutant]]
    kinds: Mapping[str, OperatorKind]
    cures: Mapping[str, str]
    needs: Mapping[str, str]
    cases: tuple[OperatorCase, ...]
