"""A small project and a small checker, both real, for everything that plants and measures."""

import sys
import textwrap
from pathlib import Path

import pytest

STORE = '''
"""A store and its users."""
import asyncio


class Store:
    def __init__(self):
        self.saved = []

    async def save(self, item):
        await asyncio.sleep(0)
        self.saved.append(item)
        return len(self.saved)

    async def is_full(self):
        return len(self.saved) > 2


class Shop:
    def __init__(self, store):
        self.store = store

    async def order(self, item):
        if await self.store.is_full():
            return "full"
        await self.store.save(item)
        return "ok"

    async def count(self, item):
        n = await self.store.save(item)
        return n + 1

    async def audit(self):
        await self.store.save("audit")

    async def report(self):
        return await self.store.save("report")

    async def never(self):
        await self.store.save("never")
'''

TESTS = """
import asyncio

from shop.store import Shop, Store


def test_order():
    shop = Shop(Store())
    assert asyncio.run(shop.order("a")) == "ok"
    assert shop.store.saved == ["a"]


def test_count():
    assert asyncio.run(Shop(Store()).count("a")) == 2


def test_audit():
    asyncio.run(Shop(Store()).audit())


def test_report():
    assert asyncio.run(Shop(Store()).report()) == 1
"""

# Reports calls of names that the given files define only as `async def`, where the value is dropped, tested or
# returned. It speaks of one innocent line always, and dies on a file that says so.
CHECKER = """
import ast, pathlib, sys
trees = {}
for root in sys.argv[1:]:
    for path in sorted(pathlib.Path(root).rglob("*.py")) if pathlib.Path(root).is_dir() else [pathlib.Path(root)]:
        text = path.read_text(encoding="utf-8")
        if "crash_me()" in text.replace("await crash_me()", ""):
            sys.exit("Traceback (most recent call last): the checker died")
        trees[path] = ast.parse(text)
names = {n.name for t in trees.values() for n in ast.walk(t) if isinstance(n, ast.AsyncFunctionDef)}
found = 0
for path, tree in trees.items():
    print(f"{path}:1:1: X000 every file is reported on its first line")
    for node in ast.walk(tree):
        value = getattr(node, "test", None) if isinstance(node, (ast.If, ast.While)) else None
        if isinstance(node, (ast.Expr, ast.Return)):
            value = node.value
        if isinstance(value, ast.Call):
            name = getattr(value.func, "attr", getattr(value.func, "id", ""))
            if name in names:
                print(f"{path}:{value.lineno}:1: X100 coroutine of {name} is lost")
                found = 1
        if isinstance(node, ast.AsyncFunctionDef) and not any(isinstance(n, ast.Await) for n in ast.walk(node)):
            print(f"{path}:{node.lineno}:1: X200 drop the async of {node.name}")
sys.exit(found)
"""


@pytest.fixture
def project(tmp_path):
    """The shop, with its tests; `project.write` adds a file."""
    root = tmp_path / "shop-project"
    write(root / "pyproject.toml", '[project]\nname = "shop"\n')
    write(root / "src/shop/__init__.py", "")
    write(root / "src/shop/store.py", STORE.lstrip())
    write(root / "tests/test_shop.py", TESTS.lstrip())
    return root


@pytest.fixture
def checker(tmp_path):
    """The command line of the small checker, ready for `--checker`."""
    script = tmp_path / "checker.py"
    script.write_text(CHECKER)
    return f"{sys.executable} {script} {{root}}/src"


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text), encoding="utf-8", newline="")
