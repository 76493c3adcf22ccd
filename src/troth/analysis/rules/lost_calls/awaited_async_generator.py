"""Async generator awaited.

What it finds: `await pages()` where `pages` is an async generator function.
Why it matters: an async generator cannot be awaited; the line raises `TypeError`.
How sure the fix is: none is offered; loop over it with `async for`.
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
    Case("awaited", bad="async def pages():\n    yield 1\nasync def main():\n    return await pages()  # here\n"),
    Case("one step", good="async def pages():\n    yield 1\nasync def main():\n    return await anext(pages())\n"),
]


@rule("TR115", "awaited-async-generator", cases=CASES)
def check(program: Program) -> Iterator[Finding]:
    """Async generators under `await`."""
    for incident in incidents_of(program, "awaited generator"):
        call = call_text(program, incident)
        message = f"`{call}` is an async generator: `await` raises TypeError here, and its body never runs"
        yield tell(program, "TR115", "awaited-async-generator", incident, message)
