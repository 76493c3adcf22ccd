"""Rewrite generators and their context managers, and who loops over them or enters them, for the async color."""

import ast
import re

from troth.analysis.findings import Edit
from troth.analysis.recolor.problem import Problem
from troth.analysis.recolor.project.sites import Site
from troth.analysis.recolor.project.tree import Definition, Tree, own_nodes

__all__ = ["generator_made_async", "is_context_manager", "keeps_generator", "site_entered", "site_looped"]

_ANNOTATIONS = {"Iterator": "AsyncIterator", "Iterable": "AsyncIterable", "Generator": "AsyncGenerator"}
_READ_AT_ONCE = frozenset({"list", "set", "tuple", "sorted", "frozenset", "sum", "min", "max", "any", "all", "dict"})


def is_context_manager(node: Definition) -> bool:
    """Whether `contextlib.contextmanager` makes a context manager of the generator."""
    return any(
        ast.unparse(decorator) in {"contextmanager", "contextlib.contextmanager"} for decorator in node.decorator_list
    )


def keeps_generator(node: Definition) -> str | None:
    """What an async generator cannot do, and this one does; None if nothing."""
    for part in own_nodes(node):
        if isinstance(part, ast.YieldFrom):
            return f"it is a generator with `yield from` (line {part.lineno}), which no async generator has"
        if isinstance(part, ast.Return) and part.value is not None:
            return f"it is a generator that returns a value (line {part.lineno}), which no async generator does"
    if any(not is_context_manager(node) for _ in node.decorator_list):
        return "it is a generator, and a decorator asks for its color"
    return None


def generator_made_async(tree: Tree, node: Definition) -> list[Edit]:
    """The edits beside `async`: the decorator of a context manager, and the annotation of what it gives."""
    edits: list[Edit | None] = []
    for decorator in node.decorator_list:
        end = tree.end(decorator)
        start = end - len("contextmanager")
        edits.append(tree.view.edit(start, end, "asynccontextmanager"))
        if isinstance(decorator, ast.Name):
            edits += _imported_beside(tree, "contextmanager", "asynccontextmanager")
    returns = node.returns
    head = returns.value if isinstance(returns, ast.Subscript) else returns
    name = ast.unparse(head).rpartition(".")[2] if head is not None else ""
    if head is not None and name in _ANNOTATIONS:
        end = tree.end(head)
        edits.append(tree.view.edit(end - len(name), end, _ANNOTATIONS[name]))
        if isinstance(head, ast.Name):
            edits += _imported_beside(tree, name, _ANNOTATIONS[name])
        inside = returns.slice if isinstance(returns, ast.Subscript) else None
        if name == "Generator" and isinstance(inside, ast.Tuple) and len(inside.elts) == 3:
            edits.append(tree.view.edit(tree.end(inside.elts[1]), tree.end(inside.elts[2]), ""))
    return [edit for edit in edits if edit is not None]


def site_looped(site: Site) -> list[Edit] | Problem:
    """The edits that loop over the async generator, or enter the async context manager, in place."""
    tree, node = site.tree, site.node
    parent = tree.parent(node)
    if isinstance(parent, ast.For) and parent.iter is node:
        return _before(site, tree.start(parent))
    if isinstance(parent, ast.withitem):
        return site_entered(site)
    if isinstance(parent, ast.comprehension) and parent.iter is node:
        holder = tree.parent(parent)
        head = tree.text.value[: tree.start(parent.target)].rstrip("( \t\r\n")
        if not isinstance(holder, ast.GeneratorExp) and head.endswith("for"):
            return _before(site, len(head) - len("for"))
    if isinstance(parent, ast.Call) and parent.args == [node] and not parent.keywords:
        callee = ast.unparse(parent.func)
        start, end = (tree.start(parent), tree.end(parent)) if callee == "list" else (tree.start(node), tree.end(node))
        if callee in _READ_AT_ONCE and not tree.text.value[tree.end(node) : tree.end(parent) - 1].strip():
            edits = [
                tree.view.edit(start, tree.start(node), "[item async for item in "),
                tree.view.edit(tree.end(node), end, "]"),
            ]
            return [edit for edit in edits if edit is not None]
    why = "it gives an async generator, which only `async for` and `async with` can use"
    return Problem(site.path, site.line, site.text, why, site.functions)


def site_entered(site: Site) -> list[Edit] | Problem:
    """The edit that makes `with` an `async with`."""
    item = site.tree.parent(site.node)
    outer = site.tree.parent(item) if isinstance(item, ast.withitem) else None
    if isinstance(outer, ast.With) and len(outer.items) == 1:
        return _before(site, site.tree.start(outer))
    why = "it is entered beside others, which may have no `__aenter__`"
    if outer is None:
        why = f"it is given to `{site.use.by}`, which enters it as a plain context manager"
    return Problem(site.path, site.line, site.text, why, site.functions)


def _before(site: Site, offset: int) -> list[Edit] | Problem:
    edit = site.tree.view.edit(offset, offset, "async ")
    if edit is None:
        return Problem(site.path, site.line, site.text, "the place cannot be found in the file", site.functions)
    return [edit]


def _imported_beside(tree: Tree, old: str, new: str) -> list[Edit | None]:
    """`from x import old` with `new` before it; nothing where that is there already."""
    imports = [statement for statement in tree.module.body if isinstance(statement, ast.ImportFrom)]
    aliases = [alias for statement in imports for alias in statement.names]
    if any((alias.asname or alias.name) == new for alias in aliases):
        return []
    for alias in aliases:
        if alias.name == old and alias.asname is None:
            start = tree.text.offset(alias.lineno, alias.col_offset)
            is_used_elsewhere = len(re.findall(rf"\b{old}\b", tree.text.value)) > 2
            if is_used_elsewhere:
                return [tree.view.edit(start, start, f"{new}, ")]
            return [tree.view.edit(start, start + len(old), new)]
    return []
