"""Async test that never runs.

What it finds: `async def test_…`, `setUp` or `tearDown` in a plain `unittest.TestCase`; `async def setUp` or `tearDown` in an
`IsolatedAsyncioTestCase`, which awaits `asyncSetUp` and `asyncTearDown` only.
Why it matters: unittest calls the method, gets a coroutine and drops it: the test is counted as passed and not one line of
it has run.
How to repair: derive the class from `unittest.IsolatedAsyncioTestCase`; a `setUp` that waits becomes `asyncSetUp`.
How sure the fix is: the new base class makes the tests run, which is what they were written for; whether they pass is
another matter, so it is likely.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from troth.analysis.findings import Edit, Finding, Fix, Reason
from troth.analysis.rules._finding import tell_at
from troth.analysis.rules.registry import Case, rule
from troth.analysis.semantics.infer.never_awaitable import is_harmless
from troth.analysis.semantics.resolve.library import LibraryClass
from troth.analysis.semantics.symbols import Class

if TYPE_CHECKING:
    from troth.analysis.semantics import Program
    from troth.analysis.semantics.symbols import Function

CASES = [
    Case(
        "a test",
        bad="import unittest\nclass TestStore(unittest.TestCase):\n    async def test_load(self):  # here\n        await load()\n",
        fixed="import unittest\nclass TestStore(unittest.IsolatedAsyncioTestCase):\n    async def test_load(self):  # here\n        await load()\n",
    ),
    Case(
        "below a base of the project",
        bad="from unittest import TestCase\nclass Base(TestCase):\n    def setUp(self): ...\nclass TestStore(Base):\n    async def test_load(self):  # here\n        await load()\n",
    ),
    Case(
        "a patched one",
        bad="import unittest\nfrom unittest.mock import patch\nclass TestStore(unittest.TestCase):\n    @patch('a.b')\n    async def test_load(self, b):  # here\n        await load()\n",
    ),
    Case(
        "an async case",
        good="import unittest\nclass TestStore(unittest.IsolatedAsyncioTestCase):\n    async def test_load(self):\n        await load()\n",
    ),
    Case(
        "a set-up of an async case",
        bad="import unittest\nclass TestStore(unittest.IsolatedAsyncioTestCase):\n    async def setUp(self):  # here\n        await load()\n",
        fixed="import unittest\nclass TestStore(unittest.IsolatedAsyncioTestCase):\n    async def asyncSetUp(self):  # here\n        await load()\n",
    ),
    Case("pytest's own style", good="class TestStore:\n    async def test_load(self):\n        await load()\n"),
    Case(
        "a metaclass that wraps the tests",
        good="import unittest\nclass Meta(type): ...\nclass Base(unittest.TestCase, metaclass=Meta): ...\nclass TestStore(Base):\n    async def test_load(self):\n        await load()\n",
    ),
    Case(
        "of an unknown base",
        good="from lib.testing import TestCase\nclass TestStore(TestCase):\n    async def test_load(self):\n        await load()\n",
    ),
    Case(
        "a decorator that runs it",
        good="import unittest\nfrom lib import gen_test\nclass TestStore(unittest.TestCase):\n    @gen_test\n    async def test_load(self):\n        await load()\n",
    ),
    Case(
        "no test at all",
        good="import unittest\nclass TestStore(unittest.TestCase):\n    async def load(self):\n        await load()\n",
    ),
    Case(
        "a metaclass that sees to it",
        good="import unittest\nclass Meta(type(unittest.TestCase)):\n    pass\nclass Base(unittest.TestCase, metaclass=Meta):\n    pass\n"
        "class TestIt(Base):\n    async def test_it(self):\n        assert await self.load()\n",
    ),
]

_CALLED = frozenset({"setUp", "tearDown", "setUpClass", "tearDownClass"})
_RUNNING = (
    "run",
    "_callSetUp",
    "_callTearDown",
    "_callTestMethod",
    "__call__",
    "__getattribute__",
    "__init_subclass__",
)
_PLAIN = frozenset({"unittest.TestCase", "unittest.case.TestCase", "builtins.object", "object"})
_ISOLATED = frozenset({"unittest.IsolatedAsyncioTestCase", "unittest.async_case.IsolatedAsyncioTestCase"})
_ASYNC_TWINS = {"setUp": "asyncSetUp", "tearDown": "asyncTearDown"}


@rule("TR408", "async-test-never-runs", cases=CASES)
def check(program: Program) -> Iterator[Finding]:
    """Async tests in sync test cases."""
    for path in program.asked:
        module = program.module(path)
        for index, facts in enumerate(module.facts.functions):
            if facts.owner < 0 or facts.flags & 3 != 1 or not (facts.name.startswith("test") or facts.name in _CALLED):
                continue
            function = module.function(index)
            owner = module.cls(facts.owner)
            if not all(_leaves_it(program, function, d) for d in facts.decorators):
                continue
            if _is_case(program, owner, _PLAIN):
                yield _told(program, function, owner)
            elif facts.name in _ASYNC_TWINS and _is_case(program, owner, _PLAIN | _ISOLATED):
                yield _told_of_set_up(program, function, owner)


def _is_case(program: Program, cls: Class, kinds: frozenset[str]) -> bool:
    bases = [
        ancestor for ancestor in program.classes.order(cls) if ancestor is None or isinstance(ancestor, LibraryClass)
    ]
    if not bases or any(base is None or base.qualified not in kinds for base in bases):
        return False
    own = [ancestor for ancestor in program.classes.order(cls) if isinstance(ancestor, Class)]
    if any(name in ancestor.methods for ancestor in own for name in _RUNNING):
        return False  # a case that runs its tests in its own way
    return not any(_has_metaclass(program, ancestor) for ancestor in own)


def _has_metaclass(program: Program, cls: Class) -> bool:
    """Whether the class is made by something of its own, which may wrap its tests."""
    first, _, last, _ = cls.facts.at
    text = program.text(cls.module.path)
    head = "".join(text.line(number) for number in range(first, min(last, first + 5) + 1)).partition(":")[0]
    return "metaclass" in head


def _leaves_it(program: Program, function: Function, decorator: tuple[object, ...]) -> bool:
    node = decorator[1] if decorator[0] == "call" else decorator
    assert isinstance(node, tuple)
    words = {str(part) for part in (node[1:] if node[0] == "name" else (node[2], *(node[1][1:2])))}
    return "patch" in words or is_harmless(program, function, decorator)


def _told(program: Program, function: Function, owner: Class) -> Finding:
    line, column = function.facts.at[:2]
    phrase = (
        "the test passes without running a line of it" if function.name.startswith("test") else "nothing of it runs"
    )
    message = f"unittest calls `{function.qualname}`, gets a coroutine and drops it: {phrase}"
    return tell_at(
        program, "TR408", "async-test-never-runs", function, (line, column, line, column + len("async def")), message, sure=True,
        reasons=(
            Reason(f"`{function.qualname}` is `async def`", *function.place),
            Reason(f"`{owner.name}` is a plain `unittest.TestCase`", *owner.place),
        ),
        fix=_fix(program, owner),
    )  # fmt: skip


def _told_of_set_up(program: Program, function: Function, owner: Class) -> Finding:
    line, column = function.facts.at[:2]
    twin = _ASYNC_TWINS[function.name]
    path, text = function.module.path, program.text(function.module.path)
    start = text.offset(line, column)
    fix = None
    if twin not in owner.methods and text.value.startswith(f"async def {function.name}", start):
        name = start + len("async def ")
        fix = Fix(f"call it `{twin}`", "likely", (Edit(path, name, name + len(function.name), twin),))
    return tell_at(
        program, "TR408", "async-test-never-runs", function, (line, column, line, column + len("async def")),
        f"unittest calls `{function.qualname}` and drops its coroutine: nothing of it runs; what is awaited is `{twin}`",
        sure=True,
        reasons=(
            Reason(f"`{function.qualname}` is `async def`", *function.place),
            Reason(f"`{owner.name}` is an `IsolatedAsyncioTestCase`, which calls `{function.name}` plainly", *owner.place),
        ),
        fix=fix,
    )  # fmt: skip


def _fix(program: Program, owner: Class) -> Fix | None:
    """The async base class, where the sync one is written out in full."""
    path = owner.module.path
    for base in owner.facts.bases:
        if (
            base[0] == "attr"
            and base[1] == ("name", "unittest")
            and base[2] == "TestCase"
            and not path.endswith(".ipynb")
        ):
            text = program.text(path)
            start, end = text.offset(base[3][0], base[3][1]), text.offset(base[3][2], base[3][3])
            return Fix(
                "derive from the async test case",
                "likely",
                (Edit(path, start, end, "unittest.IsolatedAsyncioTestCase"),),
            )
    return None
