"""What analysis is able to see: each row is a way from a call to the definition that makes it async."""

from pathlib import Path

import pytest

from troth.analysis.pipeline import analyse
from troth.analysis.project.project import Project

STORE = "class Store:\n    async def save(self): ...\n    def size(self): ...\n"
USE = "from store import Store\n"


def lines(files: dict[str, str]) -> set[tuple[str, int]]:
    texts = {path: text.encode() for path, text in files.items()}
    found = analyse(Project(Path("/nowhere"), tuple(sorted(texts))), overlay=texts).findings
    return {(f.span.path, f.span.line) for f in found}


def marked(files: dict[str, str]) -> set[tuple[str, int]]:
    return {
        (path, number)
        for path, text in files.items()
        for number, line in enumerate(text.splitlines(), 1)
        if line.endswith("# lost")
    }


SEEN = {
    "a variable of the function around, bound by `:=`": USE
    + "class Job:\n    store: Store | None = None\n    def make(self):\n"
    "        if (store := self.store) is not None:\n            async def work():\n                store.save()  # lost\n            return work\n",
    "an ASGI application by other names": "async def main(self, scope, receive):\n    async def send_later(message): ...\n"
    "    self.app(scope, receive, send_later)  # lost\n",
    "import inside a function": "async def main():\n    from store import Store\n    Store().save()  # lost\n",
    "import as": "import store as s\nasync def main():\n    s.Store().save()  # lost\n",
    "TYPE_CHECKING": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from store import Store\n"
    "async def main(x: 'Store'):\n    x.save()  # lost\n",
    "try and except": "try:\n    from store import Store\nexcept ImportError:\n    Store = None\n"
    "async def main():\n    Store().save()  # lost\n",
    "a star": "from store import *\nasync def main():\n    Store().save()  # lost\n",
    "Optional": f"from typing import Optional\n{USE}async def main(x: Optional[Store]):\n    x.save()  # lost\n",
    "a union with None": f"{USE}async def main(x: Store | None):\n    x.save()  # lost\n",
    "a forward reference": f"{USE}async def main(x: 'Store | None'):\n    x.save()  # lost\n",
    "Annotated": f"from typing import Annotated\n{USE}async def main(x: Annotated[Store, 1]):\n    x.save()  # lost\n",
    "Depends": f"from fastapi import Depends\n{USE}def get() -> Store: ...\n"
    "async def main(x=Depends(get)):\n    x.save()  # lost\n",
    "a constructor": f"{USE}async def main():\n    x = Store()\n    x.save()  # lost\n",
    "self.x = param": f"{USE}class A:\n    def __init__(self, x: Store):\n        self.x = x\n"
    "    async def run(self):\n        self.x.save()  # lost\n",
    "self.x = x or Store()": f"{USE}class A:\n    def __init__(self, x=None):\n        self.x = x or Store()\n"
    "    async def run(self):\n        self.x.save()  # lost\n",
    "a dataclass field": f"from dataclasses import dataclass\n{USE}@dataclass\nclass A:\n    x: Store\n"
    "async def main(a: A):\n    a.x.save()  # lost\n",
    "a property": f"{USE}class A:\n    @property\n    def x(self) -> Store: ...\n"
    "    async def run(self):\n        self.x.save()  # lost\n",
    "a factory": f"{USE}def make() -> Store: ...\nasync def main():\n    make().save()  # lost\n",
    "an inferred return": f"{USE}def make():\n    return Store()\nasync def main():\n    make().save()  # lost\n",
    "an awaited factory": f"{USE}async def make() -> Store: ...\nasync def main():\n    x = await make()\n    x.save()  # lost\n",
    "with … as": "from contextlib import contextmanager\nfrom store import Store\n@contextmanager\ndef opened():\n"
    "    yield Store()\nasync def main():\n    with opened() as x:\n        x.save()  # lost\n",
    "async with … as": "from contextlib import asynccontextmanager\nfrom store import Store\n@asynccontextmanager\n"
    "async def opened():\n    yield Store()\nasync def main():\n    async with opened() as x:\n        x.save()  # lost\n",
    "a loop over a list": f"{USE}async def main(xs: list[Store]):\n    for x in xs:\n        x.save()  # lost\n",
    "a loop over dict values": f"{USE}async def main(xs: dict[str, Store]):\n    for x in xs.values():\n        x.save()  # lost\n",
    "isinstance": f"{USE}async def main(x):\n    if isinstance(x, Store):\n        x.save()  # lost\n",
    "a walrus": f"{USE}def find() -> Store | None: ...\nasync def main():\n    if x := find():\n        x.save()  # lost\n",
    "a fixture": f"import pytest\n{USE}@pytest.fixture\ndef x():\n    return Store()\nasync def test_it(x):\n    x.save()  # lost\n",
    "a base class": f"{USE}class Sub(Store): ...\nasync def main():\n    Sub().save()  # lost\n",
    "super()": f"{USE}class Sub(Store):\n    async def save(self):\n        super().save()  # lost\n",
    "an alias of a bound method": f"{USE}async def main(x: Store):\n    save = x.save\n    save()  # lost\n",
    "partial": f"from functools import partial\n{USE}async def main(x: Store):\n    save = partial(x.save)\n    save()  # lost\n",
    "a dispatch table": f"{USE}class A(Store):\n    async def run(self, key):\n"
    "        table = {'a': self.save, 'b': self.save}\n        table[key]()  # lost\n",
    "getattr with a known name": f"{USE}async def main(x: Store):\n    getattr(x, 'save')()  # lost\n",
    "a lambda": f"{USE}async def main(x: Store):\n    f = lambda: x.save()\n    f()  # lost\n",
    "a closure": f"{USE}async def main(x: Store):\n    async def inner():\n        x.save()  # lost\n    await inner()\n",
    "an async wrapper": "def logged(f):\n    async def wrapper(*a):\n        return f(*a)\n    return wrapper\n"
    "@logged\ndef job(): ...\nasync def main():\n    job()  # lost\n",
    "an unknown decorator is transparent": "from somewhere import traced\n@traced\nasync def job(): ...\n"
    "async def main():\n    job()  # lost\n",
    "an untyped receiver named after its class": f"{USE}class OrderStore(Store): ...\n"
    "async def main(order_store):\n    order_store.save()  # lost\n",
    "an abstract method that all make async": "from abc import ABC, abstractmethod\nclass Base(ABC):\n    @abstractmethod\n"
    "    def load_all(self): ...\nclass Real(Base):\n    async def load_all(self):\n        return 1\nclass Other(Base):\n    async def load_all(self):\n        return 2\nasync def main(x: Base):\n    x.load_all()  # lost\n",
    "an object that is waited for with a limit": "import asyncio\nimport websockets\nasync def main(url):\n"
    "    ws = await asyncio.wait_for(websockets.connect(url), 5)\n    ws.send('x')  # lost\n",
    "a websocket that a handler is given": "import websockets\nasync def main(ws):\n    ws.send('x')  # lost\n",
    "a websocket that an object keeps": "from starlette.websockets import WebSocketDisconnect\nclass Input:\n"
    "    def __init__(self, websocket):\n        self.websocket = websocket\n    async def stop(self):\n        self.websocket.close()  # lost\n",
    "a method called on its class with its object": f"{USE}async def main(x: Store):\n    Store.save(x)  # lost\n",
    "made after the break of an endless loop": f"{USE}async def main(x: Store, keys):\n    while True:\n        if next(keys) == 'q':\n            break\n"
    "        done = x.save()  # lost\n        print(f'{done}')\n",
    "what a container is asked for": f"from unknown import container\n{USE}async def main():\n    container.resolve(Store).save()  # lost\n",
    "a result that is compared with a constant, then given on": f"{USE}from lib import keep\nasync def main(store: Store):\n"
    "    version = store.save()  # lost\n    if version == 1:\n        return\n    keep(version)\n",
    "a result that is counted on, then given on": f"{USE}from lib import keep\nasync def main(store: Store):\n"
    "    version = store.save()  # lost\n    version += 1\n    keep(version)\n",
    "an attribute that a mixin fills": f"{USE}class Connecting:\n    def connect(self):\n        self.store = Store()\n"
    "class Client(Connecting):\n    def __init__(self):\n        self.store = None\n    async def main(self):\n        self.store.save()  # lost\n",
    "what an operator gives": "class Place:\n    def __truediv__(self, name: str) -> 'Place':\n        return Place()\n"
    "    async def is_there(self) -> bool: ...\nasync def main(home: Place):\n    if (home / 'a').is_there():  # lost\n        return\n"
    "    file = home / 'a' / 'b'\n    file.is_there()  # lost\n",
    "a callable that was asked by its call": "import inspect\nasync def main(config):\n"
    "    if inspect.iscoroutinefunction(config.handler.__call__):\n        config.handler(1)  # lost\n    else:\n        config.handler(1)\n",
    "a callable that was asked in two ways": "import inspect\nasync def main(job):\n"
    "    if inspect.iscoroutinefunction(job) or inspect.iscoroutinefunction(job.__call__):\n        job(1)  # lost\n",
    "a method under another name": f"{USE}class A:\n    def __init__(self, far):\n        if far:\n            self._send = self._send_far\n"
    "        else:\n            self._send = self._send_near\n    async def _send_far(self): ...\n    async def _send_near(self): ...\n"
    "    async def run(self):\n        self._send()  # lost\n",
    "one of two functions under another name": "import os\nasync def near(): ...\nasync def far(): ...\n"
    "send_it = far if os.environ else near\nasync def main():\n    send_it()  # lost\n",
    "an attribute that may be missing": f"{USE}class A:\n    def make(self):\n        self.store = Store()\n"
    "    async def close(self):\n        store = getattr(self, 'store', None)\n        if store is not None:\n            store.save()  # lost\n",
    "a sync function that a library makes async": "from asgiref.sync import sync_to_async\n@sync_to_async\ndef load_user(): ...\n"
    "async def main():\n    load_user()  # lost\n",
    "a function that a library exports under another name": "import trio\nasync def main(f):\n    trio.to_thread.run_sync(f)  # lost\n",
    "a package that has nothing but modules": "import websockets.asyncio.client\nasync def main(url):\n"
    "    socket = await websockets.asyncio.client.connect(url)\n    socket.close()  # lost\n",
    "a method that is called like one of strings": "import asyncio\nasync def main(queue: asyncio.Queue):\n    queue.join()  # lost\n",
    "a test that is called like one of paths": "import redis.asyncio\nasync def main(key):\n    r = redis.asyncio.Redis()\n"
    "    if r.exists(key):  # lost\n        return 1\n",
    "a request that is sent when it is awaited": "from aiogram.types import Message\nasync def main(message: Message, photo):\n"
    "    message.answer_photo(photo)  # lost\n",
    "one of two queries": "from piccolo.table import Table\nclass Chat(Table): ...\nasync def main(data):\n    chat = Chat(**data)\n"
    "    chat.save()  # lost\n    return chat\n",
    "a message of ASGI": "class App:\n    async def answer(self, send, status):\n"
    "        await send({'type': 'http.response.start', 'status': status})\n        send({'type': 'http.response.body'})  # lost\n",
    "a future out of nothing": "import asyncio\nasync def main(loop: asyncio.AbstractEventLoop):\n"
    "    asyncio.get_running_loop().create_future()  # lost\n    loop.create_future()  # lost\n    asyncio.Future()  # lost\n",
    "what a library only calls awaitable, and others await": "from mautrix.bridge.commands import CommandEvent\n"
    + "".join(f"async def answer{n}(evt: CommandEvent):\n    await evt.reply('x')\n" for n in range(2))
    + "async def main(evt: CommandEvent):\n    evt.reply('x')  # lost\n",
    "a method of what a call has made, awaited all over": "from chat import message\n"
    + "".join(f"async def say{n}():\n    await message({n}).send()\n" for n in range(12))
    + "async def main():\n    message('x').send()  # lost\n",
    "a method of what a call has made, and never called otherwise": "from chat import parts\n"
    + "".join(f"async def say{n}():\n    await parts('x').remove({n})\n" for n in range(4))
    + "async def main():\n    parts('x').remove(1)  # lost\n    kept = []\n    kept.remove(1)\n",
    "what a listener is given": "from discord.ext import commands\nclass Events(commands.Cog):\n    @commands.Cog.listener()\n"
    "    async def on_member_join(self, member):\n        channel = member.guild.get_channel(1)\n        channel.send('hello')  # lost\n",
    "an async twin that is handed on to": "class Model:\n    def __init__(self, inner):\n        self.inner = inner\n"
    "    async def aclose(self):\n        self.inner.aclose()  # lost\n",
    "one of two classes that callers give": "import asyncio\nclass Near:\n    async def start(self): ...\nclass Far:\n    async def start(self): ...\n"
    "async def run(link):\n    link.start()  # lost\ndef near():\n    asyncio.run(run(Near()))\ndef far():\n    asyncio.run(run(Far()))\n",
    "what an interface declares as plain, and all that implement it make async": "from abc import ABC, abstractmethod\n"
    "class Base(ABC):\n    @abstractmethod\n    def refill_cart(self):\n        raise NotImplementedError\n"
    "class Cart(Base):\n    async def refill_cart(self): ...\nasync def main(x):\n    x.refill_cart()  # lost\n",
    "what hands a call on to many of its kind": "class Hooks:\n    def __init__(self, hooks):\n        self.hooks = hooks\n"
    "    async def on_start_of_run(self):\n        for hook in self.hooks:\n            hook.on_start_of_run()  # lost\n"
    "class Other:\n    async def on_start_of_run(self): ...\n",
    "the executor of a loop that may be another": "import asyncio\nasync def main(f, loop=None):\n    loop = loop or asyncio.get_event_loop()\n"
    "    loop.run_in_executor(None, f)  # lost\n",
    "the only definition of a telling name": "class A:\n    async def recompute_totals(self): ...\n"
    "async def main(x):\n    x.recompute_totals()  # lost\n",
}


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in SEEN.items()])
def test_the_way_from_a_call_to_its_definition_is_seen(text: str) -> None:
    """The marked line, and nothing else, is found."""
    files = {"store.py": STORE, "app.py": text}
    assert lines(files) == marked(files)


SILENT = {
    "create_task kept": "import asyncio\nasync def f(): ...\nasync def main():\n    t = asyncio.create_task(f())\n    await t\n",
    "gather": "import asyncio\nasync def f(): ...\nasync def main():\n    await asyncio.gather(f(), f())\n",
    "wait_for": "import asyncio\nasync def f(): ...\nasync def main():\n    await asyncio.wait_for(f(), 1)\n",
    "a home-grown spawner": "import asyncio\nkept = set()\nasync def f(): ...\ndef spawn(c):\n"
    "    t = asyncio.ensure_future(c)\n    kept.add(t)\nasync def main():\n    spawn(f())\n",
    "asyncio.run": "import asyncio\nasync def f(): ...\ndef main():\n    asyncio.run(f())\n",
    "an async iterator": "class Pages:\n    def __aiter__(self):\n        return self\n    async def __anext__(self): ...\n"
    "async def main():\n    pages = Pages()\n    async for p in pages:\n        print(p)\n",
    "an overload of both colors": "from typing import Awaitable\ndef get() -> int | Awaitable[int]: ...\ndef main():\n    get()\n",
    "either color by argument": "async def f(): ...\ndef get(wait):\n    if wait:\n        return f()\n    return 1\n"
    "def main():\n    get(False)\n",
    "a subclass of another color": "class A:\n    async def f(self): ...\nclass B(A):\n    def f(self): ...\n"
    "def main(a: A):\n    a.f()\n",
    "the color is asked for": "import inspect\nasync def call(f):\n    r = f()\n    if inspect.isawaitable(r):\n        r = await r\n    return r\n",
    "iscoroutinefunction": "import asyncio\nclass A:\n    async def start_up(self): ...\nasync def main(x):\n"
    "    if asyncio.iscoroutinefunction(x.start_up):\n        await x.start_up()\n    else:\n        x.start_up()\n",
    "a namesake of a library method": "from pathlib import Path\nclass A:\n    async def rename(self, t): ...\n"
    "async def main(p: Path, q):\n    p.rename('a')\n    q.rename('b')\n",
    "mixed colors of an unknown receiver": "class A:\n    async def recompute(self): ...\nclass B:\n    def recompute(self): ...\n"
    "async def main(x):\n    x.recompute()\n",
    "a decorator that runs it": "import asyncio\ndef sync(f):\n    def wrapper(*a):\n        return asyncio.run(f(*a))\n"
    "    return wrapper\n@sync\nasync def job(): ...\ndef main():\n    job()\n",
    "a list of coroutines for later": "import asyncio\nasync def f(x): ...\nasync def main(xs):\n"
    "    jobs = [f(x) for x in xs]\n    for done in asyncio.as_completed(jobs):\n        await done\n",
    "an abstract method that one makes plain": "from abc import ABC, abstractmethod\nclass Base(ABC):\n    @abstractmethod\n"
    "    def load_all(self): ...\nclass Real(Base):\n    async def load_all(self): ...\nclass Other(Base):\n    def load_all(self):\n"
    "        return 1\nasync def main(x: Base):\n    x.load_all()\n",
    "what an interface declares as plain, and one of those that implement it": "from abc import ABC, abstractmethod\n"
    "class Base(ABC):\n    @abstractmethod\n    def refill_cart(self): ...\nclass Cart(Base):\n    async def refill_cart(self): ...\n"
    "class Tray(Base):\n    def refill_cart(self):\n        return 1\nasync def main(x):\n    x.refill_cart()\n",
    "a sync method that does nothing unless it is overridden": "class Base:\n    def refill_cart(self):\n        pass\n"
    "class Cart(Base):\n    async def refill_cart(self): ...\nasync def main(x):\n    x.refill_cart()\n",
    "what hands a call on to the object that it wraps": "class Hooks:\n    def __init__(self, hook):\n        self.hook = hook\n"
    "    async def on_start_of_run(self):\n        self.hook.on_start_of_run()\n"
    "class Other:\n    async def on_start_of_run(self): ...\n",
    "gathered out of pairs": "import asyncio\nasync def f(x): ...\nasync def main(xs):\n    jobs = []\n    for x in xs:\n"
    "        jobs.append((f(x), x))\n    done = await asyncio.gather(*(job[0] for job in jobs))\n    ids = [job[1] for job in jobs]\n"
    "    for one, x in zip(done, ids, strict=False):\n        print(x.name, one.name)\n",
    "one of two classes, in a sync function": "class Live:\n    async def enter_all(self): ...\nclass Plain:\n    def enter(self): ...\n"
    "class User:\n    @property\n    def stack(self) -> Live:\n        return make()\n    def go(self):\n        a, b = self.stack.enter_all()\n"
    "    def end(self):\n        if isinstance(self.stack, Plain):\n            self.stack.enter()\n",
    "of two functions of one name the one at hand": "async def main(wants, pages, give):\n    if wants:\n        async def read():\n"
    "            async for p in pages:\n                yield p\n        final = read()\n    else:\n        async def read():\n"
    "            return [p async for p in pages]\n        final = await read()\n    give(final)\n",
    "a method called on its class, which makes an event of it": "import ui\nclass State(ui.State):\n    async def select(self, index): ...\n"
    "def show(index):\n    return ui.box(on_click=State.select(index))\n",
    "made in one turn, awaited after the loop": "async def f(): ...\nasync def main(keys):\n    while True:\n        if next(keys) == 'q':\n"
    "            break\n        later = f()\n    await later\n",
    "yielded to somebody who awaits": "from lib import concurrently\nasync def f(x): ...\nasync def main(xs):\n    async def all_of():\n"
    "        async for x in xs:\n            yield f(x)\n    async for y in concurrently(all_of()):\n        print(y)\n    await f(1)\n",
    "read by a function inside a function": "import asyncio\nasync def pages():\n    yield 1\nasync def main(self):\n    stream = pages()\n"
    "    async def outer():\n        async def inner():\n            async for p in self.clean(stream):\n                yield p\n"
    "        async for p in inner():\n            print(p)\n    await asyncio.create_task(outer())\n",
    "read by a method of a class inside": "async def pages():\n    yield 1\nasync def main():\n    stream = pages()\n    class Reader:\n"
    "        async def read(self):\n            async for p in stream:\n                print(p)\n    await Reader().read()\n",
    "one of two methods under one name is plain": "class A:\n    def __init__(self, far):\n        self._send = self._send_far if far else self._send_near\n"
    "    async def _send_far(self): ...\n    def _send_near(self): ...\n    async def run(self):\n        self._send()\n",
    "a future that is kept": "import asyncio\nclass A:\n    async def run(self):\n        self.done = asyncio.get_running_loop().create_future()\n"
    "        later = asyncio.get_running_loop().create_future()\n        self.waiting.append(later)\n"
    "        done: asyncio.Future = asyncio.Future()\n        done.set_result(1)\n        return done\n",
    "a `send` of something else": "async def main(send, sock):\n    send({'type': 'greeting'})\n    send({'kind': 'http.response.body'})\n"
    "    sock.send({'type': 'http.response.body'})\n",
    "what a library calls awaitable, alone": "from mautrix.bridge.commands import CommandEvent\nasync def main(evt: CommandEvent):\n    evt.reply('x')\n",
    "strings, paths and queues of threads": "import asyncio, os, queue\nasync def main(parts: list[str], sep: str, jobs: queue.Queue):\n"
    "    print(os.path.join('a', 'b'), sep.join(parts), ''.join(parts))\n    jobs.task_done()\n",
    "a query that is only made": "from piccolo.table import Table\nclass Chat(Table): ...\nasync def main(data):\n"
    "    query = Chat(**data).save()\n    return await query\n",
    "a method of what a call has made, awaited by some": "from chat import message\n"
    + "".join(f"async def say{n}():\n    await message({n}).send()\n" for n in range(3))
    + "async def main():\n    message('x').send()\n",
    "an async twin that the project has as a sync method too": "class Model:\n    def __init__(self, inner):\n        self.inner = inner\n"
    "    async def aclose(self):\n        self.inner.aclose()\nclass Other:\n    def aclose(self): ...\n",
    "one of two classes that callers give is plain": "import asyncio\nclass Near:\n    async def start(self): ...\nclass Far:\n    def start(self): ...\n"
    "async def run(link):\n    link.start()\ndef near():\n    asyncio.run(run(Near()))\ndef far():\n    asyncio.run(run(Far()))\n",
    "awaited in a branch with its maker": "async def f(): ...\nasync def main(a):\n    if a:\n        c = f()\n    else:\n        c = f()\n    await c\n",
}


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in SILENT.items()])
def test_what_is_right_is_left_alone(text: str) -> None:
    """Nothing is found."""
    assert lines({"app.py": text}) == set()
