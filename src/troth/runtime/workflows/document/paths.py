"""How a value of the run is named, as in `steps.charge.items[0].price`, and how to find it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from troth.errors import MisuseError
from troth.runtime.workflows.document.problems import did_you_mean

__all__ = ["NAME", "BadPathError", "Path", "parse_path"]

NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_PART = re.compile(rf"\.(?P<name>{NAME})|\[(?P<index>-?\d+)\]|\[(?P<quote>['\"])(?P<key>.*?)(?P=quote)\]")
_ROOT = re.compile(NAME)


class BadPathError(MisuseError):
    """A path that leads nowhere. Trying the step again would find the same, so it is not tried again."""


@dataclass(frozen=True, slots=True)
class Path:
    """A root (`inputs`, `steps`, `item` …) and what is looked up below it, one after the other."""

    root: str
    parts: tuple[str | int, ...] = ()

    def __str__(self) -> str:
        return self.root + "".join(map(_show, self.parts))

    def look_up(self, state: Mapping[str, object]) -> object:
        """The value the path leads to in `state`."""
        value = state[self.root]
        for depth, part in enumerate(self.parts):
            value = _below(value, part, Path(self.root, self.parts[:depth]))
        return value


def _show(part: str | int) -> str:
    if isinstance(part, int):
        return f"[{part}]"
    return f".{part}" if re.fullmatch(NAME, part) else f'["{part}"]'


def _below(value: object, part: str | int, above: Path) -> object:
    if isinstance(value, Mapping):
        if part in value:
            return value[part]
        raise BadPathError(f"`{above}` has no `{part}`. {did_you_mean(str(part), map(str, value), kind='key')}")
    if isinstance(part, int) and isinstance(value, Sequence) and not isinstance(value, str):
        if -len(value) <= part < len(value):
            return value[part]
        raise BadPathError(f"`{above}` has {len(value)} items, so there is no `{above}[{part}]`.")
    raise BadPathError(f"`{above}` is {_kind(value)}, which has no `{part}` in it.")


def _kind(value: object) -> str:
    return "null" if value is None else f"a {type(value).__name__}"


def parse_path(text: str) -> Path | None:
    """The path that `text` spells; None where it spells none."""
    root = _ROOT.match(text)
    if root is None:
        return None
    parts: list[str | int] = []
    at = root.end()
    while at < len(text):
        part = _PART.match(text, at)
        if part is None:
            return None
        if part["index"] is not None:
            parts.append(int(part["index"]))
        else:
            parts.append(part["name"] if part["name"] is not None else part["key"])
        at = part.end()
    return Path(root[0], tuple(parts))
