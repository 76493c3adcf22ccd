"""Awaited plain mock.

What it finds: `await` on a call of a `Mock` or `MagicMock` that the same function made (`client = MagicMock()`,
`await client.send()`), or of a sync method of a mock with a `spec`.
Why it matters: the mock gives another mock, which cannot be awaited: the test fails with TypeError for no fault of the
code under test, or, where an `except` is around, passes for the wrong reason.
How to repair: `AsyncMock`, for the whole or for the one method (`client.send = AsyncMock()`).
How sure the fix is: none is offered; the author of the test has to decide which part of the mock is async.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from troth.analysis.findings import Finding, Reason
from troth.analysis.rules._finding import tell_at
from troth.analysis.rules._mocks import mock_uses, mocking_functions
from troth.analysis.rules.registry import Case, rule

if TYPE_CHECKING:
    from troth.analysis.semantics import Program

_IMPORT = "from unittest.mock import AsyncMock, MagicMock, Mock\n"
CASES = [
    Case("a callable", bad=_IMPORT + "async def test():\n    callback = Mock()\n    await callback(1)  # here\n"),
    Case(
        "a method", bad=_IMPORT + "async def test():\n    client = MagicMock()\n    await client.users.get(1)  # here\n"
    ),
    Case(
        "a result that is no promise",
        bad=_IMPORT + "async def test():\n    load = Mock(return_value=3)\n    assert await load() == 3  # here\n",
    ),
    Case(
        "a sync method of a spec",
        bad=_IMPORT
        + "class Store:\n    def size(self) -> int:\n        return 1\nasync def test():\n    store = Mock(spec=Store)\n    await store.size()  # here\n",
    ),
    Case(
        "a mock whose type is told",
        bad=_IMPORT
        + "class Client:\n    async def fetch(self): ...\nasync def test():\n    client: Client = Mock()\n    await client.fetch()  # here\n",
    ),
    Case(
        "an async mock whose type is told, and a sync one that is told what to give",
        good=_IMPORT
        + "class Client:\n    async def fetch(self): ...\nasync def test(f):\n    client: Client = AsyncMock()\n    await client.fetch()\n"
        "    other: Client = Mock()\n    other.fetch = AsyncMock()\n    await other.fetch()\n    third: Client = MagicMock(spec=Client)\n    await third.fetch()\n",
    ),
    Case("an async mock", good=_IMPORT + "async def test():\n    callback = AsyncMock()\n    await callback(1)\n"),
    Case(
        "told what to give",
        good=_IMPORT
        + "async def test(f):\n    client = MagicMock()\n    client.send = AsyncMock()\n    await client.send()\n"
        "    client.load.return_value = f\n    await client.load()\n    other = Mock(side_effect=f)\n    await other()\n",
    ),
    Case(
        "an async method of a spec",
        good=_IMPORT
        + "class Store:\n    async def load(self): ...\nasync def test():\n    store = MagicMock(spec=Store)\n    await store.load()\n",
    ),
    Case(
        "filled in by somebody",
        good=_IMPORT
        + "def wire(conn):\n    async def send(): ...\n    conn.send = send\nasync def test():\n    conn = MagicMock()\n    wire(conn)\n    await conn.send()\n",
    ),
    Case(
        "expected to fail",
        good=_IMPORT
        + "import pytest\nasync def test():\n    m = Mock()\n    with pytest.raises(TypeError):\n        await m()\n",
    ),
]


@rule("TR411", "awaited-plain-mock", cases=CASES)
def check(program: Program) -> Iterator[Finding]:
    """Plain mocks under `await`."""
    for path in program.asked:
        for function in mocking_functions(program.module(path), awaited=True):
            for use in mock_uses(program, function):
                if use.color != "plain" or not isinstance(use.around[0], ast.Await) or _is_expected(use.around):
                    continue
                call = use.call
                at = (call.lineno, call.col_offset, call.end_lineno or call.lineno, call.end_col_offset or 0)
                message = f"`await {use.written}(…)` raises TypeError: `{use.written}` is a plain mock, whose result cannot be awaited"
                text = f"`{use.written.partition('.')[0]}` is a `Mock`, and nothing makes this call of it async"
                reason = Reason(text, path, use.line)
                yield tell_at(
                    program, "TR411", "awaited-plain-mock", function, at, message, sure=False, reasons=(reason,),
                    subject=use.written,
                )  # fmt: skip


def _is_expected(around: tuple[ast.AST, ...]) -> bool:
    """Whether an error is what the test waits for, or is caught."""
    return any(
        isinstance(node, ast.Try)
        or (isinstance(node, ast.With | ast.AsyncWith) and any("aises" in ast.unparse(item) for item in node.items))
        for node in around
    )
