"""Find sync functions that give a coroutine which somebody else made: as `async def` they give what it gives.

For whoever calls them nothing changes: there was something to await before, and there is now.
"""

import ast
from collections.abc import Collection, Iterator

from troth.analysis.findings import Edit
from troth.analysis.recolor.project.resolve import looked_up
from troth.analysis.recolor.project.tree import Definition, Tree, own_nodes
from troth.analysis.recolor.project.workspace import RecolorWorkspace
from troth.analysis.recolor.reach.family import family
from troth.analysis.semantics.queries.color_requirements import is_harmless
from troth.analysis.semantics.symbols import Function
from troth.analysis.semantics.values import Coroutine, Value, members_of

__all__ = ["hands_on", "passing_on", "returns_awaited"]

_RESULT_AT = {"Awaitable": 0, "Future": 0, "Task": 0, "Coroutine": 2}  # where the annotation says what it gives


def passing_on(workspace: RecolorWorkspace, functions: Collection[Function]) -> set[Function]:
    """Those of `functions` that return somebody else's coroutine, and what is abstract among their overrides."""
    passing = {function for function in functions if _passes_on(workspace, function)}
    names = {function.name for function in passing}
    for function in functions:
        if function.is_abstract and function.name in names and function not in passing:
            written = [relative for relative in family(workspace.program, [function]) if not relative.is_abstract]
            if all(relative in passing or relative.is_async for relative in written):
                passing.add(function)
    return passing


def _passes_on(workspace: RecolorWorkspace, function: Function) -> bool:
    program = workspace.program
    if function.is_async or function.is_generator or function.is_abstract:
        return False
    if any(not is_harmless(program, function, decorator) for decorator in function.facts.decorators):
        return False
    where = workspace.definition(function)
    if where is None:
        return False
    returns = list(_returns(where[1]))
    if not returns or not all(_is_made_elsewhere(workspace, where[0], node.value, function) for node in returns):
        return False
    return _is_coroutine(program.inferred(function))


def _returns(node: Definition) -> Iterator[ast.Return]:
    return (part for part in own_nodes(node) if isinstance(part, ast.Return))


def _is_made_elsewhere(workspace: RecolorWorkspace, tree: Tree, value: ast.expr | None, function: Function) -> bool:
    if not isinstance(value, ast.Call):
        return False
    return _is_coroutine(looked_up(workspace, tree, value, function))


def _is_coroutine(value: Value | None) -> bool:
    """Whether nothing has begun yet: a task runs whoever awaits it, and an object with `__await__` is more."""
    return all(type(member) is Coroutine for member in members_of(value))


def hands_on(workspace: RecolorWorkspace, function: Function, uses: Collection[str]) -> bool:
    """Whether all that the function gives is what unknown calls give, and whoever is seen to call it awaits that.

    `uses` are the kinds of use of its calls. Then it may await as well what it gives: nobody else gets it. A task is
    more than that: it runs though nobody awaits it.
    """
    where = workspace.definition(function)
    if workspace.program.inferred(function) is not None:
        return False
    values = [] if where is None else [part.value for part in _returns(where[1]) if part.value is not None]
    return bool(values) and all(isinstance(value, ast.Call) for value in values) and set(uses) == {"awaited"}


def returns_awaited(tree: Tree, node: Definition) -> list[Edit]:
    """The edits that await what the function returns, and the annotation of what it gives from now on."""
    starts = [tree.start(part.value) for part in _returns(node) if isinstance(part.value, ast.Call)]
    edits = [tree.view.edit(start, start, "await ") for start in starts]
    annotation = node.returns
    if isinstance(annotation, ast.Subscript):
        place = _RESULT_AT.get(ast.unparse(annotation.value).rpartition(".")[2])
        inside = annotation.slice.elts if isinstance(annotation.slice, ast.Tuple) else [annotation.slice]
        if place is not None and place < len(inside):
            edits.append(tree.view.edit(tree.start(annotation), tree.end(annotation), tree.source(inside[place])))
    return [edit for edit in edits if edit is not None]
