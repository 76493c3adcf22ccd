"""What a value has to look like: the type of an input, the contract of a step's output.

`string`, or at length `{type: string, enum: [a, b], pattern: ^a, …}`; `{type: list, items: number}`;
`{type: object, fields: {total: number, note: {type: string, required: false}}}`, which allows no other keys.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from troth.runtime.workflows.document.nodes import ListNode, MapNode, Node, ScalarNode, plain
from troth.runtime.workflows.document.paths import NAME, Path
from troth.runtime.workflows.document.patterns import PatternError, matcher_of
from troth.runtime.workflows.document.problems import Problems, Unreadable, did_you_mean

__all__ = ["ABSENT", "TYPES", "Contract", "contract_schema", "read_contract"]

TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "list": (list, tuple),
    "object": (dict,),
    "null": (type(None),),
    "any": (object,),
}


class _Absent:
    """No default was given; None is a default like any other."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT = _Absent()
_KEYS = ("type", "description", "required", "default", "enum", "pattern", "min", "max", "items", "fields")
_LONG = 200  # letters of a value that are shown
_ONLY_FOR = {"pattern": ("string",), "min": ("integer", "number"), "max": ("integer", "number")}
_ONLY_FOR |= {"items": ("list",), "fields": ("object",)}


@dataclass(frozen=True, slots=True)
class Contract:
    """What a value has to look like. `required` and `default` speak of its place in a map or among the inputs."""

    type: str = "any"
    description: str = ""
    required: bool = True
    default: object = ABSENT
    enum: tuple[object, ...] = ()
    pattern: str | None = None
    min: float | None = None
    max: float | None = None
    items: "Contract | None" = None
    fields: "Mapping[str, Contract] | None" = field(default=None)

    def complaints(self, value: object, name: str) -> Iterator[str]:
        """Everything about `value` that breaks the contract; `name` is what it is called in the sentences."""
        if not _is(value, self.type):
            yield f"`{name}` is {_shown(value)}, but the contract requires {self.type}"
            return
        if self.enum and value not in self.enum:
            yield f"`{name}` is {_cut(value)}, which is none of {', '.join(map(repr, self.enum))}"
        if self.pattern is not None and isinstance(value, str) and not matcher_of(self.pattern)(value):
            yield f"`{name}` is {_cut(value)}, which does not match {self.pattern!r}"
        if isinstance(value, (int, float)):
            if self.min is not None and value < self.min:
                yield f"`{name}` is {value!r}, less than {self.min:g}"
            if self.max is not None and value > self.max:
                yield f"`{name}` is {value!r}, more than {self.max:g}"
        if self.items is not None and isinstance(value, (list, tuple)):
            for index, item in enumerate(value):
                yield from self.items.complaints(item, f"{name}[{index}]")
        if self.fields is not None and isinstance(value, dict):
            yield from self._complaints_of_fields(value, name, self.fields)

    def _complaints_of_fields(
        self, value: Mapping[str, object], name: str, fields: "Mapping[str, Contract]"
    ) -> Iterator[str]:
        for key, inner in fields.items():
            if key in value:
                yield from inner.complaints(value[key], f"{name}.{key}")
            elif inner.required:
                yield f"`{name}.{key}` is missing"
        for key in value:
            if key not in fields:
                yield f"`{name}.{key}` is not in the contract. {did_you_mean(key, fields, kind='key')}"

    def below(self, part: str | int) -> "Contract | str":
        """The contract of what lies under `part`; a sentence where nothing can."""
        if self.type == "any":
            return _ANY
        if isinstance(part, int) and self.type == "list":
            return self.items or _ANY
        if isinstance(part, str) and self.type == "object":
            if self.fields is None:
                return _ANY
            return self.fields.get(part) or did_you_mean(part, self.fields, kind="key")
        return f"It is declared as {self.type}, which has no fields."

    def follow(self, path: Path, parts: tuple[str | int, ...]) -> str | None:
        """Why `parts`, the end of `path`, cannot lead anywhere in a value of this contract; None where it can."""
        contract: Contract = self
        for depth, part in enumerate(parts):
            below = contract.below(part)
            if isinstance(below, str):
                above = Path(path.root, path.parts[: len(path.parts) - len(parts) + depth])
                return f"`{above}` has no `{part}`. {below}"
            contract = below
        return None

    def dump(self) -> object:
        """As it is written in a document, in its shortest form."""
        whole: dict[str, object] = {"type": self.type}
        if self.description:
            whole["description"] = self.description
        if not self.required:
            whole["required"] = False
        if self.default is not ABSENT:
            whole["default"] = self.default
        for key in ("enum", "pattern", "min", "max"):
            if (value := getattr(self, key)) not in ((), None):
                whole[key] = list(value) if key == "enum" else value
        if self.items is not None:
            whole["items"] = self.items.dump()
        if self.fields is not None:
            whole["fields"] = {name: inner.dump() for name, inner in self.fields.items()}
        return self.type if list(whole) == ["type"] else whole


_ANY = Contract()


def _is(value: object, kind: str) -> bool:
    if isinstance(value, bool) and kind in ("integer", "number"):
        return False
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, TYPES[kind])


def _shown(value: object) -> str:
    names = {bool: "a boolean", type(None): "null", dict: "an object", list: "a list", str: "a string"}
    return f"{names.get(type(value), f'a {type(value).__name__}')} ({repr(value)[:60]})"


def _cut(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _LONG else f"{text[:_LONG]}… ({len(text):,} letters)"


def read_contract(node: Node, problems: Problems) -> Contract:
    """The contract that `node` describes."""
    if isinstance(node, ScalarNode):
        _check_type(node)
        return Contract(type=str(node.value))
    if not isinstance(node, MapNode):
        raise Unreadable(node.mark, f"a type is a name ({', '.join(TYPES)}) or a map with `type:`")
    for entry in node.entries:
        if entry.key not in _KEYS:
            problems.add(entry.mark, f"unknown key `{entry.key}`", did_you_mean(entry.key, _KEYS, kind="key"))
    kind = node.get("type")
    if kind is None:
        fields_given, items_given = node.get("fields"), node.get("items")
        name = "object" if fields_given else "list" if items_given else "any"
    else:
        _check_type(kind.value)
        name = str(plain(kind.value))
    _check_keys(node, name, problems)
    contract = Contract(
        type=name,
        description=_text(node, "description", problems) or "",
        required=_required(node, problems),
        default=plain(default.value) if (default := node.get("default")) else ABSENT,
        enum=_enum(node, problems),
        pattern=_pattern(node, problems),
        min=_number(node, "min", problems),
        max=_number(node, "max", problems),
        items=read_contract(items.value, problems) if (items := node.get("items")) else None,
        fields=read_fields(fields.value, problems) if (fields := node.get("fields")) else None,
    )
    if default is not None:
        for complaint in contract.complaints(contract.default, "default"):
            problems.add(default.value.mark, complaint)
    return contract


def read_fields(node: Node, problems: Problems) -> dict[str, Contract]:
    """A map of names and contracts."""
    if not isinstance(node, MapNode):
        raise Unreadable(node.mark, "this has to be a map of names and types, as in `order: string`")
    contracts: dict[str, Contract] = {}
    for entry in node.entries:
        if not re.fullmatch(NAME, entry.key):
            problems.add(entry.mark, f"`{entry.key}` is not a name: letters, digits and _ only")
        try:
            contracts[entry.key] = read_contract(entry.value, problems)
        except Unreadable as unreadable:
            problems.found.append(unreadable.problem)
            contracts[entry.key] = Contract()  # so that paths to it are not called wrong as well
    return contracts


def _check_type(node: Node) -> None:
    name = plain(node)
    if name is None:
        raise Unreadable(node.mark, 'the type is missing; the type of no value is written `"null"`')
    if not isinstance(name, str) or name not in TYPES:
        raise Unreadable(node.mark, f"{name!r} is not a type", did_you_mean(str(name), TYPES, kind="type"))


def _check_keys(node: MapNode, kind: str, problems: Problems) -> None:
    for key, kinds in _ONLY_FOR.items():
        entry = node.get(key)
        if entry is not None and kind not in kinds:
            problems.add(entry.mark, f"`{key}` is not valid for the type {kind}; it belongs to {' and '.join(kinds)}")


def _required(node: MapNode, problems: Problems) -> bool:
    entry = node.get("required")
    default = node.get("default")
    if entry is None:
        return default is None
    is_required = plain(entry.value)
    if not isinstance(is_required, bool):
        problems.add(entry.value.mark, "`required` is true or false")
        return True
    if is_required and default is not None:
        problems.add(entry.mark, "a required value cannot have a default", "Remove one of `required` and `default`.")
    return is_required


def _text(node: MapNode, key: str, problems: Problems) -> str | None:
    entry = node.get(key)
    if entry is None:
        return None
    value = plain(entry.value)
    if not isinstance(value, str):
        problems.add(entry.value.mark, f"`{key}` must be a string")
        return None
    return value


def _pattern(node: MapNode, problems: Problems) -> str | None:
    text = _text(node, "pattern", problems)
    entry = node.get("pattern")
    if text is None or entry is None:
        return None
    try:
        matcher_of(text)
    except PatternError as broken:
        advice = "A pattern has no look-around and no back reference, so that it is always matched quickly."
        problems.add(entry.value.mark, f"{text!r} is not a regular expression that can be used here: {broken}", advice)
        return None
    return text


def _enum(node: MapNode, problems: Problems) -> tuple[object, ...]:
    entry = node.get("enum")
    if entry is None:
        return ()
    if not isinstance(entry.value, ListNode) or not entry.value.items:
        problems.add(entry.value.mark, "`enum` is a list of the values that are allowed")
        return ()
    return tuple(map(plain, entry.value.items))


def _number(node: MapNode, key: str, problems: Problems) -> float | None:
    entry = node.get(key)
    if entry is None:
        return None
    value = plain(entry.value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        problems.add(entry.value.mark, f"`{key}` is a number")
        return None
    return value


def contract_schema() -> dict[str, object]:
    """JSON Schema of a contract."""
    this = {"$ref": "#/$defs/contract"}
    return {
        "description": "The type of a value: its name, or a map with details.",
        "anyOf": [
            {"enum": list(TYPES)},
            {
                "type": "object",
                "additionalProperties": False,
                "properties": {
                    "type": {"enum": list(TYPES)},
                    "description": {"type": "string"},
                    "required": {"type": "boolean"},
                    "default": {},
                    "enum": {"type": "array", "minItems": 1},
                    "pattern": {"type": "string"},
                    "min": {"type": "number"},
                    "max": {"type": "number"},
                    "items": this,
                    "fields": {
                        "type": "object",
                        "additionalProperties": this,
                        "propertyNames": {"pattern": f"^{NAME}$"},
                    },
                },
            },
        ],
    }
