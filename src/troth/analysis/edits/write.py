"""Knows how to change many files as one: all of them or none, also when the process is killed half-way.

Before the first file is replaced, the originals of all are laid beside a manifest in the project's cache folder. While
that manifest exists the change is unfinished: `recover` finds it at the next start and puts the originals back. A lock
tells a change that is under way from one that was cut short.
"""

import json
import os
import shutil
import stat
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from troth.analysis.edits.lock import Lock
from troth.errors import MisuseError, RunError

__all__ = ["Change", "Pending", "begin", "recover"]

FOLDER = ".troth_cache"
_JOURNAL = "unfinished"
_MANIFEST = "manifest.json"


@dataclass(frozen=True, slots=True)
class Change:
    """One file, by its path in the project, as it was read and as it shall be."""

    path: str
    before: bytes
    after: bytes


@dataclass(frozen=True, slots=True)
class Pending:
    """A change that is in the files but can still be taken back, all of it. End it with `keep` or `undo`."""

    root: Path
    lock: Lock

    def keep(self) -> None:
        """The change stands."""
        _journal(self.root).joinpath(_MANIFEST).unlink()  # the moment at which it is done
        shutil.rmtree(_journal(self.root))
        self.lock.release()

    def undo(self) -> None:
        """Put every file back as it was."""
        try:
            _take_back(self.root)
        finally:
            self.lock.release()


def begin(root: Path, changes: Sequence[Change]) -> Pending:
    """Write `changes` into the files under `root`.

    A file that is not as it was read is never overwritten: then nothing is written at all, and `MisuseError` names it.
    """
    lock = Lock(root / FOLDER / "lock")
    try:
        _begin(root, changes)
    except BaseException:
        lock.release()
        raise
    return Pending(root, lock)


def recover(root: Path) -> list[str]:
    """Take back a change that was never finished; return the paths that were put back.

    A file that somebody edited since then is left alone, and `RunError` says where its original lies.
    """
    if not _journal(root).exists():
        return []
    lock = Lock(root / FOLDER / "lock")
    try:
        return _take_back(root)
    finally:
        lock.release()


def _begin(root: Path, changes: Sequence[Change]) -> None:
    _take_back(root)
    moved = [change.path for change in changes if _bytes(root / change.path) != change.before]
    if moved:
        raise MisuseError(
            f"{', '.join(moved)}: changed on disk since it was read.\n"
            "Nothing was written, in no file, so as not to lose that change.\n"
            "Run the command again; it will work on the files as they are now."
        )
    locked = [change.path for change in changes if _is_read_only(root / change.path)]
    if locked:
        raise MisuseError(
            f"{', '.join(locked)}: may not be written (read-only).\n"
            "Nothing was written, in no file: the changes belong together.\n"
            "Give leave to write (`chmod u+w`), or leave the file out, then run the command again."
        )
    journal = _journal(root)
    journal.mkdir(parents=True)
    ignore = root / FOLDER / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n", encoding="utf-8")
    rows = []
    for number, change in enumerate(changes):
        _write(journal / str(number), change.before)
        rows.append({"path": change.path, "before": _digest(change.before), "after": _digest(change.after)})
    _write(journal / "manifest.new", json.dumps(rows).encode())
    (journal / "manifest.new").replace(journal / _MANIFEST)
    try:
        for change in changes:
            _replace(root / change.path, change.after)
    except OSError as problem:
        _take_back(root)
        raise RunError(
            f"{problem.filename or 'a file'}: could not be written ({problem.strerror}).\n"
            "All files were put back as they were.\n"
            "Make room or give leave to write, then run the command again."
        ) from problem


def _take_back(root: Path) -> list[str]:
    journal = _journal(root)
    manifest = journal / _MANIFEST
    if not manifest.exists():
        shutil.rmtree(journal, ignore_errors=True)  # killed before the first file was touched
        return []
    put_back: list[str] = []
    edited: list[str] = []
    for number, row in enumerate(json.loads(manifest.read_bytes())):
        path = root / row["path"]
        _beside(path).unlink(missing_ok=True)  # written half when the process was killed
        now = _digest(_bytes(path))
        if now == row["before"]:
            continue
        if now == row["after"]:
            _replace(path, (journal / str(number)).read_bytes())
            put_back.append(row["path"])
        else:
            edited.append(f"{row['path']} (original: {(journal / str(number)).relative_to(root).as_posix()})")
    if edited:
        raise RunError(
            f"An earlier change was cut short, and these files were edited since: {', '.join(edited)}.\n"
            "They were left alone, so that no edit of yours is lost; all others are back as they were.\n"
            f"Bring them in order by hand, then delete {journal.relative_to(root).as_posix()}."
        )
    manifest.unlink()
    shutil.rmtree(journal)
    return put_back


def _journal(root: Path) -> Path:
    return root / FOLDER / _JOURNAL


def _digest(data: bytes | None) -> str:
    return sha256(data).hexdigest() if data is not None else ""


def _bytes(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _write(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _is_read_only(path: Path) -> bool:
    """Whether somebody said so: it is no use to ask whether *we* could, as root could everything."""
    try:
        return not path.stat().st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH) or not os.access(path, os.W_OK)
    except FileNotFoundError:
        return False


def _replace(path: Path, data: bytes) -> None:
    """Replace the contents of `path` in one step, keeping its mode and owner; a link stays a link."""
    target = path.resolve()
    beside = _beside(path)
    try:
        _write(beside, data)
        shutil.copymode(target, beside)
        if hasattr(os, "chown"):
            owner, made = target.stat(), beside.stat()
            if (owner.st_uid, owner.st_gid) != (made.st_uid, made.st_gid):
                with suppress(PermissionError):  # only root can give a file away; the contents matter more
                    os.chown(beside, owner.st_uid, owner.st_gid)
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)


def _beside(path: Path) -> Path:
    target = path.resolve()
    return target.with_name(f".{target.name}.troth")
