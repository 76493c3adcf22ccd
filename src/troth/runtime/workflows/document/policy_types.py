"""How `retry` and `undo` are written: what is tried again, and how an effect is taken back."""

import builtins
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from troth.runtime.engine.retry import ONCE, Retry
from troth.runtime.workflows.document.contracts import contract_schema
from troth.runtime.workflows.document.field_types import (
    ChoiceType,
    Count,
    Duration,
    Number,
    SourceMap,
    TargetType,
    TextType,
)
from troth.runtime.workflows.document.fields import Desk, Field, dump_fields, fields_schema, read_fields
from troth.runtime.workflows.document.nodes import ListNode, MapNode, Node
from troth.runtime.workflows.document.problems import Unreadable, nearest
from troth.runtime.workflows.document.sources import Source, source_schema
from troth.runtime.workflows.spec import CallTarget, Undo

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["RETRY_FIELDS", "UNDO_FIELDS", "RetryType", "UndoType", "shared_schemas"]


class _ExceptionNames:
    """Exceptions by name: `ConnectionError`, or `httpx.ConnectError` for one that is not Python's own."""

    def read(self, node: Node, desk: Desk) -> tuple[str, ...]:
        items = node.items if isinstance(node, ListNode) else (node,)
        names = []
        for item in items:
            name = TextType().read(item, desk)
            exceptions = [exception for exception, value in vars(builtins).items() if _is_exception(value)]
            if "." not in name and name not in exceptions:
                near = nearest(name, sorted(exceptions)) if name[:1].isupper() else None
                message = f"{name!r} is not a built-in exception; write your own as `module.{name}`"
                raise Unreadable(item.mark, message, f"Did you mean `{near}`?" if near else "")
            names.append(name)
        return tuple(names)

    def dump(self, value: object) -> object:
        return list(cast("Sequence[str]", value))

    def schema(self) -> dict[str, object]:
        return {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}


def _is_exception(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, Exception)


RETRY_FIELDS = (
    Field("attempts", Count(1, 1000), "maximum number of attempts", required=True),
    Field("delay", Duration(), "delay before the first retry", default=1.0),
    Field("backoff", ChoiceType(("fixed", "exponential")), "whether the delay grows", default="exponential"),
    Field("factor", Number(1.0, 100.0), "factor by which the delay grows", default=2.0),
    Field("max_delay", Duration(), "maximum delay", default=60.0),
    Field("jitter", Number(0.0, 1.0), "random part of the delay, from 0 to 1", default=0.1),
    Field("on", _ExceptionNames(), "the exceptions to retry (default: all)", default=("Exception",)),
)


@dataclass(frozen=True, slots=True)
class RetryType:
    """How often an action is tried: a number, or a map that says more."""

    def read(self, node: Node, desk: Desk) -> Retry:
        """The policy."""
        if not isinstance(node, MapNode):
            attempts = Count(1, 1000).read(node, desk)
            return ONCE if attempts == 1 else Retry(attempts=attempts, on=("Exception",))
        values, _ = read_fields(node, RETRY_FIELDS, desk, "`retry`")
        if values["attempts"] is None:
            values["attempts"] = 1
        return Retry(**values)  # type: ignore[arg-type]  # each value was read by the type of its field

    def dump(self, value: object) -> object:
        """As written at length; once is once, whatever the waits would be."""
        retry = cast("Retry", value)
        if retry == ONCE:
            return 1
        return dump_fields({field.name: getattr(retry, field.name) for field in RETRY_FIELDS}, RETRY_FIELDS)

    def schema(self) -> dict[str, object]:
        """A number or a map."""
        return {"$ref": "#/$defs/retry"}


_UNDO_RETRY = Retry(attempts=3, on=("Exception",))
UNDO_FIELDS = (
    Field("function", TargetType("function"), "the function that undoes the effect"),
    Field("tool", TargetType("tool"), "or the tool that does"),
    Field("inputs", SourceMap(), "its inputs (default: those of the step)"),
    Field("retry", RetryType(), "how it is retried (default: three attempts)", default=_UNDO_RETRY),
    Field("timeout", Duration(), "maximum duration of one attempt"),
)


@dataclass(frozen=True, slots=True)
class UndoType:
    """How a step is undone: the name of a function, or a map that says more."""

    def read(self, node: Node, desk: Desk) -> Undo:
        """The undo."""
        if not isinstance(node, MapNode):
            return Undo(TargetType("function").read(node, desk))
        values, _ = read_fields(node, UNDO_FIELDS, desk, "`undo`")
        targets = [target for target in (values["function"], values["tool"]) if isinstance(target, CallTarget)]
        if len(targets) != 1:
            raise Unreadable(node.mark, "`undo` names one `function` or one `tool`")
        inputs = cast("Mapping[str, Source] | None", values["inputs"])
        return Undo(targets[0], inputs, cast("Retry", values["retry"]), cast("float | None", values["timeout"]))

    def dump(self, value: object) -> object:
        """As written at length."""
        undo = cast("Undo", value)
        values = {undo.target.kind: undo.target, "inputs": undo.inputs, "retry": undo.retry, "timeout": undo.timeout}
        return dump_fields(values, UNDO_FIELDS)

    def schema(self) -> dict[str, object]:
        """A name or a map."""
        return {"$ref": "#/$defs/undo"}


def shared_schemas() -> dict[str, object]:
    """The schemas that the types above refer to."""
    return {
        "source": source_schema(),
        "contract": contract_schema(),
        "retry": {"anyOf": [Count(1, 1000).schema(), fields_schema(RETRY_FIELDS)]},
        "undo": {"anyOf": [TextType().schema(), fields_schema(UNDO_FIELDS)]},
    }
