"""Rewrite `with` for what has to be entered by `async with`: alone, beside others, and on a stack."""

import ast
from collections.abc import Collection

from troth.analysis.findings import Edit
from troth.analysis.recolor.project.tree import Tree, own_nodes

__all__ = ["entered_async", "entered_on_stack"]

_OF_STACK = frozenset({"enter_context", "callback", "push"})  # what both kinds of stack have


def entered_async(tree: Tree, node: ast.With, entered: Collection[ast.expr]) -> list[Edit] | str:
    """The edits that make a statement enter by `async with` what is in `entered`, or why that cannot be written.

    Others beside them are entered by a `with` of their own, outside or inside, in the order they had.
    """
    is_async = [item.context_expr in entered for item in node.items]
    if all(is_async):
        return _inserted(tree, tree.start(node), "async ")
    cuts = [place for place in range(1, len(is_async)) if is_async[place] != is_async[place - 1]]
    if len(cuts) != 1:
        return "it is entered between others, which may have no `__aenter__`"
    before, after = node.items[cuts[0] - 1], node.items[cuts[0]]
    start = tree.start(after.context_expr)
    end = tree.end(before.optional_vars or before.context_expr)
    body_indent, indent = node.body[0].col_offset, node.col_offset
    comma = tree.text.value[end:start]
    if (
        comma.strip() != ","
        or "\n"
        in tree.text.value[tree.start(node) : tree.end(node.items[-1].optional_vars or node.items[-1].context_expr)]
        or node.body[0].lineno == node.lineno
        or _has_long_strings(node)
        or _stands_in_another(tree, node)
    ):
        return "it is entered beside others, which may have no `__aenter__`"
    first_line = tree.text.offset(node.lineno, 0)
    margin = tree.text.value[first_line : first_line + indent]
    step = tree.text.value[tree.text.offset(node.body[0].lineno, 0) :][indent:body_indent]
    inner = "async with " if is_async[cuts[0]] else "with "
    edits: list[Edit | None] = []
    if is_async[0]:
        edits += _inserted(tree, tree.start(node), "async ")
    edits.append(tree.view.edit(end, start, f":\n{margin}{step}{inner}"))
    for line in range(node.lineno + 1, (node.end_lineno or node.lineno) + 1):
        place = tree.text.offset(line, 0)
        if tree.text.value[place : place + 1] not in {"", "\n", "\r"}:
            edits.append(tree.view.edit(place, place, step))
    if margin.strip() or any(edit is None for edit in edits):
        return "the place cannot be found in the file"
    return [edit for edit in edits if edit is not None]


def _has_long_strings(node: ast.With) -> bool:
    """Whether a string goes over several lines: what is put before its lines would be part of it."""
    return any(
        isinstance(part, ast.Constant | ast.JoinedStr) and part.lineno != part.end_lineno
        for statement in node.body
        for part in ast.walk(statement)
    )


def _stands_in_another(tree: Tree, node: ast.With) -> bool:
    """Whether a statement around is cut in two as well, or may be: then nobody knows how deep this one stands."""
    outer = tree.parent(node)
    while outer is not None:
        if isinstance(outer, ast.With) and len(outer.items) > 1:
            return True
        outer = tree.parent(outer)
    return False


def entered_on_stack(tree: Tree, call: ast.Call) -> list[Edit] | None:
    """`stack.enter_context(x)` as `await stack.enter_async_context(x)`, and the stack as an `AsyncExitStack`.

    None where the stack is not made by a `with` of the same function, or is used for more than entering.
    """
    callee, around = call.func, tree.around(call)
    if not isinstance(callee, ast.Attribute) or not isinstance(callee.value, ast.Name):
        return None
    name = callee.value.id
    made: list[ast.With] = []
    for part in own_nodes(around):
        if isinstance(part, ast.Name) and part.id == name:
            holder = tree.parent(part)
            if isinstance(part.ctx, ast.Load):
                if not (isinstance(holder, ast.Attribute) and holder.attr in _OF_STACK):
                    return None
                continue
            outer = tree.parent(holder) if isinstance(holder, ast.withitem) else None
            if not isinstance(outer, ast.With) or len(outer.items) != 1:
                return None
            made.append(outer)
    maker = made[0].items[0].context_expr if len(made) == 1 else None
    if not isinstance(maker, ast.Call) or ast.unparse(maker.func).rpartition(".")[2] != "ExitStack":
        return None
    end, class_end = tree.end(callee), tree.end(maker.func)
    parent = tree.parent(call)
    trails = isinstance(parent, ast.Attribute | ast.Subscript) and parent.value is call
    edits: list[Edit | None] = [
        *_inserted(tree, tree.start(made[0]), "async "),
        tree.view.edit(class_end - len("ExitStack"), class_end, "AsyncExitStack"),
        *_inserted(tree, tree.start(call), "(await " if trails else "await "),
        tree.view.edit(end - len("enter_context"), end, "enter_async_context"),
        *(_inserted(tree, tree.end(call), ")") if trails else ()),
    ]
    if isinstance(maker.func, ast.Name):
        imports = [node for node in tree.module.body if isinstance(node, ast.ImportFrom)]
        aliases = [alias for node in imports for alias in node.names]
        if not any(alias.name == "AsyncExitStack" and alias.asname is None for alias in aliases):
            plain = next((alias for alias in aliases if alias.name == "ExitStack" and alias.asname is None), None)
            if plain is None:
                return None
            start = tree.text.offset(plain.lineno, plain.col_offset)
            edits.append(tree.view.edit(start, start, "AsyncExitStack, "))
    return None if any(edit is None for edit in edits) else [edit for edit in edits if edit is not None]


def _inserted(tree: Tree, offset: int, text: str) -> list[Edit]:
    edit = tree.view.edit(offset, offset, text)
    return [] if edit is None else [edit]
