"""Async generator that is never iterated.

What it finds: a call of an async generator function (or of an `@asynccontextmanager`) whose value is dropped.
Why it matters: not one line of its body runs.
How sure the fix is: none is offered; loop over it with `async for`, or enter it with `async with`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.rules._finding import call_text, tell
from troth.analysis.rules.registry import Case, rule
from troth.analysis.semantics.walk.incident_queries import incidents_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from troth.analysis.findings import Finding
    from troth.analysis.semantics import Program

CASES = [
    Case("dropped", bad="async def pages():\n    yield 1\nasync def main():\n    pages()  # here\n"),
    Case(
        "a context nobody enters",
        bad="from contextlib import asynccontextmanager\n@asynccontextmanager\nasync def lock():\n    yield\nasync def main():\n    lock()  # here\n",
    ),
    Case("assigned and forgotten", bad="async def pages():\n    yield 1\nasync def main():\n    x = pages()  # here\n"),
    Case(
        "iterated",
        good="async def pages():\n    yield 1\nasync def main():\n    async for p in pages():\n        print(p)\n",
    ),
    Case(
        "kept under another type",
        good="from typing import AsyncGenerator, cast\nasync def pages():\n    yield 1\nclass Reader:\n    def open(self):\n        stream = pages()\n        self.stream = cast(AsyncGenerator[object, None], stream)\n    def again(self):\n        return cast(AsyncGenerator[object, None], pages())\n",
    ),
    Case(
        "dropped under another type",
        bad="from typing import AsyncGenerator, cast\nasync def pages():\n    yield 1\nasync def main():\n    x = cast(AsyncGenerator[object, None], pages())  # here\n",
    ),
    Case("returned", good="async def pages():\n    yield 1\nasync def main():\n    return pages()\n"),
]


@rule("TR114", "unused-async-generator", cases=CASES)
def check(program: Program) -> Iterator[Finding]:
    """Async generators and contexts that are made for nothing."""
    for incident in incidents_of(program, "dropped generator", "dropped context", "never awaited"):
        if incident.site.awaitable not in {"generator", "context"}:
            continue
        call = call_text(program, incident)
        how = "entered" if incident.site.awaitable == "context" else "iterated"
        message = f"the result of `{call}` is never {how}, so the body of `{incident.site.target_name}` never runs"
        yield tell(program, "TR114", "unused-async-generator", incident, message)
