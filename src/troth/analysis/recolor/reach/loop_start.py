"""Find whether a sync function starts an event loop: what runs one cannot be run by one."""

import ast
import re
from collections.abc import Collection

from troth.analysis.findings import Edit
from troth.analysis.recolor.project.tree import Definition, Tree, own_nodes
from troth.analysis.semantics import Program
from troth.analysis.semantics.symbols import Function
from troth.analysis.semantics.values import FunctionValue, members_of

__all__ = ["is_undone", "loop_start", "runner_in", "runs_awaited"]

_STARTERS = frozenset({"asyncio.run", "anyio.run", "trio.run", "uvloop.run"})
_LOOP_METHODS = frozenset({"run_until_complete", "run_forever"})
_RUNNING = re.compile(r"(?:asyncio|uvloop)\.run|[\w.()]+\.run_until_complete")  # with the coroutine, to its end


def loop_start(
    program: Program, function: Function, undone: Collection[Function] = (), *, is_own_allowed: bool = False
) -> str | None:
    """How the function starts a loop, itself or by a sync function that it calls; None if it does not.

    With `is_own_allowed` only the functions that it calls matter, because it awaits what it ran before; `undone` are
    others that do so.
    Longer chains are left to the check of the changed tree: to follow the calls of everything costs too much.
    """
    starter = _starter(function)
    if starter is not None and not is_own_allowed:
        return f"starts a loop itself, with `{starter}`"
    for call in program.calling.of(function):
        callees = [member.function for member in members_of(call.callee) if isinstance(member, FunctionValue)]
        callee = callees[0] if len(callees) == 1 else None
        if not isinstance(callee, Function) or callee.is_async or callee in undone:
            continue
        if (starter := _starter(callee)) is not None:
            path, line = callee.place
            return f"calls `{callee.qualname}` ({path}:{line}), which starts a loop with `{starter}`"
    return None


def _starter(function: Function) -> str | None:
    return next((callee for callee in function.facts.calls if _is_start(callee)), None)


def _is_start(callee: str) -> bool:
    return callee in _STARTERS or callee.rpartition(".")[2] in _LOOP_METHODS


def _runs(node: Definition) -> list[ast.Call] | None:
    """The calls that run a coroutine to its end; None if the function starts a loop in another way, too."""
    runs: list[ast.Call] = []
    for part in own_nodes(node):
        if isinstance(part, ast.Call) and _is_start(callee := ast.unparse(part.func)):
            arguments = [*part.args, *part.keywords]
            if not _RUNNING.fullmatch(callee) or len(arguments) != 1 or isinstance(part.args[0], ast.Starred):
                return None
            runs.append(part)
    return runs


def is_undone(node: Definition) -> bool:
    """Whether the function can await what it runs, once it is async itself."""
    return bool(_runs(node))


def runs_awaited(tree: Tree, node: Definition) -> list[Edit]:
    """`loop.run_until_complete(f())` as `await f()`."""
    edits: list[Edit | None] = []
    for call in _runs(node) or ():
        inner, parent = call.args[0], tree.parent(call)
        is_simple = isinstance(inner, ast.Call | ast.Name | ast.Attribute | ast.Subscript)
        before, after = ("await ", "") if is_simple else ("await (", ")")
        if (isinstance(parent, ast.Attribute | ast.Subscript) and parent.value is call) or (
            isinstance(parent, ast.Call) and parent.func is call
        ):
            before, after = f"({before}", f"{after})"
        edits.append(tree.view.edit(tree.start(call), tree.start(inner), before))
        edits.append(tree.view.edit(tree.end(inner), tree.end(call), after))
    return [edit for edit in edits if edit is not None]


def runner_in(tree: Tree, node: ast.AST) -> str:
    """What the function around already runs coroutines with, if that works where `node` stands; else empty.

    A loop has to be there before the call, and must not be closed before it.
    """
    around = tree.around(node)
    runs = _runs(around) if isinstance(around, ast.FunctionDef) else None
    runners = {ast.unparse(call.func) for call in runs or ()}
    if len(runners) != 1:
        return ""
    runner = runners.pop()
    loop = runner.rpartition(".")[0]
    line = getattr(node, "lineno", 0)
    if loop in {"asyncio", "uvloop"}:
        return runner
    parts = list(own_nodes(around))
    if any(isinstance(part, ast.Call) and ast.unparse(part.func) == f"{loop}.close" for part in parts):
        return ""
    stored = [part.lineno for part in parts if isinstance(part, ast.Name | ast.Attribute) and _is_stored(part, loop)]
    return runner if all(place < line for place in stored) else ""


def _is_stored(part: ast.Name | ast.Attribute, loop: str) -> bool:
    return isinstance(part.ctx, ast.Store) and ast.unparse(part) == loop
