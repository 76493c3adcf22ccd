"""`troth recolor --to both`: async code and its sync side from one source, regenerated and compared."""

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
    assert "# troth: the sync twin of AsyncStore" in made
    assert "await" not in made.partition("the sync twin")[2].partition("end of the twin")[0]
    subprocess.run([sys.executable, "store.py"], cwd=project.root, check=True)


def test_it_is_compared_and_written_anew(project):
    """`--check` says whether the twin is as its source; a second run writes what has changed and nothing else."""
    project.write({"store.py": STORE})
    assert project.troth("recolor", "store:AsyncStore", "--to", "both", "--check").code == 1
    assert (project.root / "store.py").read_text() == STORE
    assert project.troth("recolor", "store:AsyncStore", "--to", "both").code == 0
    first = (project.root / "store.py").read_text()
    again = project.troth("recolor", "store.py:AsyncStore", "--to", "both", "--allow-dirty")
    assert "Matches its source" in again.out
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
        pytest.param("        await asyncio.gather(self.a(), self.a())\n", "no counterpart in sync code", id="gather"),
        pytest.param("        await helper()\n", "`helper` (store.py:2) is async and has no twin", id="a function"),
        pytest.param("        await self.task\n", "is not a call", id="a task"),
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
    """A class of a library is replaced by its sync twin, a class without the word gets `Sync`; a taken name is told."""
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


PAIRED = '''\
import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager


def _read(key):
    return key.upper()


class Rows:
    """Rows, for both colors."""

    def load(self, key: str) -> str:
        """The row of a key. Blocks."""
        return "old"

    async def aload(self, key: str) -> str:
        """The row of a key, read in a thread."""
        return await asyncio.to_thread(_read, key)

    def both(self, *keys: str) -> list[str]:
        return []

    async def aboth(self, *keys: str) -> list[str]:
        async with self._alock() as name:
            rows = [await self.aload(key) for key in keys]
            await asyncio.to_thread(lambda: rows.sort(reverse=True))
        return [name, *rows]

    @contextmanager
    def _lock(self) -> Iterator[str]:
        yield "old"

    @asynccontextmanager
    async def _alock(self) -> AsyncIterator[str]:
        await asyncio.sleep(0)
        yield await asyncio.to_thread("held".title)

    def add(self, other: "Rows") -> None:
        self.other = other
'''
TARGETS = ("store:Rows.aload", "store:Rows.aboth", "store:Rows._alock")


def test_halves_of_pairs(project):
    """`load` is written from `aload`: its docstring stays, other pairs are called by their sync names, threads are left out."""
    use = """

if __name__ == "__main__":
    rows = Rows()
    assert rows.both("a", "b") == asyncio.run(rows.aboth("a", "b")) == ["Held", "B", "A"]
    assert rows.load("c") == "C"
"""
    project.write({"pyproject.toml": '[project]\nname = "x"\n', "store.py": PAIRED + use})
    assert project.troth("recolor", *TARGETS, "--to", "both", "--check").code == 1
    done = project.troth("recolor", *TARGETS, "--to", "both", "--allow-dirty")
    assert done.code == 0, done.out + done.err
    assert "load of aload, both of aboth, _lock of _alock" in done.out
    made = (project.root / "store.py").read_text()
    assert '"""The row of a key. Blocks."""\n        return _read(key)' in made
    assert "rows = [self.load(key) for key in keys]\n            rows.sort(reverse=True)" in made
    assert "    @contextmanager\n    def _lock(self) -> Iterator[str]:\n        time.sleep(0)\n" in made
    assert "    async def aload(self, key: str) -> str:" in made
    subprocess.run([sys.executable, "store.py"], cwd=project.root, check=True)
    assert project.troth("recolor", *TARGETS, "--to", "both", "--check").code == 0


@pytest.mark.parametrize(
    ("call", "sync"),
    [
        pytest.param(
            "anyio.to_thread.run_sync(read, key, limiter=self.limiter)", "read(key)", id="keywords of the crossing"
        ),
        pytest.param("asyncio.to_thread(read, key, size=2)", "read(key, size=2)", id="keywords of the function"),
        pytest.param("bridge.call(read, key, thread=False)", "read(key)", id="keywords of the bridge"),
        pytest.param("bridge.call(lambda: read(key) or 1)", "(read(key) or 1)", id="a lambda"),
    ],
)
def test_what_goes_to_a_thread_is_called_on_the_spot(project, call, sync):
    """With the arguments that are the function's own."""
    text = (
        "import asyncio, anyio\nfrom troth import bridge\ndef read(key, size=1): ...\nclass Rows:\n"
        f"    def load(self, key): ...\n    async def aload(self, key):\n        return await {call}\n"
    )
    project.write({"store.py": text})
    done = project.troth("recolor", "store:Rows.aload", "--to", "both")
    assert done.code == 0, done.out + done.err
    assert f"    def load(self, key):\n        return {sync}\n" in (project.root / "store.py").read_text()


def test_a_half_that_is_laid_out_otherwise_is_as_its_source(project):
    """What a formatter has done to it is no difference."""
    text = (
        "class Rows:\n"
        "    def load(self, key):\n        return self.take(\n            key,\n            1,\n        )\n"
        "    async def aload(self, key):\n        return await self.atake(key, 1)\n"
        "    def take(self, key, n): ...\n"
        "    async def atake(self, key, n): ...\n"
    )
    project.write({"store.py": text})
    assert project.troth("recolor", "store:Rows.aload", "--to", "both", "--check").code == 0


@pytest.mark.parametrize(
    ("body", "why"),
    [
        pytest.param("await self.other()", "`Rows.other` (store.py:7) is async and has no twin", id="no pair"),
        pytest.param("await asyncio.gather(self.other())", "no counterpart in sync code", id="gather"),
        pytest.param("await bridge.call(self.other)", "is async and has no twin", id="called in its own color"),
        pytest.param("await bridge.call(lambda: self.other())", "is async and has no twin", id="called in a lambda"),
        pytest.param("await bridge.call(self.hook)", "it may be async", id="a callback of either color"),
    ],
)
def test_what_a_half_cannot_do(project, body, why):
    """It is named, and nothing is written."""
    text = (
        "import asyncio; from troth import bridge\nclass Rows:\n    def load(self): ...\n"
        f"    async def aload(self):\n        return {body}\n\n    async def other(self): ...\n"
    )
    project.write({"store.py": text})
    done = project.troth("recolor", "store:Rows.aload", "--to", "both")
    assert done.code == 1, done.out + done.err
    assert why in done.out
    assert (project.root / "store.py").read_text() == text


def test_a_function_without_a_partner(project):
    """It is no half, and the message says what is."""
    project.write({"api.py": "class Api:\n    async def aget(self): ...\n"})
    done = project.troth("recolor", "api:Api.aget", "--to", "both")
    assert done.code == 2
    assert "nor an async function `aload` with a sync `load` beside it" in done.err
