"""Rewrite generators and their context managers, and who loops over them or enters them, for the async color."""

import ast
import re
from collections.abc import Collection, Mapping

from troth.analysis.findings import Edit
from troth.analysis.recolor.problem import Obstacle
from troth.analysis.recolor.project.sites import CallSite
from troth.analysis.recolor.project.tree import Definition, Tree, own_nodes
from troth.analysis.recolor.rewrite.rewrite_async import as_list
from troth.analysis.recolor.rewrite.with_items import entered_async, entered_on_stack

__all__ = [
    "annotation_renamed",
    "generator_made_async",
    "imported_beside",
    "is_context_manager",
    "keeps_generator",
    "named_by_annotation",
    "site_entered",
    "site_looped",
]

_ANNOTATIONS = {"Iterator": "AsyncIterator", "Iterable": "AsyncIterable", "Generator": "AsyncGenerator"}
_READ_AT_ONCE = frozenset({"list", "set", "tuple", "sorted", "frozenset", "sum", "min", "max", "any", "all", "dict"})


def is_context_manager(node: Definition) -> bool:
    """Whether `contextlib.contextmanager` makes a context manager of the generator."""
    return any(
        ast.unparse(decorator) in {"contextmanager", "contextlib.contextmanager"} for decorator in node.decorator_list
    )


def keeps_generator(node: Definition) -> str | None:
    """What an async generator cannot do, and this one does; None if nothing."""
    first: dict[int, int] = {}  # where the first statement of each line begins
    for part in own_nodes(node):
        if isinstance(part, ast.stmt):
            first[part.lineno] = min(part.col_offset, first.get(part.lineno, part.col_offset))
    statements = {
        part.value
        for part in own_nodes(node)
        if isinstance(part, ast.Expr) and part.col_offset == first[part.lineno] and part.lineno > node.lineno
    }
    for part in own_nodes(node):
        if isinstance(part, ast.YieldFrom) and (part not in statements or is_context_manager(node)):
            return f"it is a generator with `yield from` (line {part.lineno}), which no async generator has"
        if isinstance(part, ast.Return) and part.value is not None:
            return f"it is a generator that returns a value (line {part.lineno}), which no async generator does"
    if any(not (is_context_manager(node) or _is_fixture(decorator)) for decorator in node.decorator_list):
        return "it is a generator, and a decorator asks for its color"
    return None


def _is_fixture(decorator: ast.expr) -> bool:
    callee = decorator.func if isinstance(decorator, ast.Call) else decorator
    return ast.unparse(callee) in {"pytest.fixture", "fixture", "pytest_asyncio.fixture"}


def generator_made_async(tree: Tree, node: Definition) -> list[Edit]:
    """The edits beside `async`: the decorator of a context manager, and the annotation of what it gives."""
    edits: list[Edit | None] = _yields_looped(tree, node)
    for decorator in node.decorator_list if is_context_manager(node) else ():
        end = tree.end(decorator)
        start = end - len("contextmanager")
        edits.append(tree.view.edit(start, end, "asynccontextmanager"))
        if isinstance(decorator, ast.Name):
            edits += imported_beside(tree, "contextmanager", "asynccontextmanager")
    edits += annotation_renamed(tree, node, _ANNOTATIONS)
    inside = node.returns.slice if isinstance(node.returns, ast.Subscript) else None
    if named_by_annotation(node) == "Generator" and isinstance(inside, ast.Tuple) and len(inside.elts) == 3:
        edits.append(tree.view.edit(tree.end(inside.elts[1]), tree.end(inside.elts[2]), ""))
    return [edit for edit in edits if edit is not None]


def _yields_looped(tree: Tree, node: Definition) -> list[Edit | None]:
    """`yield from x` as a loop that yields each item, `async for` where that is put before it."""
    names = {part.id for part in own_nodes(node) if isinstance(part, ast.Name)}
    item = next(name for name in ("item", "each_item", "item_of_it") if name not in names)
    edits: list[Edit | None] = []
    for part in own_nodes(node):
        if isinstance(part, ast.YieldFrom):
            margin = tree.text.value[tree.text.offset(part.lineno, 0) : tree.start(part)]
            end = tree.end(part)
            edits.append(tree.view.edit(tree.start(part), tree.start(part.value), f"for {item} in "))
            edits.append(tree.view.edit(end, end, f":\n{margin}    yield {item}"))
    return edits


def site_looped(site: CallSite, entered: Collection[ast.expr], *, has_anext: bool) -> list[Edit] | Obstacle:
    """The edits that loop over the async generator, or enter the async context manager, in place."""
    tree, node = site.tree, site.node
    parent = tree.parent(node)
    if isinstance(parent, ast.For) and parent.iter is node:
        return _before(site, tree.start(parent))
    if isinstance(parent, ast.withitem) or (isinstance(parent, ast.Call) and _is_enter_context(parent)):
        return site_entered(site, entered)
    if isinstance(parent, ast.YieldFrom):
        return _before(site, tree.start(parent))  # the statement is made a loop with its function
    if isinstance(parent, ast.Call) and parent.args[:1] == [node] and ast.unparse(parent.func) == "next":
        return _next(site, parent, has_anext=has_anext)
    if isinstance(parent, ast.comprehension) and parent.iter is node:
        holder = tree.parent(parent)
        head = tree.text.value[: tree.start(parent.target)].rstrip("( \t\r\n")
        as_read = as_list(tree, holder) if isinstance(holder, ast.GeneratorExp) else []
        looped = _before(site, len(head) - len("for"))
        if as_read is not None and head.endswith("for"):
            return looped if isinstance(looped, Obstacle) else [*as_read, *looped]
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
    return Obstacle(site.path, site.line, site.text, why, site.functions)


def _is_enter_context(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "enter_context"


def _next(site: CallSite, call: ast.Call, *, has_anext: bool) -> list[Edit] | Obstacle:
    """`next(f())` as `await anext(f())`; what ends it is another exception from now on."""
    tree = site.tree
    around = tree.around(call)
    if any(isinstance(part, ast.Name) and part.id == "StopIteration" for part in ast.walk(around)) or not has_anext:
        why = "`next` of it ends with another exception from now on, and before Python 3.10 there is no `anext`"
        return Obstacle(site.path, site.line, site.text, why, site.functions)
    parent = tree.parent(call)
    trails = isinstance(parent, ast.Attribute | ast.Subscript) and parent.value is call
    start = tree.start(call)
    edits = [tree.view.edit(start, start + len("next"), "(await anext" if trails else "await anext")]
    if trails:
        edits.append(tree.view.edit(tree.end(call), tree.end(call), ")"))
    return [edit for edit in edits if edit is not None]


def site_entered(site: CallSite, entered: Collection[ast.expr]) -> list[Edit] | Obstacle:
    """The edits that make `with` an `async with`; `entered` is all that has to be entered so."""
    item = site.tree.parent(site.node)
    outer = site.tree.parent(item) if isinstance(item, ast.withitem) else None
    if isinstance(outer, ast.With):
        edits = entered_async(site.tree, outer, entered)
        return Obstacle(site.path, site.line, site.text, edits, site.functions) if isinstance(edits, str) else edits
    on_stack = entered_on_stack(site.tree, item) if isinstance(item, ast.Call) else None
    if on_stack is not None:
        return on_stack
    why = "it is entered by a statement that enters others, too"
    if outer is None:
        why = f"it is given to `{site.use.by}`, which enters it as a sync context manager"
    return Obstacle(site.path, site.line, site.text, why, site.functions)


def _before(site: CallSite, offset: int) -> list[Edit] | Obstacle:
    edit = site.tree.view.edit(offset, offset, "async ")
    if edit is None:
        return Obstacle(site.path, site.line, site.text, "the place cannot be found in the file", site.functions)
    return [edit]


def named_by_annotation(node: Definition) -> str:
    """The last name of what a function is annotated to return, without what stands in its brackets."""
    head = node.returns.value if isinstance(node.returns, ast.Subscript) else node.returns
    return "" if head is None else ast.unparse(head).rpartition(".")[2]


def annotation_renamed(tree: Tree, node: Definition, names: Mapping[str, str]) -> list[Edit | None]:
    """The edits that give what a function returns the name of the other color, and import that name."""
    head = node.returns.value if isinstance(node.returns, ast.Subscript) else node.returns
    name = named_by_annotation(node)
    if head is None or name not in names:
        return []
    end = tree.end(head)
    edits = [tree.view.edit(end - len(name), end, names[name])]
    if isinstance(head, ast.Name):
        edits += imported_beside(tree, name, names[name])
    return edits


def imported_beside(tree: Tree, old: str, new: str) -> list[Edit | None]:
    """`from x import old` with `new` before it, or in its place; nothing where that is there already."""
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
