"""Coroutine turned into text.

What it finds: a coroutine in an f-string, in `str()`, `print()`, a log call, `json.dumps()`.
Why it matters: the text says `<coroutine object …>` and the call never runs.
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
        "an f-string",
        bad="async def name(): ...\nasync def main():\n    return f'hello {name()}'  # here\n",
        fixed="async def name(): ...\nasync def main():\n    return f'hello {await name()}'  # here\n",
    ),
    Case("print", bad="async def name(): ...\nasync def main():\n    print(name())  # here\n"),
    Case(
        "a log call",
        bad="import logging\nlogger = logging.getLogger()\nasync def name(): ...\nasync def main():\n    logger.info('%s', name())  # here\n",
    ),
    Case("awaited", good="async def name(): ...\nasync def main():\n    print(await name())\n"),
]


@rule("TR107", "coroutine-as-text", cases=CASES)
def check(program: Program) -> Iterator[Finding]:
    """Coroutine turned into text."""
    for incident in incidents_of(program, "text"):
        call = call_text(program, incident)
        message = f"`{call}` is turned into text as a coroutine object ({incident.detail}): `{incident.site.target_name}` never runs"
        fix = await_fix(program, incident)
        yield tell(program, "TR107", "coroutine-as-text", incident, message, fix=fix)
