"""What services, clients with twins and tools taught: each row is right as it stands, and was once called wrong."""

from pathlib import Path

import pytest

from troth.analysis.run import analyse
from troth.analysis.source.project import Project

STATUS = (
    "class Status:\n    def __init__(self, work):\n        self.work = work\n    def __await__(self):\n        return self.work.__await__()\n"
    "    @classmethod\n    def wrap(cls, f):\n        def wrapper(*args):\n            return cls(f(*args))\n        return wrapper\n"
)


def told(files: dict[str, str]) -> list[tuple[str, str, int]]:
    """The code, the path and the line of every finding."""
    texts = {path: text.encode() for path, text in files.items()}
    found = analyse(Project(Path("/nowhere"), tuple(sorted(texts))), overlay=texts).findings
    return sorted((f.code, f.span.path, f.span.line) for f in found)


SILENT = {
    "a side that never runs": "class Connection:\n    async def set_deferrable(self, value): ...\n    def set(self, value):\n"
    "        if True:  # ASYNC\n            raise AttributeError\n        else:\n            self.set_deferrable(value)\n",
    "a generator whose kind is asserted": "import types\nasync def pages():\n    yield 1\nasync def main():\n    found = pages()\n"
    "    assert isinstance(found, types.AsyncGeneratorType)\n    return [page async for page in found]\n",
    "a pager that is stepped through": "from azure.core.async_paging import AsyncItemPaged\nasync def main(items: AsyncItemPaged):\n"
    "    pages = items.by_page()\n    page = await anext(pages)\n    return page, pages.continuation_token\n",
    "a context that is entered by hand": "import aiohttp\nasync def main(url):\n    async with aiohttp.ClientSession() as session:\n"
    "        context = session.get(url)\n        response = await context.__aenter__()\n        print(context._resp)\n        return response\n",
    "asked whether there is one": "from typing import Awaitable\nclass Server:\n    async def pay(self): ...\n    async def make(self): ...\n"
    "    async def handle(self, method):\n        work: Awaitable | None = None\n        if method == 'pay':\n            work = self.pay()\n"
    "        elif method == 'make':\n            work = self.make()\n        else:\n            return\n        if work:\n"
    "            await self.group.spawn(self.run(work))\n    async def run(self, work: Awaitable):\n        await work\n",
    "futures as keys": "import asyncio\nclass Regexes:\n    def start(self, f):\n        return asyncio.get_running_loop().run_in_executor(None, f)\n"
    "    async def all(self, named):\n        names = {}\n        def add(name, f):\n            future = self.start(f)\n            names[future] = name\n"
    "        for name, f in named:\n            add(name, f)\n        await asyncio.wait(names)\n",
    "a decorator of a class that gives its objects": STATUS
    + "class Signal:\n    @Status.wrap\n    async def set(self, value): ...\nasync def main(signal: Signal):\n"
    "    status = signal.set(1)\n    assert not status.done\n",
}


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in SILENT.items()])
def test_the_frame_around_a_call_is_understood(text: str) -> None:
    """Nothing is found."""
    assert told({"app.py": text}) == []


SEEN = {
    "the side that runs": "class Connection:\n    async def set_deferrable(self, value): ...\n    def set(self, value):\n"
    "        if True:\n            self.set_deferrable(value)  # T101\n        else:\n            raise AttributeError\n",
    "a pager that nobody steps through": "from azure.core.async_paging import AsyncItemPaged\nasync def main(items: AsyncItemPaged):\n"
    "    pages = items.by_page()  # T114\n    return pages.continuation_token\n",
    "a coroutine that is closed like a file": "async def fetch(): ...\nasync def main():\n    file = fetch()  # T102\n"
    "    print(file.size)\n    file.close()\n",
    "a call as a key": "async def name(): ...\nasync def main(sizes):\n    return sizes[name()]  # T106\n",
}


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in SEEN.items()])
def test_what_is_lost_beside_it_is_still_told(text: str) -> None:
    """The marked line, and nothing else, is found."""
    marks = [(number, line.rpartition("# T")) for number, line in enumerate(text.splitlines(), 1)]
    assert told({"app.py": text}) == [(f"T{code}", "app.py", number) for number, (_, mark, code) in marks if mark]
