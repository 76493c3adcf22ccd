"""Find which files of a project there are: what is copied, and which Python files may be changed in the copy."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from troth.analysis.project.globs import Globs, parse
from troth.analysis.project.optional_file import is_file_there
from troth.errors import MisuseError

__all__ = ["Layout", "find_root", "lay_out"]

_MARKERS = ("pyproject.toml", "setup.py", "setup.cfg", ".git", ".hg")

# Never copied: history, environments and caches. They are large, and no command should find them in the copy.
_SKIPPED = frozenset(
    (".git", ".hg", ".svn", ".tox", ".nox", ".eggs", "__pycache__", "node_modules", "__pypackages__", "site-packages")
) | frozenset(
    (".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis", ".pyrefly_cache", ".troth", ".troth_cache")
)

# What Python can import is copied even where git ignores it: a generated `_version.py` or a built extension is
# missing from the repository, and yet nothing runs without it.
_IMPORTABLE = (".py", ".pyi", ".so", ".pyd", ".dll", ".dylib")

# The `.gitignore` files from the root down to a directory, each with that directory as the prefix of its paths.
_Ignores = tuple[tuple[str, Globs], ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """The files of a project, relative to `root`, sorted, with forward slashes.

    `copied` is everything the copy consists of, `chosen` the Python files under the paths that were asked for, and
    `targets` those paths themselves, as a checker would be given them.
    """

    root: Path
    copied: tuple[str, ...]
    chosen: tuple[str, ...]
    targets: tuple[str, ...]


def find_root(paths: Sequence[Path]) -> Path:
    """The project around `paths`: the nearest directory upwards that holds all of them and looks like a project.

    Where nothing above looks like one, it is the nearest directory that holds them all.
    """
    holders = [path if path.is_dir() else path.parent for path in (path.resolve() for path in paths)]
    common = Path(os.path.commonpath(holders))
    for directory in (common, *common.parents):
        if directory != Path.home() and any((directory / marker).exists() for marker in _MARKERS):
            return directory
    return common


def lay_out(root: Path, paths: Sequence[Path], *, with_tests: bool) -> Layout:
    """Walk `root` once. Test files are chosen only `with_tests`, or where a path that was asked for lies in them."""
    root = root.resolve()
    targets = tuple(sorted({_relative(path, root) for path in paths}))
    copied = tuple(sorted(_walk(root)))
    chosen = tuple(
        path
        for path in copied
        if path.endswith(".py") and any(_is_chosen(path, target, with_tests=with_tests) for target in targets)
    )
    return Layout(root, copied, chosen, targets)


def _relative(path: Path, root: Path) -> str:
    absolute = path.resolve()
    if not absolute.exists():
        raise MisuseError(f"There is no {str(path)!r}.\nNothing was done.\nGive a file or a directory that exists.")
    if not absolute.is_relative_to(root):
        raise MisuseError(
            f"{str(path)!r} is not inside the project {str(root)!r}.\n"
            "Nothing was done: only what is copied can be changed.\n"
            "Name the project with `--root`, or run the command once per project."
        )
    return absolute.relative_to(root).as_posix()


def _is_chosen(path: str, target: str, *, with_tests: bool) -> bool:
    if path == target:
        return True
    inner = path if target == "." else path.removeprefix(f"{target}/") if path.startswith(f"{target}/") else None
    return inner is not None and (with_tests or _is_test(f"{target}/x.py") or not _is_test(inner))


def _is_test(path: str) -> bool:
    *directories, name = path.split("/")
    in_tests = any(directory in ("test", "tests", "testing") for directory in directories)
    return in_tests or name == "conftest.py" or name.startswith("test_") or name.endswith("_test.py")


def _walk(root: Path) -> Iterator[str]:
    stack: list[tuple[str, _Ignores]] = [("", ())]
    while stack:
        base, ignores = stack.pop()
        directory = root / base
        if is_file_there(own := directory / ".gitignore"):
            ignores = (*ignores, (base, parse(own.read_text(encoding="utf-8", errors="replace").splitlines())))
        try:
            with os.scandir(directory) as scan:
                entries = sorted(scan, key=lambda entry: entry.name)
        except PermissionError:
            continue  # the tests of the project, run by the same user, cannot read it either
        for entry in entries:
            path = base + entry.name
            if entry.is_dir(follow_symlinks=False):
                if not _is_skipped(entry, path, ignores):
                    stack.append((f"{path}/", ignores))
            elif _is_copied(entry, path, ignores):
                yield path


def _is_skipped(entry: "os.DirEntry[str]", path: str, ignores: _Ignores) -> bool:
    if entry.name in _SKIPPED or entry.name.endswith(".egg-info"):
        return True
    if is_file_there(Path(entry.path) / "pyvenv.cfg"):
        return True
    return _is_ignored(path, ignores, folder=True)


def _is_copied(entry: "os.DirEntry[str]", path: str, ignores: _Ignores) -> bool:
    if entry.name.endswith((".pyc", ".pyo")):
        return False
    if not (entry.is_symlink() or entry.is_file(follow_symlinks=False)):
        return False  # a socket or a pipe
    if not entry.is_symlink() and not os.access(entry.path, os.R_OK):
        return False
    return entry.name.endswith(_IMPORTABLE) or not _is_ignored(path, ignores, folder=False)


def _is_ignored(path: str, ignores: _Ignores, *, folder: bool) -> bool:
    """Whether git leaves the path out; of the files that say something, the nearest decides."""
    for base, globs in reversed(ignores):
        is_out = globs.says(path[len(base) :], folder=folder)
        if is_out is not None:
            return is_out
    return False
