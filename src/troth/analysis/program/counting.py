"""Knows how counts over all files are kept between runs, brought up to date after an edit, and noted when read.

What is counted stands in attributes of a few objects: counters, sets of names, dicts of sets, and dicts of the first
place where something is said. Places are told to readers and compared by nobody.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from troth.analysis.program.reads import Table, Tally, Words

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from troth.analysis.program.reads import Reads

__all__ = ["Holders", "compared", "noted", "plain", "recounted"]

Holders = tuple[tuple[object, tuple[str, ...]], ...]
"""The objects that hold counts, with the attributes that are such."""


def _each(holders: Holders) -> Iterator[tuple[str, object, str]]:
    for holder, names in holders:
        for name in names:
            yield f"{type(holder).__name__}.{name}", holder, name


def plain(holders: Holders) -> dict[str, Any]:
    """All counts as plain data."""
    found: dict[str, Any] = {}
    for kind, holder, name in _each(holders):
        known = getattr(holder, name)
        found[kind] = dict(known) if isinstance(known, dict) else set(known)
    return found


def compared(holders: Holders) -> dict[tuple[str, object], object]:
    """What was counted, by what it is and its name, so that two counts of one file can be compared."""
    found: dict[tuple[str, object], object] = {}
    for kind, holder, name in _each(holders):
        known = getattr(holder, name)
        for key in known:
            value = known[key] if isinstance(known, dict) else True
            found[kind, key] = True if isinstance(value, tuple) else value
    return found


def noted(holders: Holders, reads: Reads) -> None:
    """From now on, when all files are counted, note who reads what."""
    for kind, holder, name in _each(holders):
        known = getattr(holder, name)
        if isinstance(known, Counter):
            tally: Tally[Any] = Tally(reads, kind)
            dict.update(tally, known)
            setattr(holder, name, tally)
        elif isinstance(known, dict):
            setattr(holder, name, Table(reads, kind, known))
        else:
            setattr(holder, name, Words(reads, kind, known))


def recounted(
    holders: Holders, then: Mapping[str, Any], changed: Mapping[str, tuple[Holders, Holders]], places: Mapping[str, int]
) -> bool:
    """Take the counts of then, less what the changed files said then, and with what they say now.

    False, and nothing is taken, where that cannot be told: one file no longer says what others may say as well.
    """
    counts = {kind: then[kind] for kind, _, _ in _each(holders)}
    for path, (before, now) in changed.items():
        for (kind, old, name), (_, new, _) in zip(_each(before), _each(now), strict=True):
            if not _recount(counts[kind], getattr(old, name), getattr(new, name), path, places):
                return False
    for kind, holder, name in _each(holders):
        is_counter = isinstance(getattr(holder, name), Counter)
        setattr(holder, name, Counter(counts[kind]) if is_counter else counts[kind])
    return True


def _recount(count: Any, old: Any, new: Any, path: str, places: Mapping[str, int]) -> bool:
    if isinstance(old, Counter):
        for key in old.keys() | new.keys():
            left = count.get(key, 0) + new[key] - old[key]
            if left:
                count[key] = left
            else:
                count.pop(key, None)
        return True
    if not isinstance(old, dict):
        count |= new
        return bool(old <= new)
    for key in old.keys() | new.keys():
        one = new.get(key)
        if isinstance(one if one is not None else old[key], tuple):  # the first file that says it
            if key not in count or (one is not None and places[path] <= places[count[key][0]]):
                count[key] = one
            elif one is None and count[key][0] == path:
                return False
        elif one is None or not old.get(key, set()) <= one:
            return False
        else:
            count[key] = count.get(key, set()) | one
    return True
