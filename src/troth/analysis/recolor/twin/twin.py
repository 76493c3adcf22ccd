"""Write the sync twin of an async class from its text."""

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from troth.analysis.edits.apply import apply
from troth.analysis.facts.from_ast.expressions import at
from troth.analysis.findings import Edit
from troth.analysis.recolor.problem import Obstacle
from troth.analysis.recolor.project.resolve import looked_up
from troth.analysis.recolor.project.tree import Definition, Tree
from troth.analysis.recolor.project.workspace import RecolorWorkspace
from troth.analysis.recolor.rewrite.rewrite_async import import_added
from troth.analysis.recolor.twin.plain_names import plain_attribute, plain_class, plain_dotted
from troth.analysis.semantics.infer.call_graph import names_of
from troth.analysis.semantics.symbols import Class, Function
from troth.analysis.semantics.values import ClassObject, FunctionValue, members_of

__all__ = ["Twin", "Writing", "twin_of"]

_END = "# troth: end of the twin"
_ASYNC = re.compile(r"async\s+")
_AWAIT = re.compile(r"await\s*")


@dataclass(frozen=True, slots=True)
class Twin:
    """The sync side of `source`: the edits that write it, or write it again, and what stands in the way."""

    source: str
    name: str
    edits: tuple[Edit, ...]
    problems: tuple[Obstacle, ...]


def twin_of(workspace: RecolorWorkspace, cls: Class) -> Twin:
    """The sync twin of `cls`, right below it in its file, between two comments that say where it comes from."""
    tree = workspace.tree(cls.module.path)
    assert tree is not None
    node = next(node for node in ast.walk(tree.module) if _is_at(node, cls))
    assert isinstance(node, ast.ClassDef)
    writing = Writing(workspace, tree, cls, node)
    text = writing.text()
    newline = "\r\n" if "\r\n" in tree.text.value else "\n"
    target = f"{cls.module.path}:{cls.name}"
    begin = f"# troth: the sync twin of {cls.name}; `troth recolor {target} --to both` writes it again"
    block = newline.join((begin, text, _END, ""))
    start, end = _old_block(tree, node, cls.name)
    is_ended = tree.text.value[:start].endswith("\n")
    gap = "" if end > start else newline * (2 if is_ended else 3)
    edits = [Edit(cls.module.path, start, end, gap + block), *writing.imports()]
    namesakes = [
        statement
        for statement in tree.module.body
        if isinstance(statement, ast.ClassDef) and statement.name == writing.name
    ]
    for namesake in namesakes:
        if not start <= tree.start(namesake) < max(end, start):
            why = f"there is a class {writing.name} already that was not written from {cls.name}"
            writing.problems.append(Obstacle(cls.module.path, namesake.lineno, namesake.name, why))
    return Twin(cls.name, writing.name, tuple(edits), tuple(sorted(writing.problems)))


def _is_at(node: ast.AST, cls: Class) -> bool:
    return isinstance(node, ast.ClassDef) and at(node)[:2] == cls.facts.at[:2]


def _old_block(tree: Tree, node: ast.ClassDef, name: str) -> tuple[int, int]:
    """Where the twin stands now, with its comments; an empty place behind the class where there is none."""
    text = tree.text.value
    words = ("sync", "plain")  # as it is written now, and as it was in 0.1.0
    begin = max(text.find(f"# troth: the {word} twin of {name};") for word in words)
    if begin >= 0:
        end = text.find(_END, begin)
        if end >= 0:
            end = text.find("\n", end)
            return begin, len(text) if end < 0 else end + 1
    end = text.find("\n", tree.end(node))
    place = len(text) if end < 0 else end + 1
    return place, place


def _is_async_generator(node: ast.expr) -> bool:
    """Whether it is the type that has one parameter more in plain code: what the generator returns."""
    return ast.unparse(node).rpartition(".")[2] == "AsyncGenerator"


@dataclass(eq=False)
class Writing:
    """The sync text of something async while it is made."""

    workspace: RecolorWorkspace
    tree: Tree
    cls: Class | None
    node: ast.ClassDef | Definition
    problems: list[Obstacle] = field(default_factory=list)
    needed: dict[str, str] = field(default_factory=dict)  # names that have to be imported, with the statement
    name: str = ""

    def text(self) -> str:
        """The class with all that is async in it made sync."""
        assert self.cls is not None
        self.name = plain_class(self.cls.name)
        first = self.node.decorator_list[0] if self.node.decorator_list else self.node
        return self.written([self.node], self.tree.text.offset(first.lineno, 0), self.tree.end(self.node))

    def written(self, nodes: Iterable[ast.AST], start: int, end: int) -> str:
        """The text from `start` to `end` with all that is async in `nodes` made sync."""
        edits = [edit for node in nodes for part in ast.walk(node) for edit in self.edits_of(part)]
        moved = [Edit(edit.path, edit.start - start, edit.end - start, edit.text) for edit in dict.fromkeys(edits)]
        return apply(self.tree.text.value[start:end], moved)

    def imports(self) -> list[Edit]:
        """The edits that import what only the twin needs."""
        return [edit for name, line in self.needed.items() for edit in import_added(self.tree, line, name)]

    def edits_of(self, node: ast.AST) -> list[Edit]:
        """The edits that this one node asks for."""
        tree = self.tree
        match node:
            case ast.ClassDef() if node is self.node:
                return self._word(tree.text.offset(node.lineno, node.col_offset), node.name, self.name)
            case ast.AsyncFunctionDef() | ast.FunctionDef():
                start = tree.start(node)
                edits = self._cut(_ASYNC, start) if isinstance(node, ast.AsyncFunctionDef) else []
                sync = self.sync_name(node)
                return [*edits, *(self._word(start, node.name, sync) if sync is not None else [])]
            case ast.AsyncFor() | ast.AsyncWith():
                return self._cut(_ASYNC, tree.start(node))
            case ast.comprehension() if node.is_async:
                head = tree.text.value[: tree.start(node.target)]
                matches = list(re.finditer(r"async\s+(?=for\b)", head))
                return [Edit(tree.view.path, matches[-1].start(), matches[-1].end(), "")] if matches else []
            case ast.Await():
                return self.awaited(node)
            case ast.Name() | ast.Attribute():
                return self.renamed(node)
            case ast.Constant(value=str() as text) if (
                self.cls is not None and text == self.cls.name
            ):  # an annotation in quotes
                return self._word(tree.start(node), text, self.name)
            case ast.Subscript(slice=ast.Tuple(elts=[_, last])) if _is_async_generator(node.value):
                return [Edit(tree.view.path, tree.end(last), tree.end(last), ", None")]
            case _:
                return []

    def sync_name(self, node: Definition) -> str | None:
        """What a function is called on the sync side; None if it keeps its name."""
        return plain_attribute(node.name)

    def _cut(self, pattern: re.Pattern[str], start: int) -> list[Edit]:
        match = pattern.match(self.tree.text.value, start)
        return [] if match is None else [Edit(self.tree.view.path, start, match.end(), "")]

    def _word(self, start: int, old: str, new: str) -> list[Edit]:
        match = re.compile(rf"\b{re.escape(old)}\b").search(self.tree.text.value, start)
        return [] if match is None else [Edit(self.tree.view.path, match.start(), match.end(), new)]

    def awaited(self, node: ast.Await) -> list[Edit]:
        """The edits that leave out an `await`."""
        tree, path = self.tree, self.tree.view.path
        if not isinstance(node.value, ast.Call):
            self.refuse(node, "what is awaited is not a call: sync code cannot wait for it")
        elif (why := self._stays_async(node.value)) is not None:
            self.refuse(node, why)
        start, parent = tree.start(node), tree.parent(node)
        cut = self._cut(_AWAIT, start)
        text, end = tree.text.value, tree.end(node)
        trails = isinstance(parent, ast.Attribute | ast.Subscript) and parent.value is node
        if trails and text[start - 1 : start] == "(" and text[end : end + 1] == ")" and cut:
            return [Edit(path, start - 1, cut[0].end, ""), Edit(path, end, end + 1, "")]
        return cut

    def _stays_async(self, call: ast.Call) -> str | None:
        """Why a call that is awaited has no sync twin; None if it has one, or is of something nobody knows."""
        value = looked_up(self.workspace, self.tree, call.func, self.inside(call))
        for member in members_of(value) if value is not None else ():
            function = member.function if isinstance(member, FunctionValue) else None
            if isinstance(function, Function) and function.is_async and not self.has_sync_side(function):
                path, line = function.place
                return f"`{function.qualname}` ({path}:{line}) is async and has no twin"
        names = [ast.unparse(call.func), *(names_of(value) if value is not None else ())]
        if any(plain_dotted(name) is not None for name in names):
            return None
        is_of_loop = any(name.startswith(("asyncio.", "anyio.", "trio.")) for name in names)
        return f"`{names[0]}` has no counterpart in sync code" if is_of_loop else None

    def has_sync_side(self, function: Function) -> bool:
        """Whether sync code can call a function that does the same."""
        owner = function.owner
        return owner is not None and (owner is self.cls or self._has_twin(owner))

    def _has_twin(self, cls: Class) -> bool:
        twin = plain_class(cls.name)
        return any(cls.module.cls(index).name == twin for index in range(len(cls.module.facts.classes)))

    def renamed(self, node: ast.Name | ast.Attribute) -> list[Edit]:
        """A class of the other color, or a word of Python's own, by its plain name."""
        tree = self.tree
        last = node.attr if isinstance(node, ast.Attribute) else node.id
        value = looked_up(self.workspace, tree, node, self.inside(node)) if "sync" in last.lower() else None
        if self.cls is not None and last == self.cls.name and isinstance(node, ast.Name):
            return [Edit(tree.view.path, tree.start(node), tree.end(node), self.name)]
        for member in members_of(value) if value is not None else ():
            if isinstance(member, ClassObject) and isinstance(member.cls, Class) and self._has_twin(member.cls):
                self._import_beside(last, plain_class(last))
                return [Edit(tree.view.path, tree.end(node) - len(last), tree.end(node), plain_class(last))]
        dotted = ast.unparse(node) if isinstance(node, ast.Attribute) else ""
        for name in (*(names_of(value) if value is not None else ()), dotted):
            twin = plain_dotted(name) if name else None
            if twin is not None:
                return self._of_library(node, last, twin)
        plain = plain_attribute(last)
        if plain is None:
            return []
        if isinstance(node, ast.Name):
            self._import_beside(last, plain)
        return [Edit(tree.view.path, tree.end(node) - len(last), tree.end(node), plain)]

    def _of_library(self, node: ast.Name | ast.Attribute, last: str, twin: str) -> list[Edit]:
        tree, new = self.tree, twin.rpartition(".")[2]
        head = twin.rpartition(".")[0]
        if isinstance(node, ast.Name):
            self._import_beside(last, new)
            return [Edit(tree.view.path, tree.start(node), tree.end(node), new)]
        if head and ast.unparse(node.value) != head and head in {"time", "threading", "queue"}:
            self.needed.setdefault(head, f"import {head}")
            return [Edit(tree.view.path, tree.start(node), tree.end(node), twin)]
        if not head:
            return [Edit(tree.view.path, tree.start(node), tree.end(node), twin)]
        return [Edit(tree.view.path, tree.end(node) - len(last), tree.end(node), new)]

    def _import_beside(self, old: str, new: str) -> None:
        """What `from x import old` brought has to be imported by its plain name too."""
        for statement in self.tree.module.body:
            if isinstance(statement, ast.ImportFrom) and any((a.asname or a.name) == old for a in statement.names):
                self.needed.setdefault(new, f"from {'.' * statement.level}{statement.module or ''} import {new}")

    def inside(self, node: ast.AST) -> Function | None:
        """The function whose code `node` is part of."""
        around = self.tree.around(node)
        while isinstance(around, ast.Lambda) and not around.args.args:  # which binds nothing
            around = self.tree.around(around)
        return self.workspace.function(self.tree, around) if isinstance(around, Definition) else None

    def refuse(self, node: ast.expr, why: str) -> None:
        """Name something that sync code cannot do; nothing is written then."""
        self.problems.append(Obstacle(self.tree.view.path, node.lineno, ast.unparse(node), why))
