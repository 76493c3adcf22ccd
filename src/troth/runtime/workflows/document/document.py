"""How a whole workflow is read from a document and written back."""

import posixpath
from dataclasses import replace
from pathlib import Path as FilePath
from typing import Any, cast

from troth.runtime.workflows.document.field_types import (
    ChoiceType,
    ContractMap,
    Count,
    Duration,
    Identifier,
    Number,
    SourceMap,
    Steps,
    TextType,
)
from troth.runtime.workflows.document.fields import Desk, Field, dump_fields, fields_schema, read_fields
from troth.runtime.workflows.document.nodes import MapNode, Node, ScalarNode, SourceMark, plain
from troth.runtime.workflows.document.problems import Problems, Unreadable
from troth.runtime.workflows.document.steps import read_steps
from troth.runtime.workflows.spec import LIMITS, SCHEMA_VERSION, RunBudget, WorkflowSpec

__all__ = ["BUDGET_FIELDS", "WORKFLOW_FIELDS", "dump_workflow", "read_document", "read_text", "read_workflow_file"]

_LARGEST = 10_000_000  # bytes; some hundred times what anybody has written by hand

BUDGET_FIELDS = (
    Field("time", Duration(), "maximum duration of the run from its start, including waiting"),
    Field("steps", Count(), "maximum number of actions; each round and each item counts"),
    Field("tokens", Count(1, 10**12), "maximum number of tokens of its agents, input and output together"),
    Field("cost", Number(0.0, above=True), "maximum cost of its agents, in the currency of the model's prices"),
    Field(
        "on_exceeded",
        ChoiceType(("stop", "undo")),
        "when a limit is reached: `stop`, so that the run can be resumed with a larger budget, or `undo` what was done",
        default="stop",
    ),
)


class _BudgetType:
    """What a run may use."""

    def read(self, node: Node, desk: Desk) -> RunBudget:
        if not isinstance(node, MapNode):
            raise Unreadable(node.mark, f"`budget` is a map of limits: {', '.join(f'`{name}`' for name in LIMITS)}")
        values, _ = read_fields(node, BUDGET_FIELDS, desk, "`budget`")
        return RunBudget(**cast("dict[str, Any]", values))

    def dump(self, value: object) -> object:
        return dump_fields({field.name: getattr(value, field.name) for field in BUDGET_FIELDS}, BUDGET_FIELDS)

    def schema(self) -> dict[str, object]:
        return fields_schema(BUDGET_FIELDS)


class _Version:
    """The version of this language."""

    def read(self, node: Node, desk: Desk) -> int:  # noqa: ARG002
        if isinstance(node, ScalarNode) and node.value == SCHEMA_VERSION and not isinstance(node.value, bool):
            return SCHEMA_VERSION
        shown = plain(node)
        raise Unreadable(node.mark, f"this version of Troth reads workflows of version {SCHEMA_VERSION}, not {shown!r}")

    def dump(self, value: object) -> object:
        return value

    def schema(self) -> dict[str, object]:
        return {"const": SCHEMA_VERSION}


WORKFLOW_FIELDS = (
    Field("troth", _Version(), "the version of this language", required=True),
    Field("name", Identifier(), "the name of the workflow", required=True),
    Field("description", TextType(), "a description", default=""),
    Field("inputs", ContractMap(), "the inputs of a run: names and types", default={}),
    Field(
        "on_error",
        ChoiceType(("undo", "stop", "continue")),
        "when a step finally fails: `undo` what was done, `stop` so that the run can be resumed, or `continue` "
        "without it",
        default="undo",
    ),
    Field("budget", _BudgetType(), "the limits of a run", default=RunBudget()),
    Field("steps", Steps(may_be_empty=True), "the steps, in order", required=True, default=()),
    Field("output", SourceMap(), "the output of a run (default: the output of the last step)"),
    Field(
        "folder",
        TextType(),
        "for a workflow written inside another: the folder of its modules and workflows",
        default="",
    ),
)


def read_document(node: Node, desk: Desk) -> WorkflowSpec:
    """The workflow in a document, as far as it can be read; problems are noted at the desk."""
    if not isinstance(node, MapNode):
        raise Unreadable(node.mark, "a workflow is a map that begins with `troth: 1`")
    values, _ = read_fields(node, WORKFLOW_FIELDS, desk, "the workflow")
    values.pop("troth")
    if not values["steps"] and not desk.problems.found:
        entry = node.get("steps")
        desk.problems.add(entry.mark if entry else node.mark, "a workflow needs at least one step")
    values["name"] = values["name"] or "?"
    return WorkflowSpec(mark=node.mark, **cast("dict[str, Any]", values))


def read_inner(node: Node, desk: Desk) -> WorkflowSpec:
    """A workflow inside another: written in place, or the path of its file."""
    if isinstance(node, MapNode):
        entry = node.get("folder")
        inside = str(plain(entry.value)) if entry is not None else ""
        return read_document(node, replace(desk, folder=desk.folder / inside, where=_below(desk.where, inside)))
    name = TextType().read(node, desk)
    path = (desk.folder / name).resolve()
    if str(path) in desk.open_files:
        chain = " → ".join(FilePath(file).name for file in (*desk.open_files, str(path)))
        raise Unreadable(node.mark, f"a cycle: this workflow contains itself ({chain})")
    shown = str(desk.folder / name)
    try:
        text = read_text(path, shown)
    except OSError as missing:
        near = _files_like(path)
        raise Unreadable(node.mark, f"{name!r} cannot be read: {missing}", near) from None
    inside = posixpath.dirname(name.replace("\\", "/"))
    where = _below(desk.where, inside)
    return replace(read_workflow_file(text, shown, desk.problems, (*desk.open_files, str(path)), where), folder=inside)


def _below(where: str, folder: str) -> str:
    path = posixpath.normpath(posixpath.join(where, folder)) if where or folder else ""
    return "" if path == "." else path


def read_text(path: FilePath, shown: str) -> str:
    """The text of a workflow's file; `OSError` where there is none, `Unreadable` where it is no text."""
    raw = path.read_bytes()
    if len(raw) > _LARGEST:
        too_large = f"the file has {len(raw):,} bytes; a workflow has at most {_LARGEST:,}"
        raise Unreadable(SourceMark(shown), too_large, "Put data into a separate file and read it in a step.")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as broken:
        before = raw[: broken.start].decode("utf-8", errors="replace")
        line = before.count("\n") + 1
        mark = SourceMark(shown, line, len(before) - (before.rfind("\n") + 1) + 1)
        raise Unreadable(
            mark, f"this is not UTF-8: the byte 0x{raw[broken.start]:02x}", "Save the file as UTF-8."
        ) from None


def _files_like(path: FilePath) -> str:
    from troth.runtime.workflows.document.problems import did_you_mean

    try:
        names = [file.name for file in path.parent.iterdir() if file.suffix in (".yaml", ".yml")]
    except OSError:
        return ""
    return did_you_mean(path.name, names, kind="workflow file")


def read_workflow_file(
    text: str, file: str, problems: Problems, open_files: tuple[str, ...], where: str = ""
) -> WorkflowSpec:
    """The workflow in the text of a file, with its paths checked; problems are noted, not raised."""
    from troth.runtime.workflows.document.yaml_reader import read_yaml

    return read_checked(read_yaml(text, file), FilePath(file).parent, problems, open_files, where)


def read_checked(
    node: Node, folder: FilePath, problems: Problems, open_files: tuple[str, ...] = (), where: str = ""
) -> WorkflowSpec:
    """The workflow in `node`, with its paths checked."""
    from troth.runtime.workflows.document.scope import check_paths

    desk = Desk(problems, folder, read_steps, read_inner, where, open_files)
    spec = read_document(node, desk)
    if spec.folder:
        entry = node.get("folder") if isinstance(node, MapNode) else None
        mark = entry.mark if entry is not None else node.mark
        problems.add(mark, "`folder` is valid only in a workflow that is written inside another")
    lost = desk.seen - {step.id for step in spec.all_steps()}  # they lay in a step that could not be read
    check_paths(spec, problems, desk.broken | lost)
    return spec


def dump_workflow(spec: WorkflowSpec) -> dict[str, object]:
    """The document that this workflow is read from; made of what JSON has."""
    values = {field.name: getattr(spec, field.name, None) for field in WORKFLOW_FIELDS}
    return dump_fields({**values, "troth": SCHEMA_VERSION}, WORKFLOW_FIELDS)
