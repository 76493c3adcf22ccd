"""Generators and context managers made of them follow to async, with all who loop over them or enter them."""

import subprocess
import sys

import pytest

HEAD = "def load(x):\n    return x\n"
RUN = 'async def main():\n    return total()\nif __name__ == "__main__":\n    import asyncio\n    print(asyncio.run(main()))\n'


def recolor(project, text, *options):
    project.write({"pyproject.toml": '[project]\nname = "x"\n', "app.py": text})
    return project.troth("recolor", "app:load", "--to", "async", "--cascade", "all", *options)


def output(project):
    command = [sys.executable, "app.py"]
    return subprocess.run(command, cwd=project.root, capture_output=True, text=True, timeout=60, check=True).stdout


ROWS = "def rows(n):\n    for i in range(n):\n        yield load(i)\n"


@pytest.mark.parametrize(
    ("use", "after"),
    [
        pytest.param(
            "    s = 0\n    for row in rows(4):\n        s += row\n    return s\n",
            "async for row in rows(4)",
            id="a loop",
        ),
        pytest.param("    return list(rows(4))\n", "[item async for item in rows(4)]", id="a list"),
        pytest.param("    return sum(rows(4))\n", "sum([item async for item in rows(4)])", id="read at once"),
        pytest.param("    return [r + 1 for r in rows(4)]\n", "[r + 1 async for r in rows(4)]", id="a comprehension"),
        pytest.param("    return sum(r + 1 for r in rows(4))\n", "sum([r + 1 async for r in rows(4)])", id="summed up"),
        pytest.param("    return next(rows(4)) + 1\n", "return await anext(rows(4)) + 1", id="next"),
        pytest.param("    return next(rows(0), None)\n", "return await anext(rows(0), None)", id="next with a default"),
        pytest.param("    return next(rows(4)).real\n", "return (await anext(rows(4))).real", id="an attribute of it"),
    ],
)
def test_a_generator_follows(project, use, after):
    """The program does what it did."""
    text = f"{HEAD}{ROWS}def total():\n{use}{RUN}"
    project.write({"app.py": text})
    before = output(project)
    done = recolor(project, text)
    assert done.code == 0, done.out + done.err
    changed = (project.root / "app.py").read_text()
    assert "async def rows(n):" in changed
    assert after in changed
    assert output(project) == before


YIELDING = """\
def more(n):
    yield 7
    yield from rows(n)
    for _ in range(2):
        if n:
            yield from [1, 2]


def total():
    return list(more(3))


"""


def test_a_generator_that_yields_from_others_follows(project):
    """Async generators have no `yield from`, so it becomes a loop: `async for` over what is async, else `for`."""
    text = f"{HEAD}{ROWS}{YIELDING}{RUN}"
    project.write({"app.py": text})
    before = output(project)
    done = recolor(project, text)
    assert done.code == 0, done.out + done.err
    changed = (project.root / "app.py").read_text()
    assert "    async for item in rows(n):\n        yield item\n" in changed
    assert "            for item in [1, 2]:\n                yield item\n" in changed
    assert output(project) == before


def test_next_needs_a_python_that_has_it_for_async(project):
    """What a fix writes runs on every Python that the project supports."""
    text = f"{HEAD}{ROWS}def total():\n    return next(rows(2))\n"
    project.write({"pyproject.toml": '[project]\nname = "x"\nrequires-python = ">=3.9"\n', "app.py": text})
    done = project.troth("recolor", "app:load", "--to", "async", "--cascade", "all")
    assert done.code == 1
    assert "before Python 3.10 there is no `anext`" in done.out
    assert (project.root / "app.py").read_text() == text


def test_a_context_manager_follows(project):
    """With its decorator, its import and its annotation."""
    text = (
        "from collections.abc import Iterator\nfrom contextlib import contextmanager\n"
        f"{HEAD}@contextmanager\ndef opened(n) -> Iterator[int]:\n    yield load(n)\n"
        f"def total():\n    with opened(3) as o:\n        return o\n{RUN}"
    )
    done = recolor(project, text)
    assert done.code == 0, done.out + done.err
    changed = (project.root / "app.py").read_text()
    assert changed.startswith("from collections.abc import AsyncIterator\nfrom contextlib import asynccontextmanager\n")
    assert "@asynccontextmanager\nasync def opened(n) -> AsyncIterator[int]:\n" in changed
    assert "    async with opened(3) as o:" in changed
    assert output(project) == "3\n"


OPENED = "from contextlib import ExitStack, contextmanager\n@contextmanager\ndef opened(n):\n    yield load(n)\n"
OTHER = "@contextmanager\ndef other(n):\n    print('in', n)\n    yield n\n    print('out', n)\n"


@pytest.mark.parametrize(
    ("body", "after"),
    [
        pytest.param(
            "    with opened(1) as a, opened(2) as b:\n        return a + b\n",
            "    async with opened(1) as a, opened(2) as b:\n        return a + b\n",
            id="all of them",
        ),
        pytest.param(
            "    with opened(1) as a, other(2) as b:\n        # both\n\n        return a + b\n",
            "    async with opened(1) as a:\n        with other(2) as b:\n            # both\n\n            return a + b\n",
            id="the first",
        ),
        pytest.param(
            "    if True:\n        with other(1) as a, other(3), opened(2) as b:\n            return a + b\n",
            "        with other(1) as a, other(3):\n            async with opened(2) as b:\n                return a + b\n",
            id="the last",
        ),
        pytest.param(
            "    with ExitStack() as stack:\n        a = stack.enter_context(opened(1))\n        stack.enter_context(other(a))\n"
            "        return a\n",
            "    async with AsyncExitStack() as stack:\n        a = await stack.enter_async_context(opened(1))\n",
            id="on a stack",
        ),
    ],
)
def test_what_is_entered_beside_others(project, body, after):
    """The order in which they are entered and left stays."""
    text = f"{OPENED}{OTHER}{HEAD}def total():\n{body}{RUN}"
    project.write({"app.py": text})
    before = output(project)
    done = recolor(project, text)
    assert done.code == 0, done.out + done.err
    assert after in (project.root / "app.py").read_text()
    assert output(project) == before


@pytest.mark.parametrize(
    "body",
    [
        pytest.param('    with opened(1) as a, other(2) as b:\n        return f"""{a}\n{b}"""\n', id="a long string"),
        pytest.param("    with opened(1) as a, other(2), opened(3):\n        return a\n", id="between others"),
        pytest.param("    with opened(1) as a, other(2): return a\n", id="in one line"),
        pytest.param(
            "    with ExitStack() as stack:\n        stack.enter_context(opened(1))\n        kept = stack.pop_all()\n",
            id="a stack that is handed on",
        ),
    ],
)
def test_what_cannot_be_entered_beside_others(project, body):
    """It is refused, and nothing is written."""
    text = f"{OPENED}{OTHER}{HEAD}def total():\n{body}"
    done = recolor(project, text)
    assert done.code == 1, done.out + done.err
    assert "enter" in done.out
    assert (project.root / "app.py").read_text() == text


@pytest.mark.parametrize(
    ("rest", "says"),
    [
        pytest.param(
            f"{ROWS}def more(n):\n    x = yield from rows(n)\n    yield x\ndef total():\n    return list(more(2))\n",
            "`yield from`",
            id="the value of yield from",
        ),
        pytest.param(
            "def rows(n):\n    yield load(n)\n    return 1\ndef total():\n    return list(rows(2))\n",
            "returns a value",
            id="a returned value",
        ),
        pytest.param(
            f"{ROWS}def total():\n    try:\n        return next(rows(2))\n    except StopIteration:\n        return 0\n",
            "ends with another exception",
            id="next that may be the last",
        ),
        pytest.param(
            f"{ROWS}def more(n):\n    if n: yield from rows(n)\ndef total():\n    return list(more(2))\n",
            "`yield from`",
            id="no line of its own",
        ),
        pytest.param(
            f"{ROWS}def total():\n    return dict(zip(rows(2), rows(2)))\n",
            "only `async for` and `async with`",
            id="zip",
        ),
    ],
)
def test_what_no_async_generator_can_do_is_refused(project, rest, says):
    """Nothing is written, and the place is named."""
    text = f"{HEAD}{rest}{RUN}"
    done = recolor(project, text)
    assert done.code == 1
    assert says in done.out
    assert (project.root / "app.py").read_text() == text


@pytest.mark.parametrize(
    ("use", "after"),
    [
        pytest.param("    async for x in f():\n        print(x)\n", "    async for x in await f():\n", id="a loop"),
        pytest.param(
            "    async with aclosing(f()) as xs:\n        print(await anext(xs))\n",
            "    async with aclosing(await f()) as xs:\n",
            id="given to what enters it",
        ),
        pytest.param("    print([x async for x in f()])\n", "    print([x async for x in await f()])\n", id="a list"),
    ],
)
def test_what_gives_an_async_generator(project, use, after):
    """From now on its coroutine gives the generator; the program does what it did."""
    text = (
        "import asyncio\nfrom contextlib import aclosing\n\n\nasync def stream():\n    yield 1\n\n\n"
        f"def f():\n    return stream()\n\n\nasync def g():\n{use}\n\nasyncio.run(g())\n"
    )
    project.write({"app.py": text})
    before = output(project)
    done = project.troth("recolor", "app:f", "--to", "async", "--cascade", "all")
    assert done.code == 0, done.out + done.err
    assert after in (project.root / "app.py").read_text()
    assert output(project) == before


def test_what_gives_a_context_manager(project):
    """`async with x.f()` gets an `await`, which is what its callers outside have to write as well."""
    text = (
        "import asyncio\nfrom contextlib import asynccontextmanager\n\n\n@asynccontextmanager\nasync def opened():\n    yield 1\n\n\n"
        "class Db:\n    def connect(self):\n        return opened()\n\n\n"
        "async def main():\n    async with Db().connect() as c:\n        print(c)\n\n\nasyncio.run(main())\n"
    )
    project.write({"app.py": text})
    before = output(project)
    done = project.troth("recolor", "app:Db.connect", "--to", "async", "--cascade", "all")
    assert done.code == 0, done.out + done.err
    assert "    async with await Db().connect() as c:\n" in (project.root / "app.py").read_text()
    assert output(project) == before


def test_overloads_change_with_what_they_describe(project):
    """A type checker reads their color, so they get the one of the function."""
    text = (
        "from typing import overload\n\n\n@overload\ndef load(x: int) -> int: ...\n@overload\ndef load(x: str) -> str: ...\n"
        "def load(x):\n    return x\n\n\ndef total():\n    return load(2)\n"
    )
    done = recolor(project, f"{text}{RUN}")
    assert done.code == 0, done.out + done.err
    changed = (project.root / "app.py").read_text()
    assert changed.count("async def load(x") == 3
    assert output(project) == "2\n"
