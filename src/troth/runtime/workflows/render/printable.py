"""Write control characters as escapes: what a step raised or an agent said must not give a terminal orders."""

import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import Any, TypeVar

__all__ = ["printable", "printable_text"]

T = TypeVar("T")
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def printable_text(text: str) -> str:
    """`text` with every control character but line breaks and tabs as an escape: `ESC` is a backslash and `x1b`."""
    return _CONTROLS.sub(lambda control: f"\\x{ord(control[0]):02x}", text)


def printable(value: T) -> T:
    """The same value, a report for example, with all texts in it so."""
    return _printable(value)  # type: ignore[no-any-return]


def _printable(value: Any) -> Any:
    if isinstance(value, str):
        return value if isinstance(value, Enum) else printable_text(value)
    if isinstance(value, Mapping):
        return {_printable(key): _printable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(_printable, value))
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{field.name: _printable(getattr(value, field.name)) for field in fields(value)})
    return value
