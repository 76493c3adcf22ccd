"""Say what is to be analysed, and how."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from troth.analysis.facts.extract_many import Progress
from troth.analysis.project.project import Project
from troth.analysis.rules import CheckRule

__all__ = ["AbandonedError", "AnalysisRequest"]


class AbandonedError(Exception):
    """Whoever asked does not want the answer any more; nothing of it is kept."""


class AnalysisRequest(NamedTuple):
    """One look at a project; `analyse` explains its arguments."""

    project: Project
    python: Path | None
    jobs: int
    overlay: Mapping[str, bytes]
    progress: Progress | None
    rules: Sequence[CheckRule]
    hurry: bool
    is_wanted: Callable[[], bool] | None = None

    @property
    def asks_only_default_rules(self) -> bool:
        """Whether no rule is put on request; such a rule may ask about all files at once."""
        return all(rule.is_default for rule in self.rules)

    def go_on(self) -> None:
        """Raise `AbandonedError` if nobody wants the answer any more."""
        if self.is_wanted is not None and not self.is_wanted():
            raise AbandonedError
