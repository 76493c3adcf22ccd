"""`troth recolor --to sync` of async generators and their context managers, with all who loop over them or enter them."""

import subprocess
import sys

import pytest

HEAD = """\
import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager


async def load(x):
    return x


"""
ROWS = "async def rows(n) -> AsyncGenerator[int, None]:\n    for i in range(n):\n        yield await load(i)\n\n\n"
OPENED = "@asynccontextmanager\nasync def opened(n) -> AsyncIterator[int]:\n    yield await load(n)\n    print('closed')\n\n\n"
RUN = "\n\nprint(asyncio.run(total()))\n"


def output(project):
    command = [sys.executable, "app.py"]
    return subprocess.run(command, cwd=project.root, capture_output=True, text=True, timeout=60, check=True).stdout


@pytest.mark.parametrize(
    ("body", "after"),
    [
        pytest.param(
            "    s = 0\n    async for row in rows(4):\n        s += row\n    return s\n",
            "    s = 0\n    for row in rows(4):\n",
            id="a loop",
        ),
        pytest.param(
            "    return [r + 1 async for r in rows(4)], {r async for r in rows(2) if r}\n",
            "    return [r + 1 for r in rows(4)], {r for r in rows(2) if r}\n",
            id="comprehensions",
        ),
        pytest.param("    return await anext(rows(4))\n", "    return next(rows(4))\n", id="next"),
        pytest.param(
            "    async with opened(1) as a, opened(2) as b:\n        return a + b\n",
            "    with opened(1) as a, opened(2) as b:\n        return a + b\n",
            id="a context manager",
        ),
    ],
)
def test_an_async_generator_becomes_plain(project, body, after):
    """The program does what it did, without waiting, and back again it is what it was."""
    text = f"{HEAD}{ROWS}{OPENED}async def total():\n{body}{RUN}"
    project.write({"pyproject.toml": '[project]\nname = "x"\n', "app.py": text})
    before = output(project)
    done = project.troth("recolor", "app:load", "--to", "sync", "--cascade", "all")
    assert done.code == 0, done.out + done.err
    changed = (project.root / "app.py").read_text()
    assert f"def total():\n{after}" in changed
    assert "async" not in changed.replace("import asyncio", "").replace("asynccontextmanager", "")
    assert "def rows(n) -> Generator[int, None, None]:" in changed
    assert "@contextmanager\ndef opened(n) -> Iterator[int]:" in changed
    assert output(project) == before
    back = ("recolor", "app:load", "--to", "async", "--cascade", "all", "--boundary", "app", "--allow-dirty")
    done = project.troth(*back)
    assert done.code == 0, done.out + done.err
    assert (project.root / "app.py").read_text() == text


@pytest.mark.parametrize(
    ("body", "says"),
    [
        pytest.param(
            "    return [x async for x in (r async for r in rows(2))]\n", "may need one", id="another generator"
        ),
        pytest.param(
            "    async with opened(1), asyncio.Lock():\n        return 1\n", "beside others", id="beside a lock"
        ),
        pytest.param(
            "    try:\n        return await anext(rows(0))\n    except StopAsyncIteration:\n        return 0\n",
            "may need one",
            id="its end is caught",
        ),
    ],
)
def test_what_needs_an_async_generator_keeps_it(project, body, says):
    """The generator stays async, and waits for nothing any more; as a target it is refused."""
    text = f"{HEAD}{ROWS}{OPENED}async def total():\n{body}"
    project.write({"pyproject.toml": '[project]\nname = "x"\n', "app.py": text})
    name = "opened" if "opened(" in body else "rows"
    done = project.troth("recolor", "app:load", f"app:{name}", "--to", "sync", "--cascade", "all")
    assert done.code == 1, done.out + done.err
    assert says in done.out
    assert (project.root / "app.py").read_text() == text
    done = project.troth("recolor", "app:load", "--to", "sync", "--cascade", "all")
    assert done.code == 0, done.out + done.err
    changed = (project.root / "app.py").read_text()
    assert f"async def {name}(n)" in changed
    assert "yield load(" in changed
