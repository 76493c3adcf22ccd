"""Find which callers may change color after what they call, and what keeps the others as they are."""

import ast
from collections.abc import Collection, Mapping
from typing import Literal

from troth.analysis.project.test_files import is_test
from troth.analysis.recolor.project.tree import Tree
from troth.analysis.recolor.reach.color_requirements import required_by
from troth.analysis.recolor.reach.framework_bases import has_passive_bases
from troth.analysis.semantics import Program
from troth.analysis.semantics.queries.color_requirements import is_required
from troth.analysis.semantics.symbols import Function

__all__ = ["Cascade", "asyncio_mark", "in_scope", "kept_by"]

Cascade = Literal["none", "callers", "tests", "all"]

_MARKS = frozenset({"asyncio", "anyio", "trio"})
_UNCOLORABLE = frozenset({"property", "cached_property", "setter", "deleter", "contextmanager", "asynccontextmanager"})


def in_scope(function: Function, cascade: Cascade) -> bool:
    """Whether the user wants `function` to follow."""
    if cascade in {"none", "all"}:
        return cascade == "all"
    return is_test(function.module.path) == (cascade == "tests")


def kept_by(
    program: Program, function: Function, handed_around: Mapping[Function, str], together: Collection[Function] = ()
) -> str | None:
    """What keeps `function` as it is though `together` change; None if nothing does.

    `handed_around` says of functions that are given to somebody by name why that somebody wants their color.
    """
    name = function.name
    if function.is_generator:
        return "it is a generator"
    if name.startswith("__") and name.endswith("__"):
        return "Python itself calls it"
    if function.decorated_with(*_UNCOLORABLE):
        return "a decorator asks for its color"
    if function in handed_around:
        return handed_around[function]
    test = is_test(function.module.path)
    decorators = [decorator for decorator in function.facts.decorators if not _is_test_decorator(decorator)]
    if test and not decorators and (name.startswith("test") or len(decorators) < len(function.facts.decorators)):
        return None
    if function.is_async and is_required(program, function):
        return "a decorator, a base class or a framework asks for its color"
    owner = function.owner
    is_open = owner is not None and not name.startswith("_") and None in program.classes.order(owner)
    if owner is not None and is_open and not has_passive_bases(program, owner):
        return "it may be called by a base class that is not known"
    why = required_by(program, function, together) if not function.is_async else None
    return None if why is None else f"it {why}"


def asyncio_mark(node: ast.expr) -> bool:
    """Whether a decorator says that a test is to be run by an event loop."""
    inner = node.func if isinstance(node, ast.Call) else node
    return (
        isinstance(inner, ast.Attribute)
        and inner.attr in _MARKS
        and ast.unparse(inner.value) in {"pytest.mark", "mark"}
    )


def _is_test_decorator(node: tuple[object, ...]) -> bool:
    inner = node[1] if node[0] == "call" else node
    assert isinstance(inner, tuple)
    return (
        _dotted(inner).startswith(("pytest.", "pytest_asyncio.", "mark.", "patch", "mock."))
        or _dotted(inner) == "fixture"
    )


def _dotted(node: tuple[object, ...]) -> str:
    if node[0] == "name":
        return str(node[1])
    if node[0] == "attr" and isinstance(node[1], tuple):
        return f"{_dotted(node[1])}.{node[2]}"
    return ""


def bound_in(tree: Tree) -> set[str]:
    """The names that imports at the top of a file bind."""
    return {
        alias.asname or alias.name.partition(".")[0]
        for node in tree.module.body
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
