"""`troth recolor --to both`: an async class and its plain twin from one source, regenerated and compared."""

import subprocess
import sys

import pytest

STORE = '''\
import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager


class AsyncStore:
    """A store."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._rows = {"a": 1, "b": 2}

    async def __aenter__(self) -> "AsyncStore":
        return self

    async def __aexit__(self, *details: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        await asyncio.sleep(0)

    async def load(self, key: str) -> int:
        async with self._lock:
            return self._rows[key]

    async def total(self) -> int:
        return (await self.load("a")).real + sum([await self.load(key) async for key in self.keys()])

    async def keys(self) -> AsyncIterator[str]:
        for key in self._rows:
            yield key

    async def pairs(self) -> AsyncGenerator[tuple[str, int], None]:
        async for key in self.keys():
            yield key, await self.load(key)

    @asynccontextmanager
    async def held(self):
        yield [key async for key in self.keys()]

    @classmethod
    def made(cls) -> "AsyncStore":
        return AsyncStore()
'''
USE = """

if __name__ == "__main__":
    async def use():
        async with AsyncStore.made() as store:
            async with store.held() as keys:
                return keys, await store.total(), [pair async for pair in store.pairs()]

    with Store.made() as store:
        with store.held() as keys:
            plain = keys, store.total(), list(store.pairs())
    assert asyncio.run(use()) == plain == (["a", "b"], 4, [("a", 1), ("b", 2)]), plain
    assert type(store) is Store
"""


def test_both_do_the_same(project):
    """The twin stands below its source, says where it comes from, and does in plain code what the source does."""
    project.write({"pyproject.toml": '[project]\nname = "x"\n', "store.py": STORE + USE})
    done = project.troth("recolor", "store:AsyncStore", "--to", "both")
    assert done.code == 0, done.out + done.err
    assert "Store of AsyncStore" in done.out
    made = (project.root / "store.py").read_text()
    assert STORE.partition("class AsyncStore")[2] in made
    assert "# troth: the plain twin of AsyncStore" in made
    assert "await" not in made.partition("the plain twin")[2].partition("end of the twin")[0]
    subprocess.run([sys.executable, "store.py"], cwd=project.root, check=True)


def test_it_is_compared_and_written_anew(project):
    """`--check` says whether the twin is as its source; a second run writes what has changed and nothing else."""
    project.write({"store.py": STORE})
    assert project.troth("recolor", "store:AsyncStore", "--to", "both", "--check").code == 1
    assert (project.root / "store.py").read_text() == STORE
    assert project.troth("recolor", "store:AsyncStore", "--to", "both").code == 0
    first = (project.root / "store.py").read_text()
    again = project.troth("recolor", "store.py:AsyncStore", "--to", "both", "--allow-dirty")
    assert "As its source" in again.out
    assert (project.root / "store.py").read_text() == first
    assert project.troth("recolor", "store:AsyncStore", "--to", "both", "--check").code == 0
    edited = first.replace("return self._rows[key]", "return self._rows.get(key, 0)", 1)
    project.write({"store.py": edited})
    stale = project.troth("recolor", "store:AsyncStore", "--to", "both", "--check")
    assert stale.code == 1
    assert "+            return self._rows.get(key, 0)" in stale.out
    assert project.troth("recolor", "store:AsyncStore", "--to", "both", "--allow-dirty").code == 0
    assert (project.root / "store.py").read_text().count("self._rows.get(key, 0)") == 2


@pytest.mark.parametrize(
    ("body", "why"),
    [
        pytest.param("        await asyncio.gather(self.a(), self.a())\n", "no counterpart in plain code", id="gather"),
        pytest.param("        await helper()\n", "`helper` (store.py:2) is async and has no twin", id="a function"),
        pytest.param("        await self.task\n", "no call", id="a task"),
    ],
)
def test_what_plain_code_cannot_do(project, body, why):
    """It is named, and nothing is written."""
    text = f"import asyncio\nasync def helper(): ...\nclass AsyncStore:\n    async def a(self):\n{body}"
    project.write({"store.py": text})
    done = project.troth("recolor", "store:AsyncStore", "--to", "both")
    assert done.code == 1, done.out + done.err
    assert why in done.out
    assert (project.root / "store.py").read_text() == text


def test_names(project):
    """A class of a library is replaced by its plain twin, a class without the word gets `Sync`; a taken name is told."""
    text = "import httpx\nclass Api:\n    def __init__(self):\n        self.http = httpx.AsyncClient()\n    async def get(self):\n        return await self.http.get('/')\n"
    project.write({"api.py": text})
    done = project.troth("recolor", "api:Api", "--to", "both")
    assert done.code == 0, done.out + done.err
    made = (project.root / "api.py").read_text()
    assert "class SyncApi:\n    def __init__(self):\n        self.http = httpx.Client()" in made
    project.write({"api.py": f"{text}class SyncApi: ...\n"})
    done = project.troth("recolor", "api:Api", "--to", "both", "--allow-dirty")
    assert done.code == 1
    assert "there is a class SyncApi already" in done.out


def test_wrong_use(project):
    """A plain class is no source of a twin, and `--check` belongs to twins."""
    project.write({"api.py": "class Api:\n    def get(self): ...\n"})
    assert project.troth("recolor", "api:Api", "--to", "both").code == 2
    assert project.troth("recolor", "api:Api", "--to", "async", "--check").code == 2
