"""Comprehension of coroutines dropped.

What it finds: `[f(x) for x in xs]` as a statement, where `f(x)` makes a coroutine.
Why it matters: as many calls as there are items, and none of them runs.
How sure the fix is: sure where the callee is certain: each call is awaited in turn.
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
        "a list",
        bad="async def f(x): ...\nasync def main(xs):\n    [f(x) for x in xs]  # here\n",
        fixed="async def f(x): ...\nasync def main(xs):\n    [await f(x) for x in xs]  # here\n",
    ),
    Case(
        "gathered",
        good="import asyncio\nasync def f(x): ...\nasync def main(xs):\n    await asyncio.gather(*[f(x) for x in xs])\n",
    ),
]


@rule("TR119", "coroutines-dropped-by-comprehension", cases=CASES)
def check(program: Program) -> Iterator[Finding]:
    """Comprehensions that make coroutines for nobody."""
    for incident in incidents_of(program, "dropped in comprehension"):
        call = call_text(program, incident)
        message = f"`{call}` makes a coroutine for every item and all are dropped, so `{incident.site.target_name}` never runs"
        fix = await_fix(program, incident)
        yield tell(program, "TR119", "coroutines-dropped-by-comprehension", incident, message, fix=fix)
