"""Programs that are nested, or chained, deeper than anybody writes: nobody crashes, and the rest is still checked.

Compiled functions have no recursion limit: what nothing ends overruns the stack, and that ends the process. So each
program is checked in a process of its own, whose stack is as small as that of a thread may be.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="each program is checked in a forked process")

_CHECKER = """
import os, resource, sys
import troth.analysis.pipeline, troth.cli.analysis.check
from troth.cli.app import run

for line in sys.stdin:
    folder = line.rstrip()
    child = os.fork()
    if not child:
        if sys.platform == "linux":
            resource.setrlimit(resource.RLIMIT_STACK, (1 << 20, resource.RLIM_INFINITY))
        resource.setrlimit(resource.RLIMIT_CPU, (60, 60))  # who hangs is ended
        for number, name in (1, "out"), (2, "err"):
            os.dup2(os.open(f"{folder}/{name}", os.O_WRONLY | os.O_CREAT), number)
        code = run(["check", "--no-cache", "--jobs", "1", "--output-format", "json", folder])
        sys.stdout.flush()
        os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""

_START = """\
import asyncio
import time

async def work():
    await asyncio.sleep(0)

class Maker:
    async def go(self):
        await asyncio.sleep(0)

def beside():
    work()  # lost

"""


def _chain(first: str, link: str, last: str, n: int, start: int = 1) -> dict[str, str]:
    """A file in which each link is made of the one before; `{i}`, `{p}` and `{n}` are this, the one before, the last."""
    links = (link.format(i=i, p=i - 1, n=n) for i in range(start, n + 1))
    return {"deep.py": "\n".join([_START + first, *links, last.format(n=n), ""])}


def _circle(link: str, last: str, n: int) -> dict[str, str]:
    links = (link.format(i=i, p=(i + 1) % n) for i in range(n))
    return {"deep.py": "\n".join([_START, *links, last, ""])}


def _files(link: str, last: str, n: int) -> dict[str, str]:
    """The same with a file for each link."""
    files = {f"m{i}.py": link.format(i=i, p=i - 1) for i in range(1, n + 1)}
    return {"m0.py": _START, **files, "deep.py": last.format(n=n)}


def _expression(text: str) -> dict[str, str]:
    """An expression as a statement, as a value, as a result, and where classes and modules keep it."""
    return {
        "deep.py": f"""{_START}
a = b = c = f = Maker

async def thrown_away(a, b, c, f):
    {text}
    work()  # lost

async def kept(a, b, c, f):
    held = {text}
    held.rest
    work()  # lost
    return {text}

whole = {text}

class Holder:
    part = {text}

    def __init__(self):
        self.part = {text}

    def use(self):
        self.part.rest
        whole.rest
        work()  # lost
"""
    }


def _nested(head: str, n: int) -> dict[str, str]:
    levels = "".join(f"{' ' * level}{head}\n" for level in range(1, n + 1))
    return {"deep.py": f"{_START}async def outer(x):\n{levels}{' ' * (n + 1)}work()  # lost?\n"}


_USE = "def use():\n    {}  # lost\n"
_MAYBE = "def use():\n    {}  # lost?\n"

_CASES: dict[str, Callable[[], dict[str, str]]] = {
    "functions that return each other's result": lambda: _chain(
        "def f0():\n    return work()", "def f{i}():\n    return f{p}()", _USE.format("f{n}()"), 1500
    ),
    "the same, last one first": lambda: _chain(
        "", "def f{i}():\n    return f{p}()", "def f0():\n    return work()\n" + _USE.format("f{n}()"), 1500
    ),
    "methods that return each other's result": lambda: _chain(
        "class C:\n    def m0(self):\n        return work()",
        "    def m{i}(self):\n        return self.m{p}()",
        "    def use(self):\n        self.m{n}()  # lost",
        1500,
    ),
    "properties": lambda: _chain(
        "class C:\n    @property\n    def p0(self):\n        return Maker()",
        "    @property\n    def p{i}(self):\n        return self.p{p}",
        "    def use(self):\n        self.p{n}.go()  # lost?",
        1000,
    ),
    "attributes of objects": lambda: _chain(
        "class C0:\n    def __init__(self):\n        self.a = work",
        "class C{i}:\n    def __init__(self):\n        self.a = C{p}().a",
        _MAYBE.format("C{n}().a()"),
        1000,
    ),
    "attributes of one object": lambda: _chain(
        "class C:\n    def __init__(self):\n        self.a0 = work",
        "        self.a{i} = self.a{p}",
        "    def use(self):\n        self.a{n}()  # lost?",
        1000,
    ),
    "classes": lambda: _chain("class C0(Maker): ...", "class C{i}(C{p}): ...", _MAYBE.format("C{n}().go()"), 1500),
    "classes with super": lambda: _chain(
        "class C0(Maker): ...",
        "class C{i}(C{p}):\n    async def go(self):\n        await super().go()",
        _USE.format("C{n}().go()"),
        700,
    ),
    "names": lambda: _chain("a0 = work", "a{i} = a{p}", _USE.format("a{n}()"), 5000),
    "names of objects": lambda: _chain("a0 = Maker()", "a{i} = a{p}", _USE.format("a{n}.go()"), 5000),
    "variables": lambda: _chain("def use():\n    a0 = work()  # lost", "    a{i} = a{p}", "    a{n}.go()", 2000),
    "variables that are called": lambda: _chain(
        "def use():\n    a0 = work", "    a{i} = a{p}", "    a{n}()  # lost", 5000
    ),
    "lists of lists": lambda: _chain("def use():\n    a0 = [1]", "    a{i} = [a{p}]", "    a{n}.go()", 2000),
    "pairs of pairs": lambda: _chain("a0 = (work, 1)", "a{i} = (a{p}, a{p})", "def use():\n    a{n}[0]()\n", 1000),
    "aliases of types": lambda: _chain("T0 = Maker", "T{i} = T{p}", "def use(x: T{n}):\n    x.go()  # lost", 5000),
    "aliases of unions": lambda: _chain(
        "from typing import Union\nT0 = Maker",
        "T{i} = Union['T{p}', int]",
        "def use(x: 'T{n}'):\n    x.go()  # lost?",
        1000,
    ),
    "aliases of lists": lambda: _chain(
        "T0 = Maker", "T{i} = list[T{p}]", "def use(x: T{n}):\n    x[0].go()\n    x.go()", 1000
    ),
    "new types": lambda: _chain(
        "from typing import NewType\nT0 = Maker",
        "T{i} = NewType('T{i}', T{p})",
        "def use(x: T{n}):\n    x.go()  # lost?",
        1000,
    ),
    "bounds of type variables": lambda: _chain(
        "from typing import TypeVar\nT0 = Maker",
        "T{i} = TypeVar('T{i}', bound='T{p}')",
        "def use(x: T{n}):\n    x.go()  # lost?",
        1000,
    ),
    "generic classes": lambda: _chain(
        "from typing import Generic, TypeVar\nT = TypeVar('T')\nclass C0(Generic[T]):\n    def get(self) -> T: ...",
        "class C{i}(C{p}[list[T]]): ...",
        "def use(c: C{n}[Maker]):\n    c.get().go()",
        1000,
    ),
    "decorators that hand on": lambda: _chain(
        "def d0(f):\n    return f",
        "def d{i}(f):\n    return d{p}(f)",
        "@d{n}\nasync def go(): ...\n" + _MAYBE.format("go()"),
        1000,
    ),
    "decorated decorators": lambda: _chain(
        "def d0(f):\n    return f",
        "@d{p}\ndef d{i}(f):\n    return f",
        "@d{n}\nasync def go(): ...\n" + _MAYBE.format("go()"),
        1000,
    ),
    "lambdas": lambda: _chain("f0 = lambda: work()", "f{i} = lambda: f{p}()", _MAYBE.format("f{n}()"), 1000),
    "partials": lambda: _chain(
        "from functools import partial\nf0 = work", "f{i} = partial(f{p})", _MAYBE.format("f{n}()"), 1000
    ),
    "an argument that is handed on": lambda: _chain(
        "def h0(x):\n    print(1)", "def h{i}(x):\n    h{p}(x)", _MAYBE.format("h{n}(work())"), 1500
    ),
    "an argument that comes back": lambda: _chain(
        "def h0(x):\n    return x", "def h{i}(x):\n    return h{p}(x)", _MAYBE.format("h{n}(work())"), 1500
    ),
    "calls that block": lambda: _chain(
        "def b0():\n    time.sleep(1)", "def b{i}():\n    b{p}()", "async def use():\n    b{n}()  # lost?", 1500
    ),
    "async generators": lambda: _chain(
        "async def g0():\n    yield 1",
        "async def g{i}():\n    async for x in g{p}():\n        yield x",
        "async def use():\n    async for x in g{n}(): ...",
        1500,
    ),
    "fixtures": lambda: _chain(
        "import pytest\n@pytest.fixture\ndef x0():\n    return work",
        "@pytest.fixture\ndef x{i}(x{p}):\n    return x{p}",
        "def test_it(x{n}):\n    x{n}()  # lost?",
        700,
    ),
    "branches": lambda: _chain(
        "def use(x):\n    if x:\n        work()  # lost", "    elif x == {i}:\n        pass", "", 900
    ),
    "branches that return": lambda: _chain(
        "def pick(x):\n    if x:\n        return work()",
        "    elif x == {i}:\n        return {i}",
        "    else:\n        work()  # lost\n",
        900,
    ),
    "re-exports": lambda: _files("from m{p} import work\n", "from m{n} import work\n" + _USE.format("work()"), 300),
    "stars": lambda: _files("from m{p} import *\n", "from m{n} import work\n" + _MAYBE.format("work()"), 300),
    "names of modules": lambda: _files(
        "import m{p}\nwork = m{p}.work\n", "from m{n} import work\n" + _MAYBE.format("work()"), 300
    ),
    "a circle of results": lambda: _circle("def f{i}():\n    return f{p}()", "def use():\n    f0()", 1000),
    "a circle of classes": lambda: _circle("class C{i}(C{p}): ...", "def use():\n    C0().go()", 700),
    "a circle of names": lambda: _circle("a{i} = a{p}", "def use():\n    a0.go()\n    a0()", 1000),
    "a circle of types": lambda: _circle("T{i} = list['T{p}']", "def use(x: 'T0'):\n    x[0].go()", 1000),
    "a circle of attributes": lambda: _circle(
        "class C{i}:\n    def __init__(self):\n        self.a = C{p}().a", "def use():\n    C0().a()", 700
    ),
    "a circle of decorators": lambda: _circle(
        "@d{p}\ndef d{i}(f):\n    return d{p}(f)", "@d0\nasync def go(): ...\ndef use():\n    go()  # lost?", 700
    ),
    "a circle of stars": lambda: {
        "deep.py": _START,
        **{f"m{i}.py": f"from m{(i + 1) % 200} import *\ndef f():\n    thing.go()\n" for i in range(200)},
    },
    "a circle of type variables": lambda: _circle(
        "T{i} = __import__('typing').TypeVar('T{i}', bound='T{p}')", "def use(x: T0):\n    x.go()", 700
    ),
    "a sum": lambda: _expression("a" + " + b" * 1000),
    "a sum of texts": lambda: _expression("'a'" + " + 'b'" * 1000),
    "a row of attributes": lambda: _expression("a" + ".b" * 1000),
    "a row of subscripts": lambda: _expression("a" + "[0]" * 1000),
    "a row of calls": lambda: _expression("a" + "()" * 1000),
    "a row of methods": lambda: _expression("a" + ".b(c)" * 900),
    "a row of conditions": lambda: _expression("a if b else " * 900 + "c"),
    "a row of lambdas": lambda: _expression("lambda: " * 900 + "c"),
    "a row of minuses": lambda: _expression("-" * 900 + "c"),
    "powers": lambda: _expression("a ** " * 900 + "c"),
    "a long or": lambda: _expression("a" + " or b" * 5000),
    "a long comparison": lambda: _expression("a" + " < b" * 2000),
    "nested calls": lambda: _expression("f(" * 90 + "a" + ")" * 90),
    "nested lists": lambda: _expression("[" * 90 + "a" + "]" * 90),
    "nested dicts": lambda: _expression("{1: " * 90 + "a" + "}" * 90),
    "nested conditions": lambda: _expression("(a if b else " * 90 + "c" + ")" * 90),
    "nested comprehensions": lambda: _expression("[x for x in " * 90 + "a" + "]" * 90),
    "nested lambdas": lambda: _expression("(lambda x=1: " * 90 + "a" + ")" * 90),
    "nested subscripts": lambda: _expression("a[" * 90 + "b" + "]" * 90),
    "rows in brackets": lambda: _expression("f(" * 90 + "a" + ".b(c)" * 120 + ")" * 90),
    "blocks of if": lambda: _nested("if x:", 95),
    "functions in functions": lambda: _nested("async def g(x):", 95),
    "classes in classes": lambda: _nested("class G:", 95),
    "blocks of with": lambda: _nested("with x as y:", 19),
}


@pytest.fixture(scope="module")
def checker() -> Iterator[Callable[[Path], int]]:
    """Checks a folder in a process of its own, and gives its exit code."""
    command = [sys.executable, "-P", "-c", _CHECKER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        given, told = process.stdin, process.stdout
        assert given is not None
        assert told is not None

        def check(folder: Path) -> int:
            given.write(f"{folder}\n")
            given.flush()
            return int(told.readline())

        yield check


@pytest.mark.parametrize("make", _CASES.values(), ids=_CASES.keys())
def test_deep(make: Callable[[], dict[str, str]], checker: Callable[[Path], int], tmp_path: Path) -> None:
    """What stands beside something too deep is found, nothing else is told, and the process lives."""
    files = {**make(), "aside.py": _START, "pyproject.toml": "[tool.troth]\n"}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    code = checker(tmp_path)
    assert code in {0, 1}, (tmp_path / "err").read_text()[-2000:]
    told = {
        (finding["path"].rpartition("/")[2], finding["line"])
        for finding in json.loads((tmp_path / "out").read_text())["findings"]
        if finding["code"].startswith(("TR0", "TR1"))
    }
    marked = {
        (name, number): line.rpartition("# ")[2]
        for name, text in files.items()
        for number, line in enumerate(text.splitlines(), 1)
        if line.endswith(("# lost", "# lost?"))
    }
    assert {place for place, mark in marked.items() if mark == "lost"} <= told <= marked.keys()
