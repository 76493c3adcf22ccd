"""Find which directories of the project its absolute imports start from, as checkers and test runs have to be told.

A wrong one does harm: with a namespace package on the path, its `typing.py` stands in for the standard library's and
nothing works any more. So a directory is taken only if nothing speaks against it.
"""

import re
import sys
from collections.abc import Iterable, Iterator

from troth.analysis.mutate.source.project import MutatedProject

__all__ = ["has_namespaces", "import_roots"]

_IMPORTED = re.compile(r"^[ \t]*(?:from|import)[ \t]+([\w.]+)", re.MULTILINE)


def import_roots(project: MutatedProject) -> tuple[str, ...]:
    """The directories, relative to the root of the project, `.` for the root itself.

    Each file names one: the directory above its topmost package, or its own. That directory is no root but a package
    without an `__init__.py` if files of the project import from it by its name; then the one above it is tried.
    """
    packages = _packages(project)
    imported = frozenset(_imported_names(project))
    roots = {_root_above(path.rpartition("/")[0], packages, imported) for path in project.sources}
    return tuple(sorted(root or "." for root in roots if not root or not _hides_library(root, project)))


def has_namespaces(project: MutatedProject) -> bool:
    """Whether some file lies in a package that neither has an `__init__.py` nor lies in one that has."""
    packages = _packages(project)
    roots = {"" if root == "." else root for root in import_roots(project)}
    folders = {path.rpartition("/")[0] for path in project.sources}
    return any(folder not in roots and _topmost(folder, packages) is None for folder in folders)


def _packages(project: MutatedProject) -> set[str]:
    return {path.removesuffix("/__init__.py") for path in project.sources if path.endswith("/__init__.py")}


def _root_above(folder: str, packages: set[str], imported: frozenset[str]) -> str:
    topmost = _topmost(folder, packages)
    if topmost is not None:
        folder = topmost.rpartition("/")[0]
    while folder and _is_named(folder, imported):
        folder = folder.rpartition("/")[0]
    return folder


def _topmost(folder: str, packages: set[str]) -> str | None:
    """The outermost package around the folder, which may itself hold only scripts or templates."""
    topmost = None
    while folder:
        topmost = folder if folder in packages else topmost
        folder = folder.rpartition("/")[0]
    return topmost


def _is_named(folder: str, imported: frozenset[str]) -> bool:
    """Whether imports speak of the folder, from the root or from a `src` of the project."""
    parts = folder.split("/")
    starts = [0, *(index + 1 for index, part in enumerate(parts[:-1]) if part == "src")]
    return any(".".join(parts[start:]) in imported for start in starts)


def _imported_names(project: MutatedProject) -> Iterator[str]:
    """Every dotted name that is imported, and those above it."""
    for source in project.sources.values():
        for name in set(_IMPORTED.findall(source.text)):
            yield from _with_those_above(name)


def _with_those_above(name: str) -> Iterable[str]:
    while name:
        yield name
        name = name.rpartition(".")[0]


def _hides_library(root: str, project: MutatedProject) -> bool:
    """Whether a module right below `root` has the name of one in the standard library."""
    below = (path.removeprefix(f"{root}/") for path in project.sources if path.startswith(f"{root}/"))
    return any(
        inner.removesuffix(".py").split("/")[0] in sys.stdlib_module_names for inner in below if "/" not in inner
    )
