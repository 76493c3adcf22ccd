"""Handlers pulled into async.

What it finds: a place that picks a handler at run time and awaits it (`await handler(message)` over a table, or over
methods found with `getattr`), where at least three handlers are async for that reason alone and never wait.
Why it matters: one await makes all of them async, and each is a call that can be lost.
How to repair: await only what can be awaited, `result = handler(message)` and `if inspect.isawaitable(result): await
result`; then the handlers that never wait can be sync functions. `troth check --select TR301` lists them.
How sure the fix is: likely, because it touches many functions at once: the dispatcher takes both colors, and those of its
handlers that are not mentioned elsewhere become sync.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING

from troth.analysis.findings import Finding, Reason
from troth.analysis.project.test_files import is_test
from troth.analysis.rules._finding import span
from troth.analysis.rules._fixes.make_sync import dispatch_fix
from troth.analysis.rules.registry import Case, rule
from troth.analysis.semantics.queries.dispatch import dispatchers_in, dispatchers_of
from troth.analysis.semantics.queries.needless_async import pulled

if TYPE_CHECKING:
    from troth.analysis.facts.model import At
    from troth.analysis.semantics import Program
    from troth.analysis.semantics.symbols import Function

_FEWEST = 3

_HANDLERS = "".join(f"    async def handle_{name}(self, m):\n        print(m)\n" for name in "abc")
CASES = [
    Case(
        "by name",
        bad=f"class Bot:\n{_HANDLERS}    async def on(self, kind, m):\n        handler = getattr(self, f'handle_{{kind}}', None)\n        if handler:\n            await handler(m)  # here\n",
        fixed=f"import inspect\n\n\nclass Bot:\n{_HANDLERS.replace('async ', '')}    async def on(self, kind, m):\n        handler = getattr(self, f'handle_{{kind}}', None)\n        if handler:\n            result = handler(m)  # here\n            if inspect.isawaitable(result):\n                await result\n",
    ),
    Case(
        "out of a table",
        bad=f"class Bot:\n{_HANDLERS}    def __init__(self):\n        self.table = {{'a': self.handle_a, 'b': self.handle_b, 'c': self.handle_c}}\n"
        "    async def on(self, kind, m):\n        handler = self.table.get(kind)\n        if handler is not None:\n            await handler(m)  # here\n",
        fixed=f"import inspect\n\n\nclass Bot:\n{_HANDLERS.replace('async ', '')}    def __init__(self):\n        self.table = {{'a': self.handle_a, 'b': self.handle_b, 'c': self.handle_c}}\n"
        "    async def on(self, kind, m):\n        handler = self.table.get(kind)\n        if handler is not None:\n            result = handler(m)  # here\n            if inspect.isawaitable(result):\n                await result\n",
    ),
    Case(
        "the result is given on",
        bad=f"import inspect\nclass Bot:\n{_HANDLERS}    async def on(self, kind, m):\n        handler = getattr(self, f'handle_{{kind}}')\n        return await handler(m)  # here\n\n    async def other(self, m):\n        await self.handle_a(m)\n",
        fixed="import inspect\nclass Bot:\n"
        + _HANDLERS.replace("async ", "").replace("def handle_a", "async def handle_a")
        + "    async def on(self, kind, m):\n        handler = getattr(self, f'handle_{kind}')\n        result = handler(m)  # here\n        if inspect.isawaitable(result):\n            result = await result\n        return result\n\n    async def other(self, m):\n        await self.handle_a(m)\n",
    ),
    Case(
        "handlers that wait",
        good="class Bot:\n"
        + _HANDLERS.replace("print(m)", "await m.send()")
        + "    async def on(self, kind, m):\n        await getattr(self, f'handle_{kind}')(m)\n",
    ),
    Case(
        "empty ones, for whoever derives",
        good="class Bot:\n    async def handle_a(self, m):\n        pass\n    async def handle_b(self, m):\n        pass\n    async def handle_c(self, m):\n        pass\n"
        "    async def on(self, kind, m):\n        await getattr(self, f'handle_{kind}')(m)\n",
    ),
    Case(
        "too few to speak of",
        good="class Bot:\n    async def handle_a(self, m):\n        print(m)\n    async def on(self, kind, m):\n        await getattr(self, f'handle_{kind}')(m)\n",
    ),
]


@rule("TR303", "handlers-pulled-into-async", cases=CASES)
def check(program: Program) -> Iterator[Finding]:
    """Dispatchers whose await makes handlers async that never wait."""
    dispatchers = [dispatcher for path in program.asked for dispatcher in dispatchers_in(program, program.module(path))]
    idle_ones = pulled(program, dict.fromkeys(handler for dispatcher in dispatchers for handler in dispatcher.handlers))
    by_handler: dict[Function, set[At]] = defaultdict(set)
    for dispatcher in dispatchers_of(program, idle_ones):
        for handler in dispatcher.handlers:
            by_handler[handler].add(dispatcher.call.at)
    for dispatcher in dispatchers:
        # One with an empty body is there to be overridden, or does nothing on purpose: nothing made it async.
        idle = [handler for handler in dispatcher.handlers if handler in idle_ones and not handler.is_abstract]
        if len(idle) < _FEWEST or is_test(dispatcher.call.caller.module.path):
            continue
        call = dispatcher.call
        handler_names = ", ".join(f"`{handler.name}`" for handler in idle[:3]) + (
            f" and {len(idle) - 3} more" if len(idle) > 3 else ""
        )
        reasons = [Reason(f"`{function.qualname}` never waits", *function.place) for function in idle]
        fix = dispatch_fix(program, dispatcher, [function for function in idle if len(by_handler[function]) == 1])
        yield Finding(
            "TR303", "handlers-pulled-into-async", span(program, call.caller, call.at),
            f"`await {call.text}(…)` makes {len(idle)} of {len(dispatcher.handlers)} handlers async that never wait: {handler_names}",
            "likely", tuple(reasons), fix, call.caller.qualname, call.text,
        )  # fmt: skip
