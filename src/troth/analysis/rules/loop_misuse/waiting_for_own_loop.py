"""Waiting for the own loop.

What it finds: `asyncio.run_coroutine_threadsafe(…, loop).result()` in an `async def` that runs on that very loop.
Why it matters: the loop is held up until the result is there, and the result waits for the loop: both wait for ever.
How to repair: `await` the coroutine; `run_coroutine_threadsafe` is for other threads.
How sure the fix is: `await` does what was meant; it is sure where the loop is fetched in the same function.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from troth.analysis.facts.model import body_of
from troth.analysis.facts.names import last_name
from troth.analysis.findings import Edit, Finding, Fix, Reason
from troth.analysis.rules.registry import Case, rule
from troth.analysis.rules.telling import tell_at

if TYPE_CHECKING:
    from troth.analysis.facts.model import FunctionFacts, Node
    from troth.analysis.program import Program
    from troth.analysis.program.entities import Function

CASES = [
    Case(
        "at once",
        bad="import asyncio\nasync def f(): ...\nasync def main():\n    return asyncio.run_coroutine_threadsafe(f(), asyncio.get_running_loop()).result()  # here\n",
        fixed="import asyncio\nasync def f(): ...\nasync def main():\n    return await f()  # here\n",
    ),
    Case(
        "by a name",
        bad="import asyncio\nasync def f(): ...\nasync def main():\n    loop = asyncio.get_event_loop()\n    future = asyncio.run_coroutine_threadsafe(f(), loop)\n    return future.result()  # here\n",
    ),
    Case(
        "in a thread",
        good="import asyncio\nasync def f(): ...\ndef work(loop):\n    return asyncio.run_coroutine_threadsafe(f(), loop).result()\n",
    ),
    Case(
        "awaited",
        good="import asyncio\nasync def f(): ...\nasync def main(other):\n    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(f(), other))\n",
    ),
    Case(
        "in a function for a thread",
        good="import asyncio, threading\nasync def f(): ...\nasync def main():\n    loop = asyncio.get_running_loop()\n    def work():\n        return asyncio.run_coroutine_threadsafe(f(), loop).result()\n    threading.Thread(target=work).start()\n",
    ),
]

_OWN = frozenset({"get_running_loop", "get_event_loop"})


@rule("T603", "waiting-for-own-loop", cases=CASES)
def check(program: Program) -> Iterator[Finding]:
    """Results that wait for the loop that waits for them."""
    for path in program.asked:
        module = program.module(path)
        for index, facts in enumerate(module.facts.functions):
            if facts.flags & 1 and any(c.endswith("run_coroutine_threadsafe") for c in facts.calls):
                for node, start in waits_for_own_loop(facts):
                    yield _told(program, module.function(index), node, start)


def waits_for_own_loop(facts: FunctionFacts) -> list[tuple[Node, Node]]:
    """The calls of `result` that wait for their own loop, each with the call that gave the future."""
    body = body_of(facts)
    bound: dict[str, Node] = {}
    for statement in _nodes(body, "assign"):
        if statement[1][0][0] == "name" and statement[2][0] == "call":
            bound[statement[1][0][1]] = statement[2]
    found: list[tuple[Node, Node]] = []
    for node in _nodes(body, "call"):
        callee = node[1]
        if callee[0] == "attr" and callee[2] == "result":
            base = bound.get(callee[1][1], callee[1]) if callee[1][0] == "name" else callee[1]
            if base[0] == "call" and last_name(base[1]) == "run_coroutine_threadsafe" and len(base[2]) > 1:
                loop = base[2][1]
                loop = bound.get(loop[1], loop) if loop[0] == "name" else loop
                if loop[0] == "call" and last_name(loop[1]) in _OWN:
                    found.append((node, base))
    return found


def _nodes(node: Any, tag: str) -> Iterator[Node]:
    if not isinstance(node, tuple) or not node:
        return
    if node[0] == tag and len(node) > 2:
        yield node
    if node[0] == "lambda":
        return
    for part in node:
        yield from _nodes(part, tag)


def _told(program: Program, function: Function, node: Node, start: Node) -> Finding:
    message = "`result()` holds up the loop until the coroutine is done, and the coroutine needs that loop: both wait for ever"
    reasons = (
        Reason(f"`{function.qualname}` is `async def` and runs on the loop it gives the coroutine to", *function.place),
        Reason("the coroutine is given to the loop here", function.module.path, start[-1][0]),
    )
    return tell_at(
        program, "T603", "waiting-for-own-loop", function, node[-1], message, sure=True, reasons=reasons,
        fix=_fix(program, function, node, start), subject="result",
    )  # fmt: skip


def _fix(program: Program, function: Function, node: Node, start: Node) -> Fix | None:
    path, coroutine = function.module.path, start[2][0]
    if node[1][1] != start or coroutine[0] != "call" or node[2] or path.endswith(".ipynb"):
        return None
    text = program.text(path)
    first, last = text.offset(*node[-1][:2]), text.offset(*node[-1][2:])
    inner = text.value[text.offset(*coroutine[-1][:2]) : text.offset(*coroutine[-1][2:])]
    return Fix("await the coroutine", "sure", (Edit(path, first, last, f"await {inner}"),))
