"""Refuse arguments of public functions that cannot be right, with a sentence that says what to give instead."""

import math
import os
from collections.abc import Mapping

from troth.errors import MisuseError

__all__ = ["check_count", "check_names", "check_path", "check_seconds"]


def check_seconds(name: str, value: object, *, least: float = 0.0, may_be_none: bool = True) -> None:
    """A span of time in seconds: a number, or None for no limit."""
    if value is None and may_be_none:
        return
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or math.isnan(value) or value < least:  # type: ignore[arg-type, operator]
        none = ", or None for no limit" if may_be_none else ""
        hint = " Strings such as '3s' are for YAML only." if isinstance(value, str) else ""
        raise MisuseError(f"`{name}` is {value!r}. Nothing was done.\nGive a number of seconds{none}.{hint}")


def check_count(name: str, value: object, *, least: int | None = 1) -> None:
    """A whole number, and not less than `least`."""
    if not isinstance(value, int) or isinstance(value, bool) or (least is not None and value < least):
        bound = "" if least is None else f", {least} or more"
        raise MisuseError(f"`{name}` is {value!r}. Nothing was done.\nGive a whole number{bound}.")


def check_names(name: str, value: object) -> None:
    """A mapping of names, or nothing."""
    if value is None:
        return
    if not isinstance(value, Mapping):
        raise MisuseError(
            f"`{name}` is a {type(value).__name__}. Nothing was opened.\nGive a mapping of names, as in "
            f"`{name}={{'charge': …}}`."
        )
    for key in value:
        if not isinstance(key, str):
            raise MisuseError(f"`{name}` has the key {key!r}. Nothing was opened.\nGive each a string as its name.")


def check_path(name: str, value: object) -> None:
    """The path of a file."""
    if not isinstance(value, str | os.PathLike):
        raise MisuseError(
            f"`{name}` is {value!r} of type `{type(value).__name__}`. Nothing was opened.\n"
            "Give the path of a file, or leave it out."
        )
