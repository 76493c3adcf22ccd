"""Unawaited async mock.

What it finds: a call of an `AsyncMock` that the same function made, or of an async method of a mock with a `spec`, whose
coroutine is dropped (`client.close()` as a statement) or used as if it were the result (`assert load() == 3`).
Why it matters: the mock counts the call, but nothing of it is awaited: `assert_awaited` fails, a `side_effect` never runs,
and a comparison with a coroutine is always false.
How to repair: `await` the call, or make the mock plain.
How sure the fix is: `await` before the call is likely right in an `async def`; elsewhere none is offered.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from troth.analysis.findings import Edit, Finding, Fix, Reason
from troth.analysis.rules._finding import tell_at
from troth.analysis.rules._mocks import mock_uses, mocking_functions
from troth.analysis.rules.registry import Case, rule

if TYPE_CHECKING:
    from troth.analysis.rules._mocks import MockUse
    from troth.analysis.semantics import Program
    from troth.analysis.semantics.symbols import Function

_IMPORT = "from unittest.mock import AsyncMock, MagicMock, Mock\n"
CASES = [
    Case(
        "dropped",
        bad=_IMPORT + "async def test():\n    send = AsyncMock()\n    send('x')  # here\n",
        fixed=_IMPORT + "async def test():\n    send = AsyncMock()\n    await send('x')  # here\n",
    ),
    Case("a method", bad=_IMPORT + "async def test():\n    client = AsyncMock()\n    client.close()  # here\n"),
    Case(
        "compared", bad=_IMPORT + "def test():\n    load = AsyncMock(return_value=3)\n    assert load() == 3  # here\n"
    ),
    Case(
        "taken for its result",
        bad=_IMPORT
        + "async def test():\n    load = AsyncMock()\n    answer = load('x')  # here\n    assert answer['a'] == 1\n",
    ),
    Case(
        "an async method of a spec",
        bad=_IMPORT
        + "class Store:\n    async def load(self): ...\nasync def test():\n    store = MagicMock(spec=Store)\n    store.load()  # here\n",
    ),
    Case(
        "an async method of a spec that is told what to give",
        bad=_IMPORT
        + "class Store:\n    async def load(self): ...\nasync def test():\n    store = Mock(spec_set=Store)\n    store.load.return_value = 3\n    store.load()  # here\n",
    ),
    Case(
        "told what to give",
        bad=_IMPORT
        + "async def test(row):\n    client = AsyncMock()\n    client.get.return_value = row\n    assert client.get() is row  # here\n",
    ),
    Case(
        "a method of a spec that something else is put in the place of, or that is plain",
        good=_IMPORT
        + "class Store:\n    async def load(self): ...\n    def size(self): ...\nasync def test(f):\n    store = Mock(spec_set=Store)\n    store.load = Mock()\n    store.load()\n"
        "    store.size.return_value = 3\n    store.size()\n    store.load.return_value.close()\n    other = AsyncMock()\n    other.get = f\n    other.get()\n    other.made.return_value = f\n    other.made.return_value()\n",
    ),
    Case(
        "awaited",
        good=_IMPORT
        + "import asyncio\nasync def test(run):\n    send = AsyncMock()\n    await send('x')\n    send.assert_awaited_once()\n    later = send('y')\n    await later\n    run(send('z'))\n"
        "    await asyncio.gather(*[send(n) for n in (1, 2)])\n",
    ),
    Case(
        "a sync method of it",
        good=_IMPORT
        + "async def test():\n    client = AsyncMock()\n    client.close = Mock()\n    client.close()\n    client.reset_mock()\n",
    ),
    Case("a plain mock", good=_IMPORT + "def test():\n    send = Mock()\n    send('x')\n"),
]

_USING = (
    ast.Compare,
    ast.Subscript,
    ast.Attribute,
    ast.BinOp,
    ast.UnaryOp,
    ast.JoinedStr,
    ast.FormattedValue,
    ast.BoolOp,
)


@rule("TR412", "unawaited-async-mock", cases=CASES)
def check(program: Program) -> Iterator[Finding]:
    """Async mocks whose calls nobody awaits."""
    for path in program.asked:
        for function in mocking_functions(program.module(path), awaited=False):
            for use in mock_uses(program, function):
                how = _lost(use) if use.color == "async" else ""
                if how:
                    yield _told(program, function, use, how)


def _lost(use: MockUse) -> str:
    """How the coroutine is lost; empty where somebody may await it."""
    parent = use.around[0]
    if isinstance(parent, ast.Expr):
        return "drops its coroutine"
    if isinstance(parent, _USING) or (isinstance(parent, ast.Assert) and parent.test is use.call):
        return "takes its coroutine for the result"
    if isinstance(parent, ast.Assign) and len(parent.targets) == 1 and isinstance(parent.targets[0], ast.Name):
        return "takes its coroutine for the result" if _is_used_as_result(parent.targets[0].id, use.around) else ""
    return ""


def _is_used_as_result(name: str, around: tuple[ast.AST, ...]) -> bool:
    """Whether a variable is read, and every time as if it were a result."""
    whole = next((node for node in around if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)), around[-1])
    readers = [
        parent
        for parent in ast.walk(whole)
        for child in ast.iter_child_nodes(parent)
        if isinstance(child, ast.Name) and child.id == name and isinstance(child.ctx, ast.Load)
    ]
    return bool(readers) and all(isinstance(reader, _USING) for reader in readers)


def _told(program: Program, function: Function, use: MockUse, how: str) -> Finding:
    call, path = use.call, function.module.path
    at = (call.lineno, call.col_offset, call.end_lineno or call.lineno, call.end_col_offset or 0)
    fix = None
    if function.is_async and isinstance(use.around[0], ast.Expr | ast.Assign):
        start = program.text(path).offset(*at[:2])
        fix = Fix("await the call", "likely", (Edit(path, start, start, "await "),))
    message = f"`{use.written}(…)` calls an async mock and {how}: it is never awaited"
    maker = "an `AsyncMock`" if use.maker == "AsyncMock" else "a mock with a spec"
    text = f"`{use.written.partition('.')[0]}` is {maker}, and this call of it gives a coroutine"
    reason = Reason(text, path, use.line)
    return tell_at(
        program, "TR412", "unawaited-async-mock", function, at, message, sure=False, reasons=(reason,), fix=fix,
        subject=use.written,
    )  # fmt: skip
