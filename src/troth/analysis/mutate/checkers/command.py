"""Score any command that names the lines it objects to, as `path:line` or as JSON."""

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence

from troth.analysis.mutate.checkers.checker import CheckedPart, Checker, CheckerError, Sightings, end_of, relative_to
from troth.analysis.mutate.measure.diagnostic import Sighting
from troth.analysis.mutate.measure.process import Finished
from troth.errors import MisuseError

__all__ = ["DEFAULT_PATTERN", "command_checker"]

DEFAULT_PATTERN = (
    r"^\s*(?:-->\s*)?(?P<path>(?:[A-Za-z]:[\\/])?[^:\r\n]+?\.pyi?)"
    r":(?P<line>\d+)(?::(?P<column>\d+))?:?\s*(?P<message>.*)$"
)

# What a shell answers when there is no such command (127), it cannot be run (126) or a signal ended it (128 and up).
_SHELL_FAILURES = 126


def command_checker(command: str, *, pattern: str = "", kind: str = "") -> Checker:
    """A checker out of a command line.

    `{root}` stands for the copy and `{files}` for the chosen files, quoted for the shell; the command runs in the root
    of the copy. `pattern` is a regular expression with the groups `path` and `line`, and perhaps `code` and `message`.
    `kind` limits what counts: code and message have to match it.
    """
    shape = _compiled("--pattern", pattern or DEFAULT_PATTERN)
    missing = {"path", "line"} - set(shape.groupindex)
    if missing:
        raise MisuseError(
            f"The pattern {pattern!r} has no group {' and no group '.join(sorted(missing))}.\n"
            "Nothing was done: without path and line it is unknown which mutant was seen.\n"
            r"Write groups such as `(?P<path>[^:]+):(?P<line>\d+)`."
        )
    _compiled("--kind", kind)

    def line(scope: CheckedPart) -> str:
        return command.replace("{root}", _quoted([str(scope.root)])).replace("{files}", _quoted(scope.files))

    def read(process: Finished, scope: CheckedPart) -> Sightings:
        if process.code is None or process.code < 0 or process.code >= _SHELL_FAILURES:
            raise CheckerError(end_of(process))
        listed = _from_json(process.stdout, scope)
        if listed is not None:
            return listed
        if process.code != 0 and "Traceback (most recent call last)" in process.stderr:
            raise CheckerError(end_of(process))
        return _from_lines(process.stdout + "\n" + process.stderr, shape, scope)

    return Checker(name="", label=command, command=line, read=read, kind=kind)


def _compiled(option: str, pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as problem:
        raise MisuseError(
            f"{option} {pattern!r} is not a regular expression: {problem}.\nNothing was done.\nCorrect the pattern."
        ) from problem


def _quoted(words: Sequence[str]) -> str:
    return subprocess.list2cmdline(words) if sys.platform == "win32" else shlex.join(words)


def _from_json(text: str, scope: CheckedPart) -> Sightings | None:
    """The findings of a JSON array of objects with a path and a line, or None if the text is no such thing.

    The array may also stand under `findings` in an object, as `troth check` prints it.
    """
    if not text.lstrip().startswith(("[", "{")):
        return None
    try:
        rows = json.loads(text)
    except ValueError:
        return None
    if isinstance(rows, dict):
        rows = rows.get("findings")
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        return None
    sightings: Sightings = []
    for row in rows:
        path = row.get("path") or row.get("filename") or row.get("file")
        line = row.get("line") or (row.get("location") or {}).get("row")
        if not isinstance(path, str) or not isinstance(line, int):
            return None
        words = " ".join(str(row[key]) for key in ("rule", "message") if row.get(key))
        sightings.append(Sighting(relative_to(scope.root, path), line, str(row.get("code") or ""), words))
    return sightings


def _from_lines(text: str, shape: re.Pattern[str], scope: CheckedPart) -> Sightings:
    sightings: Sightings = []
    for line in text.splitlines():
        match = shape.search(line)
        if match:
            parts = match.groupdict()
            path = relative_to(scope.root, parts["path"])
            sightings.append(Sighting(path, int(parts["line"]), parts.get("code") or "", parts.get("message") or ""))
    return sightings
