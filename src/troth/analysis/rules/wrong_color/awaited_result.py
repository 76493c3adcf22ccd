"""Awaited result.

What it finds: `await x` where `x` is no awaitable: a property, an attribute or a variable that holds a result, a list of
coroutines, a lock, an object just made, a context manager that was meant to be entered, or a function that is not called.
Why it matters: the line raises `TypeError: object … can't be used in 'await' expression`, and what follows never happens.
How to repair: remove the `await`. Give a list of coroutines to `asyncio.gather(*…)`, and enter a lock or a context
manager with `async with`.
How sure the fix is: likely, because the `await` may have been intended for something else.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from troth.analysis.findings import Edit, Finding, Fix
from troth.analysis.rules._finding import tell_at
from troth.analysis.rules.registry import Case, rule
from troth.analysis.semantics.queries.refused_operands import Refusal, refused

if TYPE_CHECKING:
    from collections.abc import Iterator

    from troth.analysis.semantics import Program

_LOAD = "async def load(n=0) -> int:\n    return n\n"
_SESSION = "from contextlib import asynccontextmanager\n@asynccontextmanager\nasync def session():\n    yield 1\n"
CASES = [
    Case(
        "asked for by its `__await__`",
        good="from collections.abc import Callable\nclass Rules:\n    def __init__(self):\n        self.rules: list[Callable[[int], bool]] = []\n"
        "    async def check(self, x):\n        for rule in self.rules:\n            result = rule(x)\n"
        "            if hasattr(result, '__await__'):\n                result = await result\n            print(result)\n",
    ),
    Case(
        "a property",
        bad="class User:\n    @property\n    def name(self) -> str:\n        return 'x'\nasync def main(user: User):\n    return await user.name  # here\n",
        fixed="class User:\n    @property\n    def name(self) -> str:\n        return 'x'\nasync def main(user: User):\n    return user.name  # here\n",
    ),
    Case(
        "a field",
        bad="from dataclasses import dataclass\n@dataclass\nclass User:\n    name: str\nasync def main(user: User):\n    return await user.name  # here\n",
    ),
    Case(
        "a result that was awaited before",
        bad="async def load() -> dict:\n    return {}\nasync def main():\n    row = await load()\n    return await row  # here\n",
        fixed="async def load() -> dict:\n    return {}\nasync def main():\n    row = await load()\n    return row  # here\n",
    ),
    Case(
        "a list of coroutines",
        bad=f"import asyncio\n{_LOAD}async def main():\n    return await [load(n) for n in range(3)]  # here\n",
        fixed=f"import asyncio\n{_LOAD}async def main():\n    return await asyncio.gather(*[load(n) for n in range(3)])  # here\n",
    ),
    Case(
        "a list of coroutines in a variable",
        bad=f"{_LOAD}async def main():\n    jobs = [load(n) for n in range(3)]\n    return await jobs  # here\n",
    ),
    Case(
        "a lock",
        bad="import asyncio\nclass Store:\n    def __init__(self):\n        self.lock = asyncio.Lock()\n    async def save(self):\n        await self.lock  # here\n",
    ),
    Case(
        "a context manager",
        bad=f"{_SESSION}async def main():\n    one = await session()  # here\n    return one\n",
    ),
    Case(
        "an object that was just made",
        bad="class Client:\n    def __init__(self, url):\n        self.url = url\nasync def main():\n    return await Client('x')  # here\n",
        fixed="class Client:\n    def __init__(self, url):\n        self.url = url\nasync def main():\n    return Client('x')  # here\n",
    ),
    Case(
        "a sync method that is not called",
        bad="class Job:\n    def stop(self):\n        print(1)\nasync def main(job: Job):\n    await job.stop  # here\n",
    ),
    Case(
        "a parameter by its annotation",
        bad="async def main(rows: list[int]):\n    return await rows  # here\n",
    ),
    Case(
        "an async property",
        good="class User:\n    @property\n    async def name(self) -> str:\n        return 'x'\nasync def main(user: User):\n    return await user.name\n",
    ),
    Case(
        "a property that gives an awaitable",
        good="import asyncio\nclass User:\n    @property\n    def name(self) -> asyncio.Future[str]:\n        return self.future\nasync def main(user: User):\n    return await user.name\n",
    ),
    Case(
        "a property that gives something unknown",
        good="class User:\n    @property\n    def name(self):\n        return self.source.name\nasync def main(user: User):\n    return await user.name\n",
    ),
    Case(
        "a property that a subclass makes async",
        good="class User:\n    @property\n    def name(self) -> str:\n        return 'x'\nclass Remote(User):\n    @property\n    async def name(self) -> str:\n        return 'x'\nasync def main(user: User):\n    return await user.name\n",
    ),
    Case(
        "a task in a field that begins as None",
        good="import asyncio\nasync def work(): ...\nclass Job:\n    def __init__(self):\n        self.task = None\n    async def start(self):\n        self.task = asyncio.create_task(work())\n    async def stop(self):\n        await self.task\n",
    ),
    Case(
        "a result or a coroutine",
        good="from collections.abc import Awaitable\nasync def main(row: dict | Awaitable[dict]):\n    if not isinstance(row, dict):\n        row = await row\n    return row\n",
    ),
    Case(
        "asked for what it is",
        good="import inspect\ndef make() -> dict:\n    return {}\nasync def main():\n    row = make()\n    if inspect.isawaitable(row):\n        row = await row\n    return row\n",
    ),
    Case(
        "an error that is expected",
        good="import pytest\nasync def test():\n    with pytest.raises(TypeError):\n        await [1]\nasync def main():\n    try:\n        await [1]\n    except TypeError:\n        print('no')\n",
    ),
    Case(
        "an object with __await__",
        good="class Query:\n    def __await__(self):\n        yield\nclass Named(Query):\n    def __init__(self, name):\n        self.name = name\nasync def main():\n    return await Named('x')\n",
    ),
    Case(
        "an attribute whose result takes its place",
        good="class Response: ...\nclass Stream:\n    def __init__(self, inner: Response):\n        self.inner: Response = inner\n    async def open(self):\n        inner: Response = await self.inner\n        self.inner = inner\n",
    ),
    Case(
        "an object of a class with an unknown base",
        good="from somewhere import Base\nclass Query(Base):\n    def __init__(self, name):\n        self.name = name\nasync def main():\n    return await Query('x')\n",
    ),
    Case(
        "an object of a class that a decorator makes again",
        good="from somewhere import lazy\n@lazy\nclass Query:\n    def __init__(self, name):\n        self.name = name\nasync def main():\n    return await Query('x')\n",
    ),
    Case(
        "of a callable that is annotated with what the `await` gives",
        good="from collections.abc import Callable\nclass Row: ...\nclass Api:\n    def __init__(self, request: Callable[..., Row]):\n        self.request = request\n"
        "    async def get(self, make: Callable[[], Row]):\n        later = make()\n        return await self.request('x'), await make(), await later\n",
    ),
    Case(
        "a context that can be awaited as well",
        good="import aiohttp\nasync def main(session: aiohttp.ClientSession):\n    return await session.get('x')\n",
    ),
    Case(
        "an async fixture that no plugin awaits",
        good="import pytest\n@pytest.fixture\nasync def ready():\n    return True\nasync def test_it(ready):\n    assert await ready\n",
    ),
]


@rule("TR415", "awaited-result", cases=CASES)
def check(program: Program) -> Iterator[Finding]:
    """Values that cannot be awaited, under `await`."""
    for refusal in refused(program, "await"):
        operand = refusal.operand
        written = _written(program, refusal)
        if refusal.is_function:
            message = f"`await {written}` raises TypeError: it is a sync function that is not called"
        elif refusal.holds_awaitables:
            message = f"`await {written}` raises TypeError: it is {refusal.what} of awaitables, which `asyncio.gather(*…)` waits for"
        elif refusal.is_context:
            message = f"`await {written}` raises TypeError: it is {refusal.what}, which `async with` enters"
        else:
            message = f"`await {written}` raises TypeError: it is {refusal.what}, which cannot be awaited"
        yield tell_at(
            program, "TR415", "awaited-result", refusal.function, operand.at, message,
            sure=refusal.sure, reasons=refusal.reasons, fix=_fix(program, refusal), subject=written,
        )  # fmt: skip


_AWAIT = re.compile(r"await\b\s*")
_LONGEST = 40


def _written(program: Program, refusal: Refusal) -> str:
    """What is awaited, as far as one line can show it."""
    text = " ".join(program.text(refusal.function.module.path).cut(*refusal.operand.at).split())
    text = _AWAIT.sub("", text, count=1)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST].rstrip()}…"


def _fix(program: Program, refusal: Refusal) -> Fix | None:
    path, at = refusal.function.module.path, refusal.operand.at
    if path.endswith(".ipynb") or refusal.is_context or refusal.is_function:
        return None
    text = program.text(path)
    start, end = text.offset(at[0], at[1]), text.offset(at[2], at[3])
    match = _AWAIT.match(text.value, start, end)
    if match is None or "\n" in match[0]:
        return None
    if not refusal.holds_awaitables:
        return Fix("take the await away", "likely", (Edit(path, start, match.end(), ""),))
    if "asyncio" not in refusal.function.module.bindings:
        return None
    return Fix(
        "wait for all of them: `asyncio.gather(*…)`",
        "likely",
        (Edit(path, match.end(), match.end(), "asyncio.gather(*"), Edit(path, end, end, ")")),
    )
