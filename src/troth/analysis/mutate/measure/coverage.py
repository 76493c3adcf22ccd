"""Find which tests ran which lines, out of the files that coverage.py leaves.

Both of its forms are read directly, the database `.coverage` and the report of `coverage json --show-contexts`; the
package itself is not needed.
"""

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from troth.errors import MisuseError

__all__ = ["Coverage", "read_coverage"]

_SQLITE = b"SQLite format 3\x00"

_LINES = """
    SELECT path, numbits, context FROM line_bits
    JOIN file ON file.id = file_id JOIN context ON context.id = context_id
"""
_STEPS = """
    SELECT path, fromno, tono, context FROM arc
    JOIN file ON file.id = file_id JOIN context ON context.id = context_id
"""


@dataclass(frozen=True, slots=True)
class Coverage:
    """For each measured file, by its path in the project, the lines that ran and the contexts they ran in."""

    lines: Mapping[str, Mapping[int, frozenset[str]]]

    def is_reached(self, path: str, first: int, last: int) -> bool | None:
        """Whether any of the lines ran; None where the file was not measured, which says nothing."""
        ran = self.lines.get(path)
        return None if ran is None else any(line in ran for line in range(first, last + 1))

    def tests(self, path: str, first: int, last: int) -> tuple[str, ...]:
        """The tests that ran one of the lines, as pytest names them; empty where that is not known of every one."""
        ran = self.lines.get(path, {})
        contexts = {context for line in range(first, last + 1) for context in ran.get(line, ()) if context}
        names = {context.partition("|")[0] for context in contexts}
        return tuple(sorted(names)) if all("::" in name for name in names) else ()


def read_coverage(path: Path, root: Path) -> Coverage:
    """Read either form; paths outside `root` are left out."""
    try:
        data = path.read_bytes()
        rows = _from_database(path) if data.startswith(_SQLITE) else _from_report(json.loads(data))
        return _gather(rows, root)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, sqlite3.Error) as problem:
        raise MisuseError(
            f"{str(path)!r} cannot be read as coverage data: {type(problem).__name__}: {problem}.\n"
            "Nothing was done.\n"
            "Give a `.coverage` file or what `coverage json --show-contexts` writes."
        ) from problem


def _gather(rows: Iterable[tuple[str, int, str]], root: Path) -> Coverage:
    lines: defaultdict[str, defaultdict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
    for name, line, context in rows:
        whole = root / name  # an absolute name stays as it is
        if whole.is_relative_to(root):
            file_lines = lines[whole.relative_to(root).as_posix()]
            if line > 0:
                file_lines[line].add(context)
    return Coverage(
        {path: {line: frozenset(contexts) for line, contexts in ran.items()} for path, ran in lines.items()}
    )


def _from_database(path: Path) -> Iterator[tuple[str, int, str]]:
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
        for (name,) in database.execute("SELECT path FROM file"):
            yield name, 0, ""
        for name, numbits, context in database.execute(_LINES):
            for line in _numbers(numbits):
                yield name, line, context
        # With branches measured there are steps from line to line instead; a negative end is the way in or out.
        for name, come, go, context in database.execute(_STEPS):
            yield name, come, context
            yield name, go, context


def _numbers(numbits: bytes) -> Iterator[int]:
    """The lines that a blob stands for: bit `n % 8` of byte `n // 8` is line `n`."""
    for index, byte in enumerate(numbits):
        for bit in range(8):
            if byte & (1 << bit):
                yield index * 8 + bit


def _from_report(report: Any) -> Iterator[tuple[str, int, str]]:
    for name, file in report["files"].items():
        yield name, 0, ""
        contexts = file.get("contexts", {})
        for line in file["executed_lines"]:
            for context in contexts.get(str(line), [""]):
                yield name, line, context
