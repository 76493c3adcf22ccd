"""Unawaited coroutine.

What it finds: a call that makes a coroutine whose value is thrown away.
Why it matters: the body never runs; Python mentions it only when the object is collected, far from the call.
How sure the fix is: `await` makes the call run, which is clearly what the code intends; it is sure where the callee is certain.
Outside `async def` nothing is offered: the function itself would change color, which is the work of `troth recolor`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.rules._finding import await_fix, call_text, tell
from troth.analysis.rules.registry import Case, rule
from troth.analysis.semantics.walk.incident_queries import incidents_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from troth.analysis.findings import Finding
    from troth.analysis.semantics import Program

CASES = [
    Case(
        "dropped",
        bad="async def save(): ...\nasync def main():\n    save()  # here\n",
        fixed="async def save(): ...\nasync def main():\n    await save()  # here\n",
    ),
    Case("in a sync function", bad="async def save(): ...\ndef main():\n    save()  # here\n"),
    Case("kept for later", good="async def save(): ...\nasync def main():\n    later = save()\n    await later\n"),
    Case("a sync namesake", good="def save(): ...\nasync def main():\n    save()\n"),
    Case(
        "a class of a library that is called like a function",
        bad="import websockets\nasync def main():\n    websockets.connect('ws://x')  # here\n",
    ),
    Case(
        "what a stack of contexts enters",
        bad="import httpx\nfrom contextlib import AsyncExitStack\nasync def main(other):\n    async with AsyncExitStack() as stack:\n"
        "        client = await stack.enter_async_context(httpx.AsyncClient())\n        client.aclose()  # here\n",
    ),
    Case(
        "a session of a maker that is told its class",
        bad="from sqlalchemy.orm import sessionmaker\nfrom sqlalchemy.ext.asyncio import AsyncSession\nmake = sessionmaker(class_=AsyncSession)\n"
        "async def main():\n    async with make() as session:\n        session.rollback()  # here\n",
        fixed="from sqlalchemy.orm import sessionmaker\nfrom sqlalchemy.ext.asyncio import AsyncSession\nmake = sessionmaker(class_=AsyncSession)\n"
        "async def main():\n    async with make() as session:\n        await session.rollback()  # here\n",
    ),
    Case(
        "a session of a maker that is told nothing",
        good="from sqlalchemy.orm import sessionmaker\nmake = sessionmaker()\ndef main():\n    with make() as session:\n        session.rollback()\n",
    ),
    Case(
        "an attribute that may be anything, by its annotation",
        bad="from typing import Any, Optional\nclass Watcher:\n    async def start(self): ...\nclass Owner:\n    def __init__(self):\n"
        "        self.watcher: Optional[Any] = None\n    def open(self):\n        self.watcher = Watcher()\n    async def run(self):\n        self.watcher.start()  # here\n",
        fixed="from typing import Any, Optional\nclass Watcher:\n    async def start(self): ...\nclass Owner:\n    def __init__(self):\n"
        "        self.watcher: Optional[Any] = None\n    def open(self):\n        self.watcher = Watcher()\n    async def run(self):\n        await self.watcher.start()  # here\n",
    ),
    Case(
        "an attribute that may be anything, and is set by somebody unknown",
        good="from typing import Any, Optional\nfrom somewhere import make\nclass Owner:\n    def __init__(self):\n"
        "        self.watcher: Optional[Any] = None\n    def open(self):\n        self.watcher = make()\n    async def run(self):\n        self.watcher.start()\n",
    ),
    Case(
        "a factory with a default",
        bad="class Client:\n    async def connect(self): ...\nasync def main(factory=None):\n    make = factory or Client\n    client = make()\n    client.connect()  # here\n",
    ),
    Case(
        "a slot of a library, which its user fills and the library calls",
        good="from telegram.ext import ApplicationBuilder\nasync def main(start):\n    app = ApplicationBuilder().token('x').build()\n    app.post_init(start)\n",
    ),
    Case(
        "a slot of the project",
        bad="from typing import Awaitable, Callable\nclass Bus:\n    on_start: Callable[[int], Awaitable[None]]\nasync def main(bus: Bus):\n    bus.on_start(1)  # here\n",
    ),
    Case(
        "a mock, whatever its annotation says",
        good="from unittest.mock import Mock\nclass Client:\n    async def fetch(self): ...\ndef test():\n    client: Client = Mock()\n"
        "    client.fetch.return_value = 3\n    client.fetch()\n    assert client.fetch() == 3\n",
    ),
    Case(
        "what a fixture of the same file gives",
        bad="import pytest\nasync def put(path): ...\n@pytest.fixture\ndef add():\n    async def inner(path):\n        await put(path)\n    return inner\n"
        "@pytest.fixture\ndef create(add):\n    async def inner(path):\n        add(path)  # here\n        return path\n    return inner\n",
        fixed="import pytest\nasync def put(path): ...\n@pytest.fixture\ndef add():\n    async def inner(path):\n        await put(path)\n    return inner\n"
        "@pytest.fixture\ndef create(add):\n    async def inner(path):\n        await add(path)  # here\n        return path\n    return inner\n",
    ),
    Case(
        "a sync function that a fixture of the same file gives",
        good="import pytest\nasync def put(path): ...\n@pytest.fixture\ndef add():\n    def inner(path):\n        print(path)\n    return inner\n"
        "@pytest.fixture\ndef create(add):\n    async def inner(path):\n        add(path)\n        await put(path)\n    return inner\n",
    ),
    Case(
        "a method of a parameter",
        bad="class Store:\n    async def save(self): ...\nasync def main(store: Store):\n    store.save()  # here\n",
    ),
    Case(
        "a method of an attribute, across files",
        bad={
            "store.py": "class Store:\n    async def save(self): ...\n",
            "app.py": "from store import Store\nclass App:\n    def __init__(self, store: Store):\n        self.store = store\n"
            "    async def run(self):\n        self.store.save()  # here\n",
        },
    ),
    Case("in one arm of a conditional", bad="async def f(): ...\nasync def main(x):\n    f() if x else None  # here\n"),
    Case("after `and`", bad="async def f(): ...\nasync def main(x):\n    x and f()  # here\n"),
    Case(
        "through a sync function that returns it",
        bad="async def f(): ...\ndef g():\n    return f()\nasync def main():\n    g()  # here\n",
    ),
    Case(
        "given to a spawner",
        good="import asyncio\nasync def save(): ...\nasync def main():\n    keep = asyncio.create_task(save())\n    await keep\n",
    ),
    Case("returned by a sync function", good="async def save(): ...\ndef main():\n    return save()\n"),
    Case(
        "redefined as sync elsewhere",
        good="try:\n    from fast import save\nexcept ImportError:\n    def save(): ...\ndef main():\n    save()\n",
    ),
    Case(
        "an object that can be awaited but need not be",
        good="class Job:\n    def __init__(self):\n        self.begin()\n    def __await__(self):\n        yield\n    def begin(self): ...\n"
        "def start():\n    return Job()\nasync def main():\n    start()\n",
    ),
    Case(
        "an object that does nothing until it is awaited",
        bad="class Job:\n    def __init__(self, name):\n        self.name = name\n    def __await__(self):\n        yield\n"
        "def start():\n    return Job('a')\nasync def main():\n    start()  # here\n",
    ),
    Case(
        "a decorator that hands the function to somebody else, with and without arguments",
        good="from functools import partial, wraps\ndef work(method=None, *, name=''):\n    def decorator(method):\n"
        "        @wraps(method)\n        def decorated(*args):\n            return args[0].run(partial(method, *args), name)\n"
        "        return decorated\n    return decorator if method is None else decorator(method)\n"
        "def job(method=None):\n    def decorator(method):\n        def decorated(*args):\n"
        "            return args[0].run(partial(method, *args))\n        return decorated\n"
        "    if method is None:\n        return decorator\n    return decorator(method)\n"
        "class App:\n    @work(name='x')\n    async def load(self): ...\n    @work\n    async def save(self): ...\n"
        "    @job\n    async def sync(self): ...\n"
        "    def main(self):\n        self.load()\n        self.save()\n        self.sync()\n",
    ),
    Case(
        "a decorator that makes an object of the function",
        good="class Task:\n    def __init__(self, function): ...\n    def __call__(self): ...\ndef task(function):\n"
        "    return Task(function)\n@task\nasync def load(): ...\nasync def main():\n    load()\n",
    ),
    Case(
        "a decorator that says that it changes nothing",
        bad="from typing import Callable, TypeVar\nfrom lib import known\nF = TypeVar('F')\ndef register(name: str) -> Callable[[F], F]:\n"
        "    return known.register(name)\n@register('x')\nasync def load(): ...\nasync def main():\n    load()  # here\n",
    ),
    Case(
        "a decorator that says only that a function comes back",
        good="from functools import wraps\nfrom typing import Any, Callable\nfrom lib import finish\n"
        "def ended(function: Callable) -> Callable:\n    def run(*args):\n        return finish(function, *args)\n    return run\n"
        "def tested(timeout: float = 1) -> 'Callable[[Callable[..., Any]], Callable[..., Any]]':\n    def decorate(function):\n"
        "        @wraps(function)\n        def run(*args):\n            return finish(function, timeout, *args)\n        return run\n    return decorate\n"
        "@ended\nasync def load(): ...\n@tested()\nasync def save(): ...\ndef main():\n    load()\n    save()\n",
    ),
    Case(
        "generators that a framework calls coroutines",
        good="from tornado import gen\n@gen.coroutine\ndef load():\n    yield\ndef main():\n    load()\n",
    ),
    Case(
        "a decorator applied by hand",
        good="from typing import Any, Callable, Coroutine\nHandler = Callable[..., Coroutine[Any, Any, None]]\n"
        "class App:\n    def get(self, uri: str) -> Handler: ...\ndef main(app: App):\n    app.get('/')(lambda: 1)\n",
    ),
    Case(
        "a sync function that is expected to raise",
        good="import pytest\nasync def wait(): ...\ndef event(name):\n    if not name:\n        raise ValueError\n    return wait()\n"
        "def test_event():\n    with pytest.raises(ValueError):\n        event('')\n",
    ),
    Case(
        "a decorator applied by hand that is expected to refuse",
        good="import pytest\ndef inside(function):\n    if function is None:\n        raise RuntimeError\n"
        "    async def wrapper(): ...\n    return wrapper\n"
        "def test_inside():\n    with pytest.raises(RuntimeError):\n        inside(None)()\n",
    ),
    Case(
        "arguments that do not fit, which is what the test expects",
        good="import pytest\nasync def wait(seconds, *, loud=False): ...\nasync def test_wait():\n"
        "    with pytest.raises(TypeError):\n        wait()\n    with pytest.raises(TypeError):\n        wait(1, 2)\n"
        "    with pytest.raises(TypeError):\n        wait(1, seconds=2)\n    with pytest.raises(TypeError):\n        wait(1, quiet=True)\n",
    ),
    Case(
        "arguments that fit, where a test expects that they do not",
        bad="import pytest\nasync def wait(seconds, *, loud=False): ...\nasync def test_wait():\n"
        "    with pytest.raises(TypeError):\n        wait(1, loud=True)  # here\n",
    ),
    Case(
        "a plain call where awaiting it raised TypeError, because another version is plain",
        good="from aiohttp import ClientSession\nasync def main(session: ClientSession):\n    try:\n        await session.close()\n"
        "    except TypeError:\n        session.close()\n",
    ),
    Case(
        "a second try without its await",
        bad="async def notify(): ...\nasync def main():\n    try:\n        await notify()\n    except OSError:\n        notify()  # here\n",
        fixed="async def notify(): ...\nasync def main():\n    try:\n        await notify()\n    except OSError:\n        await notify()  # here\n",
    ),
    Case(
        "an async function that is expected to raise",
        bad="import pytest\nasync def wait(): ...\n"
        "def test_event():\n    with pytest.raises(ValueError):\n        wait()  # here\n",
    ),
    Case(
        "the namesake of a method that may be a library's",
        good="from kernels import AsyncKernelClient\nclass GatewayKernelClient(AsyncKernelClient):\n    async def start_channels(self): ...\n"
        "async def main(manager):\n    kc = manager.client()\n    kc.start_channels()\n",
    ),
    Case(
        "the namesake of a method of the project's own",
        bad="from kernels import Base\nclass GatewayKernelClient(Base):\n    async def start_channels(self): ...\n"
        "async def main(manager):\n    kc = manager.client()\n    kc.start_channels()  # here\n",
    ),
]


@rule("TR101", "unawaited-coroutine", cases=CASES)
def check(program: Program) -> Iterator[Finding]:
    """Coroutines dropped as statements."""
    for incident in incidents_of(program, "dropped"):
        call = call_text(program, incident)
        message = f"`{call}` makes a coroutine and drops it, so `{incident.site.target_name}` never runs"
        yield tell(program, "TR101", "unawaited-coroutine", incident, message, fix=await_fix(program, incident))
