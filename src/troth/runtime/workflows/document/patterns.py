"""Match texts against the patterns of contracts, in time that grows with the text and no faster.

Python's own `re` tries one way after the other, so that `^(a+)+$` and thirty letters keep a loop busy for minutes, and
nothing can stop it. The regular expressions here are those of Rust's `regex`, which pydantic brings along: they try all
ways at once. In return they have neither look-around nor back references, and refuse what would take too much memory.
"""

import re
from collections.abc import Callable
from functools import lru_cache

__all__ = ["PatternError", "matcher_of"]

_END_OF_TEXT = re.compile(r"(?<!\\)((?:\\\\)*)\\Z")


class PatternError(Exception):
    """The pattern is no regular expression that can be matched safely; the message says why."""


@lru_cache(maxsize=256)
def matcher_of(pattern: str) -> Callable[[str], bool]:
    """The function that says whether `pattern` is found in a text; raises `PatternError`."""
    from pydantic_core import SchemaError, SchemaValidator, core_schema

    in_rust = _END_OF_TEXT.sub(r"\1\\z", pattern)  # what Python writes `\Z`
    try:
        validator = SchemaValidator(core_schema.str_schema(pattern=in_rust, regex_engine="rust-regex"))
    except SchemaError as refused:
        raise PatternError(str(refused).splitlines()[-1].strip().removeprefix("error: ")) from None
    return validator.isinstance_python
