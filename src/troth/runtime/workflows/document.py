"""Knows how a whole workflow is read from a document and written back."""

from pathlib import Path as FilePath
from typing import Any, cast

from troth.runtime.workflows.field_types import (
    Choice,
    ContractMap,
    Count,
    Duration,
    Identifier,
    Number,
    SourceMap,
    Steps,
    Text,
)
from troth.runtime.workflows.fields import Desk, Field, dump_fields, fields_schema, read_fields
from troth.runtime.workflows.nodes import MapNode, Node, ScalarNode, plain
from troth.runtime.workflows.problems import Problems, Unreadable
from troth.runtime.workflows.spec import LIMITS, SCHEMA_VERSION, Budget, WorkflowSpec
from troth.runtime.workflows.steps import read_steps

__all__ = ["BUDGET_FIELDS", "WORKFLOW_FIELDS", "dump_workflow", "read_document", "read_workflow_file"]

BUDGET_FIELDS = (
    Field("time", Duration(), "how long the run may take from its start, waiting included"),
    Field("steps", Count(), "how many actions it may perform; each round and each item counts"),
    Field("tokens", Count(1, 10**12), "how many tokens its agents may use, in and out together"),
    Field("cost", Number(0.0), "how much its agents may cost, in the currency of the model's prices"),
    Field(
        "on_exceeded",
        Choice(("stop", "undo")),
        "when a limit is reached: `stop` there, to be resumed with a larger budget, or `undo` what was done",
        default="stop",
    ),
)


class _BudgetType:
    """What a run may use."""

    def read(self, node: Node, desk: Desk) -> Budget:
        if not isinstance(node, MapNode):
            raise Unreadable(node.mark, f"`budget` is a map of limits: {', '.join(f'`{name}`' for name in LIMITS)}")
        values, _ = read_fields(node, BUDGET_FIELDS, desk, "`budget`")
        return Budget(**cast("dict[str, Any]", values))

    def dump(self, value: object) -> object:
        return dump_fields({one.name: getattr(value, one.name) for one in BUDGET_FIELDS}, BUDGET_FIELDS)

    def schema(self) -> dict[str, object]:
        return fields_schema(BUDGET_FIELDS)


class _Version:
    """The version of this language."""

    def read(self, node: Node, desk: Desk) -> int:  # noqa: ARG002
        if isinstance(node, ScalarNode) and node.value == SCHEMA_VERSION and not isinstance(node.value, bool):
            return SCHEMA_VERSION
        shown = plain(node)
        raise Unreadable(node.mark, f"this Troth reads workflows of version {SCHEMA_VERSION}, not {shown!r}")

    def dump(self, value: object) -> object:
        return value

    def schema(self) -> dict[str, object]:
        return {"const": SCHEMA_VERSION}


WORKFLOW_FIELDS = (
    Field("troth", _Version(), "the version of this language", required=True),
    Field("name", Identifier(), "what the workflow is called", required=True),
    Field("description", Text(), "what it is for", default=""),
    Field("inputs", ContractMap(), "what a run is given: names and types", default={}),
    Field(
        "on_error",
        Choice(("undo", "stop", "continue")),
        "when a step fails for good: `undo` what was done, `stop` there to be resumed, or `continue` without it",
        default="undo",
    ),
    Field("budget", _BudgetType(), "what a run may use", default=Budget()),
    Field("steps", Steps(), "what is done, one after the other", required=True, default=()),
    Field("output", SourceMap(), "what a run gives back; without it, the output of the last step"),
)


def read_document(node: Node, desk: Desk) -> WorkflowSpec:
    """The workflow in a document, as far as it can be read; problems are noted at the desk."""
    if not isinstance(node, MapNode):
        raise Unreadable(node.mark, "a workflow is a map that begins with `troth: 1`")
    values, _ = read_fields(node, WORKFLOW_FIELDS, desk, "the workflow")
    values.pop("troth")
    if not values["steps"] and not desk.problems.found:
        entry = node.get("steps")
        desk.problems.add(entry.mark if entry else node.mark, "a workflow without steps does nothing")
    values["name"] = values["name"] or "?"
    return WorkflowSpec(mark=node.mark, **cast("dict[str, Any]", values))


def read_inner(node: Node, desk: Desk) -> WorkflowSpec:
    """A workflow inside another: written in place, or the path of its file."""
    if isinstance(node, MapNode):
        return read_document(node, desk)
    name = Text().read(node, desk)
    path = (desk.folder / name).resolve()
    if str(path) in desk.open_files:
        chain = " → ".join(FilePath(file).name for file in (*desk.open_files, str(path)))
        raise Unreadable(node.mark, f"a cycle: this workflow contains itself ({chain})")
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as missing:
        near = _files_like(path)
        raise Unreadable(node.mark, f"{name!r} cannot be read: {missing}", near) from None
    shown = str(desk.folder / name)
    return read_workflow_file(text, shown, desk.problems, (*desk.open_files, str(path)))


def _files_like(path: FilePath) -> str:
    from troth.runtime.workflows.problems import did_you_mean

    try:
        names = [other.name for other in path.parent.iterdir() if other.suffix in (".yaml", ".yml")]
    except OSError:
        return ""
    return did_you_mean(path.name, names, kind="workflow file")


def read_workflow_file(text: str, file: str, problems: Problems, open_files: tuple[str, ...]) -> WorkflowSpec:
    """The workflow in the text of a file, with its paths checked; problems are noted, not raised."""
    from troth.runtime.workflows.yaml_reader import read_yaml

    return read_checked(read_yaml(text, file), FilePath(file).parent, problems, open_files)


def read_checked(node: Node, folder: FilePath, problems: Problems, open_files: tuple[str, ...] = ()) -> WorkflowSpec:
    """The workflow in `node`, with its paths checked."""
    from troth.runtime.workflows.scope import check_paths

    desk = Desk(problems, folder, read_steps, read_inner, open_files)
    spec = read_document(node, desk)
    lost = desk.seen - {step.id for step in spec.all_steps()}  # they lay in a step that could not be read
    check_paths(spec, problems, desk.broken | lost)
    return spec


def dump_workflow(spec: WorkflowSpec) -> dict[str, object]:
    """The document that this workflow is read from; made of what JSON has."""
    values = {one.name: getattr(spec, one.name, None) for one in WORKFLOW_FIELDS}
    return dump_fields({**values, "troth": SCHEMA_VERSION}, WORKFLOW_FIELDS)
