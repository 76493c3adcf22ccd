"""How a step is read from a document and written back: the key of its kind, and the keys that all kinds share."""

from collections.abc import Iterable
from typing import Any, cast

from troth.runtime.engine.retry import ONCE
from troth.runtime.workflows.document.field_types import (
    AnyValue,
    ContractType,
    Duration,
    Flag,
    Identifier,
    NamesType,
    TextType,
)
from troth.runtime.workflows.document.fields import Desk, Field, dump_fields, fields_schema, read_fields
from troth.runtime.workflows.document.nodes import ListNode, MapNode, Node
from troth.runtime.workflows.document.policy_types import RetryType, UndoType
from troth.runtime.workflows.document.problems import Unreadable, did_you_mean, nearest
from troth.runtime.workflows.kinds import Kind, kind_of, kinds
from troth.runtime.workflows.spec import StepSpec

__all__ = ["dump_steps", "read_steps", "step_fields", "step_schema"]

_ID = Field("id", Identifier(), "the id of the step, unique in the workflow", required=True)
_COMMON = (
    Field("description", TextType(), "a description", default=""),
    Field("optional", Flag(), "whether the run continues when the step fails", default=False),
    Field("default", AnyValue(), "its output if it is optional and fails"),
    Field("output", ContractType(), "the type of its output"),
    Field("undo", UndoType(), "how its effect is undone if the run fails later"),
    Field("after", NamesType(), "in a parallel block: the members it waits for", default=()),
)
_RETRY = Field("retry", RetryType(), "how it is retried", default=ONCE)
_TIMEOUT = Field("timeout", Duration(), "maximum duration of one attempt")


def common_fields(kind: Kind[Any]) -> tuple[Field, ...]:
    """The keys that steps of this kind share with others."""
    return (_ID, *_COMMON, *((_RETRY,) if kind.retries else ()), *((_TIMEOUT,) if kind.times_out else ()))


def step_fields(kind: Kind[Any]) -> tuple[Field, ...]:
    """All keys of a step of this kind, its own first."""
    return (_ID, *kind.fields, *common_fields(kind)[1:])


def read_steps(node: Node, desk: Desk) -> tuple[StepSpec, ...]:
    """The steps in a list. One that cannot be read is noted and left out."""
    if not isinstance(node, ListNode):
        raise Unreadable(node.mark, "steps are a list: each begins with `- id: …`")
    steps = (_read_step(item, desk) for item in node.items)
    return tuple(step for step in steps if step is not None)


def _read_step(node: Node, desk: Desk) -> StepSpec | None:
    if not isinstance(node, MapNode):
        desk.problems.add(node.mark, "a step is a map: `id`, and the key of its kind", f"Kinds: {', '.join(kinds())}")
        return None
    name = _name(node, desk)
    desk.seen.add(name)
    kind = _kind(node, name, desk)
    if kind is None:
        return None
    subject = f"the {kind.name} step {name!r}"
    for key, does in (("retry", kind.retries), ("timeout", kind.times_out)):
        entry = node.get(key)
        if entry is not None and not does:
            desk.problems.add(entry.mark, f"`{key}` is not valid for steps of the kind {kind.name}", _instead(kind))
            node = MapNode(tuple(kept_entry for kept_entry in node.entries if kept_entry.key != key), node.mark)
    values, is_whole = read_fields(node, step_fields(kind), desk, subject)
    if node.get("default") is not None and not values["optional"]:
        entry = node.get("default")
        assert entry is not None
        desk.problems.add(entry.mark, f"`default` is used only if {subject} is `optional: true`")
    own = {field.name: values.pop(field.name) for field in kind.fields}
    if not is_whole:
        desk.broken.add(name)
        if any(field.required and own[field.name] is None for field in kind.fields) or values["id"] is None:
            return None
    return StepSpec(
        kind=kind.name, body=kind.body(**own), mark=node.mark, is_whole=is_whole, **cast("dict[str, Any]", values)
    )


def _name(node: MapNode, desk: Desk) -> str:
    entry = node.get("id")
    name = str(entry.value.value) if entry is not None and hasattr(entry.value, "value") else "?"
    if entry is None or not isinstance(name, str):
        desk.broken.add("?")
    return name


def _kind(node: MapNode, name: str, desk: Desk) -> Kind[Any] | None:
    kind_keys = [entry.key for entry in node.entries if entry.key in kinds()]
    if len(kind_keys) == 1:
        return kinds()[kind_keys[0]]
    desk.broken.add(name)
    if kind_keys:
        desk.problems.add(
            node.mark, f"the step {name!r} is {' and '.join(kind_keys)} at the same time; a step has one kind"
        )
        return None
    shared = {field.name for kind in kinds().values() for field in step_fields(kind)}
    strange = [entry for entry in node.entries if entry.key not in shared]
    for entry in strange:
        if near := nearest(entry.key, kinds()):
            desk.problems.add(entry.mark, f"unknown key `{entry.key}` in the step {name!r}", f"Did you mean `{near}`?")
            return None
    advice = did_you_mean(strange[0].key, kinds(), kind="kind") if strange else f"Kinds: {', '.join(kinds())}"
    desk.problems.add(node.mark, f"the step {name!r} has no action", advice)
    return None


def _instead(kind: Kind[Any]) -> str:
    inside = any(field.type.schema().get("type") == "array" for field in kind.fields)
    return "Put it on the steps inside." if inside else ""


def dump_steps(steps: Iterable[object]) -> list[dict[str, object]]:
    """The list that `read_steps` reads these steps from."""
    return [_dump_step(cast("StepSpec", step)) for step in steps]


def _dump_step(step: StepSpec) -> dict[str, object]:
    kind = kind_of(step)
    values = {field.name: getattr(step, field.name) for field in common_fields(kind)}
    values |= {field.name: getattr(step.body, field.name) for field in kind.fields}
    return dump_fields(values, step_fields(kind))


def step_schema() -> dict[str, object]:
    """JSON Schema of a step: one alternative for each kind, chosen by the kind's key."""
    rules = []
    for kind in kinds().values():
        then = {**fields_schema(step_fields(kind)), "description": kind.says}
        rules.append({"if": {"required": [kind.name]}, "then": then})
    return {
        "type": "object",
        "required": ["id"],
        "oneOf": [{"required": [name]} for name in kinds()],
        "allOf": rules,
    }
