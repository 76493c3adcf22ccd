"""A class that opens with what becomes async is entered by `async with` from now on."""

import subprocess
import sys

import pytest

LINK = """\
import asyncio
from contextlib import ExitStack


class Link:
    def open(self):
        print("open")

    def __enter__(self):
        self.open()
        return self

    def __exit__(self, *reason):
        print("close")


"""
RUN = """

if __name__ == "__main__":
    asyncio.run(main())
"""


def output(project):
    command = [sys.executable, "app.py"]
    return subprocess.run(command, cwd=project.root, capture_output=True, text=True, timeout=60, check=True).stdout


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(
            "async def main():\n    with Link():\n        print(1)\n",
            "    async with Link():\n",
            id="in async code",
        ),
        pytest.param(
            "def use(link: Link):\n    with link as it:\n        print(it is link)\n\n\nasync def main():\n    use(Link())\n",
            "async def use(link: Link):\n    async with link as it:\n",
            id="in plain code, which follows",
        ),
        pytest.param(
            "class Loud(Link):\n    def __enter__(self):\n        print(2)\n        return super().__enter__()\n\n\n"
            "async def main():\n    with Loud():\n        print(1)\n",
            "        return await super().__aenter__()\n",
            id="derived",
        ),
        pytest.param(
            "from contextlib import contextmanager\n\n\nclass Shop:\n    @contextmanager\n    def opened(self):\n        with Link():\n            yield 1\n\n\n"
            "async def main():\n    shop = Shop()\n    with shop.opened() as number:\n        print(number)\n",
            "    async with shop.opened() as number:\n",
            id="in a context manager made of a generator",
        ),
        pytest.param(
            "async def main():\n    with Link(), open(__file__):\n        print(1)\n",
            "    async with Link():\n        with open(__file__):\n            print(1)\n",
            id="beside others",
        ),
        pytest.param(
            "async def main():\n    with ExitStack() as stack:\n        print(type(stack.enter_context(Link())))\n",
            "    async with AsyncExitStack() as stack:\n        print(type(await stack.enter_async_context(Link())))\n",
            id="on a stack",
        ),
    ],
)
def test_it_is_entered_by_async_with(project, before, after):
    """The program does what it did."""
    project.write({"app.py": f"{LINK}{before}{RUN}"})
    expected = output(project)
    done = project.troth("recolor", "app:Link.open", "--to", "async", "--cascade", "all")
    assert done.code == 0, done.out + done.err
    changed = (project.root / "app.py").read_text()
    assert "async def __aenter__(self):\n        await self.open()" in changed
    assert "async def __aexit__(self, *reason):" in changed
    assert after in changed
    assert output(project) == expected


@pytest.mark.parametrize(
    ("more", "says"),
    [
        pytest.param("def f(x):\n    with x:\n        pass\n", "`with`", id="something unknown"),
        pytest.param(
            "def f():\n    stack = ExitStack()\n    stack.enter_context(Link())\n",
            "enters it as a sync context manager",
            id="a stack",
        ),
        pytest.param("def f():\n    with Link(), open('x'): pass\n", "beside others", id="beside others"),
        pytest.param(
            "class Both(Link):\n    async def __aenter__(self): ...\n\n    async def __aexit__(self, *reason): ...\n",
            "can be entered by `async with`",
            id="a class that has both",
        ),
    ],
)
def test_what_keeps_a_context_manager(project, more, says):
    """Whatever would enter it as before, or may."""
    project.write({"app.py": LINK + more})
    done = project.troth("recolor", "app:Link.open", "--to", "async", "--cascade", "all")
    assert done.code == 1, done.out + done.err
    assert says in done.out
    assert (project.root / "app.py").read_text() == LINK + more


def test_plain_code_at_a_boundary(project):
    """With `--boundary auto` the class stays as it is, and a generator that follows is entered or looped over there."""
    text = (
        "from contextlib import contextmanager\n\n\ndef load(n):\n    return n\n\n\n"
        "def rows():\n    yield load(1)\n    yield load(2)\n\n\n"
        "@contextmanager\ndef opened():\n    yield load(3)\n    print('closed')\n\n\n"
        "for row in rows():\n    print(row)\nwith opened() as it:\n    print(it)\n"
    )
    project.write({"app.py": text})
    expected = output(project)
    done = project.troth("recolor", "app:load", "--to", "async", "--cascade", "all", "--boundary", "auto")
    assert done.code == 0, done.out + done.err
    changed = (project.root / "app.py").read_text()
    assert "for row in bridge.iterate(rows()):" in changed
    assert "with bridge.enter(opened()) as it:" in changed
    assert output(project) == expected
