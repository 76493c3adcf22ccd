"""Handlers pulled into async.

What it finds: a place that picks a handler at run time and awaits it (`await handler(message)` over a table, or over
methods found with `getattr`), where at least three handlers are async for that reason alone and never wait.
Why it matters: one await makes all of them async, and each is a call that can be lost.
How to repair: await only what can be awaited, `result = handler(message)` and `if inspect.isawaitable(result): await
result`; then the handlers that never wait can be plain functions. `troth check --select T301` lists them.
How sure the fix is: none is offered here, because it touches many functions at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from troth.analysis.findings import Finding, Reason
from troth.analysis.program.dispatch import dispatchers
from troth.analysis.program.needless import needless
from troth.analysis.rules.registry import Case, rule
from troth.analysis.rules.telling import span

if TYPE_CHECKING:
    from troth.analysis.program import Program

_FEWEST = 3

_HANDLERS = "".join(f"    async def handle_{name}(self, m):\n        print(m)\n" for name in "abc")
CASES = [
    Case(
        "by name",
        bad=f"class Bot:\n{_HANDLERS}    async def on(self, kind, m):\n        handler = getattr(self, f'handle_{{kind}}', None)\n        if handler:\n            await handler(m)  # here\n",
    ),
    Case(
        "out of a table",
        bad=f"class Bot:\n{_HANDLERS}    def __init__(self):\n        self.table = {{'a': self.handle_a, 'b': self.handle_b, 'c': self.handle_c}}\n"
        "    async def on(self, kind, m):\n        handler = self.table.get(kind)\n        if handler is not None:\n            await handler(m)  # here\n",
    ),
    Case(
        "handlers that wait",
        good="class Bot:\n"
        + _HANDLERS.replace("print(m)", "await m.send()")
        + "    async def on(self, kind, m):\n        await getattr(self, f'handle_{kind}')(m)\n",
    ),
    Case(
        "too few to speak of",
        good="class Bot:\n    async def handle_a(self, m):\n        print(m)\n    async def on(self, kind, m):\n        await getattr(self, f'handle_{kind}')(m)\n",
    ),
]


@rule("T303", "handlers-pulled-into-async", cases=CASES)
def check(program: Program) -> Iterator[Finding]:
    """Dispatchers whose await makes handlers async that never wait."""
    pulled = {one.function for one in needless(program, of_surfaces=True) if one.is_pulled}
    asked = frozenset(program.asked)
    for dispatcher in dispatchers(program):
        if dispatcher.call.caller.module.path not in asked:
            continue
        idle = [one for one in dispatcher.handlers if one in pulled]
        if len(idle) < _FEWEST:
            continue
        call = dispatcher.call
        named = ", ".join(f"`{one.name}`" for one in idle[:3]) + (f" and {len(idle) - 3} more" if len(idle) > 3 else "")
        reasons = [Reason(f"`{one.qualname}` never waits", *one.place) for one in idle[:5]]
        yield Finding(
            "T303", "handlers-pulled-into-async", span(program, call.caller, call.at),
            f"`await {call.text}(…)` makes {len(idle)} of {len(dispatcher.handlers)} handlers async that never wait: {named}",
            "likely", tuple(reasons), None, call.caller.qualname, call.text,
        )  # fmt: skip
