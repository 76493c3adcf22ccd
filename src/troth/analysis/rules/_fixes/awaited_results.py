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
    if isinstance(outer, ast.Await):
        return True
    if not isinstance(outer, ast.Call):
        return False
    callee = outer.func
    return (callee.attr if isinstance(callee, ast.Attribute) else getattr(callee, "id", "")) in _TAKING
