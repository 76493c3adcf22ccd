"""A document as values that remember where they were written.

A workflow comes from YAML or from the Python builder. Both are turned into these nodes, so that one reader checks both,
and a problem found in either is shown at its line.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

__all__ = ["ListNode", "MapNode", "MappingEntry", "Node", "ScalarNode", "SourceMark", "node_of", "plain"]


@dataclass(frozen=True, slots=True, order=True)
class SourceMark:
    """A place in a file; line and column count from 1."""

    file: str
    line: int = 1
    column: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"

    def shifted(self, columns: int) -> "SourceMark":
        """The place `columns` further on the same line."""
        return SourceMark(self.file, self.line, self.column + columns)


@dataclass(frozen=True, slots=True)
class ScalarNode:
    """A text, a number, a boolean or null. `quoted` texts start one column after their mark."""

    value: str | int | float | bool | None
    mark: SourceMark = field(compare=False)
    quoted: bool = field(default=False, compare=False)

    @property
    def text_mark(self) -> SourceMark:
        """Where the first letter of the text stands."""
        return self.mark.shifted(1) if self.quoted else self.mark


@dataclass(frozen=True, slots=True)
class ListNode:
    """A list."""

    items: "tuple[Node, ...]"
    mark: SourceMark = field(compare=False)


@dataclass(frozen=True, slots=True)
class MappingEntry:
    """One key of a map with its value."""

    key: str
    value: "Node"
    mark: SourceMark = field(compare=False)


@dataclass(frozen=True, slots=True)
class MapNode:
    """A map; its keys are texts and each stands once."""

    entries: tuple[MappingEntry, ...]
    mark: SourceMark = field(compare=False)

    def get(self, key: str) -> "MappingEntry | None":
        """The entry of `key`, if there is one."""
        return next((entry for entry in self.entries if entry.key == key), None)


Node: TypeAlias = ScalarNode | ListNode | MapNode


def plain(node: Node) -> object:
    """The value of `node` without its places."""
    match node:
        case ScalarNode():
            return node.value
        case ListNode():
            return [plain(item) for item in node.items]
        case MapNode():
            return {entry.key: plain(entry.value) for entry in node.entries}


def node_of(value: object, mark: SourceMark) -> Node:
    """`value`, made of what JSON has, as a node at one place; anything else is a `TypeError`."""
    match value:
        case None | bool() | int() | float() | str():
            return ScalarNode(value, mark)
        case Mapping():
            return MapNode(
                tuple(MappingEntry(str(key), node_of(item, mark), mark) for key, item in value.items()), mark
            )
        case Sequence() if not isinstance(value, (bytes, bytearray)):
            return ListNode(tuple(node_of(item, mark) for item in value), mark)
    raise TypeError(f"{value!r} is not a JSON value")
