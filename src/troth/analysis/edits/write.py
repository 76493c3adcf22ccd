"""Change many files as one: all of them or none, also when the process is killed half-way.

Before the first file is replaced, the originals of all are laid beside a manifest in the project's cache folder, or in
the user's own where that of the project cannot be written: it may be another user's. While that manifest exists the
change is unfinished: `recover` finds it at the next start and puts the originals back. A lock tells a change that is
under way from one that was cut short. The originals of the last finished change stay for `undo`.
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

__all__ = ["Change", "Pending", "begin", "recover", "reversal", "undo"]

FOLDER = ".troth_cache"
_JOURNAL = "unfinished"
_LAST = "last-change"
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
        last = self.lock.folder / _LAST
        shutil.rmtree(last, ignore_errors=True)
        (self.lock.folder / _JOURNAL).rename(last)  # the moment at which it is done
        self.lock.release()

    def undo(self) -> None:
        """Put every file back as it was."""
        try:
            _take_back(self.root, self.lock.folder)
        finally:
            self.lock.release()


def begin(root: Path, changes: Sequence[Change]) -> Pending:
    """Write `changes` into the files under `root`.

    A file that is not as it was read is never overwritten: then nothing is written at all, and `MisuseError` names it.
    """
    _refuse_read_only(root, changes)
    lock = _locked(root)
    try:
        _begin(root, lock.folder, changes)
    except BaseException:
        lock.release()
        raise
    return Pending(root, lock)


def recover(root: Path) -> list[str]:
    """Take back a change that was never finished; return the paths that were put back.

    A file that somebody edited since then is left alone, and `RunError` says where its original lies.
    """
    put_back: list[str] = []
    for folder in _folders(root):
        if not os.path.exists(folder / _JOURNAL):  # noqa: PTH110  `Path.exists` raises where it may not look
            continue
        try:
            lock = Lock(folder)
        except OSError as problem:
            raise RunError(
                f"An earlier change was interrupted, and `{folder}` cannot be written: {problem.strerror}.\n"
                "Nothing was done: some of its files may be changed, and others not.\n"
                "Run the command as the owner of that folder; it restores the files."
            ) from problem
        try:
            put_back += _take_back(root, folder)
        finally:
            lock.release()
    return put_back


def _locked(root: Path) -> Lock:
    """The lock in the first folder that can be written."""
    problems: list[str] = []
    for folder in _folders(root):
        try:
            return Lock(folder)
        except OSError as problem:
            problems.append(f"`{folder}` ({problem.strerror or problem})")
    raise MisuseError(
        f"There is no folder for the originals of the files that would change: {', '.join(problems)}.\n"
        "Nothing was written: an interrupted change could not be undone.\n"
        "Make one of them writable, or name another with the variable XDG_CACHE_HOME."
    )


def _folders(root: Path) -> list[Path]:
    """Where the lock and the originals may be: in the project, else with the user."""
    folders = [root / FOLDER]
    try:
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:  # nobody knows where the user is at home
        return folders
    return [*folders, home / "troth" / _digest(os.fsencode(root))[:16]] if home.is_absolute() else folders


def _refuse_read_only(root: Path, changes: Sequence[Change]) -> None:
    locked = [change.path for change in changes if _is_read_only(root / change.path)]
    if locked:
        raise MisuseError(
            f"{', '.join(locked)}: may not be written (read-only, or in a read-only folder).\n"
            "No file was written, because the changes belong together.\n"
            "Make it writable (`chmod u+w`) or exclude it, then run the command again."
        )


def undo(root: Path) -> list[str]:
    """Take back the last finished change, all of it; return the paths. Once more, and it is there again."""
    back = reversal(root)
    begin(root, back).keep()
    return [change.path for change in back]


def reversal(root: Path) -> list[Change]:
    """What would take back the last finished change.

    If there is none, or a file is not as it left it, `MisuseError` says so.
    """
    originals = [folder / _LAST for folder in _folders(root) if os.path.exists(folder / _LAST / _MANIFEST)]  # noqa: PTH110
    if not originals:
        raise MisuseError(
            f"There is no change to undo in `{root}`.\n"
            "Nothing was done.\n"
            f"What `troth fix` and `troth recolor` replace is kept in `{FOLDER}` until the next change."
        )
    last = max(originals, key=lambda folder: (folder / _MANIFEST).stat().st_mtime)
    rows = json.loads((last / _MANIFEST).read_bytes())
    now = [_bytes(root / row["path"]) for row in rows]
    edited = [row["path"] for row, data in zip(rows, now, strict=True) if _digest(data) != row["after"]]
    if edited:
        raise MisuseError(
            f"{', '.join(edited)}: edited since the change that would be undone.\n"
            "No file was written, so that no edit is lost.\n"
            f"The original files are in `{last}`."
        )
    return [
        Change(row["path"], data, (last / str(number)).read_bytes())
        for number, (row, data) in enumerate(zip(rows, now, strict=True))
        if data is not None
    ]


def _begin(root: Path, folder: Path, changes: Sequence[Change]) -> None:
    _take_back(root, folder)
    moved = [change.path for change in changes if _bytes(root / change.path) != change.before]
    if moved:
        raise MisuseError(
            f"{', '.join(moved)}: changed on disk since it was read.\n"
            "No file was written, so that this change is not lost.\n"
            "Run the command again; it uses the files as they are now."
        )
    try:
        _keep_originals(folder, changes)
    except OSError as problem:
        shutil.rmtree(folder / _JOURNAL, ignore_errors=True)
        raise RunError(
            f"{problem.filename or folder}: could not be written ({problem.strerror}).\n"
            "No file was changed, because its original could not be kept.\n"
            "Free disk space or make the file writable, then run the command again."
        ) from problem
    try:
        for change in changes:
            _replace(root / change.path, change.after)
    except OSError as problem:
        _take_back(root, folder)
        raise RunError(
            f"{problem.filename or 'a file'}: could not be written ({problem.strerror}).\n"
            "All files were restored.\n"
            "Free disk space or make the file writable, then run the command again."
        ) from problem


def _keep_originals(folder: Path, changes: Sequence[Change]) -> None:
    journal = folder / _JOURNAL
    journal.mkdir()
    ignore = folder / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n", encoding="utf-8")
    rows = []
    for number, change in enumerate(changes):
        _write(journal / str(number), change.before)
        rows.append({"path": change.path, "before": _digest(change.before), "after": _digest(change.after)})
    _write(journal / "manifest.new", json.dumps(rows).encode())
    (journal / "manifest.new").replace(journal / _MANIFEST)


def _take_back(root: Path, folder: Path) -> list[str]:
    journal = folder / _JOURNAL
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
            edited.append(f"{row['path']} (original: {_shown(journal / str(number), root)})")
    if edited:
        raise RunError(
            f"An earlier change was interrupted, and these files were edited since: {', '.join(edited)}.\n"
            "They were not changed, so that your edits are kept; all other files were restored.\n"
            f"Correct them by hand, then delete {_shown(journal, root)}."
        )
    manifest.unlink()
    shutil.rmtree(journal)
    return put_back


def _shown(path: Path, root: Path) -> str:
    return (path.relative_to(root) if path.is_relative_to(root) else path).as_posix()


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
    """Whether it cannot be replaced, or shall not: it is no use to ask whether *we* can, as root can everything."""
    try:
        is_meant = not path.stat().st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH)
    except FileNotFoundError:
        return False
    return is_meant or not os.access(path, os.W_OK) or not os.access(path.resolve().parent, os.W_OK)


def _replace(path: Path, data: bytes) -> None:
    """Replace the contents of `path` in one step, keeping its mode and owner; a link stays a link."""
    target = path.resolve()
    beside = _beside(path)
    try:
        _write(beside, data)
        shutil.copymode(target, beside)
        if hasattr(os, "chown"):
            owner, copy = target.stat(), beside.stat()
            if (owner.st_uid, owner.st_gid) != (copy.st_uid, copy.st_gid):
                with suppress(PermissionError):  # only root can give a file away; the contents matter more
                    os.chown(beside, owner.st_uid, owner.st_gid)
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)


def _beside(path: Path) -> Path:
    target = path.resolve()
    return target.with_name(f".{target.name}.troth")
