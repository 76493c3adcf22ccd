"""Async test without a mark.

What it finds: `async def test_…` without `@pytest.mark.asyncio` (or `anyio`, `trio`) in a project where the others have it.
Why it matters: pytest does not run an async test by itself. Without the mark no plugin takes it on: it is skipped with a
warning, or fails, and not one line of it has run.
How to repair: mark it as the others are, or the whole file: `pytestmark = pytest.mark.asyncio`.
How sure the fix is: the mark of the nearest marked test of the file, put above it, is likely right.

Whether a plugin takes on every async test is set where Python is not read. So the tests themselves are asked: at least
five must be marked, and for each that is not ten that are; and no `conftest.py` may mark tests by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from troth.analysis.facts.model import ASYNC, GENERATOR
from troth.analysis.findings import Edit, Finding, Fix, Reason
from troth.analysis.rules.registry import Case, rule
from troth.analysis.rules.telling import tell_at

if TYPE_CHECKING:
    from troth.analysis.facts.model import FunctionFacts, Node
    from troth.analysis.program import Program
    from troth.analysis.program.entities import Function, Module

_MARKED = "".join(f"@pytest.mark.asyncio\nasync def test_{n}():\n    await load()\n" for n in range(10))
_LOAD = "import pytest\nasync def load(): ...\n"
CASES = [
    Case(
        "the one that was forgotten",
        bad={"test_a.py": _LOAD + _MARKED + "async def test_last():  # here\n    await load()\n"},
        fixed={
            "test_a.py": _LOAD + _MARKED + "@pytest.mark.asyncio\nasync def test_last():  # here\n    await load()\n"
        },
    ),
    Case("all of them marked", good={"test_a.py": _LOAD + _MARKED}),
    Case(
        "the file is marked",
        good={
            "test_a.py": _LOAD + _MARKED,
            "test_b.py": _LOAD + "pytestmark = [pytest.mark.asyncio]\nasync def test_last():\n    await load()\n",
        },
    ),
    Case(
        "the class is marked",
        good={
            "test_a.py": _LOAD
            + _MARKED
            + "@pytest.mark.asyncio\nclass TestStore:\n    async def test_last(self):\n        await load()\n"
        },
    ),
    Case(
        "a plugin takes them all",
        good={
            "test_a.py": _LOAD
            + _MARKED
            + "async def test_x():\n    await load()\nasync def test_y():\n    await load()\n"
        },
    ),
    Case(
        "marked by the conftest",
        good={
            "conftest.py": "def pytest_collection_modifyitems(items): ...\n",
            "test_a.py": _LOAD + _MARKED + "async def test_last():\n    await load()\n",
        },
    ),
]

_MARKS = frozenset({"asyncio", "anyio", "trio", "tornado", "gen_test", "twisted"})
_HOOKS = frozenset(
    {"pytest_collection_modifyitems", "pytest_pyfunc_call", "pytest_pycollect_makeitem", "anyio_backend"}
)
_ENOUGH = 5  # marked tests
_FOR_EACH = 10  # marked ones for each that is not


class _Tests(NamedTuple):
    """The async tests of a project that pytest would have to run."""

    marked: int
    unmarked: tuple[Function, ...]


@rule("T414", "async-test-without-mark", cases=CASES)
def check(program: Program) -> Iterator[Finding]:
    """Async tests that no plugin takes on."""
    asked = frozenset(program.asked)
    found = _tests(program)
    if found.marked < max(_ENOUGH, _FOR_EACH * len(found.unmarked)):
        return
    for function in found.unmarked:
        if function.module.path in asked and any(map(_is_marked, function.module.facts.functions)):
            yield _told(program, function)


def _tests(program: Program) -> _Tests:
    known: _Tests | None = program.__dict__.get("_async_tests")
    if known is None:
        marked = 0
        unmarked: list[Function] = []
        for module in program.own_modules():
            name = module.path.rpartition("/")[2]
            if name == "conftest.py" and any(one.name in _HOOKS for one in module.facts.functions):
                marked, unmarked = 0, []
                break
            if name.startswith("test_") or name.endswith("_test.py"):
                mine, others = _of_file(module)
                marked += mine
                unmarked += others
        known = program.__dict__["_async_tests"] = _Tests(marked, tuple(unmarked))
    return known


def _of_file(module: Module) -> tuple[int, list[Function]]:
    is_marked = any(name == "pytestmark" for name, _, _ in module.facts.variables)
    marked = 0
    unmarked: list[Function] = []
    for index, facts in enumerate(module.facts.functions):
        if facts.flags & (ASYNC | GENERATOR) != ASYNC or facts.parent or not facts.name.startswith("test_"):
            continue
        if _is_marked(facts):
            marked += 1
        elif not is_marked and not facts.decorators and not _is_of_a_case(module, facts):
            unmarked.append(module.function(index))
    return marked, unmarked


def _is_marked(facts: FunctionFacts) -> bool:
    return bool(facts.flags & ASYNC) and any(_words(one) & _MARKS for one in facts.decorators)


def _is_of_a_case(module: Module, facts: FunctionFacts) -> bool:
    """Whether the class says how its tests are run: by a base, a decorator or a mark of its own."""
    if facts.owner < 0:
        return any(param[0].startswith("anyio") for param in facts.params)
    cls = module.facts.classes[facts.owner]
    return bool(cls.bases or cls.decorators) or any(name == "pytestmark" for name, _ in cls.values)


def _words(node: Node) -> set[str]:
    found: set[str] = set()
    for part in node:
        if isinstance(part, tuple):
            found |= _words(part)
        elif isinstance(part, str):
            found.add(part)
    return found


def _told(program: Program, function: Function) -> Finding:
    line, column = function.facts.at[:2]
    path = function.module.path
    text = program.text(path)
    fix = None
    if "@pytest.mark.asyncio\n" in text.value:
        start = text.offset(line, column)
        fix = Fix("mark it", "likely", (Edit(path, start, start, "@pytest.mark.asyncio\n" + " " * column),))
    marked = next(one for one in function.module.facts.functions if _is_marked(one))
    return tell_at(
        program, "T414", "async-test-without-mark", function, (line, column, line, column + len("async def")),
        f"pytest does not run `{function.qualname}` by itself, and it has no mark for the plugin that runs the others",
        sure=False,
        reasons=(
            Reason(f"`{function.qualname}` is `async def`", *function.place),
            Reason(f"`{marked.qualname}` has the mark", path, marked.at[0]),
        ),
        fix=fix,
    )  # fmt: skip
