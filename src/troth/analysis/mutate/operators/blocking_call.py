"""Blocking call.

What it plants: waiting that let others run becomes waiting that stops the whole event loop: `asyncio.sleep` becomes
`time.sleep`, and work that was sent to a thread is done on the spot.
Why it matters: every test still passes, only later; and in service one slow call holds up all others.
What it leaves alone: `asyncio.sleep(0)`, which only gives way to others, and calls with starred arguments.
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

_SLEEP, _THREAD = "sleep", "thread"


def find(module: SourceModule, project: MutatedProject) -> Iterator[Mutant]:
    """Every awaited sleep, and every awaited call that hands a function to a thread."""
    del project
    places = NumberedPlaces(module, "blocking-call")
    time = _import_time(module)
    for node, call in module.awaited_calls():
        name = _dotted(call.func)
        if any(isinstance(argument, ast.Starred) for argument in call.args[:2]):
            continue
        if name in ("asyncio.sleep", "anyio.sleep") and _is_long(call) and time is not None:
            edit = Edit(module.path, module.start(node), module.end(call.func), "time.sleep")
            yield places.mutant(node, _SLEEP, [edit, *time], subject=name)
        elif (first := _work(call, name)) is not None:
            yield places.mutant(node, _THREAD, _on_the_spot(module, node, call, first), subject=name)


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return f"{_dotted(node.func)}()" if isinstance(node, ast.Call) else ""


def _is_long(call: ast.Call) -> bool:
    if len(call.args) != 1 or call.keywords:
        return False
    return not (isinstance(call.args[0], ast.Constant) and not call.args[0].value)


def _work(call: ast.Call, name: str) -> int | None:
    """The position of the function that is sent to a thread, or None."""
    position = None
    if name in ("asyncio.to_thread", "to_thread", "anyio.to_thread.run_sync", "to_thread.run_sync"):
        position = 0
    elif name.endswith(".run_in_executor") and not call.keywords:
        position = 1
    options = {"cancellable", "abandon_on_cancel", "limiter"}  # anyio's own, not the function's
    if position is None or any(keyword.arg in options for keyword in call.keywords):
        return None
    return (
        position if len(call.args) > position and isinstance(call.args[position], (ast.Name, ast.Attribute)) else None
    )


def _on_the_spot(module: SourceModule, node: ast.Await, call: ast.Call, position: int) -> list[Edit]:
    """`await to_thread(work, 1)` as `work(1)`; all that stands between the arguments stays as it is."""
    function = call.args[position]
    arguments = [*call.args[position + 1 :], *(keyword.value for keyword in call.keywords)]
    edits = [Edit(module.path, module.start(node), module.start(function), "")]
    if not arguments:
        return [*edits, Edit(module.path, module.end(function), module.end(call), "()")]
    comma = module.file.text.index(",", module.end(function))
    return [*edits, Edit(module.path, module.end(function), comma + 1, "(")]


def _import_time(module: SourceModule) -> list[Edit] | None:
    """The edit that imports `time`, before the first import of the file; none if the file does so.

    None where the name stands for something else in this file, or nothing is imported at all.
    """
    for node in module.walk():
        is_bound = isinstance(node, ast.Name) and node.id == "time" and not isinstance(node.ctx, ast.Load)
        is_other = isinstance(node, ast.ImportFrom) and any(
            (alias.asname or alias.name) == "time" for alias in node.names
        )
        if is_bound or is_other or (isinstance(node, ast.arg) and node.arg == "time"):
            return None
    first = None
    for node in module.module.body:
        if isinstance(node, ast.Import) and any(alias.name == "time" and not alias.asname for alias in node.names):
            return []
        is_future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
        if first is None and isinstance(node, (ast.Import, ast.ImportFrom)) and not is_future:
            first = module.start(node)
    return None if first is None else [Edit(module.path, first, first, f"import time{module.file.newline}")]


OPERATOR = Operator(
    name="blocking-call",
    summary="wait on the event loop instead of letting others run",
    shapes=(_SLEEP, _THREAD),
    find=find,
    kinds={
        "ruff": OperatorKind(codes=r"ASYNC(?:1[01]\d|2\d\d)"),
        "troth": OperatorKind(codes=r"TR\d+", never=r"^TR\d+ needless"),
    },
    cures={
        _SLEEP: "a test in which something else has to run at the same time; a watchdog on the loop, such as "
        "`troth.guard`",
        _THREAD: "a test in which something else has to run at the same time; a watchdog on the loop, such as "
        "`troth.guard`",
    },
    needs=dict.fromkeys((_SLEEP, _THREAD), "knowing what blocks, in a function that the event loop runs"),
    cases=(
        OperatorCase("at the top of a file", "import asyncio\nawait asyncio.sleep(1)\n", None),
        OperatorCase(
            "a sleep",
            '"""Doc."""\nfrom __future__ import annotations\nimport asyncio\nasync def f():\n'
            "    await asyncio.sleep(1)\n",
            '"""Doc."""\nfrom __future__ import annotations\nimport time\nimport asyncio\nasync def f():\n'
            "    time.sleep(1)\n",
            _SLEEP,
        ),
        OperatorCase(
            "a sleep where time is at hand",
            "import asyncio, time\nasync def f(x):\n    await asyncio.sleep(x)\n",
            "import asyncio, time\nasync def f(x):\n    time.sleep(x)\n",
            _SLEEP,
        ),
        OperatorCase(
            "a thread",
            "async def f():\n    x = await asyncio.to_thread(work, 1, b=2)\n",
            "async def f():\n    x = work( 1, b=2)\n",
            _THREAD,
        ),
        OperatorCase(
            "a thread without arguments",
            "async def f():\n    return await loop.run_in_executor(None, self.work)\n",
            "async def f():\n    return self.work()\n",
            _THREAD,
        ),
        OperatorCase(
            "time is something else", "import asyncio\nasync def f(time):\n    await asyncio.sleep(time)\n", None
        ),
        OperatorCase("giving way", "async def f():\n    await asyncio.sleep(0)\n", None),
        OperatorCase("a sleep with a result", "async def f():\n    x = await asyncio.sleep(1, 2)\n", None),
        OperatorCase("starred arguments", "async def f(a):\n    await asyncio.to_thread(*a)\n", None),
    ),
)
