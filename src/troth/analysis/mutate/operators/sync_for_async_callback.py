"""Sync for async callback.

What it plants: where an async function is handed to somebody who calls and awaits it, a sync lambda is handed over
instead. The caller then awaits None and fails, or an `except` around it makes the step vanish.
What it leaves alone: slots that are not seen to await what they are given, because many take either color.
"""

import ast
from collections.abc import Iterator

from troth.analysis.findings import Edit
from troth.analysis.mutate.mutant import Mutant
from troth.analysis.mutate.operator import Operator, OperatorCase, OperatorKind
from troth.analysis.mutate.source.module import SourceModule
from troth.analysis.mutate.source.place import NumberedPlaces
from troth.analysis.mutate.source.project import MutatedProject

__all__ = ["OPERATOR"]

_POSITION, _KEYWORD = "position", "keyword"
_LAMBDA = "lambda *args, **kwargs: None"
_ABOUT = r"awaitable|corout|lambda|callable"


def find(module: SourceModule, project: MutatedProject) -> Iterator[Mutant]:
    """Every async function of this file that is handed to a slot whose owner awaits what it calls."""
    places = NumberedPlaces(module, "sync-for-async-callback")
    own = _async_names(module)
    for node in module.walk():
        if not isinstance(node, ast.Call) or node not in module.homes or module.in_fstring(node):
            continue
        callee = _leaf(node.func)
        for slot in project.slots.get(callee, ()):
            for shape, argument in _arguments_for(node, slot.position, slot.keyword):
                if _leaf(argument) in own:
                    start, end = module.start(argument), module.end(argument)
                    edit = Edit(module.path, start, end, _LAMBDA)
                    yield places.mutant(argument, shape, [edit], subject=f"{callee}({slot.keyword})")


def _async_names(module: SourceModule) -> frozenset[str]:
    """Names that this file defines as async functions and as nothing else."""
    colors: dict[str, set[bool]] = {}
    for node in module.walk():
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            colors.setdefault(node.name, set()).add(isinstance(node, ast.AsyncFunctionDef) and not node.decorator_list)
    return frozenset(name for name, is_async in colors.items() if is_async == {True})


def _leaf(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    is_known = isinstance(node, ast.Attribute) and isinstance(node.value, (ast.Name, ast.Attribute))
    return node.attr if is_known and isinstance(node, ast.Attribute) else ""


def _arguments_for(call: ast.Call, position: int | None, name: str) -> Iterator[tuple[str, ast.expr]]:
    if position is not None and position < len(call.args):
        before = call.args[: position + 1]
        if not any(isinstance(argument, ast.Starred) for argument in before):
            yield _POSITION, call.args[position]
    for keyword in call.keywords:
        if keyword.arg == name:
            yield _KEYWORD, keyword.value


OPERATOR = Operator(
    name="sync-for-async-callback",
    summary="hand over a sync function where an async one is called and awaited",
    shapes=(_POSITION, _KEYWORD),
    find=find,
    kinds={
        "mypy": OperatorKind(codes=r"arg-type|call-overload|misc", words=_ABOUT),
        "pyright": OperatorKind(codes=r"reportArgumentType|reportCallIssue", words=_ABOUT),
        "ty": OperatorKind(codes=r"invalid-argument-type|no-matching-overload", words=_ABOUT),
        "pyrefly": OperatorKind(codes=r"bad-argument-type|no-matching-overload", words=_ABOUT),
        "troth": OperatorKind(codes=r"TR\d+"),
    },
    cures={
        _POSITION: "a test in which the callback is called, and that looks at what it did",
        _KEYWORD: "a test in which the callback is called, and that looks at what it did",
    },
    needs=dict.fromkeys(
        (_POSITION, _KEYWORD), "knowing that `{subject}` is called and awaited, by annotation or from its body"
    ),
    cases=(
        OperatorCase(
            "by position",
            "async def step(): pass\nasync def run(executor):\n    await executor()\nasync def f():\n"
            "    await run(step)\n",
            "async def step(): pass\nasync def run(executor):\n    await executor()\nasync def f():\n"
            "    await run(lambda *args, **kwargs: None)\n",
            _POSITION,
        ),
        OperatorCase(
            "kept by a constructor, given by keyword",
            "class Saga:\n    def __init__(self, name, *, undo):\n        self._undo = undo\n"
            "    async def go(self):\n        await self._undo(1)\nclass A:\n    async def back(self, x): pass\n"
            "    def f(self):\n        return Saga('a', undo=self.back)\n",
            "class Saga:\n    def __init__(self, name, *, undo):\n        self._undo = undo\n"
            "    async def go(self):\n        await self._undo(1)\nclass A:\n    async def back(self, x): pass\n"
            "    def f(self):\n        return Saga('a', undo=lambda *args, **kwargs: None)\n",
            _KEYWORD,
        ),
        OperatorCase(
            "a slot that takes either color",
            "async def step(): pass\nasync def run(cb):\n    r = cb()\n    if isawaitable(r): await r\n"
            "async def f():\n    await run(step)\n",
            None,
        ),
        OperatorCase(
            "a callback of unknown color",
            "async def run(cb):\n    await cb()\nasync def f(step):\n    await run(step)\n",
            None,
        ),
    ),
)
