"""Dropped task.

What it finds: `asyncio.create_task(…)`, `ensure_future(…)` or `gather(…)` whose result nobody keeps.
Why it matters: the event loop holds tasks weakly, so the work may be collected half done, and its errors reach nobody.
How sure the fix is: none is offered; keep the task, await it, or use a task group.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.rules.registry import Case, rule
from troth.analysis.rules.telling import call_text, tell

if TYPE_CHECKING:
    from collections.abc import Iterator

    from troth.analysis.findings import Finding
    from troth.analysis.program import Program

CASES = [
    Case(
        "create_task",
        bad="import asyncio\nasync def f(): ...\nasync def main():\n    asyncio.create_task(f())  # here\n",
    ),
    Case("gather", bad="import asyncio\nasync def f(): ...\nasync def main():\n    asyncio.gather(f(), f())  # here\n"),
    Case(
        "kept",
        good="import asyncio\nasync def f(): ...\nasync def main():\n    task = asyncio.create_task(f())\n    await task\n",
    ),
    Case(
        "in a task group",
        good="import asyncio\nasync def f(): ...\nasync def main():\n    async with asyncio.TaskGroup() as group:\n        group.create_task(f())\n",
    ),
]


@rule("T112", "dropped-task", cases=CASES)
def check(program: Program) -> Iterator[Finding]:
    """Tasks that nobody holds."""
    for incident in program.incidents_of("dropped task"):
        call = call_text(program, incident)
        message = (
            f"nobody keeps what `{call}` returns, so the work may be collected half done and its errors reach nobody"
        )
        yield tell(program, "T112", "dropped-task", incident, message)
