"""Knows the packages that are installed beside a project, and reads their sources when somebody asks."""

from __future__ import annotations

from pathlib import Path

from troth.analysis.facts.extract import extract
from troth.analysis.program.entities import Module
from troth.analysis.source.read import Problem, parse

__all__ = ["Installed"]


class Installed:
    """Modules of installed packages, each read at most once."""

    def __init__(self, folders: tuple[str, ...]) -> None:
        self._folders = [Path(folder) for folder in folders]
        self._modules: dict[str, Module | None] = {}
        self._tops: dict[str, bool] = {}

    def module(self, dotted: str) -> Module | None:
        """The module of that name, None where it is not installed or cannot be read."""
        if not self._folders:
            return None
        top = dotted.partition(".")[0]
        if top not in self._tops:
            self._tops[top] = any(
                (folder / top).is_dir() or (folder / f"{top}.py").is_file() for folder in self._folders
            )
        if not self._tops[top]:
            return None
        if dotted not in self._modules:
            self._modules[dotted] = self._read(dotted)
        return self._modules[dotted]

    def data(self, path: str) -> bytes:
        """The bytes of a file of a package, by its path below `site-packages`; none where it is gone."""
        for folder in self._folders:
            try:
                return (folder / path).read_bytes()
            except OSError:
                continue
        return b""

    def _read(self, dotted: str) -> Module | None:
        inside = dotted.replace(".", "/")
        for folder in self._folders:
            for name in (f"{inside}.py", f"{inside}/__init__.py", f"{inside}.pyi", f"{inside}/__init__.pyi"):
                path = folder / name
                if not path.is_file():
                    continue
                try:
                    tree = parse(path.read_bytes())
                except OSError:
                    continue
                if isinstance(tree, Problem):
                    continue
                return Module(name, dotted, extract(tree), own=False)
        return None
