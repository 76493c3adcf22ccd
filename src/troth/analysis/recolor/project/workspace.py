"""Read a project for a recolor: every piece of Python in it, linked, docs and notebooks included."""

import gc
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from troth.analysis.crash import Crash
from troth.analysis.facts.extract_many import read_facts
from troth.analysis.facts.from_ast.extract import extract
from troth.analysis.facts.model import FileFacts
from troth.analysis.project.listing import hiding, is_foreign
from troth.analysis.project.project import Project
from troth.analysis.recolor.project.notebooks import notebook_view
from troth.analysis.recolor.project.snippets import docstring_views, markdown_view
from troth.analysis.recolor.project.tree import Definition, Tree
from troth.analysis.recolor.project.view import SourceView, whole_file
from troth.analysis.semantics import Program
from troth.analysis.semantics.evidence.judge import with_evidence
from troth.analysis.semantics.queries import call_chains as _says_what_files_import  # noqa: F401  walks ask for it
from troth.analysis.semantics.symbols import Function
from troth.analysis.source.encoding import decode
from troth.analysis.source.lines import Lines
from troth.analysis.source.problem import Problem
from troth.analysis.source.text import DecodedText

__all__ = ["RecolorWorkspace", "Subject", "calls_of", "read_workspace"]

_PAGES = (".md", ".markdown", ".mdx")


class RecolorWorkspace:
    """The program, and the texts it was read from. `pages` are all texts outside Python that name a method."""

    def __init__(
        self,
        root: Path,
        program: Program,
        views: Mapping[str, SourceView],
        pages: Mapping[str, str],
        crashes: Sequence[Crash] = (),
        unread: Mapping[str, str] | None = None,
    ) -> None:
        self.root = root
        self.program = program
        self.views = views
        self.pages = pages
        self.unread = unread or {}  # the Python files that could not be read, with their texts
        self.crashes = crashes  # exceptions of our own while a file was read
        self._trees: dict[str, Tree | None] = {}

    def tree(self, name: str) -> Tree | None:
        """The tree of a view; None where it has none."""
        if name not in self._trees:
            view = self.views.get(name)
            module = None if view is None else view.tree()
            self._trees[name] = None if view is None or module is None else Tree(view, module)
        return self._trees[name]

    def definition(self, function: Function) -> tuple[Tree, Definition] | None:
        """Where a function is written."""
        tree = self.tree(function.module.path)
        node = None if tree is None else tree.definitions.get(function.facts.at)
        return None if tree is None or node is None else (tree, node)

    def function(self, tree: Tree, node: Definition) -> Function | None:
        """The function of the program that is written there."""
        from troth.analysis.facts.from_ast.expressions import at

        module = self.program.module(tree.view.name)
        place = at(node)
        for index, facts in enumerate(module.facts.functions):
            if facts.at == place and index:
                return module.function(index)
        return None


def calls_of(names: Collection[str]) -> re.Pattern[str]:
    """Finds a call of one of `names` in any text."""
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(names)))})\s*\(")


@dataclass(frozen=True, slots=True)
class Subject:
    """What text is searched for: calls of `names`. Snippets need not import what is in `implied` (name to module)."""

    names: frozenset[str]
    implied: Mapping[str, str]


def read_workspace(
    project: Project,
    about: Callable[[Program], Subject],
    *,
    within: Callable[[str], bool] = lambda _path: True,
    overlay: Mapping[str, bytes] | None = None,
) -> RecolorWorkspace:
    """Read all files. `about` says, once the Python files are read, which mentions in text matter.

    `within` keeps pages outside the scope out; `overlay` are texts that differ from the disk.
    """
    views: dict[str, SourceView] = {}
    facts: dict[str, FileFacts] = {}
    texts: dict[str, DecodedText] = {}
    disk = Lines(project.root, overlay)
    crashes: list[Crash] = []
    unread: dict[str, str] = {}

    def text_of(path: str) -> DecodedText:
        if path not in texts:
            texts[path] = DecodedText(views[path].text if path in views else "")
        return texts[path]

    def linked() -> Program:
        return with_evidence(Program(tuple(views), project.source_roots, facts.get, text_of))

    def take(view: SourceView) -> None:
        tree = view.tree()
        if tree is not None:
            views[view.name] = view
            facts[view.name] = extract(tree, top_level_await=view.kind != "code")

    collecting = gc.isenabled()
    gc.disable()  # syntax trees have no cycles that matter, and looking for some costs a fifth of the time
    try:
        for path in project.files:
            data = None if path.endswith(".ipynb") else disk.data(path)
            answer = None if data is None else read_facts(path, data)
            if data is not None and isinstance(answer, FileFacts):
                views[path] = whole_file(path, decode(data).text)
                facts[path] = answer
            elif data is not None and isinstance(answer, Problem):
                _note_unread(path, data, answer, crashes, unread)
        subject = about(linked())
        if not subject.names:
            return RecolorWorkspace(project.root, linked(), views, {}, crashes, unread)
        called = calls_of(subject.names)
        pages: dict[str, str] = {}
        for view in list(views.values()):
            module = view.tree() if called.search(view.text) else None
            if module is not None:
                for inner in docstring_views(view.path, view.text, module, subject.implied, called):
                    take(inner)
        notebooks = (path for path in project.files if path.endswith(".ipynb"))
        for path in filter(within, [*notebooks, *_pages(project.root)]):
            try:
                page = (disk.data(path) or b"").decode("utf-8")
            except UnicodeDecodeError:
                continue  # neither a notebook nor Markdown in an odd coding can be edited safely
            if not called.search(page):
                continue
            if path.endswith(".ipynb"):
                view_of_page = notebook_view(path, page)
            else:
                pages[path] = page
                view_of_page = markdown_view(path, page, subject.implied)
            if view_of_page is not None:
                take(view_of_page)
    finally:
        if collecting:
            gc.enable()
    return RecolorWorkspace(project.root, linked(), views, pages, crashes, unread)


def _note_unread(path: str, data: bytes, problem: Problem, crashes: list[Crash], unread: dict[str, str]) -> None:
    """Keep what is known of a file that could not be read: whether we failed on it, else its text."""
    if problem.crash is not None:
        crashes.append(problem.crash)
    else:
        unread[path] = data.decode("utf-8", errors="replace")


def _pages(root: Path) -> Iterator[str]:
    hidden = hiding(root)
    for folder, inner, files in os.walk(root):
        relative = os.path.relpath(folder, root).replace(os.sep, "/")
        relative = "" if relative == "." else relative
        inner[:] = sorted(name for name in inner if not is_foreign(name))
        pages = [file for file in sorted(files) if file.endswith(_PAGES)]
        if pages and not hidden(relative):
            yield from (f"{relative}/{page}" if relative else page for page in pages)
