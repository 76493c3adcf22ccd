"""Find callers that take what an async function gives for something to be awaited: `gather(*[await start(x) for x in xs])`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from troth.analysis.rules._syntax_position import standing
from troth.analysis.semantics.values import FunctionValue, members_of

if TYPE_CHECKING:
    from troth.analysis.rules._syntax_position import Standing
    from troth.analysis.semantics import Program
    from troth.analysis.semantics.symbols import Function

__all__ = ["is_result_awaited"]

_TAKING = frozenset({
    "gather", "wait", "wait_for", "as_completed", "shield", "create_task", "ensure_future", "run_until_complete",
    "run_coroutine_threadsafe",
})  # fmt: skip
_COLLECTIONS = (ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.List, ast.Tuple, ast.Set, ast.Starred)


def is_result_awaited(program: Program, function: Function) -> bool:
    """Whether somebody awaits `function`, and then what it gave: then a coroutine is what it is to give."""
    for caller in program.calling.functions_naming({function.name}):
        for call in program.calling.of(caller):
            if call.text.rpartition(".")[2] != function.name or not call.is_awaited:
                continue
            if any(
                isinstance(member, FunctionValue) and member.function is function for member in members_of(call.callee)
            ):
                position = standing(program, caller.module.path, call.at)
                if position is not None and _is_taken(position):
                    return True
    return False


def _is_taken(here: Standing) -> bool:
    around = list(here.around)
    if not around or not isinstance(around.pop(0), ast.Await):
        return False
    while around and isinstance(around[0], _COLLECTIONS):
        around.pop(0)
    outer = around[0] if around else None
    if isinstance(outer, ast.Yield):
        return _gathers(around)
    if isinstance(outer, ast.Assign) and len(outer.targets) == 1 and isinstance(outer.targets[0], ast.Name):
        body = next((node for node in around if isinstance(node, ast.AsyncFunctionDef)), None)
        return body is not None and _is_taken_later(outer.targets[0].id, body)
    return isinstance(outer, ast.Await) or (isinstance(outer, ast.Call) and _name_called(outer) in _TAKING)


def _gathers(around: list[ast.AST]) -> bool:
    """Whether the file of an async generator gathers something: what is yielded may well be taken there."""
    module = next((node for node in around if isinstance(node, ast.Module)), None)
    return module is not None and any(
        isinstance(node, ast.Call) and _name_called(node) in _TAKING for node in ast.walk(module)
    )


def _is_taken_later(name: str, body: ast.AsyncFunctionDef) -> bool:
    """Whether a variable, or a list that it is put into, is awaited in the function or given to `gather`."""
    names, taken = {name}, set[str]()
    for node in ast.walk(body):
        if isinstance(node, ast.Await):
            taken |= _names_in(node.value)
        elif isinstance(node, ast.Call) and _name_called(node) in _TAKING:
            taken |= {held for argument in node.args for held in _names_in(argument)}
        elif isinstance(node, ast.Call):
            names |= _lists_with(name, node)
    return bool(names & taken)


def _lists_with(name: str, call: ast.Call) -> set[str]:
    """The list that a call puts the variable into: `pending.append(name)`."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "append":
        return set()
    return _names_in(call.func.value) if any(name in _names_in(argument) for argument in call.args) else set()


def _names_in(node: ast.expr) -> set[str]:
    """The variables that the expression is, or has as elements."""
    if isinstance(node, ast.Name):
        return {node.id}
    if isinstance(node, ast.Starred):
        return _names_in(node.value)
    return {name for item in node.elts for name in _names_in(item)} if isinstance(node, ast.List | ast.Tuple) else set()


def _name_called(call: ast.Call) -> str:
    callee = call.func
    return callee.attr if isinstance(callee, ast.Attribute) else getattr(callee, "id", "")
