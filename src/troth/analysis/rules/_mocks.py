"""Find which mocks a function makes for itself, and what color their calls have.

`Mock` and `MagicMock` give plain results, `AsyncMock` gives coroutines, and what is below a mock follows it; a `spec`
decides by the methods of its class. Whatever the function says about a mock further on (`client.send = …`,
`client.send.return_value = …`) leaves it open.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from troth.analysis.rules._syntax import syntax_of
from troth.analysis.semantics.symbols import Class
from troth.analysis.semantics.values import ClassObject

if TYPE_CHECKING:
    from collections.abc import Iterator, MutableMapping

    from troth.analysis.facts.model import FunctionFacts
    from troth.analysis.semantics import Program
    from troth.analysis.semantics.symbols import Function, Module

__all__ = ["MockUse", "imports_mocks", "mock_uses", "mocking_functions"]

MockColor = Literal["plain", "async"]
_PLAIN = frozenset({"Mock", "MagicMock"})
_MAKERS = _PLAIN | {"AsyncMock"}
# What every mock has, in one color.
_OWN = frozenset(
    {"reset_mock", "configure_mock", "attach_mock", "mock_add_spec", "call_args", "await_args", "mock_calls"}
)
_CONSTANT = (ast.Constant, ast.List, ast.Dict, ast.Tuple, ast.Set, ast.JoinedStr)


@dataclass(frozen=True, slots=True)
class _Made:
    """A mock that a variable was bound to."""

    color: MockColor
    spec: ast.expr | None
    is_result_open: bool
    """Whether what calling the mock itself gives may be anything."""
    line: int


@dataclass(frozen=True, slots=True)
class MockUse:
    """A call of a mock, or of something below it; `around` are the nodes it stands in, the nearest first."""

    call: ast.Call
    written: str
    color: MockColor
    around: tuple[ast.AST, ...]
    maker: str
    line: int
    """Where the mock was made."""


def imports_mocks(module: Module) -> bool:
    """Whether a file knows mocks."""
    return any(imported.module in {"unittest.mock", "unittest", "mock"} for imported in module.facts.imports)


def mocking_functions(module: Module, *, awaited: bool) -> Iterator[Function]:
    """The functions of a file that make mocks of their own, and await a call of them or make one that they do not."""
    if module.path.endswith(".ipynb") or not imports_mocks(module):
        return
    for index, facts in enumerate(module.facts.functions):
        if not index or not (awaited or _may_be_async(facts)):
            continue
        mocks = [name for name, origin in facts.origins if origin.endswith("Mock()")]
        roots = {callee.partition(".")[0] for callee in (facts.awaited if awaited else facts.calls)}
        if not roots.isdisjoint(mocks) or (roots and _annotates_a_mock(facts)):
            yield module.function(index)


def _annotates_a_mock(facts: FunctionFacts) -> bool:
    """Whether `client: Client = Mock()` may stand in a function: no origin tells what such a variable is bound to."""
    return b"annassign" in facts.body and any(callee.rpartition(".")[2] in _MAKERS for callee in facts.calls)


def _may_be_async(facts: FunctionFacts) -> bool:
    return any(callee.endswith("AsyncMock") for callee in facts.calls) or b"spec" in facts.body


def mock_uses(program: Program, function: Function) -> list[MockUse]:
    """The calls in a function of the mocks it made, where their color is known; looked for once."""
    answers: MutableMapping[Function, list[MockUse]] = program.answers_to("mock uses")
    if function not in answers:
        answers[function] = list(_uses(program, function))
    return answers[function]


def _uses(program: Program, function: Function) -> Iterator[MockUse]:
    tree = syntax_of(program, function)
    mocks = _made(tree)
    if not mocks:
        return
    mentions = _said(tree, mocks)
    handed = _handed(tree)
    for call, around in _calls(tree, ()):
        path = _path(call.func)
        if path[:1] not in mocks or any(
            attribute.startswith(("assert_", "__")) or attribute in _OWN for attribute in path
        ):
            continue
        prefix = next(path[:length] for length in range(len(path), 0, -1) if path[:length] in mocks)
        mock, below = mocks[prefix], path[len(prefix) :]
        color = _color(program, function, mock, below)
        if color is None or _is_left_open(path, prefix, mock, mentions, color):
            continue
        if mock.color == "plain" and below and handed.get(path[0], call.lineno) < call.lineno:
            continue  # whoever was given it may have set what the test now awaits
        maker = "AsyncMock" if mock.color == "async" else "Mock"
        yield MockUse(call, ".".join(path), color, around, maker, mock.line)


def _made(tree: ast.AST) -> dict[tuple[str, ...], _Made]:
    """The variables that are bound once, and to a mock; and what is set once on them, and to a mock."""
    bound: dict[tuple[str, ...], int] = {}
    mocks: dict[tuple[str, ...], _Made] = {}
    for node in ast.walk(tree):
        path: tuple[str, ...] = ()
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            path = _path(node)
        elif isinstance(node, ast.arg):
            path = (node.arg,)
        bound[path] = bound.get(path, 0) + 1
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Call):
            mock = _mock(node.value)
            is_told_by_type = isinstance(node, ast.AnnAssign) and mock is not None and mock.color == "async"
            if mock is not None and not is_told_by_type:  # TR101 and its kin know the methods of its class
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                mocks.update({target: mock for receiver in targets if (target := _path(receiver))})
    return {path: mock for path, mock in mocks.items() if bound[path] == 1 and path[:1] in mocks}


def _mock(call: ast.Call) -> _Made | None:
    name = "".join(_path(call.func)[-1:])
    if name not in _PLAIN and name != "AsyncMock":
        return None
    spec: ast.expr | None = call.args[0] if call.args else None
    is_open = False
    for keyword in call.keywords:
        if keyword.arg in {"spec", "spec_set"}:
            spec = keyword.value
        elif keyword.arg == "return_value":
            is_open = is_open or not isinstance(keyword.value, _CONSTANT)
        elif keyword.arg != "name":
            is_open = True  # `side_effect`, `wraps`, `**{"send.return_value": …}`
            if keyword.arg not in {"side_effect", "wraps"}:
                return None
    return _Made("async" if name == "AsyncMock" else "plain", spec, is_open, call.lineno)


def _said(tree: ast.AST, made: dict[tuple[str, ...], _Made]) -> list[tuple[str, ...]]:
    """What the function says about its mocks: the paths it assigns to, and those it gives to somebody who may."""
    paths: list[tuple[str, ...]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            paths.append(_path(node))
        elif isinstance(node, ast.Call):
            last = _path(node.func)[-1:]
            if last in {("configure_mock",), ("attach_mock",), ("mock_add_spec",)}:
                paths.append(_path(node.func)[:1])
            elif last in {("setattr",), ("object",), ("patch",)}:
                paths += [_path(argument)[:1] for argument in node.args[:1]]
    return [path for path in paths if path[:1] in made and path not in made]


def _handed(tree: ast.AST) -> dict[str, int]:
    """The variables that a sync function is given, and the line where that is first done."""
    by_name: dict[str, int] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id[:1].islower():
            for argument in node.args:
                if isinstance(argument, ast.Name):
                    by_name[argument.id] = min(node.lineno, by_name.get(argument.id, node.lineno))
    return by_name


def _path(node: ast.AST) -> tuple[str, ...]:
    """`client.users.get` as its parts; nothing for anything that is not written with names alone."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return (node.id, *reversed(parts)) if isinstance(node, ast.Name) else ()


def _is_left_open(
    path: tuple[str, ...], known: tuple[str, ...], mock: _Made, said: list[tuple[str, ...]], color: MockColor
) -> bool:
    """Whether a call of `path` may give anything, by what the function says of it.

    An async mock gives a coroutine whatever it is told to return: only what is put in its place is open.
    """
    if (path == known and mock.is_result_open and color == "plain") or "return_value" in path or "side_effect" in path:
        return True
    for one in said:
        is_above = len(one) > len(known) and path[: len(one)] == one  # it, or what it hangs on, was replaced
        is_whole = one == known[: len(one)]
        is_below = one[: len(path)] == path and one[len(path) : len(path) + 1] in {("return_value",), ("side_effect",)}
        if is_above or is_whole or (is_below and color == "plain"):
            return True
    return False


def _color(program: Program, function: Function, mock: _Made, below: tuple[str, ...]) -> MockColor | None:
    if mock.spec is None:
        return mock.color
    if len(below) != 1 or not isinstance(mock.spec, ast.Name):
        return None
    (name,) = below
    value = program.static(function.module, function).value(("name", mock.spec.id))
    cls = value.cls if isinstance(value, ClassObject) else None
    if not isinstance(cls, Class):
        return None
    owner = next(
        (
            ancestor
            for ancestor in program.classes.order(cls)
            if not isinstance(ancestor, Class) or name in ancestor.methods
        ),
        None,
    )
    if not isinstance(owner, Class):
        return None
    method = owner.module.function(owner.methods[name][-1])
    if method.facts.decorators or method.is_generator:
        return None
    return "async" if method.is_async else "plain"


def _calls(node: ast.AST, around: tuple[ast.AST, ...]) -> Iterator[tuple[ast.Call, tuple[ast.AST, ...]]]:
    if isinstance(node, ast.Call):
        yield node, around
    for child in ast.iter_child_nodes(node):
        yield from _calls(child, (node, *around))
