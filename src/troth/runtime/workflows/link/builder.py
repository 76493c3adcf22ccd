"""How a workflow is built in Python.

The keys are those of YAML and the spec is the same value; a function, a tool or an agent may stand where YAML has its
name, and another `Workflow` where it has a file.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from troth.runtime.tools.tool import Tool
from troth.runtime.workflows.document.document import dump_workflow, read_checked
from troth.runtime.workflows.document.durations import show_duration
from troth.runtime.workflows.document.nodes import ListNode, MapNode, MappingEntry, Node, ScalarNode, SourceMark
from troth.runtime.workflows.document.problems import InvalidWorkflowError, Problems, Unreadable
from troth.runtime.workflows.link.function_lookup import reference_of
from troth.runtime.workflows.spec import SCHEMA_VERSION, WorkflowSpec

__all__ = ["StepDraft", "Workflow", "step"]


@dataclass(frozen=True, slots=True)
class StepDraft:
    """A step as it was written in Python, with its place. Made by `step`."""

    fields: Mapping[str, object]
    mark: SourceMark


def step(id: str, /, **fields: object) -> StepDraft:  # noqa: A002 -- the same word as in YAML
    """A step: its id, the key of its kind (`function=…`, `branch=[…]`), and whatever else YAML has for it."""
    return StepDraft({"id": id, **fields}, _caller())


class Workflow:
    """A workflow built in Python. Checked when it is made: raises `InvalidWorkflowError` with all that is wrong."""

    def __init__(self, name: str, *steps: StepDraft, **fields: object) -> None:
        mark = _caller()
        names = _Names(sys._getframe(1).f_globals)
        whole: dict[str, object] = {"troth": SCHEMA_VERSION, "name": name, **fields, "steps": list(steps)}
        problems = Problems()
        try:
            spec = read_checked(_node(whole, mark, names), Path.cwd(), problems)
        except Unreadable as unreadable:
            raise InvalidWorkflowError([*problems.found, unreadable.problem]) from None
        problems.raise_any()
        self.spec: WorkflowSpec = spec
        self.parts: Mapping[str, Mapping[str, Any]] = names.tables
        """The functions, tools and agents that were given as such, by kind and name."""

    def __repr__(self) -> str:
        return f"<Workflow {self.spec.name} with {len(self.spec.steps)} steps>"


class _Names:
    """Gives each function, tool and agent a name of its own. Two lambdas of one module have the same qualified name."""

    def __init__(self, scope: Mapping[str, object]) -> None:
        self.tables: dict[str, dict[str, Any]] = {"function": {}, "tool": {}, "agent": {}}
        self._scope = scope

    def name(self, part: object, kind: str) -> str:
        table = self.tables[kind]
        base = reference_of(_callable_in(part), self._scope)
        candidate, number = base, 1
        while table.get(candidate, part) is not part:
            number += 1
            candidate = f"{base}#{number}"
        table[candidate] = part
        return candidate


def _callable_in(part: object) -> object:
    """What has a name in a function, tool or agent."""
    if isinstance(part, partial):
        return part.func
    return part.function if isinstance(part, Tool) else part


def _node(value: object, mark: SourceMark, names: _Names, key: str = "") -> Node:
    """`key` is the one that `value` stands under, in a step or an undo."""
    if key in ("agent", "tool") and value is not None and not isinstance(value, str):
        return ScalarNode(names.name(value, key), mark)
    match value:
        case None | bool() | int() | float() | str():
            return ScalarNode(value, mark)
        case StepDraft():
            return _node(value.fields, value.mark, names)
        case Workflow():
            new = {
                kind: {name: names.name(part, kind) for name, part in table.items()}
                for kind, table in value.parts.items()
            }
            return _node(_renamed(dump_workflow(value.spec), new), mark, names)
        case timedelta():
            return ScalarNode(show_duration(value.total_seconds()), mark)
        case Mapping():
            calls = "id" in value or key == "undo"
            return MapNode(
                tuple(
                    MappingEntry(str(name), _node(item, mark, names, str(name) if calls else ""), mark)
                    for name, item in value.items()
                ),
                mark,
            )
        case Sequence():
            return ListNode(tuple(_node(item, mark, names) for item in value), mark)
    if callable(value):
        return ScalarNode(names.name(value, "function"), mark)
    raise Unreadable(mark, f"{value!r} of type {type(value).__name__} cannot be part of a workflow")


def _renamed(document: object, new: Mapping[str, Mapping[str, str]]) -> object:
    """The document with what it calls named as in the workflow around it, where another may have the old name."""
    if isinstance(document, list):
        return [_renamed(item, new) for item in document]
    if not isinstance(document, dict):
        return document
    return {
        key: new[key].get(item, item) if key in new and isinstance(item, str) else _renamed(item, new)
        for key, item in document.items()
    }


def _caller() -> SourceMark:
    frame = sys._getframe(2)
    return SourceMark(frame.f_code.co_filename, frame.f_lineno)
