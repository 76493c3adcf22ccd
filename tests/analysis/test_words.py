"""A program may name its parameters and keywords as we name the kinds of our facts, and nothing comes of it."""

from pathlib import Path

import pytest

from troth.analysis.pipeline import analyse
from troth.analysis.project.project import Project
from troth.analysis.rules import all_rules

# Every kind of node that Python allows as a name; a keyword's pair, and a parameter, begin with their name as a node
# begins with its kind.
WORDS = [
    *("annassign", "attr", "augassign", "binop", "call", "case", "comp", "compare", "const", "dict", "expr", "fstr"),
    *(
        "ifexp",
        "index",
        "list",
        "match",
        "name",
        "parts",
        "scope",
        "set",
        "slice",
        "star",
        "tuple",
        "walrus",
        "yieldfrom",
    ),
]

PROGRAM = """
import asyncio, functools
from unittest import mock
async def get(x=None, **more): return x
def plain(*a, **k): return None
class Store:
    def __init__(self, WORD=None):
        self.later = get(WORD=1)
        self.box = []
        self.pool = {}
        self.hook = lambda WORD: WORD.data
        self.run = lambda WORD, x=1, *a: get(WORD=WORD)
    async def go(self, WORD, *args, **more):
        global first, WORD_
        self.pool[1] = get(WORD=self.box)
        kept = get(WORD=WORD)
        plain(WORD=kept)
        self.box.append(get(WORD=lambda WORD: self.later))
        for each in self.box:
            plain(each, WORD=await each)
        async with self.lock(WORD=self.later) as held:
            plain(WORD=held.y, z=self.pool[1])
        with self.lock(WORD=self.later) as held:
            await held(WORD=held)
        many = [get(WORD=v) for v in args]
        await asyncio.gather(*many, WORD=self.run)
        asyncio.create_task(get(WORD=self.later))
        try:
            return await self.go(WORD=self.later, x=self.pool[1])
        except Exception:
            plain(WORD=self.later.x)
        return self.later(WORD=1)
    def old(self):
        if self.later:
            plain(WORD=self.later)
        return functools.partial(self.go, WORD=self.box)
    def __del__(self):
        asyncio.run(self.go(WORD=self.later))
class Child(Store):
    async def go(self, WORD=None, z=None):
        return super().go(WORD=WORD, z=self.box)
    async def agree(self, WORD):
        return await asyncio.to_thread(self.old, WORD=WORD)
async def main(WORD):
    store = Store(WORD=1)
    fake = mock.Mock()
    fake.go = mock.AsyncMock(return_value=3)
    store.go(WORD=store.later)
    x = store.go(WORD=lambda WORD, y: store.go(WORD))
    x["k"]
    with mock.patch.object(store, "go", WORD=fake):
        await store.go(1)
    fake.go(WORD=lambda WORD: 1)
    await fake.old(WORD=fake)
    loop = asyncio.get_event_loop()
    loop.call_soon(lambda WORD: store.go(WORD=WORD), WORD=store.go)
    loop.run_in_executor(None, store.go)
    asyncio.run_coroutine_threadsafe(store.go(WORD=1), loop).result(WORD=1)
    if asyncio.iscoroutinefunction(store.go):
        await store.go(WORD=1)
    table = {"a": store.go, "b": lambda WORD: store.old(WORD)}
    await table[WORD](WORD=store.later)
def sync(WORD):
    store = Store()
    store.go(WORD=1)
    later = store.go(WORD=2)
    sorted([1], key=lambda WORD: store.go(WORD), WORD=store.later)
"""


def told(word: str) -> list[tuple[str, int]]:
    text = PROGRAM.replace("WORD", word).encode()
    every = {rule.code for rule in all_rules()}
    found = analyse(Project(Path("/nowhere"), ("case.py",)), overlay={"case.py": text}, on_request=every).findings
    return sorted((f.code, f.span.line) for f in found)


@pytest.mark.parametrize("word", WORDS)
def test_a_word_of_ours(word: str) -> None:
    """The same findings as with any other word, with all rules."""
    assert told(word) == told("neutral")
