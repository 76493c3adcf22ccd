"""Rewrite a variable that holds coroutines or tasks, once the calls that made them give plain values."""

import ast
from collections.abc import Collection, Sequence

from troth.analysis.findings import Edit
from troth.analysis.recolor.problem import Obstacle
from troth.analysis.recolor.project.sites import CallSite
from troth.analysis.recolor.project.tree import Tree, own_nodes

__all__ = ["Held", "held_by", "kept_made_plain"]

_SPAWNERS = frozenset({"create_task", "ensure_future"})
_GATHERERS = frozenset({"asyncio.gather", "gather"})


class Held:
    """A variable that takes the value of a call: as it is, or as one of several in a list."""

    def __init__(self, name: str, *, many: bool, made: Sequence[ast.expr]) -> None:
        self.name = name
        self.many = many
        self.made = made  # everything that is put into it here


def held_by(tree: Tree, node: ast.expr) -> Held | None:
    """The variable that holds `node`, a call or a task made of one."""
    parent = tree.parent(node)
    if isinstance(parent, ast.ListComp) and parent.elt is node:
        return _assigned(tree, parent, many=True, made=[node])
    if isinstance(parent, ast.List):
        return _assigned(tree, parent, many=True, made=parent.elts)
    if isinstance(parent, ast.Call) and parent.args == [node] and isinstance(parent.func, ast.Attribute):
        receiver = parent.func.value
        if (
            parent.func.attr == "append"
            and isinstance(receiver, ast.Name)
            and isinstance(tree.parent(parent), ast.Expr)
        ):
            return Held(receiver.id, many=True, made=[node])
        return None
    return _assigned(tree, node, many=False, made=[node])


def _assigned(tree: Tree, node: ast.expr, *, many: bool, made: Sequence[ast.expr]) -> Held | None:
    statement = tree.parent(node)
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Name):
        return Held(statement.targets[0].id, many=many, made=made)
    if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
        return Held(statement.target.id, many=many, made=made)
    return None


def kept_made_plain(
    site: CallSite, held: Held, ours: Collection[ast.Call], *, is_task: bool
) -> tuple[list[Edit], list[ast.AST]] | Obstacle:
    """The edits at every use of the variable, and the awaits that go with them; none where nobody awaits it."""
    tree, name = site.tree, held.name
    nodes = list(own_nodes(tree.around(site.node)))
    uses = [node for node in nodes if isinstance(node, ast.Name) and node.id == name]
    stores = [use for use in uses if isinstance(use.ctx, ast.Store)]
    loads = [use for use in uses if isinstance(use.ctx, ast.Load)]
    edits: list[Edit | None] = []
    gone: list[ast.AST] = []
    reader: ast.AST | None = None
    for load in loads:
        use = _use(tree, load, held, ours, nodes)
        if use is None:
            reader = reader or tree.parent(load)
        else:
            edits += use[0]
            gone += use[1]
    if not gone and not is_task and not any(_may_consume(tree, load) for load in loads):
        return [], []  # forgotten to be awaited: it becomes right by itself
    noun = "tasks" if is_task else "coroutines"
    if reader is not None:
        line = getattr(reader, "lineno", site.line)
        why = f"`{name}` holds its {noun if held.many else noun[:-1]} and is used otherwise too (line {line})"
        return Obstacle(site.path, site.line, site.text, why, site.functions)
    if len(stores) != 1 or (held.many and not all(_is_ours(call, ours) for call in held.made)):
        why = f"`{name}` holds its {noun if held.many else noun[:-1]}, and other things too"
        return Obstacle(site.path, site.line, site.text, why, site.functions)
    if any(edit is None for edit in edits):
        return Obstacle(site.path, site.line, site.text, "the change cannot be written in the file", site.functions)
    return [edit for edit in edits if edit is not None], gone


def _is_ours(node: ast.expr, ours: Collection[ast.Call]) -> bool:
    """Whether it is one of the calls, or a task made of one."""
    if node in ours:
        return True
    return (
        isinstance(node, ast.Call)
        and ast.unparse(node.func).rpartition(".")[2] in _SPAWNERS
        and len(node.args) == 1
        and node.args[0] in ours
    )


def _use(
    tree: Tree, name: ast.Name, held: Held, ours: Collection[ast.Call], nodes: Sequence[ast.AST]
) -> tuple[list[Edit | None], list[ast.AST]] | None:
    """The edits for one use of the variable; None where it cannot follow."""
    parent = tree.parent(name)
    outer = None if parent is None else tree.parent(parent)
    if not held.many:
        if isinstance(parent, ast.Await):
            return _taken_away(tree, parent, name)
        if isinstance(parent, ast.Attribute) and parent.attr == "result" and isinstance(outer, ast.Call):
            return ([tree.view.edit(tree.end(name), tree.end(outer), "")], []) if not outer.args else None
        return None
    if isinstance(parent, ast.Attribute) and parent.attr == "append" and isinstance(outer, ast.Call):
        return ([], []) if len(outer.args) == 1 and _is_ours(outer.args[0], ours) else None
    if isinstance(parent, ast.Starred) and isinstance(outer, ast.Call):
        waiting = tree.parent(outer)
        if ast.unparse(outer.func) in _GATHERERS and outer.args == [parent] and not outer.keywords:
            return _taken_away(tree, waiting, name) if isinstance(waiting, ast.Await) else None
        return None
    if isinstance(parent, ast.For) and parent.iter is name and isinstance(parent.target, ast.Name):
        each = [
            node
            for node in nodes
            if isinstance(node, ast.Name) and node.id == parent.target.id and node is not parent.target
        ]
        awaits = [tree.parent(load) for load in each]
        if all(isinstance(waiting, ast.Await) for waiting in awaits):
            edits: list[Edit | None] = []
            for load, waiting in zip(each, awaits, strict=True):
                assert isinstance(waiting, ast.Await)
                edits.append(tree.view.edit(tree.start(waiting), tree.start(load), ""))
            return edits, [waiting for waiting in awaits if waiting is not None]
    return None


def _taken_away(tree: Tree, waiting: ast.Await, name: ast.Name) -> tuple[list[Edit | None], list[ast.AST]]:
    """`await task` as `task`; a statement that says nothing more goes with its line, where the block has others."""
    statement = tree.parent(waiting)
    block = tree.parent(statement) if isinstance(statement, ast.Expr) else None
    if isinstance(statement, ast.Expr) and block is not None and _has_others(block, statement):
        text = tree.text.value
        start, end = tree.text.offset(statement.lineno, 0), text.find("\n", tree.end(statement))
        end = len(text) if end < 0 else end + 1
        if text[start:end].strip() == tree.source(statement):
            return [tree.view.edit(start, end, "")], [waiting]
    before = tree.view.edit(tree.start(waiting), tree.start(name), "")
    after = tree.view.edit(tree.end(name), tree.end(waiting), "") if tree.end(name) < tree.end(waiting) else None
    return [before, *([after] if after is not None else [])], [waiting]


def _has_others(block: ast.AST, statement: ast.stmt) -> bool:
    bodies = (getattr(block, field, None) for field in ("body", "orelse", "finalbody"))
    return any(isinstance(body, list) and statement in body and len(body) > 1 for body in bodies)


def _may_consume(tree: Tree, name: ast.Name) -> bool:
    parent = tree.parent(name)
    if isinstance(parent, ast.Call) and name is not parent.func:
        return ast.unparse(parent.func).rpartition(".")[2] in {
            "run", "gather", "create_task", "wait_for", "ensure_future", "run_until_complete", "shield", "start_soon",
            "wait", "as_completed",
        }  # fmt: skip
    return isinstance(parent, ast.List | ast.Tuple | ast.Starred)
