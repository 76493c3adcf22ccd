"""Coroutine returned from `async def` without being awaited.

What it finds: `return f()` in an `async def` where `f()` makes a coroutine.
Why it matters: whoever awaits this function gets a coroutine instead of the result, and mostly drops it there.
How sure the fix is: sure where the annotation or another `return` shows that a result is meant; likely otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.program.consumers import mentions_awaitable
from troth.analysis.program.entities import Function
from troth.analysis.program.incidents import incidents_of, returned_on_purpose
from troth.analysis.program.testing import is_test
from troth.analysis.rules.registry import Case, rule
from troth.analysis.rules.telling import await_fix, call_text, tell

if TYPE_CHECKING:
    from collections.abc import Iterator

    from troth.analysis.findings import Finding
    from troth.analysis.program import Program
    from troth.analysis.program.sites import Site

CASES = [
    Case(
        "annotated with the result",
        bad="async def load() -> str: ...\nasync def main() -> str:\n    return load()  # here\n",
        fixed="async def load() -> str: ...\nasync def main() -> str:\n    return await load()  # here\n",
    ),
    Case(
        "one path awaits, the other does not",
        bad="async def load(): ...\nasync def main(x):\n    if x:\n        return load()  # here\n    return await load()\n",
    ),
    Case(
        "annotated with an awaitable",
        good="from collections.abc import Awaitable\nasync def load(): ...\nasync def main() -> Awaitable[None]:\n    return load()\n",
    ),
    Case("from a plain function", good="async def load(): ...\ndef main():\n    return load()\n"),
    Case(
        "a callback in two stages, in a test",
        good={
            "tests/test_callback.py": "async def callback():\n    async def stage():\n        print(1)\n    return stage()\n"
        },
    ),
    Case(
        "awaited twice by its callers",
        good="async def load(): ...\nasync def start():\n    return load()\nasync def main():\n    return await (await start())\n",
    ),
]


def _starts_by_itself(site: Site) -> bool:
    """Whether a function of the project gives a future: what it does is done, whoever awaits it."""
    if site.promise != "future" or not isinstance(site.target, Function):
        return False
    returns = site.target.facts.returns
    return returns is None or mentions_awaitable(returns, ("Future", "Task"))


def _is_staged(site: Site) -> bool:
    """`async def inner(): …` and `return inner()` in a test: a callback in two stages, as some libraries want it."""
    is_inner = isinstance(site.target, Function) and site.target.parent is site.function
    return is_inner and is_test(site.function.module.path)


@rule("T109", "returned-coroutine", cases=CASES)
def check(program: Program) -> Iterator[Finding]:
    """Coroutines that async functions return."""
    for incident in incidents_of(program, "returned"):
        verdict = returned_on_purpose(program, incident)
        if verdict == "on purpose" or _is_staged(incident.site):
            continue
        if verdict == "perhaps" and incident.site.target is None:
            continue
        if _starts_by_itself(incident.site) and (verdict == "perhaps" or incident.site.function.facts.returns is None):
            continue
        if verdict == "perhaps":
            incident.sure = False
        call = call_text(program, incident)
        around = incident.site.function.qualname
        message = (
            f"`{around}` returns the coroutine of `{call}` instead of its result: whoever awaits `{around}` "
            f"gets a coroutine, and `{incident.site.target_name}` never runs"
        )
        yield tell(program, "T109", "returned-coroutine", incident, message, fix=await_fix(program, incident))
