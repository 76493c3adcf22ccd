"""List the source files of a folder: what `.gitignore` hides and what nobody wrote is left out."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from troth.analysis.project.globs import Globs, parse

__all__ = ["SUFFIXES", "Listing", "hiding", "is_foreign", "is_hidden", "is_source", "list_files"]

SUFFIXES = (".py", ".pyi", ".ipynb", ".pyw")

# Folders that hold what tools have written, whatever project they are in.
_FOREIGN_FOLDERS = frozenset({
    ".bzr", ".direnv", ".eggs", ".git", ".hg", ".hypothesis", ".idea", ".ipynb_checkpoints", ".mypy_cache", ".nox",
    ".pants.d", ".pyenv", ".pytest_cache", ".pytype", ".ruff_cache", ".svn", ".tox", ".troth", ".troth_cache", ".venv",
    ".vscode", "__pycache__", "__pypackages__", "bower_components", "buck-out", "node_modules", "site-packages", "venv",
})  # fmt: skip
# The same, unless they are packages: there is code in real projects under `pkg/build/__init__.py`.
_BUILD_OUTPUT = frozenset({"_build", "build", "dist", "env"})
_ENVIRONMENT = frozenset({"pyvenv.cfg", "conda-meta"})
_MARKERS = frozenset({"pyproject.toml", "setup.py", "setup.cfg", "troth.toml"})


class Listing(NamedTuple):
    """Files below a folder, sorted, and the folders among them that hold a packaging or settings file.

    `unread` are the folders that could not be looked into, each with the reason.
    """

    files: tuple[str, ...]
    marked: tuple[str, ...]
    unread: tuple[tuple[str, str], ...] = ()


def list_files(root: Path, start: str = "", *, excluded: Callable[[str, bool], bool] | None = None) -> Listing:
    """List what lies below `start`, a folder in `root`; all paths are relative to `root`.

    `excluded(path, is_folder)` keeps out what the user does not want. Links to folders are not followed, so that a
    loop of them ends and nothing is read twice; a link to a file is read if the file lies outside of `root`.
    """
    walk = _Walk(root, excluded)
    above = [] if is_hidden(root, start) else _globs_above(root, start)
    walk.folder(start, above)
    files = walk.files
    if walk.held_back:
        files = files + [
            path
            for path in _tracked_though_ignored(root, start)
            if is_source(path, excluded) and (root / path).is_file()
        ]
    return Listing(tuple(sorted(set(files))), tuple(sorted(walk.marked)), tuple(sorted(walk.unread)))


def is_source(path: str, excluded: Callable[[str, bool], bool] | None = None) -> bool:
    """Whether a path that somebody else names (git, mostly) is one that a walk would have taken."""
    parts = path.split("/")
    if not path.endswith(SUFFIXES) or not _FOREIGN_FOLDERS.isdisjoint(parts[:-1]):
        return False
    if excluded is None:
        return True
    folders = ("/".join(parts[:end]) for end in range(1, len(parts)))
    return not any(excluded(folder, True) for folder in folders) and not excluded(path, False)


def is_foreign(path: str) -> bool:
    """Whether a folder lies in what tools have put into a project: an environment, a cache, installed packages."""
    return not _FOREIGN_FOLDERS.isdisjoint(path.split("/"))


def is_hidden(root: Path, path: str) -> bool:
    """Whether a `.gitignore` in `root` or in a folder on the way hides the folder `path`."""
    return hiding(root)(path)


def hiding(root: Path) -> Callable[[str], bool]:
    """The same question for many folders of one tree: each `.gitignore` is read once."""
    read: dict[str, list[tuple[str, Globs]]] = {}

    def hides(path: str) -> bool:
        if not path:
            return False
        parts = path.split("/")
        globs: list[tuple[str, Globs]] = []
        for end in range(len(parts)):
            folder = "/".join(parts[:end])
            if folder not in read:
                read[folder] = _globs_of(root, folder)
            globs += read[folder]
            if _ignored(f"{folder}/{parts[end]}" if folder else parts[end], globs, folder=True):
                return True
        return False

    return hides


class _Walk:
    """One walk over the disk and what it has gathered so far."""

    def __init__(self, root: Path, excluded: Callable[[str, bool], bool] | None) -> None:
        self.root = root
        self.excluded = excluded
        self.files: list[str] = []
        self.marked: list[str] = []
        self.unread: list[tuple[str, str]] = []
        self.held_back = False  # whether a `.gitignore` hid something that may hold source

    def folder(self, start: str, above: list[tuple[str, Globs]]) -> None:
        stack = [(start, above)]
        while stack:
            path, globs = stack.pop()
            try:
                with os.scandir(self.root / path if path else self.root) as scan:
                    entries = list(scan)
            except (FileNotFoundError, NotADirectoryError):
                continue  # gone since the folder around it was read
            except OSError as problem:
                self.unread.append((path, problem.strerror or str(problem)))
                continue
            names = {entry.name for entry in entries}
            if path != start and self._is_not_source(path, names):
                continue
            if not names.isdisjoint(_MARKERS) and not (names & _MARKERS == {"setup.py"} and "__init__.py" in names):
                self.marked.append(path)  # a `setup.py` inside a package is one of its modules
            own_globs = globs + _globs_of(self.root, path) if ".gitignore" in names or not path else globs
            base = f"{path}/" if path else ""
            for entry in entries:
                inner = base + entry.name
                if entry.is_dir(follow_symlinks=False):
                    if entry.name not in _FOREIGN_FOLDERS and self._keeps(inner, own_globs, folder=True):
                        stack.append((inner, own_globs))
                elif (
                    entry.name.endswith(SUFFIXES)
                    and self._is_file(entry)
                    and self._keeps(inner, own_globs, folder=False)
                ):
                    self.files.append(inner)

    def _keeps(self, path: str, globs: list[tuple[str, Globs]], *, folder: bool) -> bool:
        if globs and _ignored(path, globs, folder=folder):
            self.held_back = True
            return False
        return self.excluded is None or not self.excluded(path, folder)

    def _is_file(self, entry: os.DirEntry[str]) -> bool:
        if not entry.is_symlink():
            return entry.is_file()
        target = os.path.realpath(entry.path)
        return os.path.isfile(target) and not target.startswith(os.path.realpath(self.root) + os.sep)  # noqa: PTH113

    @staticmethod
    def _is_not_source(path: str, names: set[str]) -> bool:
        if not names.isdisjoint(_ENVIRONMENT):
            return True
        return path.rsplit("/", 1)[-1] in _BUILD_OUTPUT and "__init__.py" not in names


def _ignored(path: str, globs: list[tuple[str, Globs]], *, folder: bool) -> bool:
    """What the nearest `.gitignore` that has an opinion says."""
    for base, pattern_file in reversed(globs):
        answer = pattern_file.says(path[len(base) :], folder=folder)
        if answer is not None:
            return answer
    return False


def _globs_above(root: Path, start: str) -> list[tuple[str, Globs]]:
    parts = start.split("/") if start else []
    collected: list[tuple[str, Globs]] = []
    for end in range(len(parts)):
        collected += _globs_of(root, "/".join(parts[:end]))
    return collected


def _globs_of(root: Path, folder: str) -> list[tuple[str, Globs]]:
    """The patterns that start at `folder`; those of the repository alone (`.git/info/exclude`) stand before them.

    A user's global excludes are left alone: the same tree gets the same answer on every machine.
    """
    names = [".gitignore"] if folder else [".git/info/exclude", ".gitignore"]
    base = f"{folder}/" if folder else ""
    collected = []
    for name in names:
        try:
            text = (root / folder / name).read_text(encoding="utf-8", errors="surrogateescape")
        except OSError:
            continue
        collected.append((base, parse(text.splitlines(), SUFFIXES)))
    return collected


def _tracked_though_ignored(root: Path, start: str) -> list[str]:
    """Files under version control that a `.gitignore` would hide: git does not ignore them, so neither do we.

    Asked only where something was held back. Without git, or outside of a repository, there are none.
    """
    import subprocess  # late: most projects never get here

    command = ["git", "-c", "core.fsmonitor=false", "ls-files", "-z", "--cached", "--ignored", "--exclude-standard"]
    try:
        process = subprocess.run(
            [*command, "--", *(f":(glob)**/*{suffix}" for suffix in SUFFIXES)],
            cwd=root / start,
            capture_output=True,
            timeout=20,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    if process.returncode != 0:
        return []
    base = f"{start}/" if start else ""
    return [base + os.fsdecode(name) for name in process.stdout.split(b"\0") if name]
