"""What `troth recolor` changes, what it leaves, and when it refuses."""

import json
from textwrap import dedent

import pytest

STORE = """\
class Store:
    '''Keeps things.

    Usage:
        store = Store()
        await store.save(1)
    '''

    def __init__(self):
        self.items = []

    async def save(self, item):
        self.items.append(item)
        return self

    async def count(self):  # never waits either
        return len(self.items)
"""

NOTEBOOK = {
    "cells": [
        {"cell_type": "markdown", "source": ["await store.save(1)"]},
        {
            "cell_type": "code",
            "source": [
                "import asyncio\n",
                "from store import Store\n",
                "def run(coro):\n",
                "    return asyncio.get_event_loop().run_until_complete(coro)\n",
                'store = Store()  # "ä"\n',
                "print(run(\n",
                '    store.save("\\u00e4")\n',
                "), await store.count())",
            ],
        },
    ],
    "metadata": {"language_info": {"name": "python"}},
    "nbformat": 4,
    "nbformat_minor": 5,
}


def _recolor(project, before: str, *flags: str, to: str = "sync", path: str = "app.py"):
    project.write({"store.py": STORE, path: dedent(before)})
    return project.troth("recolor", "store:Store", "--to", to, *flags)


AWAITED = [
    pytest.param("await store.save(1)", "store.save(1)", id="statement"),
    pytest.param("x = await store.save(\n        1,  # one\n    )", "x = store.save(\n        1,  # one\n    )", id="several lines"),
    pytest.param("return (await store.save(1)).items", "return store.save(1).items", id="parentheses only for the await"),
    pytest.param("return (await store.save(1))", "return (store.save(1))", id="parentheses of the author's own"),
    pytest.param("return(await store.save(1)).items", "return(store.save(1)).items", id="parentheses that part words"),
    pytest.param("if await store.count() and not await store.count():\n        pass", "if store.count() and not store.count():\n        pass", id="condition"),
    pytest.param("return [await store.save(i) for i in range(await store.count())]", "return [store.save(i) for i in range(store.count())]", id="comprehension"),
    pytest.param("return f'{await store.count()} ä'", "return f'{store.count()} ä'", id="f-string"),
    pytest.param("return 'ä', await store.count()", "return 'ä', store.count()", id="after a wide character"),
    pytest.param("await (store.count())", "(store.count())", id="operand in parentheses"),
    pytest.param("return await asyncio.gather(store.count(), store.save(2))", "return [store.count(), store.save(2)]", id="gather"),
    pytest.param("return await asyncio.gather(*[store.save(i) for i in (1, 2)])", "return [store.save(i) for i in (1, 2)]", id="gather of a comprehension"),
    pytest.param("return await asyncio.gather(*(store.save(i) for i in (1, 2)))", "return [store.save(i) for i in (1, 2)]", id="gather of a generator"),
    pytest.param("return await asyncio.wait_for(store.count(), timeout=5)", "return store.count()", id="wait_for"),
    pytest.param("await asyncio.create_task(store.count())", "store.count()", id="task awaited on the spot"),
    pytest.param("t = asyncio.create_task(store.count())\n    print(1)\n    return await t", "t = store.count()\n    print(1)\n    return t", id="task kept and awaited"),
    pytest.param("t = asyncio.create_task(store.count(), name='t')\n    await t\n    return t.result()", "t = store.count()\n    return t", id="task kept, awaited and asked"),
    pytest.param("asyncio.create_task(store.count())\n    return 1", "store.count()\n    return 1", id="task that nobody keeps"),
    pytest.param("async with asyncio.TaskGroup() as group:\n        group.create_task(store.count())", "async with asyncio.TaskGroup() as group:\n        store.count()", id="task of a group"),
    pytest.param("ts = [store.save(i) for i in (1, 2)]\n    return await asyncio.gather(*ts)", "ts = [store.save(i) for i in (1, 2)]\n    return ts", id="list of coroutines, gathered later"),
    pytest.param("ts = [asyncio.create_task(store.save(i)) for i in (1, 2)]\n    await asyncio.gather(*ts)\n    return 1", "ts = [store.save(i) for i in (1, 2)]\n    return 1", id="list of tasks, gathered later"),
    pytest.param("ts = []\n    for i in (1, 2):\n        ts.append(asyncio.create_task(store.save(i)))\n    for t in ts:\n        print(await t)", "ts = []\n    for i in (1, 2):\n        ts.append(store.save(i))\n    for t in ts:\n        print(t)", id="list of tasks, filled and awaited one by one"),
    pytest.param("return await (store.count() if store else store.save(2))", "return (store.count() if store else store.save(2))", id="one of two"),
    pytest.param("later = store.count()\n    return await later", "later = store.count()\n    return later", id="coroutine kept and awaited"),
    pytest.param("store.save(1)", "store.save(1)", id="forgotten await, right from now on"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after"), AWAITED)
def test_a_call_in_an_async_function(project, before, after):
    """The await goes, whatever stands around it, and every other byte stays."""
    text = "import asyncio\nfrom store import Store\n\n\nasync def main():\n    store = Store()\n    {}\n"
    done = _recolor(project, text.format(before))
    assert done.code == 0, done.out + done.err
    assert (project.root / "app.py").read_text() == text.format(after)


ODD_FILES = [
    pytest.param(b"from store import Store\r\n\r\nasync def f(s: Store):\r\n\tawait s.save(1)\r\n", id="CRLF and tabs"),
    pytest.param(b"\xef\xbb\xbfasync def f(s: 'Store'): await s.save(1)\nfrom store import Store\n", id="byte order mark"),
    pytest.param(b"# coding: latin-1\nfrom store import Store\n\nasync def f(s: Store): return '\xe4', await s.save(1)\n", id="latin-1"),
    pytest.param(b"from store import Store\n\nasync def f(s: Store):\n    return '\x0c', await s.save(1)", id="form feed and no last newline"),
]  # fmt: skip


@pytest.mark.parametrize("data", ODD_FILES)
def test_odd_files_keep_every_other_byte(project, data):
    """Line ends, byte order marks, codings and columns in bytes are the file's own affair."""
    project.write({"store.py": STORE, "app.py": data})
    done = project.troth("recolor", "store:Store", "--to", "sync")
    assert done.code == 0, done.out + done.err
    assert (project.root / "app.py").read_bytes() == data.replace(b"await ", b"")


RUN = [
    pytest.param("asyncio.run(store.count())", "store.count()", id="asyncio.run"),
    pytest.param("asyncio.run(\n        store.count(),\n    )", "store.count()", id="asyncio.run on several lines"),
    pytest.param(
        "asyncio.new_event_loop().run_until_complete(store.count())", "store.count()", id="run_until_complete"
    ),
    pytest.param("run(store.count())", "store.count()", id="a helper of one's own"),
]


@pytest.mark.parametrize(("before", "after"), RUN)
def test_a_call_run_from_plain_code(project, before, after):
    """What only ran the coroutine goes with it."""
    text = (
        "import asyncio\nfrom store import Store\n\n\ndef run(coro):\n    return asyncio.run(coro)\n\n\n"
        "def main():\n    store = Store()\n    return {}\n"
    )
    done = _recolor(project, text.format(before))
    assert done.code == 0, done.out + done.err
    assert (project.root / "app.py").read_text() == text.format(after)


RECEIVERS = [
    pytest.param("from store import Store as S\n\nasync def f():\n    await S().save(1)\n", id="aliased import"),
    pytest.param("try:\n    from store import Store as S\nexcept ImportError:\n    S = None\n\nasync def f():\n    s = S()\n    await s.save(1)\n", id="import in a try"),
    pytest.param("from store import Store\n\n_store = Store()\n\nasync def f():\n    await _store.save(1)\n", id="module global"),
    pytest.param("from store import Store\n\ndef _store() -> Store:\n    return Store()\n\nasync def f():\n    await _store().save(1)\n", id="result of a call"),
    pytest.param("from store import Store\n\nclass A:\n    def __init__(self):\n        self.store = Store()\n\n    async def f(self):\n        await self.store.save(1)\n", id="attribute"),
    pytest.param("from store import Store\n\nclass A:\n    async def _help(self, s):\n        await s.save(1)\n\n    async def f(self):\n        await self._help(Store())\n", id="untyped parameter, told by its callers"),
    pytest.param("import pytest\nfrom store import Store\n\n@pytest.fixture\ndef s():\n    return Store()\n\nasync def test_f(s):\n    await s.save(1)\n", id="fixture"),
    pytest.param("from api import Store\n\nasync def f(s: Store):\n    await s.save(1)\n", id="re-export"),
    pytest.param("from store import Store\n\nclass Sub(Store):\n    async def save(self, item):\n        return await super().save(item)\n", id="override and super"),
]  # fmt: skip


@pytest.mark.parametrize("text", RECEIVERS)
def test_how_a_receiver_is_known(project, text):
    """However the object came there, its calls change with its class."""
    project.write({"api.py": "from store import Store\n\n__all__ = ['Store']\n"})
    done = _recolor(project, text, path="test_app.py")
    assert done.code == 0, done.out + done.err
    wanted = text.replace("await S", "S").replace("await s.", "s.").replace("await _store", "_store")
    wanted = wanted.replace("await self.store", "self.store").replace("await super()", "super()")
    wanted = wanted.replace("async def save", "def save")
    assert (project.root / "test_app.py").read_text() == wanted


STAYS = [
    pytest.param("class Other:\n    async def save(self, item): ...\n\nasync def f(o: Other):\n    await o.save(1)\n", id="namesake of another class"),
    pytest.param("import asyncio\n\nclass Other:\n    def save(self): ...\n\n    async def save_async(self):\n        await asyncio.to_thread(self.save)\n", id="namesake given to a thread"),
    pytest.param("async def save(item): ...\n\nasync def f():\n    await save(1)\n", id="function of that name"),
    pytest.param("from elsewhere import Client\n\nasync def f():\n    await Client().save(1)\n", id="a library's method"),
]  # fmt: skip


@pytest.mark.parametrize("text", STAYS)
def test_what_is_not_the_target(project, text):
    """A name alone is no reason to change anything."""
    done = _recolor(project, text)
    assert done.code == 0, done.out + done.err
    assert (project.root / "app.py").read_text() == text


def test_a_route_keeps_its_color(project):
    """A framework would run a sync route in a thread: only the await in it goes, with a cascade too."""
    text = (
        "from fastapi import FastAPI\nfrom store import Store\n\napp = FastAPI()\nstore = Store()\n\n\n"
        "@app.post('/')\nasync def save(item: int):\n    await store.save(item)\n"
    )
    done = _recolor(project, text, "--cascade", "all")
    assert done.code == 0, done.out + done.err
    assert (project.root / "app.py").read_text() == text.replace("await ", "")


REFUSED = [
    pytest.param("async def f(store: Store):\n    t = asyncio.create_task(store.save(1))\n    t.cancel()\n", "used otherwise too (line 6)", id="task that is stopped"),
    pytest.param("class A:\n    async def f(self, store: Store):\n        self.t = asyncio.create_task(store.save(1))\n", "the task that", id="task kept by an object"),
    pytest.param("async def f(store: Store):\n    ts = [store.save(1), asyncio.sleep(1)]\n    await asyncio.gather(*ts)\n", "and other things too", id="list with others"),
    pytest.param("async def f(store: Store):\n    ts = [store.save(1)]\n    await asyncio.gather(*ts, return_exceptions=True)\n", "used otherwise too", id="gathered with options"),
    pytest.param("async def f(store: Store):\n    return await (store.save(1) if store else asyncio.sleep(1))\n", "one of several", id="one of two that waits"),
    pytest.param("async def f(store: Store):\n    await asyncio.gather(store.save(1), asyncio.sleep(1))\n", "still has to be awaited", id="gathered with others"),
    pytest.param("def f(store: Store, n):\n    if n:\n        return asyncio.sleep(1)\n    return store.save(1)\n", "returns other things too (line 6)", id="returned among others"),
    pytest.param("async def f(store: Store):\n    return store.save(1)\n", "awaited twice", id="returned by an async function"),
    pytest.param("class A:\n    def f(self, store: Store):\n        return store.save(1)\n\nclass B(A):\n    async def f(self, store):\n        await asyncio.sleep(1)\n", "one of several methods of that name", id="returned by one of a family"),
    pytest.param("def f(store: Store):\n    return lambda: store.save(1)\n", "lambda", id="in a lambda"),
    pytest.param("from functools import partial\n\ndef f(store: Store, register):\n    register(partial(store.save, 1))\n", "given to `register`", id="in a partial"),
    pytest.param("async def do(step):\n    for _ in (1, 2):\n        if await step(1): break\n\nasync def f(store: Store):\n    await do(store.save)\n", "is awaited at app.py:6", id="to somebody who awaits in an odd place"),
    pytest.param("def f(store: Store, register):\n    register(store.save)\n", "given to `register`", id="handed over as a callback"),
    pytest.param("async def f(things):\n    await things.save(1)\n", "--leave-unknown", id="unknown receiver"),
    pytest.param("class Other:\n    async def save(self, i): ...\n\nasync def f(s: Store | Other):\n    await s.save(1)\n", "another class", id="one of two classes"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "says"), REFUSED)
def test_what_somebody_has_to_decide(project, text, says):
    """One such place is enough: it is named, and no file is touched."""
    whole = f"import asyncio\nfrom store import Store\n\n{text}"
    done = _recolor(project, whole)
    assert done.code == 1
    assert says in done.out
    assert (project.root / "app.py").read_text() == whole
    assert (project.root / "store.py").read_text() == STORE


HANDED = [
    pytest.param(
        "def f(store: Store):\n    return store.save(1)\n\nasync def g(store: Store):\n    return await f(store)\n",
        "def f(store: Store):\n    return store.save(1)\n\nasync def g(store: Store):\n    return f(store)\n",
        id="passed on by a sync function",
    ),
    pytest.param(
        "from collections.abc import Awaitable\n\ndef f(store: Store) -> Awaitable[Store]:\n    return h(store)\n\ndef h(store: Store):\n    return store.save(1) if store else store.save(2)\n\ndef g(store: Store):\n    return asyncio.run(f(store))\n",
        "from collections.abc import Awaitable\n\ndef f(store: Store) -> Store:\n    return h(store)\n\ndef h(store: Store):\n    return store.save(1) if store else store.save(2)\n\ndef g(store: Store):\n    return f(store)\n",
        id="passed on and on, with its annotation",
    ),
    pytest.param(
        "async def do(step):\n    return await step()\n\nasync def f(store: Store):\n    return await do(lambda: store.save(1))\n",
        "async def do(step):\n    result = step()\n    if inspect.isawaitable(result):\n        result = await result\n    return result\n\nasync def f(store: Store):\n    return await do(lambda: store.save(1))\n",
        id="in a lambda, to somebody who awaits",
    ),
    pytest.param(
        "from functools import partial\n\nasync def do(step):\n    await asyncio.wait_for(step(), 5)\n\nasync def f(store: Store):\n    await do(partial(store.save, 1))\n",
        "from functools import partial\n\nasync def do(step):\n    result = step()\n    if inspect.isawaitable(result):\n        await asyncio.wait_for(result, 5)\n\nasync def f(store: Store):\n    await do(partial(store.save, 1))\n",
        id="in a partial, to somebody who awaits under a limit",
    ),
    pytest.param(
        "async def do(step):\n    r = step(1)\n    if inspect.isawaitable(r):\n        await r\n\nasync def f(store: Store):\n    await do(store.save)\n",
        "async def do(step):\n    r = step(1)\n    if inspect.isawaitable(r):\n        await r\n\nasync def f(store: Store):\n    await do(store.save)\n",
        id="to somebody who takes both",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after"), HANDED)
def test_functions_and_coroutines_that_are_handed_on(project, before, after):
    """Whoever passes a coroutine on follows; whoever is given the function is changed to take both colors."""
    head = "import asyncio\nimport inspect\nfrom store import Store\n\n"
    done = _recolor(project, head + before)
    assert (done.code, done.err) == (0, "")
    assert (project.root / "app.py").read_text() == head + after


def test_to_async_takes_calls_out_of_threads_and_mocks_follow(project):
    """`to_thread` was there because the method was plain; a mock of a sync method is not awaitable."""
    plain = STORE.replace("async def", "def").replace("await ", "")
    app = (
        "import asyncio\nfrom unittest.mock import MagicMock\nfrom store import Store\n\n\n"
        "async def f(store: Store):\n    a = await asyncio.to_thread(store.save, 1)\n"
        "    b = await asyncio.get_running_loop().run_in_executor(None, store.save, [1,\n        2])\n"
        "    return a, b, await asyncio.to_thread(store.count)\n\n\n"
        "def test_f():\n    store = Store()\n    store.count = MagicMock(return_value=1)\n    asyncio.run(f(store))\n"
    )
    project.write({"store.py": plain, "app.py": app})
    done = project.troth("recolor", "store:Store", "--to", "async")
    assert (done.code, done.err) == (0, "")
    assert (project.root / "app.py").read_text() == (
        "import asyncio\nfrom unittest.mock import MagicMock, AsyncMock\nfrom store import Store\n\n\n"
        "async def f(store: Store):\n    a = await store.save(1)\n"
        "    b = await store.save([1,\n        2])\n    return a, b, await store.count()\n\n\n"
        "def test_f():\n    store = Store()\n    store.count = AsyncMock(return_value=1)\n    asyncio.run(f(store))\n"
    )


def test_unknown_namesakes_can_be_left(project):
    """With `--leave-unknown` all else changes and the unknown call stays as it is."""
    text = "from store import Store\n\nasync def f(things, store: Store):\n    await things.save(1)\n    await store.save(1)\n"
    done = _recolor(project, text, "--leave-unknown")
    assert done.code == 0, done.out + done.err
    assert (project.root / "app.py").read_text() == text.replace("await store", "store")


def test_a_method_that_truly_waits(project):
    """It is named and nothing changes; `--methods` picks the rest."""
    waits = STORE + "\n    async def sync(self):\n        await asyncio.sleep(0)\n        await self.save(0)\n"
    project.write({"store.py": "import asyncio\n" + waits})
    refused = project.troth("recolor", "store:Store", "--to", "sync")
    assert refused.code == 1
    assert "Store.sync truly waits: `await asyncio.sleep(0)`" in refused.out
    done = project.troth("recolor", "store:Store", "--to", "sync", "--methods", "save,count")
    assert done.code == 0, done.out + done.err
    text = (project.root / "store.py").read_text()
    assert "    async def sync(self):\n        await asyncio.sleep(0)\n        self.save(0)\n" in text


def test_needless_async_of_a_whole_tree(project):
    """What never waits and nobody needs async becomes plain; what waits, or somebody would have to decide, stays."""
    text = """\
        import asyncio

        async def size(x):
            return len(x)

        async def twice(x):
            return x

        async def slow():
            await asyncio.sleep(1)

        async def main():
            await size("a")
            task = asyncio.create_task(twice(1))
            await slow()
            await task
    """
    project.write({"src/app.py": dedent(text)})
    done = project.troth("recolor", "--needless", "src", "--to", "sync")
    assert done.code == 0, done.out + done.err
    wanted = dedent(text).replace("async def size", "def size").replace("await size", "size")
    assert (project.root / "src/app.py").read_text() == wanted


KEPT = [
    pytest.param("from fastapi import APIRouter\n\nrouter = APIRouter()\n", "    @router.get('/')\n    async def save(self): ...\n", "", "decorator `@router.get`", id="a route"),
    pytest.param("import functools\n\ndef traced(f):\n    @functools.wraps(f)\n    async def inner(*a):\n        return await f(*a)\n    return inner\n", "    @traced\n    async def save(self): ...\n", "", "whose wrapper is async", id="a decorator with an async wrapper"),
    pytest.param("from typing import Protocol\n\nclass Saves(Protocol):\n    async def save(self): ...\n\nclass Other:\n    async def save(self): ...\n", "    async def save(self): ...\n", "", "required by the protocol `Saves`", id="a protocol that others fulfil"),
    pytest.param("import contextlib\n", "    async def save(self): ...\n", "contextlib.AbstractAsyncContextManager", "", id="a base class that does not ask for it"),
    pytest.param("import asyncio\n", "    async def get(self): ...\n", "asyncio.Queue", "required by its base class", id="a base class that asks for it"),
]  # fmt: skip


@pytest.mark.parametrize(("head", "method", "base", "says"), KEPT)
def test_what_asks_for_the_color(project, head, method, base, says):
    """A method that somebody else needs as it is is named, and nothing is changed."""
    text = f"{head}\n\nclass Store({base}):\n{method}"
    project.write({"store.py": text})
    done = project.troth("recolor", "store:Store", "--to", "sync")
    assert done.code == (1 if says else 0), done.out + done.err
    assert says in done.out
    assert ((project.root / "store.py").read_text() == text) is bool(says)


def test_text_is_edited_where_its_receiver_is_told(project):
    """Docstrings, Markdown and notebooks change by the same knowledge; what cannot be told is listed."""
    page = (
        "# Store\n\n```python\nstore = Store()\nawait store.save(1)\n```\n\n- in a list\n\n  ```python\n"
        "  print(await store.count())\n  ```\n\n```python\nawait mesh.save(1)\n```\n\nprose: await store.save(2)\n"
    )
    raw = json.dumps(NOTEBOOK, indent=1, ensure_ascii=False)
    project.write({"README.md": page, "try.ipynb": raw})
    done = _recolor(project, "")
    assert done.code == 0, done.out + done.err
    assert "        store.save(1)\n" in (project.root / "store.py").read_text()
    wanted = page.replace("\nawait store.save(1)", "\nstore.save(1)").replace("print(await store", "print(store")
    assert (project.root / "README.md").read_text() == wanted
    assert "README.md:15  mesh.save" in done.out
    assert "README.md:18" in done.out
    after = json.loads((project.root / "try.ipynb").read_text())
    assert "".join(after["cells"][1]["source"]).endswith('print(store.save("\\u00e4"), store.count())')
    assert after["cells"][0] == NOTEBOOK["cells"][0]


def test_a_notebook_is_read_as_check_reads_it(project):
    """One reader: a cell with a magic in the middle of it is Python, and its other lines are edited byte for byte."""
    source = ["names = !ls\n", "from store import Store\n", "await Store().save(1)\n", "\n", "!echo \\\n", "  done"]
    page = {"cells": [{"cell_type": "code", "metadata": {}, "source": source}], "metadata": {}, "nbformat": 4}
    project.write({"try.ipynb": json.dumps(page, indent=2)})
    done = _recolor(project, "")
    assert done.code == 0, done.out + done.err
    assert (project.root / "try.ipynb").read_text() == json.dumps(page, indent=2).replace("await Store()", "Store()")


def test_protocols_stubs_and_mocks_follow(project):
    """Whoever describes or stands in for the method changes with it."""
    project.write(
        {
            "store.pyi": "class Store:\n    async def save(self, item): ...\n    async def count(self) -> int: ...\n",
            "ports.py": "from typing import Awaitable, Protocol\n\nclass Saves(Protocol):\n"
            "    def save(self, item) -> Awaitable[int]: ...\n    async def count(self): ...\n",
        }
    )
    text = (
        "from unittest.mock import AsyncMock, patch\nfrom store import Store\n\n\ndef test_it():\n    store = Store()\n"
        "    store.save = AsyncMock(return_value=1)\n    with patch.object(Store, 'count', new_callable=AsyncMock):\n"
        "        pass\n"
    )
    done = _recolor(project, text, path="test_app.py")
    assert done.code == 0, done.out + done.err
    assert "async" not in (project.root / "store.pyi").read_text()
    assert "def save(self, item) -> int: ...\n    def count" in (project.root / "ports.py").read_text()
    wanted = text.replace("= AsyncMock", "= Mock").replace("new_callable=AsyncMock", "new_callable=Mock")
    assert (project.root / "test_app.py").read_text() == wanted.replace("import AsyncMock,", "import AsyncMock, Mock,")


@pytest.mark.parametrize(
    ("target", "to", "says"),
    [
        pytest.param("store:Store.save", "sync", "`Store.save` is now sync: write `x.save(…)`", id="a method"),
        pytest.param(
            "app:load", "sync", "`load` is now sync: write `load(…)` instead of `await load(…)`", id="a function"
        ),
        pytest.param(
            "app:plain", "async", "`plain` is now async: write `await plain(…)`, or `asyncio.run", id="to async"
        ),
    ],
)
def test_the_upgrade_note_says_what_outside_callers_write(project, target, to, says):
    """As the call is written, and of what is not a test's own."""
    project.write(
        {
            "store.py": STORE,
            "app.py": "async def load():\n    return 1\n\n\ndef plain():\n    return 1\n",
            "test_app.py": "from store import Store\n\n\nclass Fake(Store):\n    async def save(self, item):\n        pass\n",
        }
    )
    assert says in project.troth("recolor", target, "--to", to, "--plan").out


def test_parts_of_a_mock_of_a_whole_object_are_named(project):
    """Its methods have the mock's own color, which nobody can change one by one; a class to look like settles it."""
    text = (
        "from unittest.mock import AsyncMock\nfrom store import Store\n\n\ndef test_it():\n    store = AsyncMock()\n"
        "    store.save.return_value = 1\n    alike = AsyncMock(spec=Store)\n    alike.save.side_effect = [1]\n"
    )
    done = _recolor(project, text, "--plan", path="test_app.py")
    assert "test_app.py:7  store.save: a part of an AsyncMock, which has its color" in done.out
    assert "test_app.py:9" not in done.out


CASCADE = """\
import asyncio

import pytest
from store import Store


async def helper(s: Store):
    await s.save(1)


async def outer():
    await helper(Store())
    return 1


@pytest.mark.asyncio
async def test_it():
    await helper(Store())


async def table():
    await helper(Store())


HANDLERS = {"t": table}

if __name__ == "__main__":
    asyncio.run(outer())
"""


def test_callers_follow_up_to_entry_points(project):
    """What waits no more becomes plain too, marks go with the import that they needed, what is handed around stays."""
    done = _recolor(project, CASCADE, "--cascade", "all", path="test_app.py")
    assert done.code == 0, done.out + done.err
    text = (project.root / "test_app.py").read_text()
    assert text == (
        CASCADE.replace("async def helper", "def helper")
        .replace("async def outer", "def outer")
        .replace("@pytest.mark.asyncio\nasync def test_it", "def test_it")
        .replace("import pytest\n", "")
        .replace("await ", "")
        .replace("asyncio.run(outer())", "outer()")
    )
    assert "table: the function itself is handed around as a value" in done.out


# Not `await (x.f())`: without its await it looks the same as `(await x.f())`, and comes back as that.
THERE_AND_BACK = [
    one
    for one in AWAITED
    if not any(word in str(one.values[0]) for word in ("asyncio", "later", "await ("))
    and one.values[0] != one.values[1]
]


@pytest.mark.parametrize(("before", "after"), THERE_AND_BACK)
def test_there_and_back(project, before, after):
    """Every shape of an awaited call comes back byte for byte, whatever parentheses it had."""
    assert before != after
    text = f"from store import Store\n\n\nasync def main():\n    store = Store()\n    {before}\n"
    there = _recolor(project, text)
    assert there.code == 0, there.out + there.err
    back = project.troth("recolor", "store:Store", "--to", "async", "--methods", "save,count")
    assert back.code == 0, back.out + back.err
    assert (project.root / "app.py").read_text() == text
    assert (project.root / "store.py").read_text() == STORE


def test_the_way_back(project):
    """To sync and back is the identity where no spawner was rewritten."""
    text = (
        "from store import Store\n\n\nasync def main(s: Store):\n    x = (await s.save(1)).items\n"
        "    y = [await s.save(i) for i in range(3) if await s.count()]\n    return x, y, (await s.count())\n"
    )
    project.write({"README.md": "```python\nfrom store import Store\ns = Store()\nawait s.save(1)\n```\n"})
    there = _recolor(project, text)
    assert there.code == 0, there.out + there.err
    assert "await" not in (project.root / "app.py").read_text()
    back = project.troth("recolor", "store:Store", "--to", "async", "--methods", "save,count")
    assert back.code == 0, back.out + back.err
    assert (project.root / "app.py").read_text() == text
    assert (project.root / "store.py").read_text() == STORE
    assert "await s.save(1)" in (project.root / "README.md").read_text()


PLAIN = "class Store:\n    def save(self, item):\n        return item\n"
USES = """\
from store import Store


def helper(s: Store):
    return s.save(1).items


def main():
    return helper(Store())


def test_it():
    assert helper(Store())
"""


def test_to_async_with_a_boundary(project):
    """Callers follow up to the function that is named; there the coroutine is run."""
    project.write({"store.py": PLAIN, "test_app.py": USES})
    refused = project.troth("recolor", "store:Store", "--to", "async")
    assert refused.code == 1
    assert "`helper` is sync; make it follow with `--cascade`" in refused.out
    done = project.troth("recolor", "store:Store", "--to", "async", "--cascade", "all", "--boundary", "test_app:main")
    assert done.code == 0, done.out + done.err
    assert (project.root / "test_app.py").read_text() == (
        "import pytest\nimport asyncio\nfrom store import Store\n\n\nasync def helper(s: Store):\n    return (await s.save(1)).items\n\n\n"
        "def main():\n    return asyncio.run(helper(Store()))\n\n\n@pytest.mark.asyncio\nasync def test_it():\n"
        "    assert await helper(Store())\n"
    ).replace("import pytest\nimport asyncio\n", _imports(project))


def _imports(project) -> str:
    """The two imports in whichever order they came."""
    lines = (project.root / "test_app.py").read_text().split("\n")[:2]
    assert sorted(lines) == ["import asyncio", "import pytest"]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(("command", "code", "changed"), [
    pytest.param("true", 0, True, id="succeeds"),
    pytest.param("false", 1, False, id="fails"),
])  # fmt: skip
def test_verify(project, command, code, changed):
    """The user's own command has the last word: unless it succeeds, every file is as it was."""
    done = _recolor(
        project, "from store import Store\n\nasync def f(s: Store):\n    await s.save(1)\n", "--verify", command
    )
    assert done.code == code
    assert ((project.root / "store.py").read_text() != STORE) is changed
    assert ("await" not in (project.root / "app.py").read_text()) is changed


def test_plan_changes_nothing_and_speaks_to_machines(project):
    """The plan names definitions, calls by use, callables of the wrong color and untested calls."""
    text = """\
        from store import Store

        async def each(do):
            await do(1)

        async def f(s: Store):
            await s.save(1)
            await each(lambda x: f"{x}")
    """
    cover = json.dumps({"files": {"app.py": {"executed_lines": [1, 3], "contexts": {}}}})
    project.write({"cov.json": cover})
    done = _recolor(project, text, "--plan", "--output-format", "json", "--coverage", "cov.json")
    assert done.code == 0
    plan = json.loads(done.out)
    assert [one["name"] for one in plan["definitions"]] == ["Store.save", "Store.count"]
    assert [(one["path"], one["use"], one["in"]) for one in plan["calls"]] == [
        ("app.py", "awaited", "code"),
        ("store.py", "awaited", "docstring"),
    ]
    assert [one["line"] for one in plan["untested"]] == [7]
    assert "a lambda that is sync is given as `do` to `each`" in plan["wrong_colors"][0]["why"]
    assert (project.root / "store.py").read_text() == STORE


def test_the_colors_of_a_surface(project):
    """Without `--to`: each method's color, the side that is consistent, and the cost of each direction."""
    project.write({"store.py": STORE + "\n    def clear(self):\n        self.items.clear()\n"})
    done = project.troth("recolor", "store:Store")
    assert done.code == 0
    assert "2 async, 1 sync; nothing in it has to be async" in done.out
    assert "to sync: 2 definitions" in done.out
    assert "to async: 1 definition" in done.out


@pytest.mark.parametrize(("target", "says"), [
    pytest.param("stor:Store", "Did you mean `store`?", id="module"),
    pytest.param("store:Stor", "Did you mean `Store`?", id="class"),
    pytest.param("store:Store.sav", "Did you mean save?", id="method"),
])  # fmt: skip
def test_a_target_that_is_not_there(project, target, says):
    """Wrong use names the nearest right one."""
    project.write({"store.py": STORE})
    done = project.troth("recolor", target, "--to", "sync")
    assert done.code == 2
    assert says in done.err


@pytest.mark.parametrize("left_out", [
    pytest.param("store.py", id="calls only"),
    pytest.param("app.py", id="definitions only, one file forgotten"),
])  # fmt: skip
def test_a_half_done_change_is_seen(project, left_out):
    """The harness itself: undo the change of one file, and a check of the rest complains."""
    text = "from store import Store\n\nasync def f(s: Store):\n    await s.save(1)\n    if await s.count():\n        pass\n"
    done = _recolor(project, text)
    assert done.code == 0, done.out + done.err
    project.write({left_out: STORE if left_out == "store.py" else text})
    if left_out == "store.py":
        assert project.troth("check").code == 1
    else:  # an await of a plain value fails when it runs
        run = project.shell("python3 -c 'import asyncio, app, store; asyncio.run(app.f(store.Store()))'")
        assert "can't be used in 'await' expression" in run.err


UNITTEST = "from store import Store\n\n\nclass StoreTest({base}):\n    def setUp(self):\n        self.n = 1\n\n    {async_}def test_it(self):\n        {await_}Store().save(1)\n"


@pytest.mark.parametrize(
    ("head", "base", "new_head", "new_base"),
    [
        pytest.param("import unittest\n", "unittest.TestCase", "import unittest\n", "unittest.IsolatedAsyncioTestCase", id="by the module"),
        pytest.param("from unittest import TestCase\n", "TestCase", "from unittest import IsolatedAsyncioTestCase, TestCase\n", "IsolatedAsyncioTestCase", id="by its name"),
        pytest.param("import unittest\n", "unittest.IsolatedAsyncioTestCase", "import unittest\n", "unittest.IsolatedAsyncioTestCase", id="one that awaits already"),
    ],
)  # fmt: skip
def test_tests_of_unittest_follow_with_their_class(project, head, base, new_head, new_base):
    """No mark of pytest: the class gets the base that awaits its tests."""
    project.write({"store.py": PLAIN, "test_store.py": head + UNITTEST.format(base=base, async_="", await_="")})
    done = project.troth("recolor", "store:Store", "--to", "async", "--cascade", "tests")
    assert done.code == 0, done.out + done.err
    wanted = new_head + UNITTEST.format(base=new_base, async_="async ", await_="await ")
    assert (project.root / "test_store.py").read_text() == wanted


def test_killed_while_the_tests_run(project):
    """`--verify` has not spoken when the machine stops: the next command puts every file back."""
    app = "from store import Store\n\nasync def f(s: Store):\n    await s.save(1)\n"
    project.write({"store.py": STORE, "app.py": app})
    done = project.shell("troth recolor store:Store --to sync --verify 'kill -9 $PPID; sleep 1'")
    assert done.code in {-9, 137}
    assert "await" not in (project.root / "app.py").read_text()
    done = project.troth("recolor", "store:Store", "--to", "sync", "--plan")
    assert "An earlier change was interrupted" in done.err
    assert (project.root / "store.py").read_text() == STORE
    assert (project.root / "app.py").read_text() == app


NOT_ASYNC = [
    pytest.param("import asyncio\n\ndef f():\n    return asyncio.ensure_future(work())\n\nasync def g():\n    return await f()\n", "returns what its callers already await (app.py:12)", id="gives a task"),
    pytest.param("class A:\n    def f(self):\n        return 1\n\n    def g(self, kind):\n        return getattr(self, \"f\")()\n", "given to `getattr`", id="fetched by its name"),
    pytest.param("class A:\n    def f(self):\n        return 1\n\n    def g(self, kind):\n        return getattr(self, f\"{kind}f\")()\n", "given to `getattr`", id="fetched by a name that is put together"),
    pytest.param("class A:\n    def f(self):\n        return 1\n\n    def g(self, kind):\n        return getattr(self, kind + \"f\")()\n", "given to `getattr`", id="fetched by a sum of strings"),
    pytest.param("from typing import Protocol\n\nclass A(Protocol):\n    def f(self): ...\n\ndef g(a: A):\n    a.f()\n", "a protocol that no class of the project implements", id="a protocol for objects of others"),
    pytest.param("import asyncio\n\ndef run():\n    asyncio.run(work())\n\ndef f():\n    run()\n", "calls `run` (app.py:8), which starts a loop with `asyncio.run`", id="starts a loop by another function"),
    pytest.param("class A:\n    def f(self):\n        return 1\n\nclass B(A):\n    async def f(self):\n        yield 1\n", "namesakes in its family that are async generators", id="one of a family of generators"),
    pytest.param("class A:\n    @property\n    def f(self):\n        return 1\n", "is a property; `--properties` makes a method of it", id="a property"),
    pytest.param("def f():\n    return 1\n\ndef g():\n    return sorted([1], key=lambda x: f())\n", "it stands in a lambda that is given to `sorted`", id="called in a lambda"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "says"), NOT_ASYNC)
def test_what_cannot_become_async(project, text, says):
    """The reason is told, and no file is touched."""
    head = "async def work(): ...\n\nasync def stream():\n    yield 1\n\n"
    project.write({"app.py": head + text})
    target = "app:A.f" if "class A" in text else "app:f"
    done = project.troth("recolor", target, "--to", "async", "--cascade", "all")
    assert done.code == 1, done.out + done.err
    assert says in done.out
    assert (project.root / "app.py").read_text() == head + text


LOSING = "async def save(x):\n    return x\n\n\ndef a():\n    {}\n\n\ndef b():\n    return a()\n"


@pytest.mark.parametrize(
    ("lost", "awaited"),
    [
        pytest.param("save(1)", "await save(1)", id="dropped"),
        pytest.param("return f'{save(1)}'", "return f'{await save(1)}'", id="as text"),
        pytest.param("if save(1): save(2)", "if await save(1): await save(2)", id="two of them"),
        pytest.param(
            "return a() or save(1).real", "return await a() or (await save(1)).real", id="beside its own call"
        ),
    ],
)
def test_what_a_function_lost_is_awaited_when_it_becomes_async(lost, awaited, project):
    """The command that `troth fix` proposes repairs what it proposes it for."""
    project.write({"app.py": LOSING.format(lost), "pyproject.toml": ""})
    proposed = project.troth("fix").out.rpartition("What a change of color would repair:")[2]
    command = proposed.partition("`troth ")[2].partition("`")[0].split()
    assert command[:2] == ["recolor", "app:a"]
    diff = project.troth(*command, "--diff")
    assert f"+    {awaited}" in diff.out
    done = project.troth(*command)
    assert done.code == 0, done.err
    assert "awaited, and will now run\n  app.py:6  save" in done.out
    assert project.troth("check", "--ignore", "TR3").code == 0
    text = (project.root / "app.py").read_text()
    assert text == LOSING.format(awaited).replace("def a", "async def a").replace("def b", "async def b").replace(
        "return a()\n", "return await a()\n"
    )


def test_what_is_lost_elsewhere_stays(project):
    """Calls in functions that keep their color are left to others."""
    text = "async def save(): ...\n\n\ndef a():\n    save()\n\n\ndef other():\n    save()\n"
    project.write({"app.py": text, "pyproject.toml": ""})
    done = project.troth("recolor", "app:a", "--to", "async", "--output-format", "json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["awaited"] == [{"path": "app.py", "line": 5, "text": "save"}]
    now = (project.root / "app.py").read_text()
    assert now == text.replace("def a():\n    save()", "async def a():\n    await save()")
