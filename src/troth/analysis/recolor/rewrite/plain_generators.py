"""Rewrite async generators and their context managers, and who loops over them or enters them, for the sync color."""

import ast
import re
from collections.abc import Collection

from troth.analysis.findings import Edit
from troth.analysis.recolor.project.sites import CallSite
from troth.analysis.recolor.project.tree import Definition, Tree
from troth.analysis.recolor.rewrite.generators import annotation_renamed, imported_beside, named_by_annotation

__all__ = ["generator_made_plain", "is_plain_able", "site_unlooped"]

_ANNOTATIONS = {"AsyncIterator": "Iterator", "AsyncIterable": "Iterable", "AsyncGenerator": "Generator"}
_MANAGER = "asynccontextmanager"
_ASYNC = re.compile(r"async\s+")


def is_plain_able(node: Definition) -> bool:
    """Whether no decorator but `asynccontextmanager` asks for an async generator."""
    return all(ast.unparse(decorator).rpartition(".")[2] == _MANAGER for decorator in node.decorator_list)


def generator_made_plain(tree: Tree, node: Definition) -> list[Edit]:
    """The edits beside `async`: the decorator of a context manager, and the annotation of what it gives."""
    edits: list[Edit | None] = []
    for decorator in node.decorator_list:
        end = tree.end(decorator)
        edits.append(tree.view.edit(end - len(_MANAGER), end, "contextmanager"))
        if isinstance(decorator, ast.Name):
            edits += imported_beside(tree, _MANAGER, "contextmanager")
    edits += annotation_renamed(tree, node, _ANNOTATIONS)
    inside = node.returns.slice if isinstance(node.returns, ast.Subscript) else None
    if named_by_annotation(node) == "AsyncGenerator" and isinstance(inside, ast.Tuple) and len(inside.elts) == 2:
        edits.append(tree.view.edit(tree.end(inside.elts[1]), tree.end(inside.elts[1]), ", None"))
    return [edit for edit in edits if edit is not None]


def site_unlooped(site: CallSite, ours: Collection[ast.Call]) -> tuple[list[Edit], list[ast.AST]] | str:
    """The edits that loop over the generator, or enter the context manager, without waiting; or why there are none."""
    tree, node = site.tree, site.node
    parent = tree.parent(node)
    edit: Edit | None = None
    gone: ast.AST | None = None
    if isinstance(parent, ast.AsyncFor) and parent.iter is node:
        edit, gone = _without_async(tree, tree.start(parent)), parent
    elif isinstance(parent, ast.comprehension) and parent.iter is node:
        holder = tree.parent(parent)
        head = re.search(r"async\s+for\s+\(?$", tree.text.value[: tree.start(parent.target)])
        if not isinstance(holder, ast.GeneratorExp) and head is not None:
            edit, gone = _without_async(tree, head.start()), parent
    elif isinstance(parent, ast.withitem):
        outer = tree.parent(parent)
        if isinstance(outer, ast.AsyncWith):
            if not all(item.context_expr in ours for item in outer.items):
                return "it is entered beside others, which have to be awaited"
            edit, gone = _without_async(tree, tree.start(outer)), outer
    elif isinstance(parent, ast.Call) and parent.args[:1] == [node] and ast.unparse(parent.func) == "anext":
        waiting, around = tree.parent(parent), tree.around(parent)
        catches = any(isinstance(part, ast.Name) and part.id == "StopAsyncIteration" for part in ast.walk(around))
        if isinstance(waiting, ast.Await) and not catches:
            start = tree.start(waiting)
            if tree.text.value[start : tree.start(parent)].strip() == "await":
                edit, gone = tree.view.edit(start, tree.end(parent.func), "next"), waiting
    if edit is None or gone is None:
        return "it gives an async generator, and what it is given to may need one"
    return [edit], [gone]


def _without_async(tree: Tree, offset: int) -> Edit | None:
    match = _ASYNC.match(tree.text.value, offset)
    return None if match is None else tree.view.edit(offset, match.end(), "")
