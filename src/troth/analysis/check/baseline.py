"""Keep a file of findings that are known, so that only new ones are reported."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from troth.analysis.findings import Finding
from troth.analysis.old_codes import OldCode, current, is_old
from troth.analysis.report.fingerprint import Mark, mark, settle, still_defines
from troth.analysis.source.lines import Lines
from troth.errors import MisuseError, RunError

__all__ = ["Compared", "compare", "read_baseline", "renewed", "write_baseline"]

_VERSION = 1
_FIELDS = ("path", "symbol", "code", "subject", "text")


@dataclass(frozen=True, slots=True)
class Compared:
    """Findings that the baseline does not know, and what it knows that is repaired."""

    new: tuple[Finding, ...]
    repaired: tuple[Mark, ...]


def compare(findings: Sequence[Finding], recorded: Sequence[Mark], lines: Lines, reported: Collection[str]) -> Compared:
    """Hold findings against the baseline; what it says of files that were not looked at is left alone.

    `findings` are all that were found in the reported files, of whatever rule: one that is not asked for this time is
    not repaired.
    """
    settled = settle(recorded, [mark(finding, lines) for finding in findings], still_defines(lines))
    repaired = tuple(entry for entry in settled.gone if entry.path in reported or lines.data(entry.path) is None)
    return Compared(new=tuple(findings[index] for index in settled.new), repaired=repaired)


def read_baseline(file: Path) -> list[Mark]:
    """Read a baseline; one that is missing or is no baseline is refused."""
    import json

    try:
        document = json.loads(file.read_text(encoding="utf-8"))
        if document["version"] != _VERSION:
            raise ValueError(f"its version is {document['version']!r}; this version of Troth reads {_VERSION}")
        return [Mark(**{name: _text(entry[name]) for name in _FIELDS}) for entry in document["findings"]]
    except FileNotFoundError as problem:
        raise MisuseError(
            f"The baseline `{file}` does not exist.\n"
            "Nothing was checked, because every old finding would be reported as new.\n"
            "`--write-baseline` writes it."
        ) from problem
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise MisuseError(
            f"`{file}` is not a baseline: {problem}.\n"
            "Nothing was checked, because every old finding would be reported as new.\n"
            "Restore it from version control, or rewrite it with `--write-baseline`."
        ) from problem


def renewed(recorded: Sequence[Mark], file: Path) -> tuple[list[Mark], list[OldCode]]:
    """What the baseline `file` knows, by the codes of today; and the first old code in it."""
    old = [OldCode(entry.code, str(file)) for entry in recorded if is_old(entry.code)][:1]
    return [replace(entry, code=current(entry.code)) for entry in recorded] if old else list(recorded), old


def write_baseline(
    file: Path, findings: Sequence[Finding], lines: Lines, reported: Collection[str], before: Sequence[Mark] = ()
) -> int:
    """Write what is known today, sorted, one finding per line, and return how many there are.

    What the file said `before` about files that were not looked at this time stays in it.
    """
    import json
    import os

    unchecked = [entry for entry in before if entry.path not in reported and lines.data(entry.path) is not None]
    marks = sorted([*(mark(finding, lines) for finding in findings), *unchecked])
    rows = [json.dumps({name: getattr(entry, name) for name in _FIELDS}, ensure_ascii=False) for entry in marks]
    body = "\n" + ",\n".join(f"    {row}" for row in rows) + "\n  " if rows else ""
    text = f'{{\n  "version": {_VERSION},\n  "findings": [{body}]\n}}\n'
    beside = file.with_name(f"{file.name}.{os.getpid()}.new")
    try:
        beside.write_text(text, encoding="utf-8", errors="backslashreplace")  # as JSON escapes them
        beside.replace(file)
    except OSError as problem:
        beside.unlink(missing_ok=True)
        raise RunError(
            f"The baseline could not be written to `{file}`: {problem.strerror or problem}.\n"
            "The old one, if there was one, is unchanged.\n"
            "Name a file in a folder that exists and can be written: `--baseline FILE`."
        ) from problem
    return len(marks)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a string")
    return value
