"""Namesakes in the project say something of a method only where it may be theirs."""

from pathlib import Path

import pytest

from troth.analysis.pipeline import analyse
from troth.analysis.project.project import Project

TELLING = "class Feed:\n    async def refresh_feed(self): ...\n    async def push_text(self, text): ...\n"
AWAITED = "".join(f"async def use_{n}(self):\n    await self.client.push_frame(1)\n" for n in range(8))


def found(files: dict[str, str]) -> list[tuple[str, str, int]]:
    texts = {path: text.encode() for path, text in files.items()}
    findings = analyse(Project(Path("/nowhere"), tuple(sorted(texts))), overlay=texts).findings
    return [(f.code, f.span.path, f.span.line) for f in findings if not f.code.startswith("TR3")]


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
            "from typing import Protocol\nclass Other(Protocol): ...\nasync def main(x: Other):\n    x.refresh_feed()\n",
            4,
            id="of a protocol, which says the least",
        ),
        pytest.param(
            "class Other: ...\nasync def main(x: Other):\n    if hasattr(x, 'refresh_feed'):\n        x.refresh_feed()\n",
            4,
            id="of a class that lacks it, where the object is asked for it",
        ),
        pytest.param(
            "class Other: ...\nasync def main(x: Other):\n    if hasattr(x, 'close'):\n        x.refresh_feed()\n",
            0,
            id="of a class that lacks it, where the object is asked for something else",
        ),
        pytest.param(
            "class Outer:\n    async def warm_up_async(self):\n        self.inner.warm_up_async()\n"
            "class Far:\n    async def warm_up_async(self): ...\n",
            3,
            id="a wrapper of something that is called async",
        ),
        pytest.param(
            "class Outer:\n    async def warm_up_async(self):\n        self.inner.warm_up_async()\n"
            "class Far:\n    def warm_up_async(self):\n        return 1\n",
            0,
            id="a wrapper of something that is called async and is not, elsewhere",
        ),
        pytest.param(
            "async def main(x):\n    refresh_feed = getattr(x, 'refresh_feed', None)\n    if refresh_feed is not None:\n"
            "        refresh_feed()\n",
            4,
            id="fetched by its name",
        ),
        pytest.param(
            "class Wire:\n    async def _push(self): ...\nasync def main(x):\n    x.wire._push()\n",
            0,
            id="what is private, and may be another's",
        ),
        pytest.param(
            "import inspect\nasync def main(x, hook):\n    if inspect.iscoroutinefunction(hook):\n        await hook()\n"
            "    x.refresh_feed()\n",
            5,
            id="where the color of something else is asked for",
        ),
        pytest.param(
            "import inspect\nasync def main(x):\n    done = x.refresh_feed()\n    if inspect.isawaitable(done):\n"
            "        await done\n    print(done)\n    x.refresh_feed()\n",
            0,
            id="where the color of its result is asked for",
        ),
        pytest.param(
            "import inspect\nasync def main(x):\n    if inspect.iscoroutinefunction(x.refresh_feed):\n        await x.refresh_feed()\n"
            "    else:\n        x.refresh_feed()\n",
            0,
            id="where its own color is asked for",
        ),
        pytest.param(
            "".join(f"class WireMaker{n}:\n    async def push_it(self): ...\n" for n in range(4))
            + "async def main(self):\n    self.wire_maker.push_it()\n",
            10,
            id="of several classes that are called alike",
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
    assert found({"feed.py": TELLING, "app.py": text}) == ([("TR101", "app.py", line)] if line else [])


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
        pytest.param(_uses("import other\n", "other.Recognizer()"), ["TR201"], id="of the same library"),
        pytest.param(_uses("", "make()"), ["TR201"], id="of nobody knows what"),
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


@pytest.mark.parametrize(
    ("awaited", "bare", "told"),
    [
        pytest.param(40, 1, 1, id="one that does not"),
        pytest.param(40, 3, 3, id="three of forty"),
        pytest.param(12, 2, 0, id="two of a dozen"),
    ],
)
def test_a_common_word_awaited_all_over(awaited: int, bare: int, told: int) -> None:
    """Of a short name and a common word nearly all have to await; a few that do not are the ones that are told of."""
    uses = {f"use_{n}.py": "async def use(ctx):\n    await ctx.send(1)\n" for n in range(awaited)}
    lost = {f"app_{n}.py": "async def main(ctx):\n    ctx.send(1)\n" for n in range(bare)}
    assert len(found({**uses, **lost})) == told


@pytest.mark.parametrize(("awaited", "told"), [pytest.param(6, 1, id="many"), pytest.param(2, 0, id="few")])
def test_a_result_of_any_kind(awaited: int, told: int) -> None:
    """`-> Any` says nothing; what is returned unawaited is told of where many return the same and await it."""
    views = "from unknown import View\nfrom typing import Any\n" + "".join(
        f"class View{n}(View):\n    async def get(self, request) -> Any:\n"
        f"        return {'await ' if n else ''}self.render_page(request)\n"
        for n in range(awaited + 1)
    )
    assert [line for _, _, line in found({"views.py": views})] == [5] * told


@pytest.mark.parametrize(("awaited", "told"), [pytest.param(12, 1, id="many"), pytest.param(6, 0, id="some")])
def test_an_argument_that_everybody_else_awaits(awaited: int, told: int) -> None:
    """What is handed on unawaited may be meant so, unless many await the same words and nobody does otherwise."""
    uses = {f"use_{n}.py": "async def use(paint):\n    show(await paint.pick_color(1))\n" for n in range(awaited)}
    app = "from unknown import Card\nasync def main(paint):\n    return Card(color=paint.pick_color(1))\n"
    assert len([one for one in found({**uses, "app.py": app}) if one[1] == "app.py"]) == told


@pytest.mark.parametrize(
    ("caller", "told"),
    [
        pytest.param(
            "def start_{}(screen, endpoint):\n    screen.show(endpoint.post_form(1))\n", 1, id="sync functions"
        ),
        pytest.param("async def start_{}(endpoint):\n    endpoint.post_form(1)\n", 0, id="async functions"),
    ],
)
def test_callers_that_cannot_await(caller: str, told: int) -> None:
    """A sync function gives the promise to somebody else, and says little of what an async one has to do with it."""
    uses = "".join(f"async def use_{n}(endpoint):\n    await endpoint.post_form(1)\n" for n in range(6))
    others = "".join(caller.format(n) for n in range(6))
    app = "async def main(endpoint):\n    endpoint.post_form(1)\n"
    last = len(f"{uses}{others}{app}".splitlines())
    assert len([one for one in found({"app.py": uses + others + app}) if one[2] == last]) == told
