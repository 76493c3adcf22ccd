"""`troth recolor --to async` of functions that give a coroutine or run one already: what they had to await is awaited."""

import subprocess
import sys

import pytest

HEAD = "import asyncio\n\n\nasync def fetch(x):\n    return x + 1\n\n\n"
RUN = '\n\nif __name__ == "__main__":\n    print(asyncio.run(main()))\n'


def output(project):
    command = [sys.executable, "app.py"]
    return subprocess.run(command, cwd=project.root, capture_output=True, text=True, timeout=60, check=True).stdout


def changed(project, text, target):
    """The text after the change, and that the program says what it said."""
    project.write({"pyproject.toml": '[project]\nname = "x"\n', "app.py": text})
    before = output(project)
    done = project.troth("recolor", target, "--to", "async", "--cascade", "all")
    assert done.code == 0, done.out + done.err
    assert output(project) == before
    return (project.root / "app.py").read_text()


@pytest.mark.parametrize(
    ("function", "after"),
    [
        pytest.param("def f(x):\n    return fetch(x)\n", "async def f(x):\n    return await fetch(x)\n", id="plain"),
        pytest.param(
            "from collections.abc import Awaitable\ndef f(x) -> Awaitable[int]:\n    return fetch(x)\n",
            "async def f(x) -> int:\n    return await fetch(x)\n",
            id="annotated",
        ),
        pytest.param(
            "from typing import Any\nfrom collections.abc import Coroutine\ndef f(x) -> Coroutine[Any, Any, int]:\n"
            "    if x:\n        return fetch(x)\n    return fetch(2)\n",
            "async def f(x) -> int:\n    if x:\n        return await fetch(x)\n    return await fetch(2)\n",
            id="on two paths",
        ),
    ],
)
def test_a_function_that_passes_a_coroutine_on(project, function, after):
    """Nobody who calls it changes: they had something to await before."""
    use = "async def main():\n    kept = f(1)\n    return [await f(2), await kept, *await asyncio.gather(f(3), f(4))]\n"
    text = changed(project, f"{HEAD}{function}\n\n{use}{RUN}", "app:f")
    assert after in text
    assert use in text


def test_a_caller_that_passes_a_coroutine_on(project):
    """It follows because it has to await, and gives the result instead of the coroutine."""
    head = "def load():\n    return 2\n\n\ndef f():\n    return fetch(load())\n\n\n"
    text = changed(project, f"{HEAD}{head}async def main():\n    return await f()\n{RUN}", "app:load")
    assert "async def f():\n    return await fetch(await load())\n" in text
    assert "    return await f()\n" in text


STARTING = """\
class Core:
    def __init__(self):
        self.loop = asyncio.new_event_loop()

    def start(self, xs):
        for x in xs:
            print(self.loop.run_until_complete(fetch(x)))
        return self.loop.run_until_complete(fetch(1)).real

    def go(self):
        print(self.start([1, 2]))
        self.loop.run_until_complete(fetch(3))


Core().go()
"""


def test_a_target_awaits_what_it_has_run(project):
    """Its caller runs coroutines on a loop of its own already, and so it runs this one."""
    text = changed(project, HEAD + STARTING, "app:Core.start")
    assert "            print(await fetch(x))\n        return (await fetch(1)).real\n" in text
    assert "        print(self.loop.run_until_complete(self.start([1, 2])))\n" in text


LATE = """\
def load():
    return 1


def main():
    first = load()
    loop = asyncio.new_event_loop()
    loop.run_until_complete(fetch(first))
"""


def test_a_loop_that_is_not_there_yet_runs_nothing(project):
    """The call stands before the loop is made."""
    project.write({"pyproject.toml": '[project]\nname = "x"\n', "app.py": HEAD + LATE})
    done = project.troth("recolor", "app:load", "--to", "async", "--cascade", "all")
    assert done.code == 1
    assert "starts a loop itself, with `loop.run_until_complete`" in done.out
    assert (project.root / "app.py").read_text() == HEAD + LATE


TWO = """\
class Core:
    def __init__(self):
        self.loop = asyncio.new_event_loop()

    def connect(self):
        self.loop.run_until_complete(fetch(1))

    def load(self):
        self.connect()
        return 2


print(Core().load())
"""


def test_targets_that_start_a_loop_one_by_the_other(project):
    """The one that is called starts none any more."""
    project.write({"pyproject.toml": '[project]\nname = "x"\n', "app.py": HEAD + TWO})
    before = output(project)
    command = ("recolor", "app:Core.connect", "app:Core.load", "--to", "async", "--cascade", "all", "--boundary", "app")
    done = project.troth(*command)
    assert done.code == 0, done.out + done.err
    text = (project.root / "app.py").read_text()
    assert "        await self.connect()\n        return 2\n" in text
    assert output(project) == before


def test_a_promise_of_somebody_unknown_is_decided(project):
    """Its callers await what it gives on one path, so with a decision it awaits that itself."""
    text = "class Bus:\n    def tell(self, x):\n        if not x:\n            return 0\n        return self.emit(x)\nasync def main(bus: Bus):\n    await bus.tell(1)\n"
    project.write(
        {"pyproject.toml": '[project]\nname = "x"\n', "app.py": text, "answers.txt": "app.py:Bus.tell: recolor\n"}
    )
    done = project.troth("recolor", "app:Bus.tell", "--to", "async", "--cascade", "all")
    assert done.code == 1
    assert "decided by  app.py:Bus.tell: recolor" in done.out
    done = project.troth("recolor", "app:Bus.tell", "--to", "async", "--cascade", "all", "--decide", "answers.txt")
    assert done.code == 0, done.out + done.err
    changed = (project.root / "app.py").read_text()
    assert "            return 0\n        return await self.emit(x)\n" in changed
    assert "    await bus.tell(1)\n" in changed


FIXTURES = """\
import pytest
from app import load


@pytest.fixture
def one():
    return load()


@pytest.fixture(scope="module")
def two():
    yield load()
"""


@pytest.mark.parametrize(
    ("mark", "settings", "name"),
    [
        pytest.param("asyncio", "", "pytest_asyncio.fixture", id="strict"),
        pytest.param("asyncio", '[tool.pytest.ini_options]\nasyncio_mode = "auto"\n', "pytest.fixture", id="auto"),
        pytest.param("anyio", "", "pytest.fixture", id="anyio"),
    ],
)
def test_fixtures_become_async(project, mark, settings, name):
    """In its strict mode pytest-asyncio runs fixtures of its own only; a generator is one as well."""
    user = f"import pytest\nfrom app import load\n@pytest.mark.{mark}\nasync def test_a(): ...\ndef test_b(one):\n    assert load()\n"
    project.write(
        {
            "pyproject.toml": f'[project]\nname = "x"\n{settings}',
            "app.py": "def load():\n    return 1\n",
            "tests/conftest.py": FIXTURES,
            "fixtures.py": FIXTURES,
            "tests/test_app.py": user,
        }
    )
    done = project.troth("recolor", "app:load", "--to", "async", "--cascade", "all")
    assert done.code == 0, done.out + done.err
    assert (project.root / "fixtures.py").read_text() == (project.root / "tests/conftest.py").read_text()
    text = (project.root / "tests/conftest.py").read_text()
    assert f"@{name}\nasync def one():\n    return await load()\n" in text
    assert f'@{name}(scope="module")\nasync def two():\n    yield await load()\n' in text
    assert ("import pytest_asyncio\n" in text) == name.startswith("pytest_asyncio")


def test_marks_that_a_variable_holds(project):
    """They ask for no color, wherever the variable stands."""
    user = (
        "import pytest\nfrom app import load\nfrom tests.conftest import twice\nslow = pytest.mark.slow\n@twice\ndef test_a(n):\n"
        "    assert load()\n@slow\ndef test_b():\n    assert load()\n"
    )
    project.write(
        {
            "pyproject.toml": '[project]\nname = "x"\n',
            "app.py": "def load():\n    return 1\n",
            "tests/__init__.py": "",
            "tests/conftest.py": 'import pytest\ntwice = pytest.mark.parametrize("n", [1, 2])\n',
            "tests/test_app.py": user,
        }
    )
    done = project.troth("recolor", "app:load", "--to", "async", "--cascade", "all")
    assert done.code == 0, done.out + done.err
    text = (project.root / "tests/test_app.py").read_text()
    assert "@pytest.mark.asyncio\n@twice\nasync def test_a(n):\n    assert await load()\n" in text
    assert "@pytest.mark.asyncio\n@slow\nasync def test_b():\n    assert await load()\n" in text


def test_what_callers_await_already_is_awaited_inside(project):
    """Nobody can tell what `emit` gives; whoever calls `toast` awaits it, so `toast` may do so itself."""
    text = (
        "class Emitter:\n    def __init__(self, emit):\n        self.emit = emit\n\n    def toast(self, x):\n"
        "        if not x:\n            raise ValueError(x)\n        return self.emit(x)\n\n\n"
        "async def main():\n    return await Emitter(fetch).toast(2)\n"
    )
    made = changed(project, f"{HEAD}{text}{RUN}", "app:Emitter.toast")
    assert "    async def toast(self, x):" in made
    assert "        return await self.emit(x)\n" in made
    assert "    return await Emitter(fetch).toast(2)\n" in made


def test_what_only_some_callers_await_is_asked_about(project):
    """One of them keeps what it gets."""
    text = (
        "class Emitter:\n    def __init__(self, emit):\n        self.emit = emit\n\n    def toast(self, x):\n"
        "        return self.emit(x)\n\n\n"
        "async def main():\n    later = Emitter(fetch).toast(2)\n    await Emitter(fetch).toast(2)\n    return await later\n"
    )
    project.write({"pyproject.toml": '[project]\nname = "x"\n', "app.py": f"{HEAD}{text}{RUN}"})
    done = project.troth("recolor", "app:Emitter.toast", "--to", "async", "--cascade", "all")
    assert done.code == 1
    assert "returns what its callers already await" in done.out


def test_a_caller_that_gives_what_is_awaited_stays_as_it_is(project):
    """`find` gives a cursor, which can be awaited and looped over; as `async def` it would have to be awaited twice."""
    text = (
        "import asyncio\n\n\nclass Cursor:\n    def __init__(self, n):\n        self.n = n\n\n    def __await__(self):\n"
        "        yield from asyncio.sleep(0).__await__()\n        return [self.n]\n\n\n"
        "class Engine:\n    def session(self):\n        return 1\n\n"
        "    def find(self):\n        return Cursor(self.session())\n\n\n"
        "async def main():\n    found = await Engine().find()\n    return len(found)\n"
    )
    project.write({"pyproject.toml": '[project]\nname = "x"\n', "app.py": f"{text}{RUN}"})
    before = output(project)
    done = project.troth("recolor", "app:Engine.session", "--to", "async", "--cascade", "all")
    assert done.code == 1
    assert "it returns what its callers already await (app.py:22)" in done.out
    done = project.troth("recolor", "app:Engine.session", "--to", "async", "--cascade")
    assert done.code == 0, done.out + done.err
    assert (
        "    def find(self):\n        return Cursor(bridge.run(self.session()))\n"
        in (project.root / "app.py").read_text()
    )
    assert output(project) == before
