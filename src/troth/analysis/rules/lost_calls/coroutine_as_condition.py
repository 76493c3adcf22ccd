"""Coroutine as a condition.

What it finds: `if f():`, `while f():`, `not f()`, `f() and …`, `assert f()`, `bool(f())` where `f()` makes a coroutine.
Why it matters: a coroutine object is always true, so the condition decides nothing and the call never runs.
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
        "if",
        bad="async def ready(): ...\nasync def main():\n    if ready():  # here\n        return 1\n",
        fixed="async def ready(): ...\nasync def main():\n    if await ready():  # here\n        return 1\n",
    ),
    Case("not", bad="async def ready(): ...\nasync def main():\n    if not ready():  # here\n        return 1\n"),
    Case("while", bad="async def ready(): ...\nasync def main():\n    while ready():  # here\n        pass\n"),
    Case("assert", bad="async def ready(): ...\nasync def main():\n    assert ready()  # here\n"),
    Case("ternary", bad="async def ready(): ...\nasync def main():\n    return 1 if ready() else 2  # here\n"),
    Case(
        "in a comprehension",
        bad="async def ready(x): ...\nasync def main(xs):\n    return [x for x in xs if ready(x)]  # here\n",
    ),
    Case(
        "one by one",
        bad="async def ready(x): ...\nasync def main(xs):\n    return any([ready(x) for x in xs])  # here\n",
        fixed="async def ready(x): ...\nasync def main(xs):\n    return any([await ready(x) for x in xs])  # here\n",
    ),
    Case(
        "one by one out of a generator",
        bad="async def ready(x): ...\nasync def main(xs):\n    return all(ready(x) for x in xs)  # here\n",
        fixed="async def ready(x): ...\nasync def main(xs):\n    return all([await ready(x) for x in xs])  # here\n",
    ),
    Case(
        "tasks asked one by one",
        good="import asyncio\nasync def ready(x): ...\nasync def main(xs):\n    tasks = [asyncio.create_task(ready(x)) for x in xs]\n    return all(task.done() for task in tasks)\n",
    ),
    Case("awaited", good="async def ready(): ...\nasync def main():\n    if await ready():\n        return 1\n"),
    Case(
        "perhaps None",
        good="async def job(): ...\ndef find(x):\n    if x:\n        return job()\n    return None\nasync def main(x):\n    found = find(x)\n    if found:\n        await found\n",
    ),
]


@rule("TR104", "coroutine-as-condition", cases=CASES)
def check(program: Program) -> Iterator[Finding]:
    """Coroutine as a condition."""
    for incident in incidents_of(program, "condition"):
        call = call_text(program, incident)
        message = f"`{call}` is a coroutine, which is always true: the condition decides nothing and `{incident.site.target_name}` never runs"
        fix = await_fix(program, incident)
        yield tell(program, "TR104", "coroutine-as-condition", incident, message, fix=fix)
