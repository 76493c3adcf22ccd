"""The types that keys of a workflow have: texts, names, durations, conditions, inputs, steps."""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from troth.runtime.workflows.document.contracts import Contract, read_contract
from troth.runtime.workflows.document.contracts import read_fields as read_contracts
from troth.runtime.workflows.document.durations import DURATION, parse_duration, show_duration
from troth.runtime.workflows.document.expressions import Expression, parse_expression
from troth.runtime.workflows.document.fields import Desk
from troth.runtime.workflows.document.nodes import ListNode, MapNode, Node, ScalarNode, plain
from troth.runtime.workflows.document.paths import NAME
from troth.runtime.workflows.document.problems import Unreadable, did_you_mean
from troth.runtime.workflows.document.sources import Literal, Source, TextOf, read_source
from troth.runtime.workflows.spec import CallTarget, TargetKind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = [
    "AnyValue",
    "ChoiceType",
    "Condition",
    "ContractMap",
    "ContractType",
    "Count",
    "Duration",
    "Flag",
    "Identifier",
    "NamesType",
    "Number",
    "SourceMap",
    "SourceType",
    "Steps",
    "TargetType",
    "TextType",
    "shown",
]


@dataclass(frozen=True, slots=True)
class TextType:
    """Any text that is not empty."""

    def read(self, node: Node, desk: Desk) -> str:  # noqa: ARG002
        """The text."""
        if isinstance(node, ScalarNode) and isinstance(node.value, str) and node.value.strip():
            return node.value
        raise Unreadable(node.mark, f"this has to be a string, not {shown(node)}")

    def dump(self, value: object) -> object:
        """The text."""
        return value

    def schema(self) -> dict[str, object]:
        """A string."""
        return {"type": "string", "minLength": 1}


@dataclass(frozen=True, slots=True)
class Identifier:
    """A name that can stand in a path."""

    def read(self, node: Node, desk: Desk) -> str:
        """The name."""
        text = TextType().read(node, desk)
        if re.fullmatch(NAME, text):
            return text
        better = re.sub(r"\W", "_", text, flags=re.ASCII).strip("_")
        advice = f"`{better}` would do." if re.fullmatch(NAME, better) else ""
        raise Unreadable(node.mark, f"{text!r} is not a name: letters, digits and _, no digit first", advice)

    def dump(self, value: object) -> object:
        """The name."""
        return value

    def schema(self) -> dict[str, object]:
        """A string that is a name."""
        return {"type": "string", "pattern": f"^{NAME}$"}


@dataclass(frozen=True, slots=True)
class Number:
    """A number in a range."""

    low: float = 0.0
    high: float = float("inf")
    above: bool = False
    """Whether `low` itself is too little."""

    def read(self, node: Node, desk: Desk) -> float:  # noqa: ARG002
        """The number."""
        value = plain(node)
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if is_number and self.low <= value <= self.high and not (self.above and value == self.low):  # type: ignore[operator]
            return float(value)  # type: ignore[arg-type]
        limits = f"{'above' if self.above else 'at least'} {self.low:g}" + (
            f" and at most {self.high:g}" if self.high != float("inf") else ""
        )
        raise Unreadable(node.mark, f"this has to be a number, {limits}, not {shown(node)}")

    def dump(self, value: object) -> object:
        """The number."""
        return value

    def schema(self) -> dict[str, object]:
        """A number."""
        limit = {} if self.high == float("inf") else {"maximum": self.high}
        return {"type": "number", "exclusiveMinimum" if self.above else "minimum": self.low, **limit}


@dataclass(frozen=True, slots=True)
class Count:
    """A whole number from `low` to `high`."""

    low: int = 1
    high: int = 1_000_000

    def read(self, node: Node, desk: Desk) -> int:  # noqa: ARG002
        """The number."""
        value = plain(node)
        if isinstance(value, int) and not isinstance(value, bool) and self.low <= value <= self.high:
            return value
        raise Unreadable(node.mark, f"this has to be a whole number from {self.low} to {self.high}, not {shown(node)}")

    def dump(self, value: object) -> object:
        """The number."""
        return value

    def schema(self) -> dict[str, object]:
        """An integer."""
        return {"type": "integer", "minimum": self.low, "maximum": self.high}


@dataclass(frozen=True, slots=True)
class Flag:
    """True or false."""

    def read(self, node: Node, desk: Desk) -> bool:  # noqa: ARG002
        """Which."""
        value = plain(node)
        if isinstance(value, bool):
            return value
        raise Unreadable(node.mark, f"this has to be true or false, not {shown(node)}")

    def dump(self, value: object) -> object:
        """Which."""
        return value

    def schema(self) -> dict[str, object]:
        """A boolean."""
        return {"type": "boolean"}


@dataclass(frozen=True, slots=True)
class ChoiceType:
    """One of a few words, or a count where `or_count` is set."""

    words: tuple[str, ...]
    or_count: bool = False

    def read(self, node: Node, desk: Desk) -> str | int:
        """The word that was chosen."""
        value = plain(node)
        if self.or_count and isinstance(value, int):
            return Count().read(node, desk)
        if isinstance(value, str) and value in self.words:
            return value
        allowed = ", ".join(self.words) + (" or a number" if self.or_count else "")
        advice = did_you_mean(str(value), self.words, kind="word")
        raise Unreadable(node.mark, f"this has to be one of {allowed}, not {shown(node)}", advice)

    def dump(self, value: object) -> object:
        """The word."""
        return value

    def schema(self) -> dict[str, object]:
        """An enumeration."""
        words: dict[str, object] = {"enum": list(self.words)}
        return {"anyOf": [words, Count().schema()]} if self.or_count else words


@dataclass(frozen=True, slots=True)
class Duration:
    """A span of time with its unit, as seconds."""

    def read(self, node: Node, desk: Desk) -> float:  # noqa: ARG002
        """Seconds."""
        value = plain(node)
        seconds = parse_duration(value) if isinstance(value, str) else None
        if seconds is not None and seconds > 0:
            return seconds
        advice = f"Write a unit: `{value}s` or `{value}ms`." if isinstance(value, (int, float)) else ""
        raise Unreadable(node.mark, f"this has to be a duration like `200ms`, `5s`, `2m`, not {shown(node)}", advice)

    def dump(self, value: object) -> object:
        """Its shortest form."""
        return show_duration(cast("float", value))

    def schema(self) -> dict[str, object]:
        """A string with a unit."""
        return {"type": "string", "pattern": DURATION}


@dataclass(frozen=True, slots=True)
class AnyValue:
    """Anything that JSON has."""

    def read(self, node: Node, desk: Desk) -> object:  # noqa: ARG002
        """The value."""
        return plain(node)

    def dump(self, value: object) -> object:
        """The value."""
        return value

    def schema(self) -> dict[str, object]:
        """Anything."""
        return {}


@dataclass(frozen=True, slots=True)
class NamesType:
    """A list of step ids."""

    def read(self, node: Node, desk: Desk) -> tuple[str, ...]:
        """The ids."""
        items = node.items if isinstance(node, ListNode) else (node,)
        return tuple(Identifier().read(item, desk) for item in items)

    def dump(self, value: object) -> object:
        """The list."""
        return list(cast("Sequence[str]", value))

    def schema(self) -> dict[str, object]:
        """One name or a list of them."""
        identifier = Identifier().schema()
        return {"anyOf": [identifier, {"type": "array", "items": identifier}]}


@dataclass(frozen=True, slots=True)
class Condition:
    """An expression that is true or false; see `expressions`."""

    def read(self, node: Node, desk: Desk) -> Expression:
        """The checked expression."""
        if isinstance(node, ScalarNode) and isinstance(node.value, bool):
            return parse_expression(str(node.value), node.mark)
        text = TextType().read(node, desk)
        assert isinstance(node, ScalarNode)
        return parse_expression(text, node.text_mark)

    def dump(self, value: object) -> object:
        """Its text."""
        return cast("Expression", value).dump()

    def schema(self) -> dict[str, object]:
        """A string."""
        return {"type": ["string", "boolean"]}


@dataclass(frozen=True, slots=True)
class SourceType:
    """Where one value comes from; see `sources`. `is_list` says that nothing but a list will do."""

    is_list: bool = False

    def read(self, node: Node, desk: Desk) -> Source:  # noqa: ARG002
        """The source."""
        source = read_source(node)
        is_list = not isinstance(source, TextOf | Literal) or isinstance(getattr(source, "literal", None), list)
        if self.is_list and not is_list:
            raise Unreadable(node.mark, f"this has to be a list, or a path to one, not {shown(node)}")
        return source

    def dump(self, value: object) -> object:
        """As written."""
        return cast("Source", value).dump()

    def schema(self) -> dict[str, object]:
        """See `sources.source_schema`."""
        return {"$ref": "#/$defs/source"}


@dataclass(frozen=True, slots=True)
class SourceMap:
    """The inputs of a step: names and where their values come from."""

    def read(self, node: Node, desk: Desk) -> dict[str, Source]:
        """Name by name; what cannot be read is noted."""
        if not isinstance(node, MapNode):
            raise Unreadable(node.mark, f"this has to be a map of names and paths, not {shown(node)}")
        sources: dict[str, Source] = {}
        for entry in node.entries:
            try:
                sources[entry.key] = read_source(entry.value)
            except Unreadable as unreadable:
                desk.problems.found.append(unreadable.problem)
        return sources

    def dump(self, value: object) -> object:
        """As written."""
        return {name: source.dump() for name, source in cast("Mapping[str, Source]", value).items()}

    def schema(self) -> dict[str, object]:
        """A map of sources."""
        return {"type": "object", "additionalProperties": {"$ref": "#/$defs/source"}}


@dataclass(frozen=True, slots=True)
class ContractType:
    """What a value has to look like; see `contracts`."""

    def read(self, node: Node, desk: Desk) -> Contract:
        """The contract."""
        return read_contract(node, desk.problems)

    def dump(self, value: object) -> object:
        """As written."""
        return cast("Contract", value).dump()

    def schema(self) -> dict[str, object]:
        """See `contracts.contract_schema`."""
        return {"$ref": "#/$defs/contract"}


@dataclass(frozen=True, slots=True)
class ContractMap:
    """The inputs of a workflow: names and their contracts."""

    def read(self, node: Node, desk: Desk) -> dict[str, Contract]:
        """Name by name."""
        return read_contracts(node, desk.problems)

    def dump(self, value: object) -> object:
        """As written."""
        return {name: contract.dump() for name, contract in cast("Mapping[str, Contract]", value).items()}

    def schema(self) -> dict[str, object]:
        """A map of contracts."""
        names = {"pattern": f"^{NAME}$"}
        return {"type": "object", "additionalProperties": {"$ref": "#/$defs/contract"}, "propertyNames": names}


@dataclass(frozen=True, slots=True)
class TargetType:
    """What an action calls."""

    kind: TargetKind

    def read(self, node: Node, desk: Desk) -> CallTarget:
        """The target with its place."""
        text = TextType().read(node, desk)
        assert isinstance(node, ScalarNode)
        return CallTarget(self.kind, text, node.text_mark, desk.where)

    def dump(self, value: object) -> object:
        """Its name."""
        return cast("CallTarget", value).name

    def schema(self) -> dict[str, object]:
        """A string."""
        return TextType().schema()


@dataclass(frozen=True, slots=True)
class Steps:
    """A list of steps; of one at least, unless it `may_be_empty`."""

    may_be_empty: bool = False

    def read(self, node: Node, desk: Desk) -> object:
        """The steps."""
        if isinstance(node, ListNode) and not node.items and not self.may_be_empty:
            raise Unreadable(node.mark, "there are no steps here")
        return desk.read_steps(node, desk)

    def dump(self, value: object) -> object:
        """The list."""
        from troth.runtime.workflows.document.steps import dump_steps

        return dump_steps(cast("tuple[object, ...]", value))

    def schema(self) -> dict[str, object]:
        """A list of steps."""
        least = {} if self.may_be_empty else {"minItems": 1}
        return {"type": "array", "items": {"$ref": "#/$defs/step"}, **least}


def shown(node: Node) -> str:
    """What was written, for a sentence that says what should have been."""
    match node:
        case ListNode():
            return "a list"
        case MapNode():
            return "a map"
        case ScalarNode(value=None):
            return "nothing"
        case ScalarNode(value=bool() as value):
            return "true" if value else "false"
        case ScalarNode(value=value):
            return repr(value)
