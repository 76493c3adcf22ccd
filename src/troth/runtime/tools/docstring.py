"""What a docstring says about a function and about each of its parameters.

Three ways of writing are read: Google's `Args:` block, NumPy's underlined `Parameters`, and `:param name:` fields.
"""

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

__all__ = ["Described", "described"]

_FIELD = re.compile(r"^:param\s+(?:[^:]*?\s)?(\w+):\s*(.*)$")
_GOOGLE = re.compile(r"^(?:Args|Arguments|Parameters):$")
_GOOGLE_ROW = re.compile(r"^\*{0,2}(\w+)\s*(?:\([^)]*\))?:\s*(.*)$")
_SECTION = re.compile(
    r"^(?:Args|Arguments|Parameters|Returns|Return|Yields|Raises|Examples?|Notes?|Warnings?|See Also):?$"
)
_NUMPY_ROW = re.compile(r"^\*{0,2}(\w+)\s*(?::.*)?$")


@dataclass(frozen=True, slots=True)
class Described:
    """The text before the first section, and what is said of each parameter."""

    summary: str
    parameters: Mapping[str, str]


def described(text: str | None) -> Described:
    """Read a docstring; what is not said is simply not there."""
    lines = inspect.cleandoc(text or "").splitlines()
    head: list[str] = []
    rows: dict[str, list[str]] = {}
    at = 0
    while at < len(lines):
        line = lines[at].rstrip()
        underlined = at + 1 < len(lines) and re.fullmatch(r"\s*-{3,}\s*", lines[at + 1]) is not None
        if underlined and line.strip() in {"Parameters", "Other Parameters"}:
            at = _rows(lines, at + 2, _NUMPY_ROW, rows, numpy=True)
        elif _GOOGLE.match(line):
            at = _rows(lines, at + 1, _GOOGLE_ROW, rows, numpy=False)
        elif field := _FIELD.match(line.strip()):
            at = _field(lines, at, field, rows)
        elif underlined or _SECTION.match(line) or line.startswith(":"):
            break_at = at + 1
            while break_at < len(lines) and not _starts_parameters(lines, break_at):
                break_at += 1
            at = break_at
        else:
            head.append(line)
            at += 1
    summary = "\n".join(head).strip()
    parameters = {name: " ".join(part for part in parts if part).strip() for name, parts in rows.items()}
    return Described(summary, MappingProxyType({name: text for name, text in parameters.items() if text}))


def _starts_parameters(lines: list[str], at: int) -> bool:
    line = lines[at].rstrip()
    return bool(_GOOGLE.match(line) or _FIELD.match(line.strip())) or (
        line.strip() == "Parameters" and at + 1 < len(lines) and lines[at + 1].strip().startswith("---")
    )


def _rows(lines: list[str], at: int, row: re.Pattern[str], rows: dict[str, list[str]], *, numpy: bool) -> int:
    """Read the rows of a parameter section from line `at`; return the line after it."""
    indent: int | None = None
    current: list[str] | None = None
    while at < len(lines):
        line = lines[at]
        if not line.strip():
            at += 1
            continue
        depth = len(line) - len(line.lstrip())
        if indent is None:
            indent = depth
        ends = depth < indent or (not numpy and depth == 0)
        if ends or (numpy and depth == 0 and at + 1 < len(lines) and lines[at + 1].strip().startswith("---")):
            return at
        matched = row.match(line.strip()) if depth == indent else None
        if matched:
            current = rows.setdefault(matched[1], [])
            if not numpy:
                current.append(matched[2])
        elif current is not None:
            current.append(line.strip())
        at += 1
    return at


def _field(lines: list[str], at: int, field: re.Match[str], rows: dict[str, list[str]]) -> int:
    current = rows.setdefault(field[1], [])
    current.append(field[2])
    at += 1
    while at < len(lines) and lines[at].strip() and not lines[at].strip().startswith(":"):
        current.append(lines[at].strip())
        at += 1
    return at
