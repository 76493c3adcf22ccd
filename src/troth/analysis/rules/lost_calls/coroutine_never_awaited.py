"""Coroutine never awaited.

What it finds: a coroutine that is assigned to a variable (or put into a local container) and awaited on no way through
the function, nor passed to anything that might; often the variable is used further down as if it were the result.
Why it matters: the call never runs, and what follows works on a coroutine object instead of its result.
How sure the fix is: sure where the callee is certain; the variable then holds the result, as the code below expects.
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
        "put into a dict by a loop, whose values are gathered",
        good="import asyncio\nasync def load(): ...\nasync def main(names):\n    rows = {}\n    for name in names:\n        rows[name] = load()\n"
        "    found = list(rows.values())\n    return dict(zip(rows, await asyncio.gather(*found)))\n",
    ),
    Case(
        "put into a dict by a loop on one of two ways, and awaited one by one",
        good="async def load(): ...\nasync def save(): ...\nasync def main(names):\n    rows: dict[str, object] = {}\n    while names:\n        name = names.pop()\n"
        "        if name:\n            rows[name] = load()\n        else:\n            rows['x'] = save()\n    for name, row in rows.items():\n        print(name, await row)\n",
    ),
    Case(
        "put into a dict by a loop, whose values are taken for results",
        bad="async def load(): ...\nasync def main(names):\n    rows = {}\n    for name in names:\n        rows[name] = load()  # here\n    for row in rows.values():\n        print(row.name)\n",
        fixed="async def load(): ...\nasync def main(names):\n    rows = {}\n    for name in names:\n        rows[name] = await load()  # here\n    for row in rows.values():\n        print(row.name)\n",
    ),
    Case(
        "put into a dict by a loop, and forgotten",
        bad="async def load(): ...\nasync def main(names):\n    rows = {}\n    for name in names:\n        rows[name] = load()  # here\n",
        fixed="async def load(): ...\nasync def main(names):\n    rows = {}\n    for name in names:\n        rows[name] = await load()  # here\n",
    ),
    Case(
        "what a model is to be made of",
        bad="from pydantic import BaseModel\nclass Task(BaseModel):\n    name: str\nclass Client:\n    async def _request(self, path): ...\n"
        "    async def get(self):\n        data = self._request('x')  # here\n        return Task.model_validate(data)\n",
        fixed="from pydantic import BaseModel\nclass Task(BaseModel):\n    name: str\nclass Client:\n    async def _request(self, path): ...\n"
        "    async def get(self):\n        data = await self._request('x')  # here\n        return Task.model_validate(data)\n",
    ),
    Case(
        "what a model is made of, once it is there",
        good="from pydantic import BaseModel\nclass Task(BaseModel):\n    name: str\nclass Client:\n    async def _request(self, path): ...\n"
        "    async def get(self):\n        data = self._request('x')\n        return Task.model_validate(await data)\n",
    ),
    Case(
        "of what is injected from elsewhere, with a namesake in the project",
        good="from elsewhere import get_profiler\nfrom fastapi import Depends\nclass RedisCache:\n    async def get_stats_now(self): ...\n"
        "async def give_profiler():\n    return get_profiler()\nasync def health(profiler=Depends(give_profiler)):\n"
        "    stats = profiler.get_stats_now()\n    return [s['count'] for s in stats.values()]\n",
    ),
    Case(
        "of a parameter for which every caller gives an async function",
        bad="async def load(n): ...\nasync def each(fn, items):\n    for item in items:\n        row = fn(item)  # here\n        print(row.name)\n"
        "async def main():\n    await each(load, [1])\n",
        fixed="async def load(n): ...\nasync def each(fn, items):\n    for item in items:\n        row = await fn(item)  # here\n        print(row.name)\n"
        "async def main():\n    await each(load, [1])\n",
    ),
    Case(
        "of a parameter for which one caller gives a sync function",
        good="async def load(n): ...\ndef look(n):\n    return n\nasync def each(fn, items):\n    for item in items:\n        row = fn(item)\n        print(row.name)\n"
        "async def main():\n    await each(load, [1])\n    await each(look, [1])\n",
    ),
    Case(
        "of a parameter that is asked for its color",
        good="import inspect\nasync def load(n): ...\nasync def each(fn, items):\n    for item in items:\n        row = fn(item)\n        if inspect.isawaitable(row):\n            row = await row\n        print(row.name)\n"
        "async def main():\n    await each(load, [1])\n",
    ),
    Case(
        "a test whether it is an awaitable of the project's own class",
        good="from collections.abc import Coroutine\nclass Handle(Coroutine):\n    def close(self): ...\n"
        "class Bus:\n    def on(self) -> Coroutine: return Handle()\n"
        "def test_on(bus: Bus):\n    handle = bus.on()\n    assert isinstance(handle, Handle)\n    handle.close()\n",
    ),
    Case(
        "a test whether it is a row",
        bad="class Row: ...\nasync def load(): ...\nasync def test_load():\n    row = load()  # here\n    assert isinstance(row, Row)\n",
    ),
    Case(
        "assigned and forgotten",
        bad="async def load(): ...\nasync def main():\n    data = load()  # here\n",
        fixed="async def load(): ...\nasync def main():\n    data = await load()  # here\n",
    ),
    Case(
        "used as the result",
        bad="async def load(): ...\nasync def main():\n    data = load()  # here\n    return data['name']\n",
        fixed="async def load(): ...\nasync def main():\n    data = await load()  # here\n    return data['name']\n",
    ),
    Case("silenced with an underscore", bad="async def load(): ...\nasync def main():\n    _ = load()  # here\n"),
    Case(
        "in a list nobody looks at",
        bad="async def f(): ...\nasync def main():\n    jobs = []\n    jobs.append(f())  # here\n    print(len(jobs))\n",
    ),
    Case(
        "overwritten",
        bad="async def f(): ...\nasync def main():\n    x = f()  # here\n    x = await f()\n    return x\n",
    ),
    Case(
        "given to a function that ignores it",
        bad="async def f(): ...\ndef show(x):\n    print(x)\nasync def main():\n    x = f()  # here\n    show(x)\n",
    ),
    Case(
        "items of a map used as results",
        bad="async def load(key): ...\nasync def main(keys):\n    rows = list(map(load, keys))  # here\n    return [row.name for row in rows]\n",
        fixed="async def load(key): ...\nasync def main(keys):\n    rows = [await load(item) for item in keys]  # here\n    return [row.name for row in rows]\n",
    ),
    Case(
        "items of a map, gathered",
        good="import asyncio\nasync def load(key): ...\nasync def main(keys):\n    rows = list(map(load, keys))\n    return await asyncio.gather(*rows)\n",
    ),
    Case(
        "items of a map, awaited in turn",
        good="async def load(key): ...\nasync def main(keys):\n    for row in map(load, keys):\n        await row\n",
    ),
    Case(
        "items of a map, handed on",
        good="async def load(key): ...\nasync def main(keys, run):\n    rows = set(map(load, keys))\n    await run(rows)\n",
    ),
    Case("awaited later", good="async def load(): ...\nasync def main():\n    data = load()\n    return await data\n"),
    Case(
        "awaited in the loop",
        good="async def f(): ...\nasync def main():\n    jobs = [f() for _ in range(3)]\n    for job in jobs:\n        await job\n",
    ),
    Case(
        "gathered",
        good="import asyncio\nasync def f(): ...\nasync def main():\n    jobs = []\n    for _ in range(3):\n        jobs.append(f())\n    await asyncio.gather(*jobs)\n",
    ),
    Case(
        "given to somebody unknown",
        good="from somewhere import keep\nasync def f(): ...\nasync def main():\n    x = f()\n    keep(x)\n",
    ),
    Case(
        "awaited by an inner function",
        good="async def f(): ...\nasync def main():\n    x = f()\n    async def later():\n        await x\n    return later\n",
    ),
    Case("closed", good="async def f(): ...\nasync def main():\n    x = f()\n    x.close()\n"),
    Case(
        "asked for its color",
        good="from inspect import isawaitable\nfrom typing import Any, Callable, Coroutine\n"
        "async def main(handler: Callable[..., Coroutine[Any, Any, list]]):\n    result = handler()\n"
        "    if isawaitable(result):\n        result = await result\n    print(result[0])\n",
    ),
    Case(
        "asked for its color in the condition that tests it",
        good="from inspect import iscoroutine\nfrom typing import Awaitable, Callable\n"
        "class Loader:\n    def __init__(self, load: Callable[[int], Awaitable[int]]):\n        self.load = load\n"
        "async def main(loader: Loader):\n    work = loader.load(1)\n    if not work or not iscoroutine(work):\n"
        "        raise TypeError(f'no coroutine: {work}')\n    return await work\n"
        "async def other(loader: Loader):\n    work = loader.load(1)\n    if work and iscoroutine(work):\n        return await work\n",
    ),
    Case(
        "cast to what it really is, against its interface",
        good="from typing import AsyncIterator, Protocol, cast\nclass Service(Protocol):\n    async def watch(self, key) -> int: ...\n"
        "async def main(service: Service):\n    call = cast(AsyncIterator[int], service.watch(1))\n    async for event in call:\n        print(event)\n",
    ),
    Case(
        "a future that is asked now and then, though others await it",
        good="import asyncio\nclass Player:\n    def ends(self) -> asyncio.Future[bool]:\n        return asyncio.get_running_loop().create_future()\n"
        "    async def wait(self):\n        await self.ends()\n    async def wait_long(self):\n        return await self.ends()\n"
        "    async def poll(self):\n        ended = self.ends()\n        while not ended.done():\n            await self.look()\n    async def look(self): ...\n",
    ),
    Case("deleted", good="async def f(): ...\nasync def main():\n    job = f()\n    del job\n"),
]


@rule("TR102", "coroutine-never-awaited", cases=CASES)
def check(program: Program) -> Iterator[Finding]:
    """Coroutines that variables hold to the end."""
    for incident in incidents_of(program, "never awaited"):
        if incident.site.awaitable not in {"coroutine", "future"}:
            continue
        if incident.is_handed_over and not program.judge.is_always_awaited(incident.site):
            continue
        call = call_text(program, incident)
        message = (
            f"`{incident.variable}` holds the coroutine of `{call}` and is never awaited, "
            f"so `{incident.site.target_name}` never runs"
        )
        yield tell(program, "TR102", "coroutine-never-awaited", incident, message, fix=await_fix(program, incident))
