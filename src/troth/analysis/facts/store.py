"""Knows how to keep facts and findings between runs, in one file that is quick to read.

The file is a marshalled header and, after it, the packed facts one after the other; only those that are asked for are
cut out of it. It is replaced as a whole, so that two runs at once at worst do the same work twice.
"""

import contextlib
import marshal
import os
import pickle
import sys
import tempfile
from collections.abc import Collection, Container, Mapping
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any, cast

from troth import __version__
from troth.analysis.facts.model import FACTS_VERSION, FileFacts
from troth.analysis.findings import Finding
from troth.analysis.source.read import Problem

__all__ = ["Kept", "Stamp", "load", "save", "stamp"]

Stamp = tuple[int, int]  # when it was changed, and how long it is
_NAME = "facts.bin"


def stamp(path: Path) -> Stamp:
    """What tells a changed file from an unchanged one without reading it."""
    try:
        status = path.stat()
    except OSError:
        return (0, -1)
    return (status.st_mtime_ns, status.st_size)


@dataclass(frozen=True, slots=True)
class Kept:
    """What an earlier run left: facts by path with their stamps, and all its findings; facts on disk are packed."""

    stamps: Mapping[str, Stamp]
    facts: Mapping[str, FileFacts | bytes | Problem]
    findings: tuple[Finding, ...]
    trace: Any = None  # what was read for each file (`program.trace`), None where that is not known

    def findings_beyond(self, asked: Collection[str], readable: Container[str]) -> list[Finding]:
        """The findings of files that are not asked again and can still be read."""
        return [f for f in self.findings if f.span.path not in asked and f.span.path in readable]


def _key(context: str) -> str:
    return f"{__version__} {FACTS_VERSION} {sys.version_info[:2]} {marshal.version} {context}"


def load(folder: Path, context: str) -> Kept | None:
    """What is kept in `folder`, if it was made by the same Troth in the same `context`."""
    try:
        data = (folder / _NAME).read_bytes()
        length = int.from_bytes(data[:8], "little")
        key, index, problems, findings, trace = marshal.loads(data[8 : 8 + length])  # noqa: S302  our own file
        if key != _key(context):
            return None
        view = memoryview(data)[8 + length :]
        stamps: dict[str, Stamp] = {}
        facts: dict[str, FileFacts | bytes | Problem] = {}
        for path, (changed, size, start, end) in index.items():
            stamps[path] = (changed, size)
            facts[path] = cast("bytes", view[start:end])  # read like bytes, but not copied
        for path, (changed, size, problem) in problems.items():
            stamps[path] = (changed, size)
            facts[path] = Problem(*problem)
        return Kept(stamps, facts, pickle.loads(findings), trace)  # noqa: S301  our own file
    except (OSError, ValueError, EOFError, TypeError, KeyError, AttributeError, pickle.UnpicklingError):
        return None  # absent, damaged or from another time: it is made anew


def save(folder: Path, context: str, kept: Kept) -> None:
    """Keep what a run found out. A folder that cannot be written keeps nothing; the run itself is not touched by it."""
    problems = {}
    blobs: list[bytes] = []
    places: dict[str, tuple[int, int, int, int]] = {}
    position = 0
    for path, facts in kept.facts.items():
        changed, size = kept.stamps[path]
        if isinstance(facts, Problem):
            problems[path] = (changed, size, astuple(facts))
            continue
        places[path] = (changed, size, position, position + len(facts))
        blob = facts.pack() if isinstance(facts, FileFacts) else facts
        blobs.append(blob)
        places[path] = (changed, size, position, position + len(blob))
        position += len(blob)
    findings = pickle.dumps(kept.findings, protocol=pickle.HIGHEST_PROTOCOL)
    header = marshal.dumps((_key(context), places, problems, findings, kept.trace))
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        ignore = folder / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n", encoding="utf-8")
        handle, name = tempfile.mkstemp(dir=folder, prefix="facts-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(len(header).to_bytes(8, "little"))
                file.write(header)
                file.writelines(blobs)
            Path(name).replace(folder / _NAME)
        except OSError:
            Path(name).unlink()
            raise
