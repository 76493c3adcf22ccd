"""Answer with JSON that every client can read, whatever texts are in it.

A text may hold half of a letter (a lone surrogate): a program that cuts an emoji in two makes one. No UTF-8 can say it;
it is shown as the escape that JSON has for it.
"""

import json
from typing import Any

from fastapi.responses import JSONResponse as PlainResponse

__all__ = ["JSONResponse", "encoded", "one_line"]

one_line = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str).encode
"""One line of JSON. `json.dumps` would make an encoder for each."""
_strict = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def encoded(text: str) -> bytes:
    """JSON as bytes. What Python writes for half of a letter is what JSON writes for it."""
    return text.encode("utf-8", "backslashreplace")


class JSONResponse(PlainResponse):
    """An answer whose texts may be anything that Python's can be."""

    def render(self, content: Any) -> bytes:
        """As Starlette does, but for halves of letters."""
        return encoded(_strict(content))
