"""Plain `with` on an async context.

What it finds: `with x` where `x` has `__aenter__` but no `__enter__`, or is made by an `@asynccontextmanager`.
Why it matters: the statement raises; nothing is entered.
How sure the fix is: `async with` is sure inside `async def`; elsewhere nothing is offered, nor where the same statement
enters something else too, which may not be async.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.rules._finding import tell
from troth.analysis.rules._fixes.async_block import async_with_fix
from troth.analysis.rules.registry import Case, rule
from troth.analysis.semantics.walk.incident_queries import incidents_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from troth.analysis.findings import Finding
    from troth.analysis.semantics import Program

CASES = [
    Case(
        "a client that a plain `with` enters too",
        good="from telethon import TelegramClient\nwith TelegramClient('a', 1, 'b') as client:\n    print(client)\n",
    ),
    Case(
        "a class",
        bad="class Lock:\n    async def __aenter__(self): ...\n    async def __aexit__(self, *a): ...\nasync def main():\n    with Lock():  # here\n        pass\n",
        fixed="class Lock:\n    async def __aenter__(self): ...\n    async def __aexit__(self, *a): ...\nasync def main():\n    async with Lock():  # here\n        pass\n",
    ),
    Case(
        "a function",
        bad="from contextlib import asynccontextmanager\n@asynccontextmanager\nasync def lock():\n    yield\nasync def main():\n    with lock():  # here\n        pass\n",
    ),
    Case(
        "beside a sync one",
        bad="class Lock:\n    async def __aenter__(self): ...\n    async def __aexit__(self, *a): ...\nasync def main():\n    with Lock(), open('x'):  # here\n        pass\n",
    ),
    Case(
        "a lock of asyncio",
        bad="import asyncio\nclass Store:\n    def __init__(self):\n        self.lock = asyncio.Lock()\n    async def save(self):\n        with self.lock:  # here\n            pass\n",
        fixed="import asyncio\nclass Store:\n    def __init__(self):\n        self.lock = asyncio.Lock()\n    async def save(self):\n        async with self.lock:  # here\n            pass\n",
    ),
    Case(
        "a client of a library",
        bad="import httpx\nasync def main():\n    with httpx.AsyncClient() as client:  # here\n        await client.get('x')\n",
        fixed="import httpx\nasync def main():\n    async with httpx.AsyncClient() as client:  # here\n        await client.get('x')\n",
    ),
    Case(
        "what a method of an async client gives",
        bad="import httpx\nasync def main(client: httpx.AsyncClient):\n    with client.stream('GET', 'x') as reply:  # here\n        print(reply)\n",
        fixed="import httpx\nasync def main(client: httpx.AsyncClient):\n    async with client.stream('GET', 'x') as reply:  # here\n        print(reply)\n",
    ),
    Case(
        "what a method of a sync client gives",
        good="import httpx\ndef main(client: httpx.Client):\n    with client.stream('GET', 'x') as reply:\n        print(reply)\n",
    ),
    Case(
        "a lock of threads",
        good="import asyncio, threading\nclass Store:\n    def __init__(self):\n        self.lock = threading.Lock()\n    async def save(self):\n        with self.lock:\n            pass\n",
    ),
    Case(
        "both kinds",
        good="class Lock:\n    def __enter__(self): ...\n    def __exit__(self, *a): ...\n    async def __aenter__(self): ...\n    async def __aexit__(self, *a): ...\ndef main():\n    with Lock():\n        pass\n",
    ),
    Case(
        "an unknown base",
        good="from somewhere import Base\nclass Lock(Base):\n    async def __aenter__(self): ...\ndef main():\n    with Lock():\n        pass\n",
    ),
    Case(
        "a test that it is refused",
        good="import pytest\nclass Lock:\n    async def __aenter__(self): ...\n    async def __aexit__(self, *a): ...\nasync def test_plain():\n    with pytest.raises(RuntimeError):\n        with Lock():\n            pass\n",
    ),
]


@rule("TR117", "plain-with-on-async-context", cases=CASES)
def check(program: Program) -> Iterator[Finding]:
    """Async contexts under a plain `with`."""
    for incident in incidents_of(program, "plain with"):
        message = f"`{incident.site.callee}` is an async context: a plain `with` raises here and enters nothing"
        fix = async_with_fix(program, incident)
        yield tell(program, "TR117", "plain-with-on-async-context", incident, message, fix=fix)
