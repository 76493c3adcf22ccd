"""`await` without the call.

What it finds: `await f` where `f` is a coroutine function.
Why it matters: a function cannot be awaited; the line raises `TypeError` and `f` never runs.
How sure the fix is: likely, where the function needs no arguments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.rules.registry import Case, rule
from troth.analysis.rules.telling import tell

if TYPE_CHECKING:
    from collections.abc import Iterator

    from troth.analysis.findings import Finding
    from troth.analysis.program import Program

CASES = [
    Case("a function", bad="async def f(): ...\nasync def main():\n    await f  # here\n"),
    Case(
        "a method",
        bad="class A:\n    async def f(self): ...\n    async def main(self):\n        await self.f  # here\n",
    ),
    Case("called", good="async def f(): ...\nasync def main():\n    await f()\n"),
]


@rule("T118", "await-without-call", cases=CASES)
def check(program: Program) -> Iterator[Finding]:
    """Coroutine functions under `await`."""
    for incident in program.incidents_of("not called"):
        name = incident.site.target_name
        message = f"`{name}` is awaited without being called: `await` raises TypeError here and `{name}` never runs"
        yield tell(program, "T118", "await-without-call", incident, message)
