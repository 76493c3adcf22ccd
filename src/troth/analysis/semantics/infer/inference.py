"""What inference asks of the program: the services that answer one another in circles.

What a call gives depends on what its callee returns, that on what names mean, these on annotations, and so on around.
Each service is given this view and finds the others through it. None of them can ask the judge or the walk's queries:
they are not in here.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from troth.analysis.semantics.resolve.project_files import ProjectFiles

if TYPE_CHECKING:
    from collections.abc import Collection
    from collections.abc import Set as AbstractSet

    from troth.analysis.facts.model import Node
    from troth.analysis.semantics.infer.annotations import Types
    from troth.analysis.semantics.infer.argument_inference import Passed
    from troth.analysis.semantics.infer.call_results import Calls
    from troth.analysis.semantics.infer.classes import Classes
    from troth.analysis.semantics.infer.dynamic_attributes import MadeUp
    from troth.analysis.semantics.infer.evaluator import Evaluator
    from troth.analysis.semantics.infer.function_results import Effects
    from troth.analysis.semantics.infer.parameters import Parameters
    from troth.analysis.semantics.infer.pytest_fixtures import Fixtures
    from troth.analysis.semantics.infer.reasons import Reasons
    from troth.analysis.semantics.resolve.name_counts import NameCounts
    from troth.analysis.semantics.resolve.names import Names
    from troth.analysis.semantics.summary import Summary
    from troth.analysis.semantics.symbols import Class, Function, Module
    from troth.analysis.semantics.values import Value

__all__ = ["Inference"]


class Inference(ProjectFiles):
    """What names, annotations, classes, functions and calls stand for."""

    nowhere: Module  # for types that no file writes
    asked: tuple[str, ...]  # the files that the questions are about
    counts: NameCounts
    call_sites: object | None  # the counter that evidence keeps here
    names: Names
    types: Types
    classes: Classes
    effects: Effects
    calls: Calls
    reasons: Reasons
    fixtures: Fixtures
    parameters: Parameters
    passed: Passed
    made_up: MadeUp

    @property
    @abstractmethod
    def async_names(self) -> AbstractSet[str]:
        """The names of which something async is known, in the project or in what it imports."""

    @abstractmethod
    def static(self, module: Module, function: Function | None = None, owner: Class | None = None) -> Evaluator:
        """An evaluator that looks at expressions in that scope."""

    @abstractmethod
    def names_found(self, question: str) -> Collection[str]:
        """Names that are worked out for the whole project (`incremental/project_queries.py`)."""

    @abstractmethod
    def alternatives(self, function: Function, callee: str) -> tuple[Value | None, ...] | None:
        """What a callee, as written, may stand for in the function; None where only a walk can tell."""

    # -- what walks through functions have shown -----------------------------------------------------------------------

    @abstractmethod
    def summary(self, function: Function) -> Summary:
        """What a walk through `function` told; nothing while that walk is going on."""

    @abstractmethod
    def inferred(self, function: Function) -> Value | None:
        """What a function returns (or yields), by its body."""

    @abstractmethod
    def closure(self, function: Function, name: str) -> Value | None:
        """What a variable of an enclosing function stands for."""

    @abstractmethod
    def assigned_in(self, function: Function, name: str, value: Node) -> Value | None:
        """What `self.name = value` in a method assigns."""

    @abstractmethod
    def is_walking(self, function: Function) -> bool:
        """Whether a walk through `function` is going on; who asked it now is asked again when that is over."""

    @abstractmethod
    def too_early(self) -> None:
        """What somebody asked for is just being found out: the walks that are going on have seen too little."""
