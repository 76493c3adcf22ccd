"""Understand the codes that rules had at first: `T101` is `TR101` now, since other linters use `T1xx` and `T2xx`.

Old codes are understood in options, settings, comments and baselines until 1.0.
"""

from collections.abc import Iterable
from typing import NamedTuple

__all__ = ["OldCode", "current", "hint", "is_old", "lasting"]


class OldCode(NamedTuple):
    """An old code, and who or what says it: an option, `file:line`."""

    code: str
    place: str


def is_old(word: str) -> bool:
    """Whether this is an old code, or the beginning of one: `T101`, `T1`, `T`."""
    return word[:1] == "T" and (len(word) == 1 or (word[1:].isascii() and word[1:].isdigit()))


def current(word: str) -> str:
    """The code as it is now; every other word as it is."""
    return f"TR{word[1:]}" if is_old(word) else word


def lasting(code: str) -> str:
    """What a code counts as in fingerprints that other services keep: they do not change with the prefix."""
    return f"T{code.removeprefix('TR')}"


def hint(old: Iterable[OldCode]) -> str:
    """One line about all the old codes of a run; empty where there are none."""
    different = list(dict.fromkeys(old))
    if not different:
        return ""
    first, further = different[0], different[1:]
    places = "1 more place uses" if len(further) == 1 else f"{len(further):,} more places use"
    more = f"; {places} an old code" if further else ""
    return (
        f"Codes of rules start with `TR` now: `{first.code}` ({first.place}) means `{current(first.code)}`{more}. "
        "Old codes are understood until 1.0.\n"
    )
