"""Find where a file uses names of a library, and how `troth.bridge` is imported in their place."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from troth.analysis.findings import Edit
from troth.analysis.source.syntax_tree import SyntaxTree
from troth.analysis.source.tree import tree_of

if TYPE_CHECKING:
    from troth.analysis.facts.model import At, FileFacts
    from troth.analysis.semantics import Program
    from troth.analysis.source.text import DecodedText

__all__ = ["LibraryFile", "LibraryUse", "library_file", "packages_of"]

_BRIDGE = "from troth import bridge"
_PATCHES = frozenset({"nest_asyncio", "nest_asyncio2"})


class LibraryUse(NamedTuple):
    """A place where a name of the library is read: `node` is the name or the attribute, `parent` what it is part of."""

    full_name: str
    node: ast.expr
    parent: ast.AST
    statement: ast.Import | ast.ImportFrom  # that imports it

    @property
    def at(self) -> At:
        """Its place; that of the call, where it is called."""
        node = self.parent if isinstance(self.parent, ast.Call) and self.parent.func is self.node else self.node
        return (node.lineno, node.col_offset, node.end_lineno or node.lineno, node.end_col_offset or 0)

    @property
    def call(self) -> ast.Call | None:
        """The call of it, where it is called."""
        return self.parent if isinstance(self.parent, ast.Call) and self.parent.func is self.node else None


class LibraryFile:
    """A file that imports a library, with what it says of it."""

    def __init__(self, path: str, text: DecodedText, tree: ast.Module, library: str) -> None:
        self.path = path
        self.text = text
        self.tree = tree
        self._library = library
        self._syntax = SyntaxTree(tree, text)
        self.imports = [
            node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom) and self._is_ours(node)
        ]

    def _is_ours(self, node: ast.Import | ast.ImportFrom) -> bool:
        return self._library in _packages(node)

    def _names(self) -> Mapping[str, tuple[str, ast.Import | ast.ImportFrom]]:
        """What each local name of the library means in full."""
        by_name: dict[str, tuple[str, ast.Import | ast.ImportFrom]] = {}
        for node in self.imports:
            for alias in node.names:
                if isinstance(node, ast.ImportFrom):
                    by_name[alias.asname or alias.name] = f"{node.module}.{alias.name}", node
                elif alias.name.partition(".")[0] == self._library:
                    by_name[alias.asname or self._library] = alias.name if alias.asname else self._library, node
        return by_name

    def uses(self) -> Iterator[LibraryUse]:
        """Each place that reads something of the library, in the order of the text; names that others bind are left."""
        names = self._names()
        bound = {node.id for node in ast.walk(self.tree) if isinstance(node, ast.Name) and _is_bound(node)}
        bound |= {node.arg for node in ast.walk(self.tree) if isinstance(node, ast.arg)}
        uses: list[LibraryUse] = []
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Name) and node.id in names and node.id not in bound:
                full_name, statement = names[node.id]
                whole: ast.expr = node
                parent = self._syntax.parents[whole]
                while isinstance(parent, ast.Attribute):
                    full_name, whole, parent = f"{full_name}.{parent.attr}", parent, self._syntax.parents[parent]
                uses.append(LibraryUse(full_name, whole, parent, statement))
        yield from sorted(uses, key=lambda one: one.at)

    def parent(self, node: ast.AST) -> ast.AST:
        """What a node is directly part of."""
        return self._syntax.parents[node]

    def replaced(self, node: ast.expr, text: str) -> Edit:
        """The edit that writes `text` in the place of `node`."""
        return Edit(self.path, *self._offsets(node), text)

    def written(self, node: ast.expr) -> str:
        """The text of a node."""
        return self._syntax.source(node)

    def removed(self, statement: ast.stmt) -> Edit | None:
        """The edit that takes a statement away with its line; None where it shares one, or is all of its block."""
        lines = None if self.path.endswith(".ipynb") else self._own_lines(statement)
        parent = self._syntax.parents[statement]
        siblings = getattr(parent, "body", None)
        is_alone = not isinstance(parent, ast.Module) and isinstance(siblings, list) and len(siblings) == 1
        return None if lines is None or is_alone else Edit(self.path, *lines, "")

    def bridge_instead(self, uses: Sequence[LibraryUse]) -> tuple[Edit, ...] | None:
        """The edits that import the bridge for `uses`, and no longer what nothing else uses; None where they cannot.

        The bridge is imported where the other name is, so that the same functions see it.
        """
        staying_uses = [(use.statement, self._local(use)) for use in self.uses() if use not in uses]
        imported = Counter(alias.asname or alias.name for statement in self.imports for alias in statement.names)
        if any(imported[self._local(use)] > 1 for use in uses):
            return None  # by several functions, say: which of them a use reads is not looked into
        edits: list[Edit] = []
        has_bridge = self._has_bridge
        for statement in sorted({use.statement for use in uses}, key=lambda node: node.lineno):
            gone = {self._local(use) for use in uses if use.statement is statement}
            gone -= {local for holder, local in staying_uses if holder is statement}
            edit = self._with_bridge(statement, gone, has_bridge=has_bridge)
            if edit is None:
                return None
            edits.append(edit)
            has_bridge |= statement in self.tree.body
        return tuple(edits)

    def with_bridge_below(self, statement: ast.Import | ast.ImportFrom) -> tuple[Edit, ...] | None:
        """The edit that imports the bridge below an import; None where it cannot."""
        edit = self._with_bridge(statement, (), has_bridge=self._has_bridge)
        return None if edit is None else (edit,)

    def _with_bridge(
        self, statement: ast.Import | ast.ImportFrom, gone: Collection[str], *, has_bridge: bool
    ) -> Edit | None:
        """One import with the bridge below it, without the names that are `gone`."""
        lines = self._own_lines(statement)
        if lines is None or self.path.endswith(".ipynb") or (self._binds_bridge and not self._has_bridge):
            return None
        start, end = self._offsets(statement)
        written = self.text.value[start:end]
        exports = any(isinstance(node, ast.Name) and node.id == "__all__" for node in ast.walk(self.tree))
        staying = [name for name in statement.names if (name.asname or name.name) not in gone]
        if exports or self.path.endswith("__init__.py") or (staying and "#" in written):
            staying = statement.names
        before = self.text.value[lines[0] : start]
        newline = "\r\n" if self.text.value[lines[0] : lines[1]].endswith("\r\n") else "\n"
        before_text = self.text.value[lines[0] : lines[1]] if len(staying) == len(statement.names) else ""
        if staying and not before_text:
            before_text = f"{before}{_import(statement, staying)}{newline}"
        if has_bridge:
            return Edit(self.path, *lines, before_text)
        first, after = self._reach(statement, lines)
        return Edit(
            self.path, first, after, f"{self.text.value[first : lines[0]]}{before_text}{before}{_BRIDGE}{newline}"
        )

    def _reach(self, statement: ast.stmt, lines: tuple[int, int]) -> tuple[int, int]:
        """The lines of an import, from the first one at the top of the file that the bridge may come to stand below.

        Two fixes that import the bridge clash in this way, and the second one, which comes later, finds it imported.
        """
        imports = [(node, _packages(node)) for node in self.tree.body]
        is_patched = any(packages & _PATCHES for _, packages in imports)
        others = [node for node, packages in imports if "asgiref" in packages or (is_patched and "asyncio" in packages)]
        if statement not in others or others[0] is statement:
            return lines
        return self._offsets(others[0])[0], lines[1]

    def _local(self, use: LibraryUse) -> str:
        """The name in its import that a use reads."""
        first = next(node for node in ast.walk(use.node) if isinstance(node, ast.Name))
        names = [alias.asname or alias.name for alias in use.statement.names]
        return next(name for name in names if name.partition(".")[0] == first.id)

    def _own_lines(self, statement: ast.stmt) -> tuple[int, int] | None:
        """Where the lines of a statement begin and end; None where something else than a comment shares them."""
        start, end = self._offsets(statement)
        value = self.text.value
        begin = value.rfind("\n", 0, start) + 1
        after = value.find("\n", end)
        if after < 0 or value[begin:start].strip() or value[end:after].strip()[:1] not in {"", "#"}:
            return None
        return begin, after + 1

    @property
    def _has_bridge(self) -> bool:
        """Whether the file imports the bridge at its top."""
        return any(_imports_bridge(node) for node in self.tree.body)

    @property
    def _binds_bridge(self) -> bool:
        """Whether the name of the bridge means something in the file."""
        names = {node.id for node in ast.walk(self.tree) if isinstance(node, ast.Name)}
        return "bridge" in names | {node.arg for node in ast.walk(self.tree) if isinstance(node, ast.arg)}

    def _offsets(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        return self._syntax.start(node), self._syntax.end(node)


def library_file(program: Program, path: str, library: str) -> LibraryFile | None:
    """The file, if it imports the library and can be read."""
    if not any(
        imported.module.partition(".")[0] == library and not imported.level
        for imported in program.module(path).facts.imports
    ):
        return None
    text = program.text(path)
    tree = tree_of(text.value)
    return None if tree is None else LibraryFile(path, text, tree, library)


def packages_of(file: FileFacts) -> frozenset[str]:
    """The packages that a file imports."""
    return frozenset(imported.module.partition(".")[0] for imported in file.imports if not imported.level)


def _is_bound(name: ast.Name) -> bool:
    return not isinstance(name.ctx, ast.Load)


def _packages(node: ast.AST) -> frozenset[str]:
    """The packages that a statement imports."""
    if isinstance(node, ast.ImportFrom):
        return frozenset() if node.level else frozenset({(node.module or "").partition(".")[0]})
    return (
        frozenset(alias.name.partition(".")[0] for alias in node.names) if isinstance(node, ast.Import) else frozenset()
    )


def _import(statement: ast.Import | ast.ImportFrom, names: Sequence[ast.alias]) -> str:
    listed = ", ".join(f"{name.name} as {name.asname}" if name.asname else name.name for name in names)
    return f"from {statement.module} import {listed}" if isinstance(statement, ast.ImportFrom) else f"import {listed}"


def _imports_bridge(node: ast.AST) -> bool:
    if not isinstance(node, ast.ImportFrom) or node.level or node.module != "troth":
        return False
    return any(alias.name == "bridge" and alias.asname is None for alias in node.names)
