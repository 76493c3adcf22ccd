"""What a mutant is: one planted mismatch, as text edits to an otherwise untouched project."""

import hashlib
from dataclasses import dataclass

from troth.analysis.findings import Edit

__all__ = ["Mutant"]


@dataclass(frozen=True, slots=True)
class Mutant:
    """One mismatch and the place where a reader would want to be told of it.

    `function` is the outermost function it stands in and `ordinal` its number among the places of that operator
    there. Offsets are characters of the unchanged text of `path`, as in `Edit`: `marks` are the ranges on whose lines
    a finding counts as "on the line", `home` is the range of the function. `touches` names all functions whose text or
    color changes, so that no two mutants of one batch meddle with each other. `run_lines` are the lines that are run
    when the mutant is reached, and `probe` is where a statement can be put that runs then, with what has to follow it.
    """

    operator: str
    path: str
    function: str
    ordinal: int
    shape: str
    line: int
    subject: str
    edits: tuple[Edit, ...]
    marks: tuple[tuple[int, int], ...]
    home: tuple[int, int]
    touches: frozenset[str]
    run_lines: tuple[int, int]
    probe: tuple[int, str]

    @property
    def place(self) -> str:
        """What makes this mutant the same one after unrelated lines have moved."""
        return f"{self.operator}:{self.path}:{self.function}:{self.ordinal}"

    @property
    def key(self) -> str:
        """A short name, the same on every system."""
        return hashlib.sha256(self.place.encode()).hexdigest()[:10]
