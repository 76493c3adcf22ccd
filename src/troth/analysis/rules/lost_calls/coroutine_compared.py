"""Coroutine compared.

What it finds: a coroutine as an operand of `==`, `!=`, `<`, `in`, `is None`.
Why it matters: the comparison is with the coroutine object, never with its result; the call never runs.
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

CASES = [
    Case(
        "equal",
        bad="async def count(): ...\nasync def main():\n    return count() == 3  # here\n",
        fixed="async def count(): ...\nasync def main():\n    return await count() == 3  # here\n",
    ),
    Case("is None", bad="async def load(): ...\nasync def main():\n    if load() is None:  # here\n        return 1\n"),
    Case("in", bad="async def load(): ...\nasync def main():\n    return 1 in load()  # here\n"),
    Case("awaited", good="async def count(): ...\nasync def main():\n    return await count() == 3\n"),
]


@rule("TR105", "coroutine-compared", cases=CASES)
def check(program: Program) -> Iterator[Finding]:
    """Coroutine compared."""
    for incident in incidents_of(program, "comparison"):
        call = call_text(program, incident)
        message = (
            f"`{call}` is compared as a coroutine object, not by its result: `{incident.site.target_name}` never runs"
        )
        fix = await_fix(program, incident)
        yield tell(program, "TR105", "coroutine-compared", incident, message, fix=fix)
