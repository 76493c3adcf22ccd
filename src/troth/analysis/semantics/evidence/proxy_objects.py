"""Objects of the project that stand for others: what is asked of them is found, and run, by `__getattr__`.

`def services(self) -> Services: return self._adapter` says what users may ask for, not what color it has: the adapter
runs each coroutine to its end, or puts each call into one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.incremental.project_queries import part
from troth.analysis.semantics.symbols import Class
from troth.analysis.semantics.values import Instance, members_of

if TYPE_CHECKING:
    from troth.analysis.facts.model import FileFacts
    from troth.analysis.semantics.program import Program
    from troth.analysis.semantics.symbols import Function

__all__ = ["gives_a_stand_in", "has_stand_ins"]

_MAKING_UP = ("__getattr__", "__getattribute__")
_CHANGING = frozenset(
    {
        "iscoroutinefunction",
        "run_until_complete",
        "run_coroutine_threadsafe",
        "async_to_sync",
        "sync_to_async",
        "to_thread",
    }
)


def has_stand_ins(program: Program) -> bool:
    """Whether the project has any: then a name says little of what a plain function calls."""
    return bool(program.said("stand-ins"))


def gives_a_stand_in(program: Program, function: Function, declared: Instance) -> bool:
    """Whether a function gives an object that only stands for one of the class that it declares."""
    return has_stand_ins(program) and any(
        isinstance(one, Instance)
        and isinstance(one.cls, Class)
        and declared.cls not in program.classes.order(one.cls)
        and any(name in one.cls.methods for name in _MAKING_UP)
        for one in members_of(program.inferred(function))
    )


@part("stand-ins")
def _changes_colors(file: FileFacts) -> bool:
    """Whether a class makes its attributes up, in a file that looks at the color of what it calls."""
    if not any(f.name in _MAKING_UP and f.owner >= 0 for f in file.functions):
        return False
    return any(callee.rpartition(".")[2] in _CHANGING for f in file.functions for callee in f.calls)
