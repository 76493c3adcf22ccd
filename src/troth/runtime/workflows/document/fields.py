"""How a map in a document is read by a table of its keys.

A key is declared once, as a `Field` with a type. Reading, checking, writing back and the JSON Schema for editors all
come from that one declaration, so they cannot disagree.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Protocol

from troth.runtime.workflows.document.nodes import MapNode, Node
from troth.runtime.workflows.document.problems import Problems, Unreadable, did_you_mean, nearest

if TYPE_CHECKING:
    from troth.runtime.workflows.spec import StepSpec, WorkflowSpec

__all__ = ["Desk", "Field", "FieldType", "dump_fields", "fields_schema", "read_fields"]


@dataclass(slots=True)
class Desk:
    """What a reader has at hand: where problems go, where the document lies, and how steps in steps are read."""

    problems: Problems
    folder: FilePath
    read_steps: "Callable[[Node, Desk], tuple[StepSpec, ...]]"
    read_workflow: "Callable[[Node, Desk], WorkflowSpec]"
    where: str = ""
    """`folder`, from that of the workflow that is run."""
    open_files: tuple[str, ...] = ()
    """The workflow files being read, the outermost first: one that contains itself is found by this."""
    seen: set[str] = field(default_factory=set)
    """Ids of all steps that were met."""
    broken: set[str] = field(default_factory=set)
    """Ids of steps that could not be read whole: paths to them are not called wrong as well."""


class FieldType(Protocol):
    """How the value of a key is read, written back and described."""

    def read(self, node: Node, desk: Desk) -> object:
        """The value that `node` describes; raises `Unreadable`."""

    def dump(self, value: object) -> object:
        """`value` as it is written in a document."""

    def schema(self) -> dict[str, object]:
        """Its JSON Schema."""


@dataclass(frozen=True, slots=True)
class Field:
    """One key of a map. A key that is absent, or as good as (`default`), is not written back."""

    name: str
    type: FieldType
    says: str
    required: bool = False
    default: object = None


def read_fields(node: MapNode, fields: Sequence[Field], desk: Desk, subject: str) -> tuple[dict[str, object], bool]:
    """The values of all `fields` in `node`, and whether all of them could be read. Each problem is noted."""
    names = [key.name for key in fields]
    before = len(desk.problems.found)
    meant: set[str | None] = set()
    for entry in node.entries:
        if entry.key not in names:
            meant.add(nearest(entry.key, names))
            advice = did_you_mean(entry.key, names, kind="key")
            desk.problems.add(entry.mark, f"unknown key `{entry.key}` in {subject}", advice)
    values: dict[str, object] = {}
    for key in fields:
        values[key.name] = key.default
        value_entry = node.get(key.name)
        if value_entry is None:
            if key.required and key.name not in meant:
                desk.problems.add(node.mark, f"`{key.name}` is missing in {subject}: {key.says}")
            continue
        try:
            values[key.name] = key.type.read(value_entry.value, desk)
        except Unreadable as unreadable:
            desk.problems.found.append(unreadable.problem)
    return values, len(desk.problems.found) == before


def dump_fields(values: Mapping[str, object], fields: Iterable[Field]) -> dict[str, object]:
    """The map that `read_fields` reads these values from."""
    return {
        field.name: field.type.dump(values[field.name])
        for field in fields
        if field.name in values and (field.required or values[field.name] != field.default)
    }


def fields_schema(fields: Iterable[Field]) -> dict[str, object]:
    """JSON Schema of a map with these keys and no others."""
    listed = list(fields)
    schema: dict[str, object] = {
        "type": "object",
        "additionalProperties": False,
        "properties": {field.name: {**field.type.schema(), "description": field.says} for field in listed},
    }
    required = [field.name for field in listed if field.required]
    return {**schema, "required": required} if required else schema
