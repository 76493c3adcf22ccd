"""Mock of the wrong color.

What it finds: `Mock` or `MagicMock` put in the place of an async method of the project (`store.load = MagicMock()`,
`patch.object(Store, "load", Mock())`), and `AsyncMock` in the place of a plain one.
Why it matters: the code under test awaits a mock that cannot be awaited and fails for no reason of its own; or it gets a
coroutine from an `AsyncMock`, takes it for a result, and the test proves nothing.
How to repair: the mock of the method's color; `patch.object(Store, "load")` without a mock finds it by itself.
How sure the fix is: the name of the other mock in the place of this one is likely right.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from troth.analysis.findings import Edit, Finding, Fix, Reason
from troth.analysis.program.entities import Class, Function
from troth.analysis.program.objects import objects_set
from troth.analysis.program.results import gives_no_promise
from troth.analysis.program.values import ClassObject, Instance
from troth.analysis.rules.registry import Case, rule
from troth.analysis.rules.telling import tell_at

if TYPE_CHECKING:
    from troth.analysis.facts.model import At
    from troth.analysis.program import Program
    from troth.analysis.program.entities import Module
    from troth.analysis.program.values import Value

_STORE = "class Store:\n    async def load(self):\n        return await self.get()\n    def size(self) -> int:\n        return 1\n"
CASES = [
    Case(
        "a plain mock of an async method",
        bad=_STORE
        + "from unittest.mock import AsyncMock, MagicMock\ndef test(store: Store):\n    store.load = MagicMock(return_value=1)  # here\n",
        fixed=_STORE
        + "from unittest.mock import AsyncMock, MagicMock\ndef test(store: Store):\n    store.load = AsyncMock(return_value=1)  # here\n",
    ),
    Case(
        "patched in",
        bad=_STORE
        + "from unittest import mock\ndef test():\n    with mock.patch.object(Store, 'load', mock.Mock()):  # here\n        pass\n",
        fixed=_STORE
        + "from unittest import mock\ndef test():\n    with mock.patch.object(Store, 'load', mock.AsyncMock()):  # here\n        pass\n",
    ),
    Case(
        "an async mock of a plain method",
        bad=_STORE
        + "from unittest.mock import AsyncMock\ndef test():\n    store = Store()\n    store.size = AsyncMock(return_value=1)  # here\n",
        fixed=_STORE
        + "from unittest.mock import AsyncMock, MagicMock\ndef test():\n    store = Store()\n    store.size = MagicMock(return_value=1)  # here\n",
    ),
    Case(
        "of the right color",
        good=_STORE
        + "from unittest.mock import AsyncMock, Mock\ndef test(store: Store):\n    store.load = AsyncMock()\n    store.size = Mock()\n",
    ),
    Case(
        "found by patch itself",
        good=_STORE
        + "from unittest.mock import patch\ndef test():\n    with patch.object(Store, 'load'):\n        pass\n",
    ),
    Case(
        "one that gives a future",
        good=_STORE
        + "import asyncio\nfrom unittest.mock import Mock\ndef test(store: Store):\n    store.load = Mock(side_effect=later)\n    store.load = Mock(return_value=asyncio.Future())\n",
    ),
    Case(
        "told what to give later",
        good=_STORE
        + "from unittest.mock import Mock\ndef test(store: Store, f):\n    store.load = Mock()\n    store.load.return_value = f\n",
    ),
    Case(
        "of an unknown object",
        good=_STORE + "from unittest.mock import Mock\ndef test(store):\n    store.load = Mock()\n",
    ),
]

_PLAIN_MOCKS = frozenset({"Mock", "MagicMock", "NonCallableMock"})


class _Mocked(NamedTuple):
    """A mock put in the place of a method; `target` is the place that tells whose."""

    name: str
    call: ast.Call
    target: ast.expr
    is_patch: bool


# What `_mocks` finds, as far as a glance at the text can tell: the name of the method that a mock may stand for.
_REPLACING = re.compile(r"""\.(\w+)\s*=(?=[^=\n]*Mock\b)|\.object\(\s*[\w.]+\s*,\s*["'](\w+)["'](?=[^)]*Mock\b)""")


@rule("T407", "mock-of-wrong-color", cases=CASES)
def check(program: Program) -> Iterator[Finding]:
    """Mocks that cannot stand for the method they replace."""
    for path in program.asked:
        module = program.module(path)
        if path.endswith(".ipynb") or not any(
            one.module in {"unittest.mock", "unittest", "mock"} for one in module.facts.imports
        ):
            continue
        text = program.text(path).value
        lines = [
            text.count("\n", 0, found.start()) + 1
            for found in _REPLACING.finditer(text)
            if any(program.evidence.colors(found[1] or found[2]))
        ]
        for function in dict.fromkeys(_outermost(module, line) for line in lines):
            for mocked in _mocks(_tree_of(program, function)):
                yield from _judge(program, module, mocked, text)


def _outermost(module: Module, line: int) -> Function:
    """The function around a line that is in no other; the module itself where there is none."""
    for index, facts in enumerate(module.facts.functions):
        if index and facts.at[0] <= line <= facts.at[2]:
            return module.function(index)
    return module.function(0)


def _tree_of(program: Program, function: Function) -> ast.AST:
    """The syntax of a function, with its places in the file."""
    text = program.text(function.module.path)
    if function.index == 0:
        return ast.parse(text.value)
    first, column, last, _ = function.facts.at
    body = "".join(text.line(number) for number in range(first, last + 1))
    if not column:
        return ast.increment_lineno(ast.parse(body), first - 1)
    return ast.increment_lineno(ast.parse(f"if True:\n{body}"), first - 2)  # an indented function cannot stand alone


def _mocks(tree: ast.AST) -> Iterator[_Mocked]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and _is_mock(node.value):
            for target in node.targets:
                if isinstance(target, ast.Attribute):
                    yield _Mocked(target.attr, node.value, target, is_patch=False)
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "object"
            and len(node.args) >= 2
        ):
            given = (
                node.args[2] if len(node.args) > 2 else next((k.value for k in node.keywords if k.arg == "new"), None)
            )
            name = node.args[1]
            if (
                isinstance(given, ast.Call)
                and _is_mock(given)
                and isinstance(name, ast.Constant)
                and isinstance(name.value, str)
            ):
                yield _Mocked(name.value, given, node.args[0], is_patch=True)


def _is_mock(call: ast.Call) -> bool:
    return _mock_name(call) in _PLAIN_MOCKS | {"AsyncMock"}


def _mock_name(call: ast.Call) -> str:
    return (
        call.func.id
        if isinstance(call.func, ast.Name)
        else call.func.attr
        if isinstance(call.func, ast.Attribute)
        else ""
    )


def _judge(program: Program, module: Module, mocked: _Mocked, text: str) -> Iterator[Finding]:
    if not any(program.evidence.colors(mocked.name)) or not _gives_a_plain_result(mocked.call):
        return
    written = ast.unparse(mocked.target)
    if re.search(rf"{re.escape(written)}(\.\w+)*\.(return_value|side_effect)\s*=", text):
        return
    around = _function_around(module, mocked.call.lineno)
    base = _base(program, module, around, mocked)
    cls = base.cls if isinstance(base, Instance | ClassObject) else None
    if not isinstance(cls, Class) or (isinstance(base, Instance) and base.guess):
        return
    found = next(
        (one for one in program.classes.order(cls) if not isinstance(one, Class) or mocked.name in one.methods), None
    )
    if not isinstance(found, Class):
        return
    method = found.module.function(found.methods[mocked.name][-1])
    is_async = _mock_name(mocked.call) == "AsyncMock"
    if method.decorated_with("property", "cached_property"):
        return
    if not is_async and program.effects.of(method) == "coroutine":
        yield _told(program, around, mocked, method, other="AsyncMock", text=text)
    elif is_async and _is_mixed(found) and gives_no_promise(program, method):
        yield _told(program, around, mocked, method, other="MagicMock", text=text)


def _is_mixed(cls: Class) -> bool:
    """Whether a class has async methods too, so that one may be taken for the other."""
    return any(cls.module.function(index).is_async for indexes in cls.methods.values() for index in indexes)


def _gives_a_plain_result(call: ast.Call) -> bool:
    """Whether nothing says that the mock gives something awaitable."""
    for keyword in call.keywords:
        if keyword.arg == "return_value":
            if not isinstance(keyword.value, ast.Constant | ast.List | ast.Dict | ast.Tuple | ast.Set | ast.JoinedStr):
                return False
        elif keyword.arg != "name":
            return False
    return not call.args


def _function_around(module: Module, line: int) -> Function:
    inner = 0
    for index, facts in enumerate(module.facts.functions):
        if index and facts.at[0] <= line <= facts.at[2]:
            inner = index  # functions are numbered from the outside in
    return module.function(inner)


def _base(program: Program, module: Module, around: Function, mocked: _Mocked) -> Value | None:
    if mocked.is_patch:
        if isinstance(mocked.target, ast.Name):
            return program.static(module, around if around.index else None).value(("name", mocked.target.id))
        return None
    at = (mocked.target.lineno, mocked.target.col_offset)
    return next(
        (base for place, base in objects_set(program, around).items() if place[:2] == at),
        None,
    )


def _told(program: Program, around: Function, mocked: _Mocked, method: Function, *, other: str, text: str) -> Finding:
    call = mocked.call
    at: At = (call.lineno, call.col_offset, call.end_lineno or call.lineno, call.end_col_offset or 0)
    name = _mock_name(call)
    if other == "AsyncMock":
        message = f"`{name}` stands for `{method.qualname}`, which is async: whoever awaits it gets TypeError"
    else:
        message = f"`AsyncMock` stands for `{method.qualname}`, which is plain: whoever calls it gets a coroutine for a result"
    reason = Reason(f"`{method.qualname}` is `{'async def' if method.is_async else 'def'}`", *method.place)
    return tell_at(
        program, "T407", "mock-of-wrong-color", around, at, message, sure=False, reasons=(reason,),
        fix=_fix(program, around.module.path, call, other, text), subject=mocked.name,
    )  # fmt: skip


def _fix(program: Program, path: str, call: ast.Call, other: str, text: str) -> Fix | None:
    """The other mock; its name is imported beside that of this one where the file lacks it."""
    source = program.text(path)
    end = source.offset(call.func.end_lineno or call.lineno, call.func.end_col_offset or 0)
    added: tuple[Edit, ...] = ()
    if isinstance(call.func, ast.Name):
        aliases = [
            alias
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.ImportFrom) and node.module in {"unittest.mock", "mock"}
            for alias in node.names
            if alias.asname is None
        ]
        names = {alias.name: alias for alias in aliases}
        plain = [one for one in ("MagicMock", "Mock") if one in names]
        other = plain[0] if other == "MagicMock" and plain else other
        if other not in names:
            beside = names.get(_mock_name(call))
            if beside is None:
                return None
            after = source.offset(beside.end_lineno or 1, beside.end_col_offset or 0)
            added = (Edit(path, after, after, f", {other}"),)
    return Fix(f"use {other}", "likely", (*added, Edit(path, end - len(_mock_name(call)), end, other)))
