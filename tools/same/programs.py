"""Record the programs that stand in this repository."""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from tools.same.awaits import awaits_in, without
from tools.same.record import Row, digest
from tools.same.troth import findings_in_program, operator_cases, rule_cases

__all__ = ["GOLDEN", "KINDS", "programs", "record_programs"]

_TESTS = Path(__file__).resolve().parents[2] / "tests" / "analysis"
GOLDEN = _TESTS / "golden" / "programs.jsonl"
_PAGES = ("specimens", "families")
KINDS = (*_PAGES, "rules", "operators")
_BLOCK = re.compile(r"^```python (?P<path>\S+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


def record_programs(kinds: Collection[str] = KINDS) -> Iterator[Row]:
    """The rows of all programs of these kinds."""
    for name, files in programs():
        if name.partition("/")[0] not in kinds:
            continue
        yield from _record(name, files)
        lost = {path: without(data, awaits_in(path, data)) for path, data in files.items()}
        if lost != files:
            yield from _record(f"{name}, without its awaits", lost)


def programs() -> Iterator[tuple[str, dict[str, bytes]]]:
    """Every program by a name of its own, as the contents of its files."""
    times: Counter[str] = Counter()
    for name, sources in _all():
        times[name] += 1
        files = {"case.py": sources} if isinstance(sources, str) else sources
        unique = name if times[name] == 1 else f"{name} ({times[name]})"
        yield unique, {path: text.encode() for path, text in files.items()}


def _record(name: str, files: Mapping[str, bytes]) -> Iterator[Row]:
    yield {"in": name, "digest": digest(files)}
    for row in findings_in_program(files):
        yield {"in": name, **row}


def _all() -> Iterator[tuple[str, str | Mapping[str, str]]]:
    for folder in _PAGES:
        for page in sorted((_TESTS / folder).glob("*.md")):
            for section in page.read_text(encoding="utf-8").split("\n## ")[1:]:
                heading, _, body = section.partition("\n")
                yield f"{folder}/{page.stem}/{heading}", {b["path"]: b["text"] for b in _BLOCK.finditer(body)}
    for name, sources in rule_cases():
        yield f"rules/{name}", sources
    for name, text in operator_cases():
        yield f"operators/{name}", text
