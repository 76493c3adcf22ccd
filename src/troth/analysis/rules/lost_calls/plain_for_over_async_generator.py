"""Plain loop over an async generator.

What it finds: `for x in pages()` (or a comprehension, or `list(pages())`) where `pages` is an async generator function, or
over an object that has `__aiter__` and no `__iter__`.
Why it matters: the loop raises `TypeError` before its first turn.
How sure the fix is: `async for` in the loop or the comprehension is sure in `async def`; `list(pages())` is likely meant
to collect all of it, `[item async for item in pages()]`. In a plain `def` nothing is offered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.findings import Edit, Fix
from troth.analysis.rules._finding import call_text, tell
from troth.analysis.rules._fixes.async_block import async_for_fix
from troth.analysis.rules.registry import Case, rule
from troth.analysis.semantics.walk.incident_queries import incidents_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from troth.analysis.findings import Finding
    from troth.analysis.semantics import Program
    from troth.analysis.semantics.incident import LossIncident

CASES = [
    Case(
        "an answer that is streamed",
        bad="from openai import AsyncOpenAI\nclient = AsyncOpenAI()\nasync def main():\n    answer = await client.chat.completions.create(model='m', messages=[], stream=True)\n    for chunk in answer:  # here\n        print(chunk)\n",
        fixed="from openai import AsyncOpenAI\nclient = AsyncOpenAI()\nasync def main():\n    answer = await client.chat.completions.create(model='m', messages=[], stream=True)\n    async for chunk in answer:  # here\n        print(chunk)\n",
    ),
    Case(
        "an answer that is perhaps streamed",
        good="from openai import AsyncOpenAI\nclient = AsyncOpenAI()\nasync def main():\n    answer = await client.chat.completions.create(model='m', messages=[])\n    for choice in answer.choices:\n        print(choice)\n"
        "async def either(streams):\n    answer = await client.chat.completions.create(model='m', messages=[], stream=streams)\n    for part in answer:\n        print(part)\n",
    ),
    Case(
        "for",
        bad="async def pages():\n    yield 1\nasync def main():\n    for p in pages():  # here\n        print(p)\n",
        fixed="async def pages():\n    yield 1\nasync def main():\n    async for p in pages():  # here\n        print(p)\n",
    ),
    Case(
        "a comprehension",
        bad="async def pages():\n    yield 1\nasync def main():\n    return [p for p in pages()]  # here\n",
        fixed="async def pages():\n    yield 1\nasync def main():\n    return [p async for p in pages()]  # here\n",
    ),
    Case(
        "collected",
        bad="async def pages():\n    yield 1\nasync def main():\n    return list(pages())  # here\n",
        fixed="async def pages():\n    yield 1\nasync def main():\n    return [item async for item in pages()]  # here\n",
    ),
    Case(
        "a generator read at once",
        bad="async def pages():\n    yield 1\nasync def main():\n    return sum(p for p in pages())  # here\n",
        fixed="async def pages():\n    yield 1\nasync def main():\n    return sum([p async for p in pages()])  # here\n",
    ),
    Case(
        "kept in a variable",
        bad="async def pages():\n    yield 1\nasync def main():\n    found = pages()  # here\n    return sum(p for p in found)\n",
        fixed="async def pages():\n    yield 1\nasync def main():\n    found = pages()  # here\n    return sum([p async for p in found])\n",
    ),
    Case(
        "in a sync function",
        bad="async def pages():\n    yield 1\ndef main():\n    for p in pages():  # here\n        print(p)\n",
    ),
    Case(
        "an object",
        bad="class Pages:\n    def __aiter__(self):\n        return self\n    async def __anext__(self): ...\nasync def main(pages: Pages):\n    for p in pages:  # here\n        print(p)\n",
        fixed="class Pages:\n    def __aiter__(self):\n        return self\n    async def __anext__(self): ...\nasync def main(pages: Pages):\n    async for p in pages:  # here\n        print(p)\n",
    ),
    Case(
        "what awaiting an object gives",
        good="class Query:\n    def __aiter__(self):\n        return self\n    async def __anext__(self): ...\n    def __await__(self):\n        return self.run().__await__()\n    async def run(self): ...\n    def values(self) -> 'Query':\n        return self\n"
        "async def main(query: Query):\n    rows = await query.values()\n    return [row for row in rows]\n",
    ),
    Case(
        "an object for both",
        good="class Pages:\n    def __iter__(self): ...\n    def __aiter__(self):\n        return self\n    async def __anext__(self): ...\nasync def main(pages: Pages):\n    for p in pages:\n        print(p)\n",
    ),
    Case(
        "given to a builtin that loops",
        bad="async def pages():\n    yield 1\nasync def main():\n    return sorted(pages())  # here\n",
    ),
    Case(
        "made a list of by a variable",
        bad="async def pages():\n    yield 1\nasync def main():\n    found = pages()  # here\n    return list(found)\n",
    ),
    Case(
        "builtins for async iterators",
        good="async def pages():\n    yield 1\nasync def main():\n    found = pages()\n    async for p in aiter(found):\n        print(p)\n",
    ),
    Case(
        "a generator that awaits its items",
        bad="async def load(n):\n    return n\nasync def main():\n    return sum(await load(n) for n in range(3))  # here\n",
        fixed="async def load(n):\n    return n\nasync def main():\n    return sum([await load(n) for n in range(3)])  # here\n",
    ),
    Case(
        "a generator that awaits its items, joined",
        bad="async def load(n):\n    return str(n)\nasync def main():\n    return ', '.join(await load(n) for n in range(3))  # here\n",
        fixed="async def load(n):\n    return str(n)\nasync def main():\n    return ', '.join([await load(n) for n in range(3)])  # here\n",
    ),
    Case(
        "a generator that awaits its items, under a plain for",
        bad="async def load(n):\n    return n\nasync def main():\n    for one in (await load(n) for n in range(3)):  # here\n        print(one)\n",
    ),
    Case(
        "a generator over an async one",
        bad="async def pages():\n    yield 1\nasync def main():\n    return list(p async for p in pages())  # here\n",
        fixed="async def pages():\n    yield 1\nasync def main():\n    return list([p async for p in pages()])  # here\n",
    ),
    Case(
        "a generator that awaits its items, under an async for",
        good="async def load(n):\n    return n\nasync def main():\n    async for one in (await load(n) for n in range(3)):\n        print(one)\n",
    ),
    Case(
        "a generator that awaits what it loops over first",
        good="async def rows():\n    return [1]\nasync def main():\n    return sum(row for row in await rows())\n",
    ),
    Case(
        "a list of awaited items",
        good="async def load(n):\n    return n\nasync def main():\n    return sum([await load(n) for n in range(3)])\n",
    ),
    Case(
        "a generator that awaits its items, given to somebody unknown",
        good="from somewhere import collect\nasync def load(n):\n    return n\nasync def main():\n    return await collect(await load(n) for n in range(3))\n",
    ),
    Case(
        "async for",
        good="async def pages():\n    yield 1\nasync def main():\n    async for p in pages():\n        print(p)\n",
    ),
]


@rule("TR116", "plain-for-over-async-generator", cases=CASES)
def check(program: Program) -> Iterator[Finding]:
    """Async generators under a plain `for`."""
    for incident in incidents_of(program, "plain for"):
        if incident.site.awaitable == "iterable":
            phrase = f"`{incident.site.callee}` can only be looped over with `async for`"
        elif incident.site.target is None:
            phrase = "a generator with `await` or `async for` in it is an async generator"
        else:
            phrase = f"`{call_text(program, incident)}` is an async generator"
        message = f"{phrase}: a plain loop over it raises TypeError before its first turn"
        fix = _as_list(program, incident) if incident.site.target is None else None
        fix = fix or async_for_fix(program, incident)
        yield tell(program, "TR116", "plain-for-over-async-generator", incident, message, fix=fix)


def _as_list(program: Program, incident: LossIncident) -> Fix | None:
    """`sum([await f(n) for n in rows])`: a list is made before anybody loops over it."""
    path = incident.site.function.module.path
    source = program.text(path)
    written = source.cut(*incident.site.at)
    if incident.variable or path.endswith(".ipynb") or not (written.startswith("(") and written.endswith(")")):
        return None
    start, end = source.offset(*incident.site.at[:2]), source.offset(*incident.site.at[2:])
    edits = (Edit(path, start + 1, start + 1, "["), Edit(path, end - 1, end - 1, "]"))
    return Fix("make it a list", "sure", edits)
