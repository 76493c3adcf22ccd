"""Keep facts and findings between runs, so that the next one reads only what it needs.

There are two files. `facts.bin` is written by a run that looked at everything: the facts of all files, the tables over
all of them, and what was read for the sake of each; a marshalled list of contents tells where each piece is, and only
pieces that are asked for are cut out. `since.bin` is written by every run after that: the facts of the files that
changed since, all findings, and what the files looked at again have read. It names the `facts.bin` it belongs to, so
that one that was replaced meanwhile makes it void. Every piece has a checksum, which is looked at when it is used. Both
files are replaced as a whole: two runs at once at worst do the same work twice.
"""

import marshal
import mmap
import os
import sys
from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast

from troth import __version__
from troth.analysis.facts.checksum import DamagedError, opened, sealed
from troth.analysis.facts.model import FACTS_VERSION, FileFacts
from troth.analysis.findings import Edit, Finding, Fix, Reason, Span
from troth.analysis.source.problem import Problem

__all__ = ["TOO_MANY_CHANGED", "Base", "Kept", "Stamp", "load", "replaced", "save", "stamp", "stamp_of", "unpacked"]

Stamp = tuple[int, int]  # when it was changed, and how long it is
_BASE = "facts.bin"
_SINCE = "since.bin"
_FORMAT = 4  # of these two files
TOO_MANY_CHANGED = 41  # files; where so many have changed all are looked at again, to tell who reads what now
_LENGTH = 8  # bytes of the number at the end of a base: how long its list of contents is
_Stored = FileFacts | bytes | Problem


def stamp(path: str) -> Stamp:
    """What tells a changed file from an unchanged one without reading it."""
    try:
        status = os.stat(path)  # noqa: PTH116  thousands of them
    except OSError:
        return (0, -1)
    return (status.st_mtime_ns, status.st_size)


def stamp_of(data: bytes) -> Stamp:
    """The same for a text that is not on the disk: its digest, below zero, as no time is."""
    from hashlib import blake2b  # late: hardly any run has such a text

    return (-1 - int.from_bytes(blake2b(data, digest_size=7).digest(), "little"), len(data))


class Base(NamedTuple):
    """What a run left that looked at everything: pieces by name, unpacked when they are asked for."""

    name: bytes
    facts: Mapping[str, bytes]
    pieces: Mapping[str, bytes]

    def get(self, name: str) -> Any:
        """The piece of that name, None where there is none."""
        piece = self.pieces.get(name)
        return None if piece is None else marshal.loads(opened(piece))  # noqa: S302  our own file


class Kept(NamedTuple):
    """What earlier runs left: facts by path with their stamps, and all findings; facts on disk are packed.

    `trace` is plain data of the last run, packed where it comes from the disk; `base` is what the last full run left.
    """

    stamps: Mapping[str, Stamp]
    facts: Mapping[str, _Stored]
    findings: tuple[Finding, ...]
    trace: Any = None
    base: Base | None = None
    since: Collection[str] = ()  # the files that changed since the base was made

    def findings_beyond(self, walked: Collection[str], readable: Container[str]) -> list[Finding]:
        """The findings of files that are not asked again and can still be read."""
        return [f for f in self.findings if f.span.path not in walked and f.span.path in readable]


def _key(context: str) -> str:
    return f"{__version__} {FACTS_VERSION} {_FORMAT} {sys.version_info[:2]} {marshal.version} {context}"


def load(folder: Path, context: str) -> Kept | None:
    """What is kept in `folder`, if it was made by the same Troth in the same `context`."""
    try:
        view = _mapped(folder / _BASE)
        end = len(view) - _LENGTH
        contents = view[max(0, end - int.from_bytes(view[end:], "little")) : end]
        key, name, files, places = marshal.loads(opened(cast("bytes", contents)))  # noqa: S302  our own
        if key != _key(context):
            return None
        stamps: dict[str, Stamp] = {}
        facts: dict[str, _Stored] = {}
        packed: dict[str, bytes] = {}
        for path, (changed, size, start, end) in files.items():
            stamps[path] = (changed, size)
            packed[path] = facts[path] = cast("bytes", view[start:end])  # read like bytes, but not copied
        pieces = {piece: cast("bytes", view[start:end]) for piece, (start, end) in places.items()}
        base = Base(name, packed, pieces)
        of, since, problems, findings, trace = marshal.loads(opened((folder / _SINCE).read_bytes()))  # noqa: S302  our own
        if of != name:
            return None
        for path, (changed, size, blob) in since.items():
            stamps[path], facts[path] = (changed, size), blob
        for path, (changed, size, problem) in problems.items():
            stamps[path], facts[path] = (changed, size), Problem(*problem)
        return Kept(stamps, facts, tuple(map(_finding, findings)), trace, base, (*since, *problems))
    except (OSError, DamagedError, ValueError, TypeError, EOFError):
        return None  # absent, damaged or from another time: it is made anew


def save(folder: Path, context: str, outcome: Kept, pieces: Iterable[tuple[str, Any]] | None) -> None:
    """Keep what a run found out; with `pieces`, it is a new base.

    A folder that cannot be written keeps nothing; the run itself is not touched by it.
    """
    try:
        folder.mkdir(exist_ok=True)  # only this one: the project around it may have been deleted meanwhile
        ignore = folder / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n", encoding="utf-8")
        base = outcome.base
        if pieces is not None or base is None:
            base = _save_base(folder, context, outcome, pieces or ())
        since = {}
        problems = {}
        for path, facts in outcome.facts.items():
            if isinstance(facts, Problem):
                problems[path] = (*outcome.stamps[path], tuple(facts))
            elif path not in base.facts or path in outcome.since:
                blob = facts.pack() if isinstance(facts, FileFacts) else bytes(facts)
                since[path] = (*outcome.stamps[path], blob)
        findings = list(map(_plain, outcome.findings))
        # The trace is unpacked only where something has changed.
        trace = None if outcome.trace is None else marshal.dumps(outcome.trace)
        _replace(folder, _SINCE, [sealed(marshal.dumps((base.name, since, problems, findings, trace)))])
    except OSError:
        return  # the next run finds what the last one left, or nothing


def _save_base(folder: Path, context: str, outcome: Kept, pieces: Iterable[tuple[str, Any]]) -> Base:
    name = os.urandom(16)
    _replace(folder, _BASE, _laid_out(_key(context), name, outcome, pieces))
    return Base(name, {path: b"" for path, facts in outcome.facts.items() if not isinstance(facts, Problem)}, {})


def _laid_out(key: str, name: bytes, outcome: Kept, pieces: Iterable[tuple[str, Any]]) -> Iterator[bytes]:
    """The bytes of a base, piece by piece, so that they are never all in memory; its list of contents comes last."""
    files: dict[str, tuple[int, int, int, int]] = {}
    places: dict[str, tuple[int, int]] = {}
    position = 0
    for path, facts in outcome.facts.items():
        if not isinstance(facts, Problem):
            blob = facts.pack() if isinstance(facts, FileFacts) else facts
            files[path] = (*outcome.stamps[path], position, position + len(blob))
            position += len(blob)
            yield blob
    for piece, value in pieces:
        blob = sealed(marshal.dumps(value))
        places[piece] = (position, position + len(blob))
        position += len(blob)
        yield blob
    contents = sealed(marshal.dumps((key, name, files, places)))
    yield contents
    yield len(contents).to_bytes(_LENGTH, "little")


def unpacked(trace: bytes) -> Any:
    """What was kept as the trace of a run."""
    return marshal.loads(trace)  # noqa: S302  our own file


def _plain(finding: Finding) -> tuple[Any, ...]:
    """A finding as plain tuples, which are written and read in no time."""
    fix = finding.fix
    return (
        *finding[:2],
        tuple(finding.span),
        *finding[3:5],
        tuple(map(tuple, finding.reasons)),
        None if fix is None else (fix.title, fix.safety, tuple(map(tuple, fix.edits)), fix.is_resolved),
        *finding[7:],
    )


def _finding(plain: tuple[Any, ...]) -> Finding:
    code, rule, span, message, confidence, reasons, fix, *more = plain
    return Finding(
        code,
        rule,
        Span(*span),
        message,
        confidence,
        tuple(Reason(*reason) for reason in reasons),
        None if fix is None else Fix(fix[0], fix[1], tuple(Edit(*edit) for edit in fix[2]), fix[3]),
        *more,
    )


def replaced(folder: Path, name: str, blobs: Iterable[bytes]) -> bool:
    """Replace a file of the cache as a whole; whether that could be done."""
    try:
        _replace(folder, name, blobs)
    except OSError:
        return False
    return True


def _mapped(file: Path) -> memoryview:
    """The bytes of a file, of which only those that are looked at are read."""
    with file.open("rb") as opened:
        if os.name == "nt":  # there a file that is mapped cannot be replaced
            return memoryview(opened.read())
        return memoryview(mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ))


def _replace(folder: Path, name: str, blobs: Iterable[bytes]) -> None:
    import tempfile  # late: most runs have nothing to keep

    handle, written = tempfile.mkstemp(dir=folder, prefix="new-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.writelines(blobs)
        Path(written).replace(folder / name)
    except OSError:
        Path(written).unlink()
        raise
