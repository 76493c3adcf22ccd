"""Keep a copy of a project in which mutants come and go; the project itself is only ever read."""

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from troth.analysis.mutate.source.discover import Layout
from troth.analysis.mutate.source.text import SourceText

__all__ = ["ProjectCopy", "workspace"]


class ProjectCopy:
    """One copy of the project, in a directory of its own that is removed at the end."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._writes = 0

    @contextmanager
    def holding(self, changed: Iterable[SourceText], originals: Mapping[str, SourceText]) -> Iterator[None]:
        """Put the changed texts in place for as long as the block runs, and then the original bytes back."""
        written: list[str] = []
        try:
            for source in changed:
                written.append(source.path)
                self._write(source)
            yield
        finally:
            for path in written:
                self._write(originals[path])

    def _write(self, source: SourceText) -> None:
        path = self.root / source.path
        path.write_bytes(source.encode())
        # Compiled files are recognised by size and by the *second* of the last change, and two mutants of one file
        # have the same size more often than not. So every write gets a second of its own.
        self._writes += 1
        seconds = int(path.stat().st_mtime) + self._writes
        os.utime(path, (seconds, seconds))


@contextmanager
def workspace(layout: Layout) -> Iterator[ProjectCopy]:
    """Copy the project; the copy is gone when the block ends, however it ends."""
    with tempfile.TemporaryDirectory(prefix="troth-mutate-", ignore_cleanup_errors=True) as directory:
        # The project's own name is kept: some checkers and tests take module names from the directories above.
        root = Path(directory).resolve() / (layout.root.name or "project")
        root.mkdir()
        for path in layout.copied:
            _copy(layout.root, root, path)
        yield ProjectCopy(root)


def _copy(source_root: Path, target_root: Path, path: str) -> None:
    source, target = source_root / path, target_root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_symlink():
        _copy_link(source, target, source_root)
    else:
        shutil.copy2(source, target)
        if not os.access(target, os.W_OK):
            target.chmod(target.stat().st_mode | 0o200)


def _copy_link(link: Path, target: Path, source_root: Path) -> None:
    """A link that stays inside the project stays a link; one that leads out becomes what it leads to, if a file.

    A link to a directory outside is left as a link to the same directory, so that it can be read; the mutants are
    never written through it, because what lies behind a link is not walked.
    """
    goal = link.resolve()
    written = link.readlink()
    if goal.is_relative_to(source_root):
        inside = os.path.relpath(goal, link.parent) if written.is_absolute() else str(written)
        target.symlink_to(inside, target_is_directory=goal.is_dir())
    elif goal.is_file():
        shutil.copy2(goal, target)
    else:
        target.symlink_to(goal, target_is_directory=goal.is_dir())
