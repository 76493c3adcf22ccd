"""Refuse requests with half of a letter in a text: no store keeps it, and no answer could tell of it.

It is a lone surrogate, which JSON can say as an escape: what is left where a program cut an emoji in two.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from troth.server.errors import ApiError

__all__ = ["refuse_half_letters"]

_MAY_HAVE_HALVES = re.compile(rb"\\u[dD][89a-fA-F]")
_HALF = re.compile("[\ud800-\udfff]")


def refuse_half_letters(body: bytes) -> None:
    """Refuse a body that has half of a letter in it. One that is no JSON is left to whoever reads it."""
    if not _MAY_HAVE_HALVES.search(body):
        return
    try:
        place = _place(json.loads(body), ())
    except (ValueError, RecursionError):
        return
    if place is not None:
        field = ".".join(place).encode("utf-8", "backslashreplace").decode()
        raise ApiError(
            400,
            "invalid_text",
            f"The field `{field}` contains half of a character (a lone surrogate), so nothing was done.",
            param=field,
            advice="This happens when text is cut in the middle of an emoji. Send whole characters.",
        )


def _place(value: object, path: tuple[str, ...]) -> tuple[str, ...] | None:
    """Where half of a letter is: in a text, or in the name of a field."""
    if isinstance(value, str):
        return path if _HALF.search(value) else None
    pairs: Any = ()
    if isinstance(value, Mapping):
        pairs = value.items()
    elif isinstance(value, list):
        pairs = enumerate(value)
    for name, inner in pairs:
        here = (*path, str(name))
        if isinstance(name, str) and _HALF.search(name):
            return here
        place = _place(inner, here)
        if place is not None:
            return place
    return None
