"""Find where async ends: the functions and modules at which a coroutine is run to its end from plain code."""

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from troth.analysis.recolor.project.tree import Tree
from troth.analysis.recolor.target import find_target
from troth.analysis.semantics import Program
from troth.analysis.semantics.symbols import Function

__all__ = ["AUTO", "Boundary", "find_boundary", "is_start"]

AUTO = "auto"  # every place that has to stay plain
_IMPORTS = {
    "asyncio.run": "import asyncio",
    "trio.run": "import trio",
    "anyio.run": "import anyio",
    "bridge.run": "from troth import bridge",
}


@dataclass(frozen=True, slots=True)
class Boundary:
    """Functions, and modules by path, whose calls are wrapped in `runner`."""

    functions: frozenset[Function] = frozenset()
    modules: frozenset[str] = frozenset()
    runner: str = "asyncio.run"
    is_auto: bool = False  # also wherever a caller cannot follow

    @property
    def import_line(self) -> str:
        """What makes the runner known in a file."""
        return _IMPORTS[self.runner]

    def holds(self, function: Function | None, module: str = "") -> bool:
        """Whether a call in `function`, or at the top of `module`, is run there."""
        return module in self.modules if function is None else function in self.functions


def find_boundary(program: Program, named: Sequence[str], runner: str) -> Boundary:
    """What the user named: `package.module:function`, a module for the code at its top, or all that stays plain."""
    functions: set[Function] = set()
    modules: set[str] = set()
    for name in (name for name in named if name != AUTO):
        target = find_target(program, name)
        if ":" in name:
            functions.update(target.functions)
        elif target.module is not None:
            modules.add(target.module.path)
    return Boundary(frozenset(functions), frozenset(modules), runner, AUTO in named)


def is_start(tree: Tree, line: int) -> bool:
    """Whether a line of a file stands under `if __name__ == "__main__":`, where a program starts and no loop runs."""
    return any(
        isinstance(statement, ast.If)
        and "__name__" in ast.unparse(statement.test)
        and statement.lineno <= line <= (statement.end_lineno or 0)
        for statement in tree.module.body
    )
