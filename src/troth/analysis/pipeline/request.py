"""Say what is to be analysed, and how."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from troth.analysis.facts.extract_many import Progress
from troth.analysis.project.project import Project
from troth.analysis.rules import Rule

__all__ = ["Request"]


class Request(NamedTuple):
    """One look at a project; `analyse` explains its arguments."""

    project: Project
    python: Path | None
    jobs: int
    overlay: Mapping[str, bytes]
    progress: Progress | None
    rules: Sequence[Rule]
    hurry: bool

    @property
    def asks_only_default_rules(self) -> bool:
        """Whether no rule is put on request; such a rule may ask about all files at once."""
        return all(rule.is_default for rule in self.rules)
