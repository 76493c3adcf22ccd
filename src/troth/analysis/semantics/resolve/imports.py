"""Find which file of the project an import means."""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from troth.analysis.facts.model import FileFacts

__all__ = ["ModuleFinder", "importers", "module_finder"]


@lru_cache(maxsize=4)
def module_finder(paths: tuple[str, ...], source_roots: tuple[str, ...]) -> ModuleFinder:
    """The finder of a project; whoever looks at the same files again gets the same one."""
    return ModuleFinder(paths, source_roots)


class ModuleFinder:
    """Finds files by dotted module names.

    Source roots come first. A name that no root explains is looked for by the end of its path: layouts that put their
    folders on `sys.path` themselves are common, and the nearest file that fits is nearly always the one meant.
    """

    def __init__(self, paths: Iterable[str], source_roots: Sequence[str]) -> None:
        self._by_name: dict[str, list[str]] = {}
        self._by_last: dict[str, list[tuple[str, ...]]] = {}
        self._names: dict[str, str] = {}
        self._folders: set[tuple[str, ...]] = set()
        self._found: dict[tuple[str, str], str | None] = {}
        every = {root.strip("/") for root in source_roots} | {""}
        above: dict[str, list[int]] = {}  # for each folder, the length of the roots that it lies in, the longest first
        for path in paths:
            if not path.endswith((".py", ".pyi")):
                continue
            inside = path[: path.rindex(".")]
            inside = inside.removesuffix("/__init__") if inside != "__init__" else ""
            if not inside:
                continue
            parts = tuple(inside.split("/"))
            self._by_last.setdefault(parts[-1], []).append((path, *parts))
            folder = inside.rpartition("/")[0]
            lengths = above.get(folder)
            if lengths is None:
                ends = range(len(parts) - 1, -1, -1)
                lengths = above[folder] = [end for end in ends if "/".join(parts[:end]) in every]
                self._folders.update(parts[:end] for end in range(1, len(parts)))
            for end in lengths:
                name = ".".join(parts[end:])
                self._by_name.setdefault(name, []).append(path)
                self._names.setdefault(path, name)

    def name_of(self, path: str) -> str:
        """The dotted name of a file, seen from its most specific source root."""
        return self._names.get(path, path)

    def find(self, name: str, importer: str) -> str | None:
        """The file that `import name` means in the file `importer`, None where the project has none."""
        key = (name, importer.rpartition("/")[0])
        if key not in self._found:
            self._found[key] = self._look(name, importer)
        return self._found[key]

    def _look(self, name: str, importer: str) -> str | None:
        direct = self._by_name.get(name)
        if direct:
            return self._beside(name, importer) or self._nearest(direct, importer)
        fitting = self._fitting(name)
        if not fitting:
            return None
        if "." not in name:  # a single word fits too much: only a file beside the importer, or above it
            folder = f"{importer.rpartition('/')[0]}/" if "/" in importer else ""
            fitting = [
                f
                for f in fitting
                if importer.startswith(_folder_of(f))
                and (
                    f"{_folder_of(f)}__init__.py" not in self._names
                    or (_folder_of(f) == folder and name not in sys.stdlib_module_names)
                )
            ]
            if not fitting:
                return None
        return self._nearest(fitting, importer)

    def namesakes(self, name: str, importer: str) -> list[str]:
        """All files that a module of that name could be, the nearest to the importer first."""
        return sorted(self._fitting(name), key=_distance(importer))

    def _fitting(self, name: str) -> list[str]:
        """The files whose path ends as the name does."""
        parts = tuple(name.split("."))
        return [entry[0] for entry in self._by_last.get(parts[-1], ()) if entry[1:][-len(parts) :] == parts]

    def _beside(self, name: str, importer: str) -> str | None:
        """The neighbour of a script: its folder, which is no package, comes first on `sys.path` when it is run."""
        folder = importer[: importer.rfind("/") + 1]
        if f"{folder}__init__.py" in self._names or name in sys.stdlib_module_names:
            return None
        base = folder + name.replace(".", "/")
        return next(
            (path for path in (f"{base}.py", f"{base}/__init__.py") if path in self._names and path != importer), None
        )

    def has_folder(self, name: str, importer: str) -> bool:
        """Whether `name` is a package of the project without a file of its own."""
        parts = tuple(name.split("."))
        if any(folder[-len(parts) :] == parts for folder in (parts,) if folder in self._folders):
            return True
        base = tuple(importer.split("/")[:-1])
        return any(base[:count] + parts in self._folders for count in range(len(base), -1, -1))

    def relative(self, importer: str, level: int, module: str) -> str | None:
        """The file that `from ..module import …` means."""
        folder = importer.split("/")[:-1]
        if level > 1:
            folder = folder[: len(folder) - (level - 1)]
        base = "/".join([*folder, *(module.split(".") if module else [])])
        names = self._names
        for candidate in (f"{base}.py", f"{base}/__init__.py", f"{base}.pyi", f"{base}/__init__.pyi"):
            if candidate.lstrip("/") in names:
                return candidate.lstrip("/")
        return None

    @staticmethod
    def _nearest(candidates: list[str], importer: str) -> str:
        if len(candidates) == 1:
            return candidates[0]
        return min(candidates, key=_distance(importer))


def _distance(importer: str) -> Callable[[str], tuple[int, bool, int, str]]:
    """How far a file is from the importer, as something to sort by."""
    importer_parts = importer.split("/")

    def distance(path: str) -> tuple[int, bool, int, str]:
        path_parts = path.split("/")
        common = 0
        for importer_part, path_part in zip(importer_parts, path_parts, strict=False):
            if importer_part != path_part:
                break
            common += 1
        return (-common, path.endswith(".pyi"), len(path_parts), path)

    return distance


def _folder_of(path: str) -> str:
    folder = path.rpartition("/")[0]
    if path.endswith(("/__init__.py", "/__init__.pyi")):
        folder = folder.rpartition("/")[0]
    return f"{folder}/" if folder else ""


def importers(changed: set[str], facts: Mapping[str, FileFacts], finder: ModuleFinder) -> set[str]:
    """The files that import one of `changed`, directly or through others."""
    users: dict[str, set[str]] = {}
    for path, file in facts.items():
        for target in _targets(path, file, finder):
            users.setdefault(target, set()).add(path)
    names: set[str] = set()
    waiting = list(changed)
    while waiting:
        for user in users.get(waiting.pop(), ()):
            if user not in names:
                names.add(user)
                waiting.append(user)
    folders = {path.rpartition("/")[0] for path in changed if path.endswith("conftest.py")}
    if folders:  # fixtures come without an import
        names |= {path for path in facts if any(path.startswith(f"{folder}/" if folder else "") for folder in folders)}
    return names


def _targets(path: str, file: FileFacts, finder: ModuleFinder) -> frozenset[str]:
    """The files of the project that one of them imports from."""
    names: set[str | None] = set()
    for imported in file.imports:
        for name in (imported.module, f"{imported.module}.{imported.name}"):
            if imported.level:
                names.add(finder.relative(path, imported.level, name if imported.module else imported.name or ""))
            else:
                names.add(finder.find(name, path))
    return frozenset(candidate for candidate in names if candidate is not None)
