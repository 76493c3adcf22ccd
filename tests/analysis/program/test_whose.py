"""Namesakes in the project say something of a method only where it may be theirs."""

from pathlib import Path

import pytest

from troth.analysis.run import analyse
from troth.analysis.source.project import Project

TELLING = "class Feed:\n    async def refresh_feed(self): ...\n    async def push_text(self, text): ...\n"
AWAITED = "".join(f"async def use_{n}(self):\n    await self.client.push_frame(1)\n" for n in range(8))


def found(files: dict[str, str]) -> list[tuple[str, str, int]]:
    texts = {path: text.encode() for path, text in files.items()}
    findings = analyse(Project(Path("/nowhere"), tuple(sorted(texts))), overlay=texts).findings
    return [(f.code, f.span.path, f.span.line) for f in findings if not f.code.startswith("T3")]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        pytest.param("async def main(x):\n    x.refresh_feed()\n", 2, id="an unknown object"),
        pytest.param(
            "class Base: ...\nclass Live(Base):\n    async def refresh_live(self): ...\nasync def main(x: Base):\n    x.refresh_live()\n",
            5,
            id="one that a subclass has",
        ),
        pytest.param(
            "import queue\nasync def main(q: queue.Queue):\n    x = q.get_nowait()\n    x.refresh_feed()\n",
            4,
            id="what a container of the standard library gave back",
        ),
        pytest.param(
            "class Other: ...\nasync def main(x: Other):\n    x.refresh_feed()\n", 0, id="of a class that lacks it"
        ),
        pytest.param(
            "import unknown\nclass Other(unknown.Handler):\n    def __init__(self): ...\nasync def main(x: Other):\n    x.refresh_feed()\n",
            0,
            id="inherited from a library of which nothing is known",
        ),
        pytest.param(
            "import httpx\nasync def main():\n    client = httpx.Client()\n    client.refresh_feed()\n",
            0,
            id="of a library's class that lacks it",
        ),
        pytest.param(
            "from prompt_toolkit.input import create_pipe_input\nasync def main():\n    made = create_pipe_input()\n    made.push_text('x')\n",
            0,
            id="of what a library's function gives",
        ),
        pytest.param(
            "import unknown\nasync def main():\n    with unknown.opened() as x, x.inner() as y:\n        y.push_text('x')\n",
            0,
            id="of what a plain `with` gives",
        ),
    ],
)
def test_a_namesake_in_the_project(text: str, line: int) -> None:
    """All definitions of a name are async: that speaks for a receiver that may be of one of these classes."""
    assert found({"feed.py": TELLING, "app.py": text}) == ([("T101", "app.py", line)] if line else [])


def test_a_decorator_makes_another_thing_of_it() -> None:
    """A method that `@work` turned into the start of a worker is no coroutine function any more."""
    files = {
        "app.py": "from textual import work\nfrom textual.app import App\nclass Chat(App):\n    @work\n    async def action_rename(self): ...\n",
        "use.py": "async def main(x):\n    x.action_rename()\n",
    }
    assert found(files) == []


def _uses(head: str, made: str) -> str:
    call = "    async def go(self):\n        self.client.push_frame(1)\n"
    return f"{head}class Speaker:\n    def __init__(self):\n        self.client = {made}\n{call}"


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        pytest.param(
            _uses("import vendor\n", "vendor.Recognizer()"), [], id="of a library that the others do not import"
        ),
        pytest.param(_uses("import other\n", "other.Recognizer()"), ["T201"], id="of the same library"),
        pytest.param(_uses("", "make()"), ["T201"], id="of nobody knows what"),
        pytest.param(_uses("class Own: ...\n", "Own()"), [], id="of a class that lacks it"),
    ],
)
def test_siblings_of_another_library(text: str, codes: list[str]) -> None:
    """The same words in another class mean the same only if they may mean the same library's object."""
    others = {
        f"use_{n}.py": "import other\nclass Use:\n    def __init__(self, client):\n        self.client = client\n"
        "    async def go(self):\n        await self.client.push_frame(1)\n"
        for n in range(8)
    }
    assert [code for code, path, _ in found({**others, "app.py": text}) if path == "app.py"] == codes


def test_the_neighbour_of_a_script() -> None:
    """A folder that is no package comes first where a script in it imports, whatever lies elsewhere."""
    files = {
        "libs/screen/__init__.py": "class Screen:\n    async def update(self): ...\n",
        "tasks/__init__.py": "",
        "tasks/vm/screen.py": "class Screen:\n    def update(self): ...\n",
        "tasks/vm/main.py": "from screen import Screen\nscreen = Screen()\ndef go():\n    screen.update()\n",
    }
    texts = {path: text.encode() for path, text in files.items()}
    project = Project(Path("/nowhere"), tuple(sorted(texts)), ("libs", ""))
    assert analyse(project, overlay=texts).findings == ()


def test_the_path_that_pytest_gives() -> None:
    """Files in the folder of a test are plain ones, whatever paths the project has."""
    paths = "class DiskPath:\n    async def write_lines(self, text): ...\n"
    uses = "".join(f"async def use_{n}(file_path):\n    await file_path.write_lines('x')\n" for n in range(6))
    test = "async def test(tmp_path):\n    file_path = tmp_path / 'a'\n    file_path.write_lines('x')\n"
    assert found({"paths.py": paths, "uses.py": uses, "test_a.py": test}) == []
