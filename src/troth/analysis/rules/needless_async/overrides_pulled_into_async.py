"""Overrides pulled into async.

What it finds: a base class of the project whose async method has at least three overrides that never wait; each of
them is reported, and the base's own method where it does nothing itself.
Why it matters: one `await` of the base's method makes all overrides async, including those that only compute, and every
direct caller of one of them has to await it.
How to repair: where the base's method is awaited, take both colors: `result = one.execute()` and `if
inspect.isawaitable(result): await result`; or give the base a sync method beside the async one. Where the base is an
interface that others fulfil outside the project, leave it as it is.
How sure the fix is: none is offered; the author of the base has to decide what it promises. Off by default.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from troth.analysis.findings import Finding, Reason, Span
from troth.analysis.rules.registry import Case, rule
from troth.analysis.semantics.queries.idle_overrides import idle_overrides

if TYPE_CHECKING:
    from troth.analysis.semantics import Program

_BASE = "class Step:\n    async def execute(self):{mark}\n        raise NotImplementedError\n"
_IDLE = "class {name}(Step):\n    async def execute(self):{mark}\n        return 1\n"
_WAITING = "class Net(Step):\n    async def execute(self):\n        return await self.fetch()\n"
_USE = "async def main(steps: list[Step]):\n    for step in steps:\n        await step.execute()\n"
CASES = [
    Case(
        "three that only compute",
        bad=_BASE.format(mark="  # here")
        + "".join(_IDLE.format(name=name, mark="  # here") for name in "ABC")
        + _WAITING
        + _USE,
    ),
    Case(
        "two are an interface like any other",
        good=_BASE.format(mark="") + "".join(_IDLE.format(name=name, mark="") for name in "AB") + _WAITING + _USE,
    ),
    Case(
        "overrides that wait",
        good=_BASE.format(mark="") + "".join(_WAITING.replace("Net", name) for name in "ABC") + _USE,
    ),
    Case(
        "a protocol",
        good="from typing import Protocol\n"
        + _BASE.format(mark="").replace("Step", "Step(Protocol)", 1)
        + "".join(_IDLE.format(name=name, mark="") for name in "ABC")
        + _USE,
    ),
]


@rule("TR305", "overrides-pulled-into-async", cases=CASES, default=False)
def check(program: Program) -> Iterator[Finding]:
    """Overrides that never wait, though their base makes them async."""
    for idle_override in idle_overrides(program):
        path, line = idle_override.function.place
        text = program.text(path).line(line)
        column = len(text) - len(text.lstrip()) + 1
        many = (
            f"{idle_override.idle} of {idle_override.overrides} overrides of `{idle_override.base.qualname}` never wait"
        )
        if idle_override.function is idle_override.base:
            message = f"`{idle_override.base.qualname}` makes all its overrides async, though {idle_override.idle} of {idle_override.overrides} never wait"
        else:
            message = f"`{idle_override.function.qualname}` never waits; it is async only because `{idle_override.base.qualname}` is"
        yield Finding(
            "TR305",
            "overrides-pulled-into-async",
            Span(path, line, column, line, column + len("async def")),
            message,
            "likely",
            (Reason(many, *idle_override.base.place),),
            None,
            idle_override.function.qualname,
            idle_override.function.name,
        )
