"""Find where the value of a step's input comes from: a path, a literal, or a text with paths in it.

A bare text is always a path, so that `input.order`, mistyped, is an error and not the text "input.order". A literal
text is written `{value: some text}`, a text with paths in it `{text: "Dear ${inputs.name}"}`. Numbers, booleans and
null stand for themselves, a list is a list of sources.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from troth.runtime.workflows.document.nodes import ListNode, MapNode, Node, ScalarNode, SourceMark, plain
from troth.runtime.workflows.document.paths import Path, parse_path
from troth.runtime.workflows.document.problems import Unreadable

__all__ = ["FromPath", "ListOf", "Literal", "Source", "TextOf", "read_source", "source_schema"]

_HOLE = re.compile(r"\$\{([^}]*)\}")


@dataclass(frozen=True, slots=True)
class FromPath:
    """Whatever the path leads to."""

    path: Path
    mark: SourceMark = field(compare=False)

    def value(self, state: Mapping[str, object]) -> object:
        """What the path leads to now."""
        return self.path.look_up(state)

    def paths(self) -> Iterator[tuple[Path, SourceMark]]:
        """The path itself."""
        yield self.path, self.mark

    def dump(self) -> object:
        """As it is written in a document."""
        return str(self.path)


@dataclass(frozen=True, slots=True)
class Literal:
    """A value written into the workflow."""

    literal: object

    def value(self, state: Mapping[str, object]) -> object:  # noqa: ARG002 -- the same, whatever the state
        """The value."""
        return self.literal

    def paths(self) -> Iterator[tuple[Path, SourceMark]]:
        """None."""
        return iter(())

    def dump(self) -> object:
        """As it is written in a document."""
        if self.literal is None or isinstance(self.literal, (bool, int, float)):
            return self.literal
        return {"value": self.literal}


@dataclass(frozen=True, slots=True)
class TextOf:
    """A text with `${path}` in it. `pieces` are texts and paths in turn."""

    pieces: tuple[str | Path, ...]
    mark: SourceMark = field(compare=False)

    def value(self, state: Mapping[str, object]) -> str:
        """The text with every path filled in."""
        return "".join(piece if isinstance(piece, str) else str(piece.look_up(state)) for piece in self.pieces)

    def paths(self) -> Iterator[tuple[Path, SourceMark]]:
        """Each path in the text."""
        return ((piece, self.mark) for piece in self.pieces if isinstance(piece, Path))

    def dump(self) -> object:
        """As it is written in a document."""
        return {"text": "".join(p if isinstance(p, str) else f"${{{p}}}" for p in self.pieces)}


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list, each of whose items has a source of its own."""

    items: "tuple[Source, ...]"

    def value(self, state: Mapping[str, object]) -> list[object]:
        """The list with every item looked up."""
        return [item.value(state) for item in self.items]

    def paths(self) -> Iterator[tuple[Path, SourceMark]]:
        """Each path in the list."""
        for item in self.items:
            yield from item.paths()

    def dump(self) -> object:
        """As it is written in a document."""
        return [item.dump() for item in self.items]


Source: TypeAlias = FromPath | Literal | TextOf | ListOf


def read_source(node: Node) -> Source:
    """The source that `node` describes."""
    match node:
        case ScalarNode(value=str(text)):
            path = parse_path(text)
            if path is None:
                raise Unreadable(node.mark, f"{text!r} is not a path like `inputs.order` or `steps.charge.id`", _ADVICE)
            return FromPath(path, node.text_mark)
        case ScalarNode():
            return Literal(node.value)
        case ListNode():
            return ListOf(tuple(map(read_source, node.items)))
        case MapNode():
            return _read_map(node)


_ADVICE = "A literal string is written `{value: …}`, a string with paths in it `{text: … ${inputs.name} …}`."


def _read_map(node: MapNode) -> Source:
    match node.entries:
        case [entry] if entry.key == "value":
            return Literal(plain(entry.value))
        case [entry] if entry.key == "text" and isinstance(entry.value, ScalarNode):
            return _read_text(str(entry.value.value), entry.value.text_mark)
    raise Unreadable(node.mark, "a map here has exactly one key, `value` or `text`", _ADVICE)


def _read_text(text: str, mark: SourceMark) -> TextOf:
    pieces: list[str | Path] = []
    end = 0
    for hole in _HOLE.finditer(text):
        path = parse_path(hole[1].strip())
        if path is None:
            raise Unreadable(mark.shifted(hole.start()), f"`{hole[0]}` does not hold a path", _ADVICE)
        pieces += [text[end : hole.start()], path]
        end = hole.end()
    pieces.append(text[end:])
    if "${" in text[end:]:
        raise Unreadable(mark.shifted(text.index("${", end)), "this `${` is not closed with `}`", _ADVICE)
    return TextOf(tuple(piece for piece in pieces if piece != ""), mark)


def source_schema() -> dict[str, object]:
    """JSON Schema of a source."""
    return {
        "description": "A path (`inputs.order`), a number, true, false, null, {value: …}, {text: …}, or a list.",
        "anyOf": [
            {"type": "string", "pattern": r"^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*|\[[^\]]+\])*$"},
            {"type": ["number", "boolean", "null"]},
            {"type": "array", "items": {"$ref": "#/$defs/source"}},
            {"type": "object", "properties": {"value": {}}, "required": ["value"], "additionalProperties": False},
            {
                "type": "object",
                "properties": {"text": {"type": "string"}},
                "required": ["text"],
                "additionalProperties": False,
            },
        ],
    }
