"""Check ids and numbers that come from outside, before anything is done with them."""

import math
import re

from troth.errors import MisuseError

__all__ = ["check_id", "check_number", "check_text"]

_ID = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._:@-]{0,254}[A-Za-z0-9])?")


def check_id(what: str, value: object) -> str:
    """`value` if it can be an id: letters, digits and `. _ : @ -` between them, at most 256 characters."""
    if not isinstance(value, str) or _ID.fullmatch(value) is None:
        raise MisuseError(
            f"{what} is {value!r}, which is not an id. Nothing was done.\n"
            "An id is 1 to 256 letters and digits, with `.`, `_`, `:`, `@` and `-` between them."
        )
    return value


def check_text(what: str, value: object) -> str:
    """`value` if it is a text with something in it."""
    if not isinstance(value, str) or not value.strip():
        raise MisuseError(f"{what} is {value!r}; it has to be a string that is not empty. Nothing was done.")
    return value


def check_number(what: str, value: object, least: float, most: float, *, whole: bool = False) -> float:
    """`value` if it is a number in that range. `True` is no number, and NaN neither."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and not math.isnan(value)
    if (
        is_number
        and isinstance(value, int | float)
        and least <= value <= most
        and (isinstance(value, int) or not whole)
    ):
        return value
    kind = "a whole number" if whole else "a number"
    raise MisuseError(f"{what} is {value!r}; it has to be {kind} from {least:g} to {most:g}. Nothing was done.")
