"""Read the words and thresholds of `words.toml`, once."""

import re
import tomllib
from pathlib import Path
from typing import Any

__all__ = ["pattern", "threshold", "words"]

_DATA: dict[str, Any] = tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))


def words(table: str, name: str) -> frozenset[str]:
    """The words of a list."""
    return frozenset(_DATA[table][name].split())


def pattern(name: str) -> re.Pattern[str]:
    """A pattern that names are matched with."""
    return re.compile(_DATA["patterns"][name])


def threshold(table: str, name: str) -> int:
    """A number that somebody guessed, and `bench.check.worth` tells what it does."""
    number = _DATA[table][name]
    assert isinstance(number, int)
    return number
