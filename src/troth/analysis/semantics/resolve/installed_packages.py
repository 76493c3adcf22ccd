"""The packages that are installed beside a project, and reads the sources of those that no table tells of."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

from troth.analysis.crash import Crash
from troth.analysis.facts.extract_many import read_facts
from troth.analysis.facts.fast_parser import own_parser
from troth.analysis.knowledge.semantics import known_tops
from troth.analysis.project.version_pins import normalized
from troth.analysis.semantics.resolve import library
from troth.analysis.semantics.symbols import Module
from troth.analysis.source.problem import Problem

__all__ = ["Installed"]

_ASYNC = re.compile(rb"^[ \t]*async[ \t]+def[ \t]+([A-Za-z]\w*)", re.MULTILINE)
_MOST_BYTES = 8_000_000  # of one package; what is larger is hardly about async


class Installed:
    """Modules of installed packages, each read at most once."""

    def __init__(self, folders: tuple[str, ...]) -> None:
        self._folders = [Path(folder) for folder in folders]
        self._modules: dict[str, Module | None] = {}
        self._tops: dict[str, bool] = {}
        self._async_names: dict[str, frozenset[str]] = {}
        self.crashes: list[Crash] = []  # exceptions of our own while one of them was read

    def module(self, dotted: str) -> Module | None:
        """The module of that name, None where it is not installed or cannot be read."""
        if not self._folders:
            return None
        if not self._is_read(dotted.partition(".")[0]):
            return None
        if dotted not in self._modules:
            self._modules[dotted] = self._read(dotted)
        return self._modules[dotted]

    def async_names(self, top: str) -> frozenset[str]:
        """The names that are `async def` somewhere in a package that no table tells of, as far as a glance can tell."""
        if top not in self._async_names:
            self._async_names[top] = frozenset(self._async_in(top)) if self._is_read(top) else frozenset()
        return self._async_names[top]

    def _async_in(self, top: str) -> Iterator[str]:
        budget = _MOST_BYTES
        for folder in self._folders:
            inside = (Path(path, name) for path, _, names in os.walk(folder / top) for name in names)
            sources = [folder / f"{top}.py", *(path for path in inside if path.suffix in {".py", ".pyi"})]
            for path in sorted(sources, key=lambda path: (len(path.parts), path)):  # what people import is near
                try:
                    data = path.read_bytes()
                except OSError:
                    continue
                budget -= len(data)
                if budget < 0:
                    return
                yield from (match[1].decode() for match in _ASYNC.finditer(data))

    def _is_read(self, top: str) -> bool:
        """Whether the package is there, and its source is what tells of it."""
        if top not in self._tops:
            is_there = any((folder / top).is_dir() or (folder / f"{top}.py").is_file() for folder in self._folders)
            self._tops[top] = is_there and not self._is_told(top)
        return self._tops[top]

    def _is_told(self, top: str) -> bool:
        """Whether tables tell of the package, so that its source need not: they know what blocks, spawns, calls back.

        A table of a later major version tells of another library; then the source is believed.
        """
        sources = library.sources(top)
        versions = [(self._majors.get(normalized(name)), major) for name, major in sources]
        return all(mine is None or mine >= major for mine, major in versions) and bool(sources or top in known_tops())

    @cached_property
    def _majors(self) -> dict[str, int]:
        """The major versions of the distributions that are installed, as far as they say one."""
        folders = [
            path.name.removesuffix(".dist-info") for folder in self._folders for path in folder.glob("*.dist-info")
        ]
        parts = [
            (name, version.partition(".")[0]) for name, _, version in (folder.partition("-") for folder in folders)
        ]
        return {normalized(name): int(major) for name, major in parts if major.isdigit()}

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
                    facts = read_facts(name, path.read_bytes(), own_parser())
                except OSError:
                    continue
                if isinstance(facts, Problem):
                    if facts.crash is not None:
                        self.crashes.append(facts.crash)
                    continue
                return Module(name, dotted, facts, own=False)
        return None
