"""What a checker is to the one who scores it: a command line, and how to read what it prints."""

import json
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from troth.analysis.mutate.measure.diagnostic import Sighting
from troth.analysis.mutate.measure.process import Finished
from troth.errors import MisuseError

__all__ = [
    "CheckedPart",
    "Checker",
    "CheckerError",
    "Sightings",
    "end_of",
    "executable",
    "relative_to",
    "rows_of",
    "value_of",
]

Sightings = list[Sighting]


class CheckerError(Exception):
    """The checker did not do its work: it crashed, ran out of time, or said something that cannot be read."""


@dataclass(frozen=True, slots=True)
class CheckedPart:
    """What a checker is let loose on: the root of the copy, the paths asked for, and the Python files under them.

    `import_roots` are the directories that absolute imports start from, relative to the root as the paths are;
    `has_namespaces` tells of packages without an `__init__.py`.
    `scratch` is a directory outside the copy for caches and settings.
    """

    root: Path
    targets: tuple[str, ...]
    files: tuple[str, ...]
    import_roots: tuple[str, ...]
    has_namespaces: bool
    scratch: Path


@dataclass(frozen=True, slots=True)
class Checker:
    """One checker. `name` is a preset's name, or empty for a command of the user's.

    `read` raises `CheckerError` where the run was no run: presets know their exit codes, so that a crash is never
    taken for silence. `kind` limits what counts as the right kind; it is empty for presets, whose kinds the
    operators know.
    """

    name: str
    label: str
    command: Callable[[CheckedPart], str | Sequence[str]]
    read: Callable[[Finished, CheckedPart], Sightings]
    kind: str = ""


def executable(name: str) -> str:
    """The program of that name: beside the running Python if it is there, else on the path."""
    beside = shutil.which(name, path=str(Path(sys.executable).parent))
    program = beside or shutil.which(name)
    if program is None:
        raise MisuseError(
            f"`{name}` is not installed: it is neither beside this Python ({sys.executable}) nor on the path.\n"
            "Nothing was done.\n"
            f"Install it (`pip install {name}`), or give its command with `--checker`."
        )
    return program


def relative_to(root: Path, path: str) -> str:
    """`path`, as a checker printed it, relative to the root of the copy; a path outside stays as it is."""
    printed = Path(path)
    whole = printed if printed.is_absolute() else root / printed
    for base in (root, root.resolve()):
        if whole.is_relative_to(base):
            return whole.relative_to(base).as_posix().removeprefix("./")
    resolved = whole.resolve()
    return resolved.relative_to(root.resolve()).as_posix() if resolved.is_relative_to(root.resolve()) else path


def value_of(process: Finished, *, fine: tuple[int, ...]) -> Any:
    """The JSON that a tool printed; raises `CheckerError` unless it ended with one of the `fine` codes."""
    if process.code not in fine:
        raise CheckerError(end_of(process))
    try:
        return json.loads(process.stdout)
    except ValueError as problem:
        raise CheckerError(f"it printed no JSON ({problem}):\n{process.tail}") from problem


def rows_of(process: Finished, *, fine: tuple[int, ...], by_line: bool = False) -> list[Any]:
    """The rows of a JSON array that a tool printed, or of one JSON object `by_line`."""
    if not by_line:
        rows = value_of(process, fine=fine)
        if not isinstance(rows, list):
            raise CheckerError(f"it printed no JSON array:\n{process.tail}")
        return rows
    if process.code not in fine:
        raise CheckerError(end_of(process))
    return [json.loads(line) for line in process.stdout.splitlines() if line.startswith("{")]


def end_of(process: Finished) -> str:
    """How a run ended, and its last words."""
    how = "it reached the time limit" if process.code is None else f"it ended with {process.code}"
    return f"{how}:\n{process.tail}"
