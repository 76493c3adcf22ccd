"""Knows how a workflow is built in Python.

The keys are those of YAML and the spec is the same value; a function may stand where YAML has a function's name, and
another `Workflow` where it has a file.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path

from troth.runtime.workflows.document import dump_workflow, read_checked
from troth.runtime.workflows.durations import show_duration
from troth.runtime.workflows.functions import reference_of
from troth.runtime.workflows.nodes import Entry, ListNode, MapNode, Mark, Node, ScalarNode
from troth.runtime.workflows.problems import InvalidWorkflowError, Problems, Unreadable
from troth.runtime.workflows.spec import SCHEMA_VERSION, WorkflowSpec

__all__ = ["StepDraft", "Workflow", "step"]


@dataclass(frozen=True, slots=True)
class StepDraft:
    """A step as it was written in Python, with its place. Made by `step`."""

    fields: Mapping[str, object]
    mark: Mark


def step(id: str, /, **fields: object) -> StepDraft:  # noqa: A002 -- the same word as in YAML
    """A step: its id, the key of its kind (`function=…`, `branch=[…]`), and whatever else YAML has for it."""
    return StepDraft({"id": id, **fields}, _caller())


class Workflow:
    """A workflow built in Python. Checked when it is made: raises `InvalidWorkflowError` with all that is wrong."""

    def __init__(self, name: str, *steps: StepDraft, **fields: object) -> None:
        mark = _caller()
        names = _FunctionNames()
        whole: dict[str, object] = {"troth": SCHEMA_VERSION, "name": name, **fields, "steps": list(steps)}
        problems = Problems()
        try:
            spec = read_checked(_node(whole, mark, names), Path.cwd(), problems)
        except Unreadable as unreadable:
            raise InvalidWorkflowError([*problems.found, unreadable.problem]) from None
        problems.raise_any()
        self.spec: WorkflowSpec = spec
        self.functions: Mapping[str, Callable[..., object]] = names.table

    def __repr__(self) -> str:
        return f"<Workflow {self.spec.name} with {len(self.spec.steps)} steps>"


class _FunctionNames:
    """Gives each function a name of its own. Two lambdas of one module have the same qualified name."""

    def __init__(self) -> None:
        self.table: dict[str, Callable[..., object]] = {}

    def name(self, function: Callable[..., object]) -> str:
        base = reference_of(function.func if isinstance(function, partial) else function)
        candidate, number = base, 1
        while self.table.get(candidate, function) is not function:
            number += 1
            candidate = f"{base}#{number}"
        self.table[candidate] = function
        return candidate


def _node(value: object, mark: Mark, names: _FunctionNames) -> Node:
    match value:
        case None | bool() | int() | float() | str():
            return ScalarNode(value, mark)
        case StepDraft():
            return _node(value.fields, value.mark, names)
        case Workflow():
            new = {name: names.name(function) for name, function in value.functions.items()}
            return _node(_renamed(dump_workflow(value.spec), new), mark, names)
        case timedelta():
            return ScalarNode(show_duration(value.total_seconds()), mark)
        case Mapping():
            return MapNode(tuple(Entry(str(key), _node(item, mark, names), mark) for key, item in value.items()), mark)
        case Sequence():
            return ListNode(tuple(_node(item, mark, names) for item in value), mark)
    if callable(value):
        return ScalarNode(names.name(value), mark)
    raise Unreadable(mark, f"{value!r} of type {type(value).__name__} means nothing in a workflow")


def _renamed(document: object, new: Mapping[str, str]) -> object:
    """The document with its functions called as in the workflow around it, where another may have the old name."""
    if isinstance(document, list):
        return [_renamed(item, new) for item in document]
    if not isinstance(document, dict):
        return document
    return {
        key: new.get(item, item) if key == "function" and isinstance(item, str) else _renamed(item, new)
        for key, item in document.items()
    }


def _caller() -> Mark:
    frame = sys._getframe(2)
    return Mark(frame.f_code.co_filename, frame.f_lineno)
