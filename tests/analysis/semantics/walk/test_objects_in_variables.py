"""What a walk sees in variables: awaitables that are lost through one, and sync objects that are none."""

from pathlib import Path

import pytest

from troth.analysis.pipeline import Analysis, analyse
from troth.analysis.project.project import Project

KINDS = (
    "class Store:\n    async def save(self): ...\n    @property\n    async def size(self): ...\n"
    "class Table:\n    def save(self):\n        return 1\n    def size(self):\n        return 1\n"
)
USE = "from kinds import Store, Table\n"


def looked_at(text: str) -> Analysis:
    texts = {"kinds.py": KINDS.encode(), "main.py": (USE + text).encode()}
    return analyse(Project(Path("/nowhere"), tuple(sorted(texts))), overlay=texts)


CLEAR = {
    "bound twice": "async def main(a):\n    x = Table()\n    if a:\n        x = Table()\n    x.save()\n",
    "bound to nothing first": "async def main(a):\n    x = None\n    if a:\n        x = Table()\n    x.save()\n",
    "unpacked": "async def main():\n    x, y = Table(), Store()\n    x.save()\n    await y.save()\n",
    "a loop": "async def main(xs: list[Table]):\n    for x in xs:\n        x.save()\n",
    "a comprehension": "async def main(xs: list[Table]):\n    return [x.save() for x in xs]\n",
    "a walrus": "async def main():\n    if (x := Table()):\n        x.save()\n",
    "put into a dict": "async def main():\n    xs = {}\n    xs['a'] = Table()\n    for x in xs.values():\n        x.save()\n",
    "a class is asked for": "async def main(x):\n    if isinstance(x, Table):\n        x.save()\n",
    "annotated here": "async def main(a):\n    x: Table = a\n    x.save()\n",
    "what another call gives": "def make() -> Table: ...\nasync def main():\n    make().save()\n",
    "one of several": "async def main(xs: list[Table]):\n    xs[0].save()\n",
    "awaited beside": "async def main(x: Table, y: Store):\n    z = y\n    await z.save()\n    a = x\n    a.save()\n",
}


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in CLEAR.items()])
def test_variables_that_hold_sync_objects(text: str) -> None:
    """Whatever the variable holds, on any way through the function, is sync."""
    assert not looked_at(text).findings


LOST = {
    "bound twice": "async def main(a):\n    x = Table()\n    if a:\n        x = Store()\n        x.save()  # lost\n",
    "unpacked": "async def main():\n    x, y = Store(), Table()\n    x.save()  # lost\n",
    "unpacked deeper": "async def main():\n    (x, z), y = (Store(), 1), Table()\n    x.save()  # lost\n",
    "a loop": "async def main(xs: list[Store]):\n    for x in xs:\n        x.save()  # lost\n",
    "a loop over pairs": "async def main(xs: dict[str, Store]):\n    for _, x in xs.items():\n        x.save()  # lost\n",
    "with": "from contextlib import contextmanager\n@contextmanager\ndef opened():\n    yield Store()\n"
    "async def main(a):\n    with opened() as x:\n        x.save()  # lost\n    x = a\n",
    "a walrus": "async def main():\n    if (x := Store()):\n        x.save()  # lost\n",
    "a class is asked for": "async def main(x):\n    if isinstance(x, Store):\n        x.save()  # lost\n",
    "one of two classes": "async def main(x):\n    if isinstance(x, Table):\n        x.save()\n"
    "    elif isinstance(x, Store):\n        x.save()  # lost\n",
    "put into a dict": "async def main():\n    xs = {}\n    xs['a'] = Store()\n    xs['a'].save()  # lost\n",
    "added to a list": "async def main():\n    xs = []\n    xs += [Store()]\n    for x in xs:\n        x.save()  # lost\n",
    "an attribute that is set": "async def main(xs):\n    for a in xs:\n        a.x = Store()\n        a.x.save()  # lost\n",
    "a variable of the function around": "def around():\n    x = Store()\n    async def main():\n        x.save()  # lost\n"
    "    return main\n",
    "annotated here": "async def main(a):\n    x: Store = a\n    x.save()  # lost\n",
    "what another call gives": "def make() -> Store: ...\nasync def main():\n    make().save()  # lost\n",
    "one of several": "async def main(xs: list[Store]):\n    xs[0].save()  # lost\n",
    "a match": "async def main(xs):\n    for x in xs:\n        match x:\n            case Store():\n                x.save()  # lost\n",
    "an import on one way": "async def main(a):\n    if a:\n        from kinds import Store as K\n    else:\n"
    "        from kinds import Store as K\n    K().save()  # lost\n",
    "a property besides": "async def main(x: Store, y: list[Table]):\n    for z in y:\n        z.save()\n    print(x.size)  # lost\n",
    "a callable that gives a promise": "from typing import Awaitable, Callable\nclass A:\n"
    "    def __init__(self, f: Callable[[], Awaitable[None]]):\n        self.f = f\n"
    "    async def main(self):\n        self.f()  # lost\n",
    "super": "class B:\n    async def main(self): ...\nclass A(B):\n    async def run(self):\n        super().main()  # lost\n",
}


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in LOST.items()])
def test_promises_that_a_variable_hides(text: str) -> None:
    """What is lost is found, however the object came into the variable."""
    lost = {number for number, line in enumerate((USE + text).splitlines(), 1) if line.endswith("# lost")}
    assert {one.span.line for one in looked_at(text).findings} == lost


def test_a_plain_function_that_gives_a_promise_on() -> None:
    """It loses nothing itself, but it is walked through: whoever calls it gets a promise."""
    text = "def hand_on(a):\n    x = a\n    for x in [Store()]:\n        return x.save()\nasync def main():\n    hand_on(1)\n"
    assert [one.span.line for one in looked_at(text).findings] == [7]
