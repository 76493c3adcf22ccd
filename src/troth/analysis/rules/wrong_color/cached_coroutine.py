"""Cached coroutine.

What it finds: `functools.lru_cache`, `cache`, `cached_property` and their like on an `async def`.
Why it matters: what is cached is the coroutine, not its result. The first caller awaits it; the second gets the same
object and raises "cannot reuse already awaited coroutine".
How to repair: a cache that awaits first (`async_lru.alru_cache`), or keep the task: `asyncio.ensure_future(load())`.
How sure the fix is: where the file already imports `alru_cache`, putting it in the place of `lru_cache` is likely right;
else none is offered.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from troth.analysis.findings import Edit, Finding, Fix, Reason
from troth.analysis.knowledge.semantics import semantics
from troth.analysis.program.calling import names_of
from troth.analysis.program.results import is_harmless
from troth.analysis.rules.registry import Case, rule
from troth.analysis.rules.telling import tell_at

if TYPE_CHECKING:
    from troth.analysis.program import Program
    from troth.analysis.program.entities import Function

CASES = [
    Case(
        "lru_cache",
        bad="from functools import lru_cache\n@lru_cache(maxsize=8)\nasync def load(n):  # here\n    return await get(n)\n",
    ),
    Case("cache", bad="import functools\n@functools.cache\nasync def load(n):  # here\n    return await get(n)\n"),
    Case(
        "a cached property",
        bad="from functools import cached_property\nclass A:\n    @cached_property\n    async def size(self):  # here\n        return await self.get()\n",
    ),
    Case(
        "beside an async cache",
        bad="from functools import lru_cache\nfrom async_lru import alru_cache\n@lru_cache(maxsize=8)\nasync def load(n):  # here\n    return await get(n)\n",
        fixed="from functools import lru_cache\nfrom async_lru import alru_cache\n@alru_cache(maxsize=8)\nasync def load(n):  # here\n    return await get(n)\n",
    ),
    Case("a plain function", good="from functools import lru_cache\n@lru_cache\ndef load(n):\n    return n\n"),
    Case(
        "an async cache",
        good="from async_lru import alru_cache\n@alru_cache\nasync def load(n):\n    return await get(n)\n",
    ),
    Case("a namesake", good="def cache(f):\n    return f\n@cache\nasync def load(n):\n    return await get(n)\n"),
    Case(
        "made into a task below",
        good="import asyncio\nfrom functools import cached_property, wraps\ndef task(f):\n    @wraps(f)\n    def start(*a):\n        return asyncio.ensure_future(f(*a))\n    return start\n"
        "class A:\n    @cached_property\n    @task\n    async def size(self):\n        return await self.get()\n",
    ),
]


@rule("T406", "cached-coroutine", cases=CASES)
def check(program: Program) -> Iterator[Finding]:
    """Caches that keep coroutines."""
    for path in program.asked:
        module = program.module(path)
        for index, facts in enumerate(module.facts.functions):
            if facts.decorators and facts.flags & 3 == 1:
                yield from _decorated(program, module.function(index))


def _decorated(program: Program, function: Function) -> Iterator[Finding]:
    scope = program.static(function.module, function.parent)
    for decorator in reversed(function.facts.decorators):
        node = decorator[1] if decorator[0] == "call" else decorator
        known = semantics().decorators
        cache = next((name for name in names_of(scope.value(node)) if known.get(name) == "caches"), None)
        if cache is not None:
            line, column = function.facts.at[:2]
            message = f"`{cache}` keeps the coroutine of `{function.qualname}`, not its result: the second caller to await it gets an error"
            yield tell_at(
                program, "T406", "cached-coroutine", function, (line, column, line, column + len("async def")), message, sure=True,
                reasons=(Reason(f"`{function.qualname}` is `async def`", *function.place), Reason(f"`{cache}` keeps what the first call gives")),
                fix=_fix(program, function, cache),
            )  # fmt: skip
            return
        if not is_harmless(program, function, decorator):
            return


def _fix(program: Program, function: Function, cache: str) -> Fix | None:
    """`alru_cache`, where the file has it already."""
    path, imports = function.module.path, function.module.facts.imports
    if cache != "functools.lru_cache" or path.endswith(".ipynb"):
        return None
    if not any(one.local == "alru_cache" and not one.scope for one in imports):
        return None
    text = program.text(path)
    for line in range(function.facts.at[0] - 1, max(0, function.facts.at[0] - 6), -1):
        written = text.line(line)
        if written.strip().startswith("@lru_cache"):
            start = text.offset(line, 0) + written.index("@lru_cache") + 1
            return Fix("use the async cache", "likely", (Edit(path, start, start + len("lru_cache"), "alru_cache"),))
    return None
