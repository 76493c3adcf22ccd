"""Find whether a plain function starts an event loop: what runs one cannot be run by one."""

from troth.analysis.semantics import Program
from troth.analysis.semantics.symbols import Function
from troth.analysis.semantics.values import FunctionValue, members_of

__all__ = ["loop_start"]

_STARTERS = frozenset({"asyncio.run", "anyio.run", "trio.run", "uvloop.run"})
_LOOP_METHODS = frozenset({"run_until_complete", "run_forever"})


def loop_start(program: Program, function: Function) -> str | None:
    """How the function starts a loop, itself or by a plain function that it calls; None if it does not.

    Longer chains are left to the check of the changed tree: to follow the calls of everything costs too much.
    """
    starter = _starter(function)
    if starter is not None:
        return f"starts a loop itself, with `{starter}`"
    for call in program.calling.of(function):
        callees = [member.function for member in members_of(call.callee) if isinstance(member, FunctionValue)]
        callee = callees[0] if len(callees) == 1 else None
        if isinstance(callee, Function) and not callee.is_async and (starter := _starter(callee)) is not None:
            path, line = callee.place
            return f"calls `{callee.qualname}` ({path}:{line}), which starts a loop with `{starter}`"
    return None


def _starter(function: Function) -> str | None:
    return next((callee for callee in function.facts.calls if _is_start(callee)), None)


def _is_start(callee: str) -> bool:
    return callee in _STARTERS or callee.rpartition(".")[2] in _LOOP_METHODS
