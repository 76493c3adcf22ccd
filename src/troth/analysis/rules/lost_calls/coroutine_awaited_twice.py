"""Coroutine awaited twice.

What it finds: `await x` where the same coroutine was awaited before on every way that leads here.
Why it matters: the second `await` raises `RuntimeError: cannot reuse already awaited coroutine`.
How sure the fix is: none is offered; keep the result in a variable, or call again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.rules._finding import tell
from troth.analysis.rules.registry import Case, rule
from troth.analysis.semantics.walk.incident_queries import incidents_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from troth.analysis.findings import Finding
    from troth.analysis.semantics import Program

CASES = [
    Case("twice", bad="async def f(): ...\nasync def main():\n    x = f()\n    await x\n    await x  # here\n"),
    Case(
        "once per way",
        good="async def f(): ...\nasync def main(flag):\n    x = f()\n    if flag:\n        await x\n    else:\n        await x\n",
    ),
    Case(
        "made again", good="async def f(): ...\nasync def main():\n    x = f()\n    await x\n    x = f()\n    await x\n"
    ),
]


@rule("TR111", "coroutine-awaited-twice", cases=CASES)
def check(program: Program) -> Iterator[Finding]:
    """Coroutines that are awaited again."""
    for incident in incidents_of(program, "twice"):
        message = (
            f"`{incident.variable}` was awaited before: the coroutine of `{incident.site.callee}(…)` runs once, "
            "and awaiting it again raises RuntimeError"
        )
        yield tell(program, "TR111", "coroutine-awaited-twice", incident, message)
