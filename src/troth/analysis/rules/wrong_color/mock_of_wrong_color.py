"""Mock of the wrong color.

What it finds: `Mock` or `MagicMock` put in the place of an async method or function of the project (`store.load = MagicMock()`,
`patch.object(Store, "load", Mock())`, `patch("store.load", new=Mock())`, `monkeypatch.setattr(store, "load", Mock())`), and
`AsyncMock` in the place of a sync one.
Why it matters: the code under test awaits a mock that cannot be awaited and fails although it is correct; or it gets a
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
from troth.analysis.rules._finding import tell_at
from troth.analysis.rules._mocks import imports_mocks
from troth.analysis.rules._syntax import syntax_of
from troth.analysis.rules.registry import Case, rule
from troth.analysis.semantics.infer.never_awaitable import gives_no_awaitable
from troth.analysis.semantics.queries.attribute_writes import objects_set
from troth.analysis.semantics.symbols import Class, Function
from troth.analysis.semantics.values import ClassObject, FunctionValue, Instance, ModuleValue
from troth.analysis.source.tree import tree_of

if TYPE_CHECKING:
    from troth.analysis.facts.model import At, Node
    from troth.analysis.semantics import Program
    from troth.analysis.semantics.symbols import Module
    from troth.analysis.semantics.values import Value

_STORE = "class Store:\n    async def load(self):\n        return await self.get()\n    async def fetch(self):\n        return await self.load()\n    def size(self) -> int:\n        return 1\n"
CASES = [
    Case(
        "a plain mock of an async method",
        bad=_STORE
        + "from unittest.mock import AsyncMock, MagicMock\nasync def test(store: Store):\n    store.load = MagicMock(return_value=1)  # here\n    await store.fetch()\n",
        fixed=_STORE
        + "from unittest.mock import AsyncMock, MagicMock\nasync def test(store: Store):\n    store.load = AsyncMock(return_value=1)  # here\n    await store.fetch()\n",
    ),
    Case(
        "gathered by who calls it",
        good=_STORE
        + "import asyncio\nfrom unittest.mock import MagicMock\nasync def load_all(stores):\n    return await asyncio.gather(*[store.load() for store in stores])\n"
        + "def test(store: Store):\n    store.load = MagicMock(return_value=1)\n",
    ),
    Case(
        "handed to who takes both",
        good={
            "store.py": _STORE + "async def run(store: Store):\n    return await result_of(store.load)\n",
            "tests/test_store.py": "from store import Store\nfrom unittest.mock import MagicMock\ndef test(store: Store):\n    store.load = MagicMock(return_value=1)\n",
        },
    ),
    Case(
        "patched in",
        bad=_STORE
        + "from unittest import mock\nasync def test():\n    with mock.patch.object(Store, 'load', mock.Mock()):  # here\n        await Store().fetch()\n",
        fixed=_STORE
        + "from unittest import mock\nasync def test():\n    with mock.patch.object(Store, 'load', mock.AsyncMock()):  # here\n        await Store().fetch()\n",
    ),
    Case(
        "patched in by its name",
        bad={
            "mail.py": "async def send():\n    await deliver()\nasync def deliver(): ...\n",
            "test_mail.py": "from unittest.mock import Mock, patch\nasync def test():\n    with patch('mail.deliver', new=Mock()):  # here\n        await send()\n",
        },
    ),
    Case(
        "set by a monkeypatch",
        bad=_STORE
        + "from unittest.mock import Mock\nasync def test(monkeypatch):\n    monkeypatch.setattr(Store, 'load', Mock(return_value=1))  # here\n    await Store().fetch()\n",
    ),
    Case(
        "kept in a variable, by which it is told what to give",
        good=_STORE
        + "from unittest import mock\nasync def test(store: Store):\n    store.load = mocked = mock.Mock()\n    async def load(): ...\n    mocked.side_effect = load\n    await store.fetch()\n",
    ),
    Case(
        "kept in a variable, of which nothing more is said",
        bad=_STORE
        + "from unittest import mock\nasync def test(store: Store):\n    store.load = mocked = mock.Mock()  # here\n    await store.fetch()\n    mocked.assert_called_once()\n",
    ),
    Case(
        "of a kind",
        bad=_STORE
        + "from unittest import mock\nasync def test():\n    with mock.patch.object(Store, 'load', new_callable=mock.MagicMock):  # here\n        await Store().fetch()\n",
        fixed=_STORE
        + "from unittest import mock\nasync def test():\n    with mock.patch.object(Store, 'load', new_callable=mock.AsyncMock):  # here\n        await Store().fetch()\n",
    ),
    Case(
        "patched in and told what to give",
        good=_STORE
        + "from unittest import mock\ndef test(f):\n    with mock.patch.object(Store, 'load', mock.Mock()) as load:\n        load.return_value = f\n",
    ),
    Case(
        "an async mock of a sync method",
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
        "whose result the test looks at",
        good=_STORE
        + "from unittest.mock import Mock\ndef test(store: Store, spawn):\n    store.load = Mock()\n    store.start()\n    spawn.assert_called_once_with(store.load.return_value)\n",
    ),
    Case(
        "given to a spawner that is a mock too",
        good=_STORE
        + "from unittest.mock import Mock, patch\n@patch('asyncio.create_task')\n@patch.object(Store, 'load', new_callable=Mock)\ndef test(load, spawn):\n    Store().start()\n    spawn.assert_called_once()\n",
    ),
    Case(
        "which nobody whom the test calls awaits",
        good=_STORE
        + "from unittest.mock import Mock\ndef test(store: Store):\n    store.load = Mock()\n    store.size()\n    store.load.assert_not_called()\n",
    ),
    Case(
        "of an unknown object",
        good=_STORE + "from unittest.mock import Mock\ndef test(store):\n    store.load = Mock()\n",
    ),
]

_PLAIN_MOCKS = frozenset({"Mock", "MagicMock", "NonCallableMock"})


class _Mocked(NamedTuple):
    """A mock put in the place of a function; `target` is the place that tells whose, or its whole name as a text."""

    name: str
    call: ast.Call | ast.Name | ast.Attribute
    target: ast.expr
    is_patch: bool
    decorated: tuple[int, int] | None = None  # the lines of the test that is decorated with it
    others: tuple[ast.expr, ...] = ()  # what the mock is kept in as well


# What `_mocks` finds, as far as a glance at the text can tell: the name of the method that a mock may stand for. The
# first is looked for in the line before the mock, the others between it and the last `)` before it.
_MOCK = re.compile(r"Mock\b")
_SET = re.compile(r"\.(\w+)[^\S\n]*(?:=[^=]*)+$")
_GIVEN = re.compile(r"""(?:(?:\.object|setattr)\(\s*[\w.]+\s*,\s*["']|(?:patch|setattr)\(\s*["'][\w.]+\.)(\w+)["']""")


_RESULT_BELOW = re.compile(r"(?:\.\w+)*\.(?:return_value|side_effect)\b")
_CALLED = re.compile(r"\b(\w+)\(")

# `patch("asyncio.create_task")`: nobody awaits what it is given.
_REPLACED_SPAWNER = re.compile(
    r"""(?:patch|object|setattr)\([^)]*["'][\w.]*\b(?:create_task|ensure_future|gather|wait_for|get_running_loop"""
    r"""|get_event_loop|run_coroutine_threadsafe|run_until_complete)["']"""
)


@rule("TR407", "mock-of-wrong-color", cases=CASES)
def check(program: Program) -> Iterator[Finding]:
    """Mocks that cannot stand for the method they replace."""
    for path in program.asked:
        module = program.module(path)
        if path.endswith(".ipynb") or not imports_mocks(module):
            continue
        text = program.text(path).value
        if "Mock" not in text:
            continue
        lines: list[int] = []
        line, at = 1, 0
        for name, place in _replaced_in(text):
            colors = program.counts.colors(name)
            if colors[text.startswith("Async", place - len("Async"))]:  # something of the other color is called so
                line, at = line + text.count("\n", at, place), place
                lines.append(line)
        for function in dict.fromkeys(_outermost(module, line) for line in lines):
            for mocked in _mocks(syntax_of(program, function)):
                yield from _judge(program, module, mocked, text)


def _replaced_in(text: str) -> Iterator[tuple[str, int]]:
    """The names of what mocks seem to be put in the place of, with where each mock stands."""
    for mock in _MOCK.finditer(text):
        place = mock.start()
        match = _SET.search(text, text.rfind("\n", 0, place) + 1, place)
        if match is not None:
            yield match[1], place
        for match in _GIVEN.finditer(text, text.rfind(")", 0, place) + 1, place):
            yield match[1], place


def _outermost(module: Module, line: int) -> Function:
    """The function around a line that is in no other; the module itself where there is none."""
    for index, facts in enumerate(module.facts.functions):
        if index and facts.at[0] <= line <= facts.at[2]:
            return module.function(index)
    return module.function(0)


def _mocks(tree: ast.AST) -> Iterator[_Mocked]:
    nodes = list(ast.walk(tree))
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.decorator_list:
            lines = (node.decorator_list[0].lineno, node.end_lineno or node.lineno)
            for decorator in node.decorator_list:
                if isinstance(decorator, ast.Call):
                    yield from (mocked._replace(decorated=lines) for mocked in _patched(decorator))
    decorators = {decorator for node in nodes for decorator in getattr(node, "decorator_list", ())}
    for node in nodes:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and _mock_name(node.value):
            for target in node.targets:
                if isinstance(target, ast.Attribute):
                    further = tuple([receiver for receiver in node.targets if receiver is not target])
                    yield _Mocked(target.attr, node.value, target, is_patch=False, others=further)
        elif isinstance(node, ast.Call) and node not in decorators:
            yield from _patched(node)


def _patched(call: ast.Call) -> Iterator[_Mocked]:
    """`patch.object(owner, "name", mock)`, `patch("path.name", mock)`, `setattr` of a monkeypatch in both forms."""
    how = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if how not in {"object", "patch", "setattr"} or not call.args:
        return
    first, *remaining = call.args
    is_text = isinstance(first, ast.Constant) and isinstance(first.value, str)
    if is_text != (how == "patch") and how != "setattr":
        return
    names = [first] if is_text else remaining[:1]
    arguments = remaining[0:1] if is_text else remaining[1:2]
    arguments += [keyword.value for keyword in call.keywords if keyword.arg in {"new", "new_callable", "value"}]
    if (
        len(arguments) != 1
        or not names
        or not isinstance(names[0], ast.Constant)
        or not isinstance(names[0].value, str)
    ):
        return
    mock = arguments[0]
    is_class = any(keyword.arg == "new_callable" and keyword.value is mock for keyword in call.keywords)
    if (isinstance(mock, ast.Call) and not is_class) or (is_class and isinstance(mock, ast.Name | ast.Attribute)):
        others_given = {keyword.arg for keyword in call.keywords} - {"new", "new_callable", "value", "raising"}
        if _mock_name(mock) and not others_given:
            yield _Mocked(names[0].value.rpartition(".")[2], mock, first, is_patch=True)


def _mock_name(mock: ast.expr) -> str:
    """`AsyncMock`, where that is what is called or named; empty for what is no mock."""
    func = mock.func if isinstance(mock, ast.Call) else mock
    name = func.id if isinstance(func, ast.Name) else func.attr if isinstance(func, ast.Attribute) else ""
    return name if name in _PLAIN_MOCKS or name == "AsyncMock" else ""


def _judge(program: Program, module: Module, mocked: _Mocked, text: str) -> Iterator[Finding]:
    is_async = _mock_name(mocked.call) == "AsyncMock"
    if not program.counts.colors(mocked.name)[is_async] or not _gives_a_plain_result(mocked.call):
        return
    if not mocked.is_patch and any(
        _says_what_it_gives(ast.unparse(target), text) for target in (mocked.target, *mocked.others)
    ):
        return
    around = _function_around(module, mocked.call.lineno)
    if _takes_it_by_hand(program, around, mocked):
        return
    replaced = _replaced(program, module, around, mocked)
    if replaced is None or replaced.decorated_with("property", "cached_property"):
        return
    if not is_async and program.effects.of(replaced) == "coroutine" and _is_reached(program, around, mocked):
        yield _told(program, around, mocked, replaced, other="AsyncMock", text=text)
    elif is_async and _has_async_neighbours(replaced) and gives_no_awaitable(program, replaced):
        yield _told(program, around, mocked, replaced, other="MagicMock", text=text)


def _says_what_it_gives(written: str, text: str) -> bool:
    """Whether a mock, or something below it, is told its result, or is asked for it."""
    offset = text.find(f"{written}.")
    while offset >= 0:
        if _RESULT_BELOW.match(text, offset + len(written)) is not None:
            return True
        offset = text.find(f"{written}.", offset + 1)
    return False


def _is_reached(program: Program, around: Function, mocked: _Mocked) -> bool:
    """Whether the test calls somebody who awaits what is replaced, or awaits it itself.

    A mock that cannot be awaited fails loudly: in a test that is run, nobody does unless the test says so.
    """
    name, text = mocked.name, _test_text(program, around, mocked)
    awaiting = {
        function.name
        for function in program.calling.functions_naming({name})
        if any(callee.rpartition(".")[2] == name for callee in function.facts.awaited)
    }
    if not awaiting:
        return False
    called = {match[1] for match in _CALLED.finditer(text)}
    return not awaiting.isdisjoint(called) or (
        f"{name}(" in text and re.search(rf"\bawait [\w.]*\b{name}\(", text) is not None
    )


def _test_text(program: Program, around: Function, mocked: _Mocked) -> str:
    """What the test says that the mock is made for; all of the file where it is made outside of any."""
    source = program.text(around.module.path)
    if mocked.decorated is not None:
        first, last = mocked.decorated
        return source.cut(first, 0, last + 1, 0)
    return source.cut(*around.facts.at) if around.index > 0 else source.value


def _takes_it_by_hand(program: Program, around: Function, mocked: _Mocked) -> bool:
    """Whether the test says what the mock gives, looks at what it gave, or replaces what would have awaited it."""
    if mocked.decorated is None and around.index == 0:
        return False
    text = _test_text(program, around, mocked)
    if f".{mocked.name}.assert_not_called" in text or f".{mocked.name}.assert_not_awaited" in text:
        return True  # nobody shall get anything from it
    looks = mocked.is_patch and re.search(r"\.(return_value|side_effect)\b", text) is not None
    return looks or _REPLACED_SPAWNER.search(text) is not None


def _replaced(program: Program, module: Module, around: Function, mocked: _Mocked) -> Function | None:
    """The function of the project that the mock stands for."""
    base = _base(program, module, around, mocked)
    if isinstance(base, FunctionValue):
        return base.function if isinstance(base.function, Function) else None
    if isinstance(base, ModuleValue):
        binding = None if base.module is None else program.names.at_module(base.module, mocked.name)
        function = binding.function if isinstance(binding, FunctionValue) else None
        return function if isinstance(function, Function) else None
    cls = base.cls if isinstance(base, Instance | ClassObject) else None
    if not isinstance(cls, Class) or (isinstance(base, Instance) and base.guess):
        return None
    found_in = next(
        (
            ancestor
            for ancestor in program.classes.order(cls)
            if not isinstance(ancestor, Class) or mocked.name in ancestor.methods
        ),
        None,
    )
    return found_in.module.function(found_in.methods[mocked.name][-1]) if isinstance(found_in, Class) else None


def _has_async_neighbours(function: Function) -> bool:
    """Whether async functions stand beside it, so that one may be taken for the other."""
    return any(
        other_function.flags & 1 and other_function.owner == function.facts.owner
        for other_function in function.module.facts.functions
    )


def _gives_a_plain_result(call: ast.expr) -> bool:
    """Whether nothing says that the mock gives something awaitable."""
    if not isinstance(call, ast.Call):
        return True
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
        scope = program.static(module, around if around.index else None)
        if isinstance(mocked.target, ast.Constant):
            return _of_text(program, module, str(mocked.target.value))
        return scope.value(_node(mocked.target))
    at = (mocked.target.lineno, mocked.target.col_offset)
    return next(
        (base for place, base in objects_set(program, around).items() if place[:2] == at),
        None,
    )


def _of_text(program: Program, module: Module, dotted: str) -> Value | None:
    """What holds `package.module.Store.load`, or the function itself where a module holds it."""
    home, _, name = dotted.rpartition(".")
    imported: Value | None = program.names.imported(module, home, name, 0)
    if isinstance(imported, FunctionValue):
        return imported
    package, _, cls = home.rpartition(".")
    return program.names.imported(module, package, cls, 0) if package else None


def _node(target: ast.expr) -> Node:
    if isinstance(target, ast.Attribute):
        return ("attr", _node(target.value), target.attr, (0, 0, 0, 0))
    return ("name", target.id) if isinstance(target, ast.Name) else ("const", "None")


def _told(program: Program, around: Function, mocked: _Mocked, method: Function, *, other: str, text: str) -> Finding:
    call = mocked.call
    at: At = (call.lineno, call.col_offset, call.end_lineno or call.lineno, call.end_col_offset or 0)
    name = _mock_name(call)
    if other == "AsyncMock":
        message = f"`{name}` stands for `{method.qualname}`, which is async: awaiting the mock raises TypeError"
    else:
        message = (
            f"`AsyncMock` stands for `{method.qualname}`, which is sync: a call returns a coroutine instead of a result"
        )
    reason = Reason(f"`{method.qualname}` is `{'async def' if method.is_async else 'def'}`", *method.place)
    return tell_at(
        program, "TR407", "mock-of-wrong-color", around, at, message, sure=False, reasons=(reason,),
        fix=_fix(program, around.module.path, call, other, text), subject=mocked.name,
    )  # fmt: skip


def _fix(program: Program, path: str, call: ast.expr, other: str, text: str) -> Fix | None:
    """The other mock; its name is imported beside that of this one where the file lacks it."""
    source = program.text(path)
    func = call.func if isinstance(call, ast.Call) else call
    end = source.offset(func.end_lineno or call.lineno, func.end_col_offset or 0)
    added: tuple[Edit, ...] = ()
    if isinstance(func, ast.Name):
        tree = tree_of(text)
        aliases = [
            alias
            for node in (() if tree is None else ast.walk(tree))
            if isinstance(node, ast.ImportFrom) and node.module in {"unittest.mock", "mock"}
            for alias in node.names
            if alias.asname is None
        ]
        names = {alias.name: alias for alias in aliases}
        plain = [class_name for class_name in ("MagicMock", "Mock") if class_name in names]
        other = plain[0] if other == "MagicMock" and plain else other
        if other not in names:
            beside = names.get(_mock_name(call))
            if beside is None:
                return None
            after = source.offset(beside.end_lineno or 1, beside.end_col_offset or 0)
            added = (Edit(path, after, after, f", {other}"),)
    return Fix(f"use {other}", "likely", (*added, Edit(path, end - len(_mock_name(call)), end, other)))
