"""Needless async.

What it finds: an `async def`, function or method, that never waits: no `await`, `async for` or `async with` in it, and
nothing that needs it to be async: no base, Protocol, framework, route, fixture, table or callback.
Why it matters: every caller has to await it and become async itself; one that forgets the await loses the call in silence.
How to repair: drop the `async`, and the `await` at every call: `troth recolor` does both, everywhere at once.
How sure the fix is: likely, and only asked for with `troth fix --all --select TR301`; it changes the function and all of its
calls, or nothing where one of them is not known for certain. Code outside the project that awaits it would break.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from troth.analysis.findings import Finding, Reason, Span
from troth.analysis.rules._fixes.make_sync import free_fix, loses
from troth.analysis.rules.registry import Case, rule
from troth.analysis.semantics.queries.needless_async import needless

if TYPE_CHECKING:
    from troth.analysis.semantics import Program
    from troth.analysis.semantics.queries.needless_async import Needless

CASES = [
    Case(
        "a function",
        bad="async def add(a, b):  # here\n    return a + b\nasync def main():\n    await wait()\n    return await add(1, 2)\nasync def wait():\n    async with lock: ...\n",
        fixed="def add(a, b):  # here\n    return a + b\nasync def main():\n    await wait()\n    return add(1, 2)\nasync def wait():\n    async with lock: ...\n",
    ),
    Case(
        "in another file",
        bad={
            "sums.py": "async def add(a, b) -> list[int]:  # here\n    return [a, b]\n",
            "use.py": "from sums import add\nasync def main(r):\n    await r.go()\n    return (await add(1, 2))[0] + (await add(\n        3,\n        4,\n    ))[0]\n",
        },
        fixed={
            "sums.py": "def add(a, b) -> list[int]:  # here\n    return [a, b]\n",
            "use.py": "from sums import add\nasync def main(r):\n    await r.go()\n    return add(1, 2)[0] + (add(\n        3,\n        4,\n    ))[0]\n",
        },
    ),
    Case(
        "a method",
        bad="class Total:\n    async def add(self, n):  # here\n        self.n += n\n    async def twice(self, n):\n        await self.add(n)\n        await self.wait()\n"
        "    async def wait(self):\n        async with self.lock: ...\n",
    ),
    Case(
        "one that waits",
        good="async def load(r):\n    return await r.json()\nasync def main(r):\n    return await load(r)\n",
    ),
    Case(
        "an async generator",
        good="async def pages():\n    yield 1\nasync def main():\n    async for p in pages():\n        print(p)\n",
    ),
    Case(
        "an override of one that waits",
        good="class Base:\n    async def load(self):\n        return await self.fetch()\nclass Memory(Base):\n    async def load(self):\n        return 1\n"
        "async def main(store: Base):\n    return await store.load()\n",
    ),
    Case(
        "asked for by a protocol",
        good="from typing import Protocol\nclass Store(Protocol):\n    async def load(self): ...\nclass Memory:\n    async def load(self):\n        return 1\n"
        "async def main(store: Memory):\n    return await store.load()\n",
    ),
    Case(
        "asked for by an unknown base",
        good="from lib import Cog\nclass My(Cog):\n    async def setup(self):\n        return 1\n    async def go(self):\n        await self.setup()\n",
    ),
    Case(
        "a route",
        good="from fastapi import FastAPI\napp = FastAPI()\n@app.get('/')\nasync def root():\n    return 1\nasync def main():\n    return await root()\n",
    ),
    Case(
        "pulled by a dispatcher",
        bad="class Bot:\n    async def handle_a(self, m):  # here\n        print(m)\n    async def handle_b(self, m):\n        await m.send()\n"
        "    async def on(self, kind, m):\n        handler = getattr(self, f'handle_{kind}', None)\n        if handler:\n            await handler(m)\n",
    ),
    Case(
        "a dispatcher that takes both",
        good="import asyncio\nclass Bot:\n    def handle_a(self, m):\n        print(m)\n    async def handle_b(self, m):\n        await m.send()\n"
        "    async def on(self, kind, m):\n        handler = getattr(self, f'handle_{kind}', None)\n        result = handler(m)\n        if asyncio.iscoroutine(result):\n            await result\n",
    ),
    Case(
        "a callback",
        good="from lib import register\nasync def a(m):\n    return m\nregister(a)\nasync def main(m):\n    await a(m)\n",
    ),
    Case(
        "a callback that its taker awaits",
        bad="class Runner:\n    def __init__(self, on_error):\n        self.on_error = on_error\n    async def run(self):\n        await self.on_error()\n"
        "class App:\n    async def forget(self):  # here\n        self.waiting = None\n    async def start(self):\n        await Runner(on_error=self.forget).run()\n",
    ),
    Case(
        "a callback beside one that waits",
        good="class Runner:\n    def __init__(self, on_error):\n        self.on_error = on_error\n    async def run(self):\n        await self.on_error()\n"
        "class App:\n    async def forget(self):\n        self.waiting = None\n    async def tell(self):\n        await self.client.send()\n"
        "    async def start(self):\n        await Runner(on_error=self.forget).run()\n        await Runner(on_error=self.tell).run()\n",
    ),
    Case(
        "a namesake of a callback",
        bad="from lib import register\nclass Bar:\n    def refresh(self): ...\nclass Job:\n    async def refresh(self):  # here\n        self.n = 1\n"
        "async def main(job: Job, bar: Bar):\n    register(bar.refresh)\n    await job.refresh()\n    await job.lock.acquire()\n",
    ),
    Case(
        "given to somebody who takes both",
        bad="import asyncio\nclass App:\n    def add_job(self, work):\n        return asyncio.ensure_future(work()) if asyncio.iscoroutinefunction(work) else work()\n"
        "    async def count(self):  # here\n        self.n = 1\n    def start(self):\n        return self.add_job(self.count)\n",
    ),
    Case(
        "one that waits for needless ones only",
        bad="class Total:\n    async def add(self, n):  # here\n        self.n += n\n    async def twice(self, n):  # here\n        await self.add(n)\n        await self.add(n)\n"
        "    async def go(self):\n        await self.twice(1)\n        await self.lock.acquire()\n",
    ),
    Case(
        "a base that takes both",
        bad="from collections.abc import Awaitable\nclass Step:\n    def execute(self) -> None | Awaitable[None]:\n        raise NotImplementedError\n"
        "class Count(Step):\n    async def execute(self):  # here\n        self.n = 1\nclass Ask(Step):\n    async def execute(self):\n        await self.client.ask()\n",
    ),
    Case(
        "given to a task",
        good="import asyncio\nasync def a():\n    return 1\nasync def main():\n    t = asyncio.create_task(a())\n    await t\n",
    ),
    Case(
        "inside what makes an object awaitable",
        good="class Result:\n    def __await__(self):\n        async def run():\n            return 1\n        return run().__await__()\nasync def main():\n    return await Result()\n",
    ),
]


@rule("TR301", "needless-async", cases=CASES, default=False)
def check(program: Program) -> Iterator[Finding]:
    """Async functions that never wait."""
    for finding in needless(program):
        if any(loses(program, inner) for inner in (finding.function, *finding.through)):
            continue  # it waits for nothing because an `await` is missing: that is told instead
        yield _told(program, finding)


def _told(program: Program, one: Needless) -> Finding:
    function = one.function
    path, line = function.place
    column = len(program.text(path).line(line)) - len(program.text(path).line(line).lstrip()) + 1
    calls = len(one.awaited)
    phrase = f"{calls} call{'s have' if calls != 1 else ' has'}" if calls and one.slot is None else "every call has"
    first = one.awaited[0] if one.awaited else None
    if one.slot is not None:
        taker = one.slot.function.qualname.removesuffix(".__init__")
        asks = Reason(
            f"only `{taker}` asks for it, which awaits what `{one.slot.name}` returns", one.slot.path, one.slot.at[0]
        )
    elif first is None:
        asks = Reason("it has no callers in this project")
    elif one.is_pulled:
        says = f"only `await {first.text}(…)` in `{first.caller.qualname}`, which picks it at run time, asks for it"
        asks = Reason(says, first.caller.module.path, first.at[0])
    else:
        asks = Reason(f"`{first.caller.qualname}` calls it", first.caller.module.path, first.at[0])
    if one.through:
        names = " and ".join(f"`{inner.name}`" for inner in one.through[:3])
        idle = Reason(f"all that it waits for is {names}, which never waits", *one.through[0].place)
    else:
        idle = Reason(f"there is no `await`, `async for` or `async with` in `{function.qualname}`", path, line)
    return Finding(
        "TR301",
        "needless-async",
        Span(path, line, column, line, column + len("async def")),
        f"`{function.qualname}` is async and never waits: {phrase} to be awaited for no benefit, and a forgotten `await` loses the call",
        "certain" if one.is_sure else "likely",
        (idle, asks),
        free_fix(program, one),
        function.qualname,
        function.name,
    )
