"""Coroutine awaited on one path only.

What it finds: a variable that holds a coroutine and is awaited on one way through the function, but not on another.
Why it matters: on the other way the call never runs.
How sure the fix is: none is offered; whether the call should happen on both ways has to be decided by the author.
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
    Case(
        "only if asked",
        bad="async def f(): ...\nasync def main(flag):\n    x = f()  # here\n    if flag:\n        await x\n",
    ),
    Case(
        "on both ways",
        good="async def f(): ...\nasync def main(flag):\n    x = f()\n    if flag:\n        await x\n    else:\n        x.close()\n",
    ),
    Case(
        "made and awaited under the same condition",
        good="async def f(): ...\nasync def main(flag):\n    x = None\n    if flag:\n        x = f()\n    if x:\n        await x\n",
    ),
]


@rule("TR103", "coroutine-awaited-on-one-path", cases=CASES)
def check(program: Program) -> Iterator[Finding]:
    """Coroutines that only some paths await."""
    for incident in incidents_of(program, "sometimes awaited"):
        call = call_text(program, incident)
        message = (
            f"`{incident.variable}` holds the coroutine of `{call}`, which one path awaits and another forgets: "
            f"there `{incident.site.target_name}` never runs"
        )
        yield tell(program, "TR103", "coroutine-awaited-on-one-path", incident, message)
