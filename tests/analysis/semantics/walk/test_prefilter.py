"""Which functions are walked: the async ones, and those that by names may make or take something async."""

from pathlib import Path

import pytest

from troth.analysis.pipeline import analyse
from troth.analysis.project.project import Project

KINDS = "class Store:\n    async def save(self): ...\n    async def __aenter__(self): ...\ndef plain(): ...\n"
USE = "from kinds import Store, plain\n"


def is_walked(text: str) -> bool:
    texts = {"kinds.py": KINDS.encode(), "main.py": (USE + text).encode()}
    program = analyse(Project(Path("/nowhere"), tuple(sorted(texts))), overlay=texts).program
    assert program is not None
    (function,) = (one for one in program.index.functions_named("main") if one.module.path == "main.py")
    return program.is_chosen(function)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("async def main(): ...\n", id="async"),
        pytest.param("def main(x):\n    x.save()\n", id="a method of that name is async"),
        pytest.param("def main(x):\n    x()\n", id="a parameter is called"),
        pytest.param("def main(open):\n    open()\n", id="a parameter with the name of a builtin is called"),
        pytest.param("def main(xs):\n    xs[0]()\n", id="what a table holds is called"),
        pytest.param("def main():\n    with Store() as x:\n        return x\n", id="enters what only async with takes"),
        pytest.param("def main(x: Store):\n    with x:\n        return 1\n", id="the same, in a parameter"),
    ],
)
def test_functions_that_are_walked(text: str) -> None:
    """A name is enough; what it stands for is for the walk to find out."""
    assert is_walked(text)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("def main():\n    return 1\n", id="calls nothing"),
        pytest.param("def main():\n    plain()\n", id="calls what is async nowhere"),
        pytest.param("def main(x):\n    x.append(1)\n", id="a method of that name is async nowhere"),
        pytest.param("def main(x):\n    return len(x)\n", id="a builtin"),
        pytest.param("def main(x):\n    with open(x) as f:\n        return f\n", id="enters a file"),
    ],
)
def test_functions_that_need_no_walk(text: str) -> None:
    """Nothing in it is async anywhere."""
    assert not is_walked(text)
