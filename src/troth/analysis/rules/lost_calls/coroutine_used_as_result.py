"""Coroutine used as its result.

What it finds: an attribute, an item, a loop, an unpacking or an operation asked of a coroutine: `load().name`,
`load()["id"]`, `for x in load()`, `a, b = load()`, `load() + 1`.
Why it matters: a coroutine has none of these; the line raises when it is reached, and the call never runs.
How sure the fix is: sure where the callee is certain.
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
    from troth.analysis.semantics.incident import IncidentKind

CASES = [
    Case(
        "`send` that is awaited is not that of a coroutine",
        bad="class Channel:\n    async def send(self, text): ...\nasync def channel() -> Channel: ...\n"
        "async def main():\n    await channel().send('x')  # here\n",
    ),
    Case("`yield from` a coroutine", bad="async def rows(): ...\ndef main():\n    yield from rows()  # here\n"),
    Case("an item of a coroutine is set", bad="async def load(): ...\ndef main():\n    load()['a'] = 1  # here\n"),
    Case("spread into a dict", bad="async def load(): ...\ndef main():\n    print({**load()})  # here\n"),
    Case(
        "methods that coroutines have too",
        good="async def load(): ...\ndef main():\n    made = load()\n    made.close()\n    other = load()\n    other.send(None)\n"
        "    load().close()\n",
    ),
    Case(
        "`yield from` in a coroutine of the old kind",
        good="import types\nasync def rows(): ...\n@types.coroutine\ndef main():\n    yield from rows()\n",
    ),
    Case("what a dict is made of", good="async def load(): ...\nasync def main():\n    print({**await load()})\n"),
    Case(
        "an attribute",
        bad="async def load(): ...\nasync def main():\n    return load().name  # here\n",
        fixed="async def load(): ...\nasync def main():\n    return (await load()).name  # here\n",
    ),
    Case(
        "what a library keeps in an object that can be awaited",
        good="import aiohttp\nasync def main(session: aiohttp.ClientSession):\n    return await session.ws_connect('x')._coro\n",
    ),
    Case(
        "an item",
        bad="async def load(): ...\nasync def main():\n    return load()['name']  # here\n",
        fixed="async def load(): ...\nasync def main():\n    return (await load())['name']  # here\n",
    ),
    Case(
        "a loop",
        bad="async def load(): ...\nasync def main():\n    for x in load():  # here\n        print(x)\n",
        fixed="async def load(): ...\nasync def main():\n    for x in await load():  # here\n        print(x)\n",
    ),
    Case(
        "unpacked",
        bad="async def load(): ...\nasync def main():\n    a, b = load()  # here\n    return a\n",
        fixed="async def load(): ...\nasync def main():\n    a, b = await load()  # here\n    return a\n",
    ),
    Case("added", bad="async def load(): ...\nasync def main():\n    return load() + 1  # here\n"),
    Case(
        "async with",
        bad="async def connect(): ...\nasync def main():\n    async with connect() as c:  # here\n        return c\n",
    ),
    Case(
        "async for",
        bad="async def pages(): ...\nasync def main():\n    async for p in pages():  # here\n        print(p)\n",
    ),
    Case(
        "made a generator by a decorator",
        good="from async_generator import async_generator, yield_\n@async_generator\nasync def pages():\n    await yield_(1)\n"
        "async def main():\n    async for p in pages():\n        print(p)\n",
    ),
    Case("awaited", good="async def load(): ...\nasync def main():\n    return (await load()).name\n"),
    Case("a method of coroutines", good="async def load(): ...\ndef main():\n    load().close()\n"),
    Case(
        "a response that nobody can enter",
        bad="import httpx\nasync def main(client: httpx.AsyncClient):\n    async with client.get('x') as response:  # here\n        print(response)\n",
    ),
]


_SAYS: dict[IncidentKind, str] = {
    "attribute": "has an attribute read",
    "subscript": "is subscripted",
    "iteration": "is looped over",
    "async iteration": "is looped over with `async for`",
    "arithmetic": "is used in an operation",
    "unpacking": "is unpacked",
    "with": "is entered with `with`",
    "async with": "is entered with `async with`",
}


@rule("TR106", "coroutine-used-as-result", cases=CASES)
def check(program: Program) -> Iterator[Finding]:
    """Coroutines taken for what they would give."""
    for incident in incidents_of(program, *_SAYS):
        if incident.masked_line:
            continue
        call = call_text(program, incident)
        use = (
            f"an attribute of `{call}` is read" if incident.kind == "attribute" else f"`{call}` {_SAYS[incident.kind]}"
        )
        message = f"{use} before it is awaited: `{incident.site.target_name}` never runs"
        fix = await_fix(program, incident)
        yield tell(program, "TR106", "coroutine-used-as-result", incident, message, fix=fix)
