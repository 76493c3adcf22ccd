"""Lost call hidden by a broad `except`.

What it finds: a coroutine used as its result inside `try … except Exception` (or `suppress(Exception)`).
Why it matters: the use raises, the handler swallows the error, and the program goes on as if the call itself had failed; it never ran at all.
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
    from troth.analysis.semantics.incident import IncidentKind

CASES = [
    Case(
        "except Exception",
        bad="async def load(): ...\nasync def main():\n    try:\n        return load()['x']  # here\n    except Exception:\n        return None\n",
        fixed="async def load(): ...\nasync def main():\n    try:\n        return (await load())['x']  # here\n    except Exception:\n        return None\n",
    ),
    Case(
        "awaited",
        good="async def load(): ...\nasync def main():\n    try:\n        return (await load())['x']\n    except Exception:\n        return None\n",
    ),
]


_RAISING: tuple[IncidentKind, ...] = (
    "attribute",
    "subscript",
    "iteration",
    "async iteration",
    "arithmetic",
    "unpacking",
)


@rule("TR113", "masked-lost-call", cases=CASES)
def check(program: Program) -> Iterator[Finding]:
    """Misused coroutines whose error nobody would see."""
    for incident in incidents_of(program, *_RAISING):
        if not incident.masked_line:
            continue
        call = call_text(program, incident)
        message = (
            f"`{call}` is used before it is awaited, and the broad handler at line {incident.masked_line} hides the error: "
            f"`{incident.site.target_name}` never runs and the error goes unnoticed"
        )
        fix = await_fix(program, incident)
        yield tell(program, "TR113", "masked-lost-call", incident, message, fix=fix)
