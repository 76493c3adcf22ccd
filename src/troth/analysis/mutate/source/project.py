"""The chosen files of a project and what can be said of their names without following imports."""

import ast
import hashlib
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from troth.analysis.mutate.source.discover import Layout
from troth.analysis.mutate.source.slots import CallbackSlot, slots_of
from troth.analysis.mutate.source.text import SourceText, UnreadableError, decode

__all__ = ["MutatedProject", "read_project"]

_WORD = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True)
class MutatedProject:
    """The chosen files, decoded; `unreadable` says of each file that is not used why.

    `others` are the Python files of the project that were not chosen, its tests mostly: what they call is in use too.
    """

    sources: Mapping[str, SourceText]
    unreadable: Mapping[str, str]
    others: tuple[Path, ...] = ()

    @cached_property
    def digest(self) -> str:
        """Stands for the bytes of all chosen files."""
        whole = hashlib.sha256()
        for path, source in self.sources.items():
            whole.update(f"{path}\0{hashlib.sha256(source.encode()).hexdigest()}\n".encode())
        return whole.hexdigest()[:16]

    @cached_property
    def mentions(self) -> Mapping[str, frozenset[str]]:
        """For each word the files it stands in, in code, strings and comments alike."""
        files_of: defaultdict[str, set[str]] = defaultdict(set)
        texts = {path: source.text for path, source in self.sources.items()}
        texts |= {str(path): path.read_text(encoding="utf-8", errors="replace") for path in self.others}
        for path, text in texts.items():
            for word in set(_WORD.findall(text)):
                files_of[word].add(path)
        return {word: frozenset(paths) for word, paths in files_of.items()}

    @cached_property
    def slots(self) -> Mapping[str, tuple[CallbackSlot, ...]]:
        """Slots by the name they are called by; a name that the project defines twice has none, as nobody can tell."""
        slots: defaultdict[str, list[CallbackSlot]] = defaultdict(list)
        definitions: defaultdict[str, int] = defaultdict(int)
        for source in self.sources.values():
            try:
                tree = source.parse()
            except UnreadableError:
                continue
            for node in ast.walk(tree):
                if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                    definitions[node.name] += 1
                    for slot in slots_of(node):
                        slots[slot.callee].append(slot)
        return {name: tuple(own) for name, own in slots.items() if definitions[name] == 1}


def read_project(layout: Layout) -> MutatedProject:
    """Read and decode the chosen files."""
    sources: dict[str, SourceText] = {}
    unreadable: dict[str, str] = {}
    for path in layout.chosen:
        if (layout.root / path).is_symlink():
            continue  # its goal is either chosen itself or not ours
        try:
            source = decode(path, (layout.root / path).read_bytes())
        except (UnreadableError, OSError) as problem:
            unreadable[path] = str(problem)
            continue
        sources[path] = source
    chosen = set(layout.chosen)
    unchosen = (layout.root / path for path in layout.copied if path.endswith(".py") and path not in chosen)
    return MutatedProject(sources, unreadable, tuple(path for path in unchosen if path.is_file()))
