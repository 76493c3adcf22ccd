"""Coroutine stored on an object and never awaited.

What it finds: `self.x = f()` where `f()` makes a coroutine and no method of the class awaits `self.x` or gives it away.
Why it matters: the call never runs, and every reader of the attribute finds a coroutine object.
How sure the fix is: likely; another class might await the attribute.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.rules._finding import await_fix, call_text, tell
from troth.analysis.rules.registry import Case, rule
from troth.analysis.semantics.walk.incident_queries import stored_incidents

if TYPE_CHECKING:
    from collections.abc import Iterator

    from troth.analysis.findings import Finding
    from troth.analysis.semantics import Program

CASES = [
    Case(
        "never looked at again",
        bad="async def load(): ...\nclass A:\n    async def start(self):\n        self.data = load()  # here\n",
        fixed="async def load(): ...\nclass A:\n    async def start(self):\n        self.data = await load()  # here\n",
    ),
    Case(
        "used as the result",
        bad="async def load(): ...\nclass A:\n    async def start(self):\n        self.data = load()  # here\n    def name(self):\n        return self.data['name']\n",
    ),
    Case(
        "awaited later",
        good="async def load(): ...\nclass A:\n    def __init__(self):\n        self.data = load()\n    async def name(self):\n        return (await self.data)['name']\n",
    ),
    Case(
        "given away later",
        good="import asyncio\nasync def load(): ...\nclass A:\n    def __init__(self):\n        self.data = load()\n    def start(self):\n        return asyncio.ensure_future(self.data)\n",
    ),
    Case(
        "a context that was to be awaited",
        bad="import aiohttp\nclass A:\n    def __init__(self, session: aiohttp.ClientSession):\n        self.session = session\n        self.ws = None\n"
        "    async def open(self):\n        self.ws = self.session.ws_connect('x')  # here\n    async def send(self):\n        await self.ws.send_json({})\n",
    ),
    Case(
        "a context that is entered later",
        good="import aiohttp\nclass A:\n    def __init__(self, session: aiohttp.ClientSession):\n        self.session = session\n"
        "    async def open(self):\n        self.context = self.session.ws_connect('x')\n        self.ws = await self.context.__aenter__()\n"
        "    async def other(self):\n        self.other = self.session.ws_connect('x')\n        async with self.other as ws:\n            await ws.send_json({})\n",
    ),
]


@rule("TR110", "stored-coroutine", cases=CASES)
def check(program: Program) -> Iterator[Finding]:
    """Coroutines kept in attributes."""
    for incident in stored_incidents(program):
        call = call_text(program, incident)
        message = (
            f"`{incident.variable}` is set to the coroutine of `{call}`, which is never awaited: "
            f"`{incident.site.target_name}` never runs"
        )
        fix = await_fix(program, incident, safety="likely")
        yield tell(program, "TR110", "stored-coroutine", incident, message, fix=fix)
