"""Async test without a mark.

What it finds: `async def test_…` without `@pytest.mark.asyncio` (or `anyio`, `trio`) in a project where the others have it.
Why it matters: pytest does not run an async test by itself. Without the mark no plugin takes it on: it is skipped with a
warning, or fails, and not one line of it has run.
How to repair: mark it as the others are, or the whole file: `pytestmark = pytest.mark.asyncio`.
How sure the fix is: the mark of the nearest marked test of the file, put above it, is likely right.

Where the settings of pytest say `asyncio_mode = auto` no test needs a mark. They may stand elsewhere, or on the command
line; so the tests themselves are asked too: at least five must be marked, and for each that is not ten that are; and no
`conftest.py` may mark tests by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from troth.analysis.facts.model import ASYNC, GENERATOR
from troth.analysis.facts.nodes import words_of
from troth.analysis.findings import Edit, Finding, Fix, Reason
from troth.analysis.incremental.project_queries import part
from troth.analysis.rules._finding import tell_at
from troth.analysis.rules.registry import Case, rule

if TYPE_CHECKING:
    from troth.analysis.facts.model import FileFacts, FunctionFacts
    from troth.analysis.semantics import Program
    from troth.analysis.semantics.symbols import Function

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


# What a file says of async tests: how many are marked, which are not, and whether it tells pytest how to run tests.
_Tests = tuple[int, tuple[int, ...], bool]


@rule("TR414", "async-test-without-mark", cases=CASES)
def check(program: Program) -> Iterator[Finding]:
    """Async tests that no plugin takes on."""
    for path in program.asked:
        if _runs_by_itself(program, path):
            continue
        mine = _tests_in(program.module(path).facts) if _is_test_file(path) else None
        if mine is None or not mine[0] or not mine[1]:
            continue
        every: Mapping[str, _Tests] = program.said("async tests")
        tests = [
            marks for place, marks in every.items() if _is_test_file(place) and not _runs_by_itself(program, place)
        ]
        marked, unmarked = sum(test[0] for test in tests), sum(len(test[1]) for test in tests)
        has_hook = any(marks[2] for place, marks in every.items() if place.endswith("conftest.py"))
        if has_hook or marked < max(_ENOUGH, _FOR_EACH * unmarked):
            return
        for index in mine[1]:
            yield _told(program, program.module(path).function(index))


def _runs_by_itself(program: Program, path: str) -> bool:
    """Whether the settings of pytest that hold for a file ask for no mark."""
    return any(not folder or path.startswith(f"{folder}/") for folder in program.self_running)


def _is_test_file(path: str) -> bool:
    name = path.rpartition("/")[2]
    return name.startswith("test_") or name.endswith("_test.py")


@part("async tests")
def _tests_in(file: FileFacts) -> _Tests | None:
    is_marked = any(name == "pytestmark" for name, _, _ in file.variables)
    marked = 0
    unmarked: list[int] = []
    has_hook = any(function.name in _HOOKS for function in file.functions)
    for index, facts in enumerate(file.functions):
        if facts.flags & (ASYNC | GENERATOR) != ASYNC or facts.parent or not facts.name.startswith("test_"):
            continue
        if _is_marked(facts):
            marked += 1
        elif not is_marked and not facts.decorators and not _is_of_a_case(file, facts):
            unmarked.append(index)
    return (marked, tuple(unmarked), has_hook) if marked or unmarked or has_hook else None


def _is_marked(facts: FunctionFacts) -> bool:
    return bool(facts.flags & ASYNC) and any(
        word in _MARKS for decorator in facts.decorators for word in words_of(decorator)
    )


def _is_of_a_case(file: FileFacts, facts: FunctionFacts) -> bool:
    """Whether the class says how its tests are run: by a base, a decorator or a mark of its own."""
    if facts.owner < 0:
        return any(param[0].startswith("anyio") for param in facts.params)
    cls = file.classes[facts.owner]
    return bool(cls.bases or cls.decorators) or any(name == "pytestmark" for name, _ in cls.values)


def _told(program: Program, function: Function) -> Finding:
    line, column = function.facts.at[:2]
    path = function.module.path
    text = program.text(path)
    fix = None
    if "@pytest.mark.asyncio\n" in text.value:
        start = text.offset(line, column)
        fix = Fix("mark it", "likely", (Edit(path, start, start, "@pytest.mark.asyncio\n" + " " * column),))
    marked = next(test for test in function.module.facts.functions if _is_marked(test))
    return tell_at(
        program, "TR414", "async-test-without-mark", function, (line, column, line, column + len("async def")),
        f"pytest does not run `{function.qualname}` by itself, and it has no mark for the plugin that runs the others",
        sure=False,
        reasons=(
            Reason(f"`{function.qualname}` is `async def`", *function.place),
            Reason(f"`{marked.qualname}` has the mark", path, marked.at[0]),
        ),
        fix=fix,
    )  # fmt: skip
