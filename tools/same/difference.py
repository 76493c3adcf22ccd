"""Show how one record differs from another: which findings are new, which are gone, and what changed in the others."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from tools.same.record import Row

__all__ = ["differences"]

_SECTION = "in"
_IDENTITY = ("path", "cell", "line", "column", "code", "await")  # what makes two rows speak of the same thing


def differences(golden: Sequence[Row], current: Sequence[Row]) -> list[str]:
    """One text for each difference, in the order of the record; none where both are equal, row by row."""
    if list(golden) == list(current):
        return []
    old, new = _sections(golden), _sections(current)
    texts = [text for name in dict.fromkeys([*old, *new]) for text in _in_section(name, old.get(name), new.get(name))]
    return texts or ["the rows are the same, and their order is not"]


def _sections(rows: Iterable[Row]) -> dict[str, list[Row]]:
    sections: dict[str, list[Row]] = {}
    for row in rows:
        fields = {name: value for name, value in row.items() if name != _SECTION}
        sections.setdefault(str(row[_SECTION]), []).append(fields)
    return sections


def _in_section(name: str, old: list[Row] | None, new: list[Row] | None) -> Iterator[str]:
    if old is None or new is None:
        yield f"{name}: {'not in the record' if old is None else 'gone'}"
        return
    if old == new:
        return
    before, after = _only_in(old, new), _only_in(new, old)
    if not before and not after:
        yield f"{name}: the same findings in another order"
    for row in before:
        match = next((candidate for candidate in after if _identity(candidate) == _identity(row)), None)
        if match is None:
            yield f"{name}: - {_line(row)}"
        else:
            after.remove(match)
            yield f"{name}: ~ {_place(row)}{''.join(_changes(row, match))}"
    for row in after:
        yield f"{name}: + {_line(row)}"


def _only_in(rows: list[Row], counterparts: list[Row]) -> list[Row]:
    """The rows that their counterparts do not have, or not as often."""
    unmatched = Counter(map(_text, counterparts))
    only = []
    for row in rows:
        if unmatched[_text(row)]:
            unmatched[_text(row)] -= 1
        else:
            only.append(row)
    return only


def _identity(row: Row) -> tuple[object, ...]:
    return tuple(row.get(field) for field in _IDENTITY)


def _changes(old: Row, new: Row) -> Iterator[str]:
    for field in dict.fromkeys([*old, *new]):
        if old.get(field) != new.get(field):
            yield f"\n      {field}: {_text(old.get(field))}\n      {' ' * len(field)}→ {_text(new.get(field))}"


def _line(row: Row) -> str:
    return f"{_place(row)}: {row['message']} ({row['confidence']})" if "message" in row else _text(row)


def _place(row: Row) -> str:
    if "code" in row:
        return f"{row['path']}:{row['line']}:{row['column']} {row['code']}"
    return f"await {row['await']}" if "await" in row else "the text of the program"


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
