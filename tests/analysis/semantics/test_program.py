"""What services, clients with twins and tools taught: each row is right as it stands, and was once called wrong."""

from pathlib import Path

import pytest

from troth.analysis.pipeline import analyse
from troth.analysis.project.project import Project

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
    "a client of a library that has sync ones too": "import chromadb\nasync def main():\n    client = make_client(chromadb)\n"
    "    return client.get_or_create_collection('x').name\n",
    "a private method of a library": "import aiohttp\ndef recorded(request):\n    async def new(self, headers):\n"
    "        headers = self._prepare_headers(headers)\n        return headers.pop('x')\n    return new\n",
    "what a class wraps under its own names": "class Bus:\n    async def get_interface(self, name):\n        await self.connect()\n"
    "        return self.bus.proxy(name).get_interface(name)\n    async def get_interfaces(self, names):\n        proxy = self.bus.proxy(names)\n"
    "        found = []\n        for name in names:\n            one = proxy.get_interface(name)\n            found.append(one)\n        return found\n"
    + "".join(f"async def use{n}(bus{n}):\n    return await bus{n}.get_interface('x')\n" for n in range(5)),
    "a class whose methods a decorator makes plain": "import asyncio, inspect\ndef run_all(cls):\n    for name, f in inspect.getmembers(cls):\n"
    "        if inspect.iscoroutinefunction(f):\n            setattr(cls, name, lambda *a: asyncio.run(f(*a)))\n    return cls\n"
    "class Client:\n    @classmethod\n    async def create(cls): ...\n@run_all\nclass Plain(Client): ...\ndef main():\n    return Plain.create().name\n",
    "a function that a library makes plain": "import synchronicity\nsynchronizer = synchronicity.Synchronizer()\n@synchronizer.create_blocking\n"
    "async def forward(): ...\nclass Entry:\n    def enter(self):\n        self.manager = forward()\n        self.manager.stop()\n",
    "options that somebody awaits one of": "class Query:\n    async def key(self, value): ...\n    def options(self, value):\n"
    "        return build(value)\n    async def run(self, value):\n        found = build(value)\n        found['partition'] = self.key(value)\n"
    "        return await self.fetch(found)\n    async def fetch(self, found):\n        found['partition'] = await found['partition']\n        return found\n",
    "options that somebody takes out and awaits": "class Query:\n    async def key(self, value): ...\n    async def run(self, value):\n"
    "        found = {'a': 1}\n        found['partition'] = self.key(value)\n        if 'b' not in found:\n            return await self.fetch(found)\n"
    "    async def fetch(self, options: dict[str, int]):\n        return await options.pop('partition')\n",
    "an announced promise in a pair": "from typing import Awaitable\nasync def answer(): ...\nasync def run(x) -> tuple[dict, Awaitable[str]]:\n"
    "    return {}, answer()\nasync def main():\n    info, later = await run(1)\n    return await later\n",
    "a function made for the caller in a pair": "async def run(x):\n    async def answer():\n        return x\n    return {'a': 1}, answer()\n"
    "async def main():\n    info, later = await run(1)\n    return await later\n",
    "a callback that may be a coroutine": "from typing import Callable, Coroutine\nclass Config:\n"
    "    def __init__(self, started: Callable | Coroutine):\n        self.started = started\n"
    "async def on_start(): ...\nasync def main(run):\n    await run(Config(started=on_start()))\n",
    "what a decorator is told, beside the function": "def cached(cache):\n    def decorator(method):\n        async def wrapper(self, key):\n"
    "            kept = cache(self)\n            if key not in kept:\n                kept[key] = await method(self, key)\n            return kept[key]\n"
    "        return wrapper\n    return decorator\nclass Names:\n    @cached(lambda self: self.names)\n    async def find(self, key): ...\n",
    "a queue of either kind": "import asyncio, queue\nfrom typing import Union\nasync def main(plain):\n"
    "    out: Union[queue.Queue, asyncio.Queue]\n    if plain:\n        out = queue.Queue()\n        def items():\n            while True:\n"
    "                item = out.get()\n                if item is main:\n                    break\n                yield item\n        return items()\n    out = asyncio.Queue()\n    return await out.get()\n",
    "a route that is given an unknown view": "import lib\nfrom sanic import Sanic\nasync def main(view, inject):\n    app = Sanic('x')\n"
    "    app.get('/')(inject(view))\n    app.get('/b')(view)\n    app.get('/c')(lib.inject(view))\n",
    "callbacks that are given as coroutines": "import election\nasync def main(lock):\n    async def started(): ...\n    async def stopped(): ...\n"
    "    config = election.Config(lock, on_started_leading=started(), on_stopped_leading=stopped())\n    await config.enter()\n",
    "a result whose class is asserted, where siblings are awaited": "from client import Completion\n"
    + "".join(f"async def test_{n}(raw):\n    return await raw.parse_whole()\n" for n in range(5))
    + "async def test_plain(raw):\n    done = raw.parse_whole()\n    assert isinstance(done, Completion)\n    return done.text\n",
    "a key that may be a coroutine": "async def value(x): ...\nasync def main(keys, gather_dict):\n    found = {}\n    for k in keys:\n"
    "        key = value(k) if k else 'none'\n        found[key] = 1\n    return await gather_dict(found)\n",
    "a function that a library runs elsewhere": "from pytest_pyodide import run_in_pyodide\nasync def main(page):\n    return await page.run()\n"
    "def test_it(browser):\n    @run_in_pyodide\n    async def run(browser, host):\n        return [host]\n    result = run(browser, 'x')\n"
    "    assert result[0] == 'x'\n",
    "one of several that a closure was made with": "class Memory:\n    async def read(self, n): ...\nclass Upload:\n    async def copy(self, small, name):\n"
    "        if small:\n            f = Memory()\n            self._read = f.read\n            return self\n        f = open_somehow(name)\n"
    "        async def read(n):\n            return f.read(n)\n        self._read = read\n        return self\n",
    "a decorator that runs it or hands it on": "import asyncio\ndef runner(f):\n    def inner(self, *a):\n        if self.mode == 'async':\n"
    "            return f(self, *a)\n        result = self.loop.run_until_complete(f(self, *a))\n        return result\n    return inner\n"
    "class Client:\n    @runner\n    async def close(self): ...\n    def __exit__(self, *e):\n        self.close()\n",
    "a method that gives a coroutine in one mode": "class Gateway:\n    async def _cleanup(self): ...\n    def close(self):\n"
    "        if self.asynchronous:\n            return self._cleanup()\n        elif self.loop.running:\n            self.sync(self._cleanup)\n        self.runner.stop()\n"
    "    def __exit__(self, *e):\n        self.close()\n",
    "an object that stands for another": "import asyncio, inspect\nclass Users:\n    async def get_by_id(self, n): ...\nclass Services:\n    users: Users\n"
    "class Adapter:\n    def __init__(self, services):\n        self._services = services\n    def __getattr__(self, name):\n"
    "        found = getattr(self._services, name)\n        if inspect.iscoroutinefunction(found):\n            return lambda *a: asyncio.run(found(*a))\n        return found\n"
    "class Layer:\n    def start(self):\n        self._adapter = Adapter(Services())\n    @property\n    def services(self) -> Services:\n        return self._adapter\n"
    "layer = Layer()\ndef view(n):\n    user = layer.services.users.get_by_id(n)\n    return user.name\n"
    "def other(n):\n    users = layer.services.users\n    users.get_by_id(n)\n",
    "awaited or not, as it was asked": "import inspect\nclass Model:\n    async def predict(self, x): ...\n    async def run(self, x):\n"
    "        found = (await self.predict(x)) if inspect.iscoroutinefunction(self.predict) else self.predict(x)\n        return found.text\n",
    "sessions of two kinds in one file": "import lib\n"
    + "".join(f"async def get{n}(r):\n    session = lib.get(r)\n    await session.execute('x')\n" for n in range(12))
    + "def test_plain(app):\n    async def setup(r):\n        session = app.get(r)\n        session.execute('a')\n"
    "    async def read(r):\n        session = app.get(r)\n        return session.execute('b').all()\n    app.run(setup, read)\n",
    "an object of the base itself": "class Repository:\n    def load(self, name):\n        pass\nclass One(Repository):\n    async def load(self, name):\n        await self.x()\n"
    "class Two(Repository):\n    async def load(self, name):\n        await self.x()\nasync def main():\n    repository = Repository()\n    repository.load('x')\n",
    "a file of the sync flavor": "import asyncio\nfrom inspect import iscoroutinefunction\n_IS_SYNC = True\ndef run(op, *a):\n    if iscoroutinefunction(op):\n"
    "        found = op(*a)\n    else:\n        found = op(*a)\n    return found.name\ndef wait(task):\n    if not _IS_SYNC:\n        asyncio.wait([task])\n"
    "def start(f):\n    started = asyncio.to_thread(f) if not _IS_SYNC else f()\n    return started.name\n",
    "the sync side in a file of the async flavor": "import asyncio\n_IS_SYNC = False\nclass Locker:\n    async def wait(self, event: asyncio.Event, limit):\n"
    "        if _IS_SYNC:\n            return event.wait(limit)\n        else:\n            await asyncio.wait_for(event.wait(), limit)\n            return True\n",
    "a test of the sync flavor alone": "from helpers import context\nclass Db:\n    async def drop(self, name): ...\nclass TestDb:\n    db: Db\n    @context.require_sync\n"
    "    def test_drop(self):\n        self.db.drop('x')\n        def again():\n            self.db.drop('y')\n        again()\n",
    "a decorator of a class that gives its objects": STATUS
    + "class Signal:\n    @Status.wrap\n    async def set(self, value): ...\nasync def main(signal: Signal):\n"
    "    status = signal.set(1)\n    assert not status.done\n",
}


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in SILENT.items()])
def test_the_frame_around_a_call_is_understood(text: str) -> None:
    """Nothing is found."""
    assert told({"app.py": text}) == []


def test_an_object_of_another_library_than_those_that_are_awaited() -> None:
    """What the methods of one library give says nothing of their namesakes in another."""
    pages = [f"async def page{n}():\n    return await request.get_json()\n" for n in range(12)]
    extract = "async def extract(req: func.HttpRequest):\n    return req.get_json().get('values')\n"
    files = {
        "app.py": "from quart import request\n" + "".join(pages),
        "jobs.py": "import azure.functions as func\n" + extract,
    }
    assert told(files) == []


SEEN = {
    "the side that runs": "class Connection:\n    async def set_deferrable(self, value): ...\n    def set(self, value):\n"
    "        if True:\n            self.set_deferrable(value)  # TR101\n        else:\n            raise AttributeError\n",
    "a pager that nobody steps through": "from azure.core.async_paging import AsyncItemPaged\nasync def main(items: AsyncItemPaged):\n"
    "    pages = items.by_page()  # TR114\n    return pages.continuation_token\n",
    "a coroutine that is closed like a file": "async def fetch(): ...\nasync def main():\n    file = fetch()  # TR102\n"
    "    print(file.size)\n    file.close()\n",
    "an untyped client, where the file asks for an async one": "import chromadb\nasync def connect():\n"
    "    return await chromadb.AsyncHttpClient()\nasync def main(client):\n    client.get_or_create_collection('x')  # TR101\n",
    "a future that all others wait for": "import asyncio\nclass Loop:\n    def in_thread(self, f):\n"
    "        return asyncio.get_running_loop().run_in_executor(None, f)\n"
    + "".join(f"async def read{n}(loop: Loop, f):\n    return await loop.in_thread(f)\n" for n in range(3))
    + "async def write(loop: Loop, f):\n    loop.in_thread(f)  # TR112\n",
    "a test that only calls another one": "import pytest\n@pytest.mark.timeout(600)\n@pytest.mark.parametrize('x', [1])\n"
    "async def test_train(x): ...\ndef test_again():\n    test_train(2)  # TR101\n",
    "a decorated function that others await": "from somewhere import traced\n@traced\nasync def job(): ...\nasync def main():\n    await job()\n"
    "def stop():\n    job()  # TR101\n",
    "trio inside trio": "import trio\nasync def f(): ...\nasync def main():\n    await trio.sleep(1)\n    trio.run(f)  # TR601\n",
    "the async side in a file of the async flavor": "_IS_SYNC = False\nasync def save(): ...\nasync def main():\n    if not _IS_SYNC:\n"
    "        save()  # TR101\n    else:\n        save()\n",
    "a class to which a decorator adds sync methods": "import asyncio\ndef add_sync(cls):\n    for name, f in list(vars(cls).items()):\n        plain = name + '_sync'\n"
    "        setattr(cls, plain, lambda *a: asyncio.run(f(*a)))\n    return cls\n@add_sync\nclass Client:\n    async def call(self): ...\n"
    "async def main(client: Client):\n    client.call()  # TR101\n",
    "a call as a key": "async def name(): ...\nasync def main(sizes):\n    return sizes[name()]  # TR106\n",
}


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in SEEN.items()])
def test_what_is_lost_beside_it_is_still_told(text: str) -> None:
    """The marked line, and nothing else, is found."""
    marks = [(number, line.rpartition("# TR")) for number, line in enumerate(text.splitlines(), 1)]
    assert told({"app.py": text}) == [(f"TR{code}", "app.py", number) for number, (_, mark, code) in marks if mark]
