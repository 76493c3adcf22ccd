"""How counts over all files are kept between runs, brought up to date after an edit, and noted when read.

What is counted stands in attributes of a few objects: counters, sets of names, dicts of sets, and dicts of the first
place where something is said. Places are told to readers and compared by nobody.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from troth.analysis.incremental.dependencies import Tally, TrackedTable, Words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from troth.analysis.incremental.dependencies import Reads

__all__ = ["Holders", "compared", "noted", "plain", "recounted"]

Holders = tuple[tuple[object, tuple[str, ...]], ...]
"""The objects that hold counts, with the attributes that are such."""

_MOST_ASKED = 8  # words that are looked for in all facts; then counting anew takes less time


def _each(holders: Holders) -> Iterator[tuple[str, object, str]]:
    for holder, names in holders:
        for name in names:
            yield f"{type(holder).__name__}.{name}", holder, name


def plain(holders: Holders) -> dict[str, Any]:
    """All counts as plain data."""
    data: dict[str, Any] = {}
    for kind, holder, name in _each(holders):
        counts = getattr(holder, name)
        data[kind] = dict(counts) if isinstance(counts, dict) else set(counts)
    return data


def compared(holders: Holders) -> dict[tuple[str, object], object]:
    """What was counted, by what it is and its name, so that two counts of one file can be compared."""
    flat: dict[tuple[str, object], object] = {}
    for kind, holder, name in _each(holders):
        counts = getattr(holder, name)
        for key in counts:
            value = counts[key] if isinstance(counts, dict) else True
            flat[kind, key] = True if isinstance(value, tuple) else value
    return flat


def noted(holders: Holders, reads: Reads) -> None:
    """From now on, when all files are counted, note who reads what."""
    for kind, holder, name in _each(holders):
        counts = getattr(holder, name)
        if isinstance(counts, Counter):
            tally: Tally[Any] = Tally(reads, kind)
            dict.update(tally, counts)
            setattr(holder, name, tally)
        elif isinstance(counts, dict):
            setattr(holder, name, TrackedTable(reads, kind, counts))
        else:
            setattr(holder, name, Words(reads, kind, counts))


def recounted(
    holders: Holders,
    then: Mapping[str, Any],
    changed: Mapping[str, tuple[Holders, Holders]],
    places: Mapping[str, int],
    saying: Callable[[str], Mapping[str, Holders] | None],
) -> bool:
    """Take the counts of then, less what the changed files said then, and with what they say now.

    What one file no longer says others may say as well: `saying` tells what those of the unchanged files say in which a
    word stands. False, and nothing is taken, where these are too many.
    """
    # The tables of then serve the next look as well; what stands in them is replaced, and never changed itself.
    counts = {kind: then[kind].copy() for kind, _, _ in _each(holders)}
    uncertain: dict[tuple[str, str], None] = {}
    for path, (before, now) in changed.items():
        for (kind, old, name), (_, new, _) in zip(_each(before), _each(now), strict=True):
            gone = _recount(counts[kind], getattr(old, name), getattr(new, name), path, places)
            uncertain.update(dict.fromkeys((kind, key) for key in gone))
    if len(uncertain) > _MOST_ASKED:
        return False
    now_said = {path: now for path, (_, now) in changed.items()}
    for kind, key in uncertain:
        word = key.rpartition(".")[2]
        unchanged = saying(word) if word.isidentifier() else None
        if unchanged is None:
            return False
        _ask(counts[kind], kind, key, {**now_said, **unchanged}, places)
    for kind, holder, name in _each(holders):
        is_counter = isinstance(getattr(holder, name), Counter)
        setattr(holder, name, Counter(counts[kind]) if is_counter else counts[kind])
    return True


def _recount(count: Any, old: Any, new: Any, path: str, places: Mapping[str, int]) -> list[str]:
    """Bring one kind of counts up to date with what a file said and says; the names of which only others can tell."""
    if isinstance(old, Counter):
        for key in old.keys() | new.keys():
            total = count.get(key, 0) + new[key] - old[key]
            if total:
                count[key] = total
            else:
                count.pop(key, None)
        return []
    if not isinstance(old, dict):
        count |= new
        return sorted(old - new)
    gone: list[str] = []
    for key in old.keys() | new.keys():
        value = new.get(key)
        if isinstance(value if value is not None else old[key], tuple):  # the first file that says it
            if key not in count or (value is not None and places[path] <= places[count[key][0]]):
                count[key] = value
            elif value is None and count[key][0] == path:
                gone.append(key)
        elif value is None or not old.get(key, set()) <= value:
            gone.append(key)
        else:
            count[key] = count.get(key, set()) | value
    return sorted(gone)


def _ask(count: Any, kind: str, key: str, files: Mapping[str, Holders], places: Mapping[str, int]) -> None:
    """Put together anew what files say under one name; nobody else says anything under it."""
    values: list[Any] = []
    for path in sorted(files, key=places.__getitem__):
        counts = next(
            getattr(holder, name) for counted_kind, holder, name in _each(files[path]) if counted_kind == kind
        )
        if key in counts:
            values.append(counts[key] if isinstance(counts, dict) else True)
    if not isinstance(count, dict):
        (count.add if values else count.discard)(key)
    elif not values:
        count.pop(key, None)
    else:
        count[key] = values[0] if isinstance(values[0], tuple) else set().union(*values)
