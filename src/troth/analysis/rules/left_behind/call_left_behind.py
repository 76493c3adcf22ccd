"""Call left behind: others await this callee, this one does not.

What it finds: a call of something whose definition is not known, in a place where its value is dropped or used as a
result, while nearly every other call of the same callee in the project is awaited.
Why it matters: most often the callee became async and this call was overlooked; it never runs.
How sure the fix is: likely; only the siblings speak for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.rules._finding import await_fix, call_text, tell
from troth.analysis.rules.registry import Case, rule
from troth.analysis.semantics.walk.incident_queries import incidents_by_siblings, returned_on_purpose

if TYPE_CHECKING:
    from collections.abc import Iterator

    from troth.analysis.findings import Finding
    from troth.analysis.semantics import Program
    from troth.analysis.semantics.incident import LossIncident

_TWO = "from unknown import db\nasync def one():\n    await db.commit()\nasync def two():\n    await db.commit()\n"
CASES = [
    Case(
        "dropped",
        bad=f"{_TWO}async def three():\n    db.commit()  # here\n",
        fixed=f"{_TWO}async def three():\n    await db.commit()  # here\n",
    ),
    Case(
        "two against one",
        good="from unknown import db\nasync def one():\n    await db.commit()\nasync def two():\n    db.commit()\n"
        "async def three():\n    db.commit()\n",
    ),
    Case("in a sync function", good=f"{_TWO}def three():\n    db.commit()\n"),
    Case(
        "the file of a plain `with`",
        good="from aiofiles import open as aopen\nasync def one(f):\n    await f.write(1)\nasync def two(f):\n    await f.write(2)\n"
        "async def three(f):\n    await f.write(3)\nasync def four():\n    with open('x') as f:\n        f.write(4)\n",
    ),
    Case(
        "closed, and then waited for",
        good="async def one(pool):\n    await pool.close()\nasync def two(pool):\n    await pool.close()\n"
        "async def three(pool):\n    await pool.close()\nasync def four(pool):\n    pool.close()\n    await pool.wait_closed()\n",
    ),
    Case(
        "another socket of the same name",
        good="async def one(sock):\n    await sock.send(1)\nasync def two(sock):\n    await sock.send(2)\n"
        "async def three(sock):\n    sock.send(3)\n",
    ),
]

_SILENT = frozenset({"async with", "async iteration", "with", "sometimes awaited"})


def _is_meant(program: Program, incident: LossIncident) -> bool:
    """Whether an awaitable may be wanted here: one that goes on to somebody else, of a callee that few await."""
    if incident.kind == "handed over":
        return not incident.site.is_firm
    if incident.kind == "returned":
        verdict = returned_on_purpose(program, incident)
        return verdict == "on purpose" or (verdict == "perhaps" and not incident.site.is_firm)
    return incident.kind in _SILENT


def _is_waited_for_afterwards(incident: LossIncident) -> bool:
    """`pool.close()`, and then `await pool.wait_closed()`: the first only begins it."""
    base, _, name = incident.site.callee.rpartition(".")
    beginning = f"{base}.wait_{name.removesuffix('e')}"
    return bool(base) and any(callee.startswith(beginning) for callee in incident.site.function.facts.awaited)


@rule("TR201", "call-left-behind", cases=CASES)
def check(program: Program) -> Iterator[Finding]:
    """Calls whose siblings are awaited."""
    for incident in incidents_by_siblings(program):
        if _is_meant(program, incident) or _is_waited_for_afterwards(incident):
            continue
        call = call_text(program, incident)
        message = (
            f"`{call}` is not awaited although its siblings are: if it makes a coroutine as they do, it never runs"
        )
        fix = await_fix(program, incident)
        yield tell(program, "TR201", "call-left-behind", incident, message, fix=fix)
