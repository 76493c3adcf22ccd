"""What resolving a name asks of the program: its files, what they say, and two questions that inference answers.

A program is seen through one class by each room, the lower room knowing less: `ProjectFiles` here, `Inference`
(`infer/inference.py`), `Judged` (`evidence/judging.py`), `Walking` (`walk/walking.py`). `Program` derives from the last
and is imported by nobody below it. So a function that takes `ProjectFiles` cannot ask what a call gives, and the type
checker says so.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, MutableMapping

    from troth.analysis.facts.model import FileFacts, Node
    from troth.analysis.incremental.dependencies import Reads
    from troth.analysis.incremental.saved_tables import SavedTables
    from troth.analysis.semantics.resolve.imports import ModuleFinder
    from troth.analysis.semantics.resolve.name_index import Index
    from troth.analysis.semantics.symbols import Class, Function, Module
    from troth.analysis.semantics.values import Value
    from troth.analysis.source.text import DecodedText

__all__ = ["ProjectFiles"]


class ProjectFiles(ABC):
    """The files of a project, and what is written in them."""

    paths: tuple[str, ...]
    places: dict[str, int]  # the number of each file
    reads: Reads | None  # what was read for which answer, where that is recorded
    tables: SavedTables | None  # of an earlier run
    finder: ModuleFinder
    index: Index
    allowed: Mapping[str, int]  # the newest major versions of libraries that the project allows itself
    oldest_allowed: Mapping[str, int]  # the oldest ones, where it says so

    @abstractmethod
    def module(self, path: str) -> Module:
        """The module in that file."""

    @abstractmethod
    def own_modules(self) -> Iterator[Module]:
        """The modules of the project; whoever goes through them depends on all that any file says."""

    @abstractmethod
    def all_facts(self) -> Iterator[tuple[int, FileFacts]]:
        """The facts of the project's files with their numbers, for tables of what all say under a name."""

    @abstractmethod
    def said(self, kind: str) -> Mapping[str, Any]:
        """What files say of one kind (`incremental/project_queries.py`), by their paths."""

    @abstractmethod
    def text(self, path: str) -> DecodedText:
        """The text of a file."""

    @abstractmethod
    def imports(self, top_level: str) -> bool:
        """Whether some file of the project imports that library."""

    @abstractmethod
    def installed(self, dotted: str) -> Module | None:
        """The module of an installed package, read from its source."""

    @abstractmethod
    def installed_async(self, top: str) -> frozenset[str]:
        """The names that are async in an installed package which is read from its source."""

    @abstractmethod
    def is_older(self, top: str) -> bool:
        """Whether the project asks for an older version of a library than the tables know, and never awaits near it."""

    @abstractmethod
    def majors_behind(self, top: str) -> int:
        """By how many major versions what the project asks of a library is older than what the tables know."""

    @abstractmethod
    def answers(self) -> MutableMapping[Any, Any]:
        """A place to keep answers in, which knows what they were read from."""

    @abstractmethod
    def answers_to(self, question: str) -> MutableMapping[Any, Any]:
        """The place where the answers to one question are kept."""

    # -- what inference answers ----------------------------------------------------------------------------------------

    @abstractmethod
    def value_of(
        self, node: Node, module: Module, function: Function | None = None, owner: Class | None = None
    ) -> Value | None:
        """What an expression stands for in that scope, without a walk."""

    @abstractmethod
    def annotated(self, node: Node, module: Module) -> Value | None:
        """The value that something annotated with `node` has."""

    @abstractmethod
    def written(self, text: str) -> Value | None:
        """The value of a type of the library tables."""
