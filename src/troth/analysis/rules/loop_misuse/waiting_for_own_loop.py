"""Waiting for its own loop.

What it finds: `asyncio.run_coroutine_threadsafe(…, loop).result()` in an `async def` that runs on that very loop, or in a
sync function that an `async def` gives its own loop to.
Why it matters: the loop is blocked until the result is there, and the result waits for the loop: both wait forever.
How to repair: `await` the coroutine; `run_coroutine_threadsafe` is for other threads.
How sure the fix is: `await` does what was intended; it is sure where the loop is fetched in the same function.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from troth.analysis.facts.fields import (
    ASSIGN_TARGETS,
    ASSIGN_VALUE,
    AT,
    ATTR_BASE,
    ATTR_NAME,
    CALL_ARGS,
    CALL_FUNC,
    KIND,
    NAME_ID,
)
from troth.analysis.facts.model import body_of
from troth.analysis.facts.names import last_name
from troth.analysis.facts.nodes import of_kind
from troth.analysis.findings import Edit, Finding, Fix, Reason
from troth.analysis.rules._finding import tell_at
from troth.analysis.rules.registry import Case, rule
from troth.analysis.semantics.queries.call_chains import plain_target

if TYPE_CHECKING:
    from troth.analysis.facts.model import FunctionFacts, Node
    from troth.analysis.semantics import Program
    from troth.analysis.semantics.infer.call_graph import Call
    from troth.analysis.semantics.symbols import Function

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
        "kept on the object",
        bad="import asyncio\nasync def f(): ...\nclass Worker:\n    async def start(self):\n        self.loop = asyncio.get_running_loop()\n        return asyncio.run_coroutine_threadsafe(f(), self.loop).result()  # here\n",
    ),
    Case(
        "given to a sync function",
        bad="import asyncio\nasync def f(): ...\ndef work(loop):\n    return asyncio.run_coroutine_threadsafe(f(), loop).result()\nasync def main():\n    return work(asyncio.get_running_loop())  # here\n",
    ),
    Case(
        "a sync function in a thread",
        good="import asyncio\nasync def f(): ...\ndef work(loop):\n    return asyncio.run_coroutine_threadsafe(f(), loop).result()\nasync def main():\n    return await asyncio.to_thread(work, asyncio.get_running_loop())\n",
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


@rule("TR603", "waiting-for-own-loop", cases=CASES)
def check(program: Program) -> Iterator[Finding]:
    """Results that wait for the loop that waits for them."""
    for path in program.asked:
        module = program.module(path)
        for index, facts in enumerate(module.facts.functions):
            if facts.flags & 1 and any(c.endswith("run_coroutine_threadsafe") for c in facts.calls):
                for node, start in waits_for_own_loop(facts):
                    yield _told(program, module.function(index), node, start)
    yield from _by_helpers(program)


def waits_for_own_loop(facts: FunctionFacts) -> list[tuple[Node, Node]]:
    """The calls of `result` that wait for their own loop, each with the call that gave the future."""
    return [
        (node, start)
        for node, start, loop in _waits(facts)
        if loop[KIND] == "call" and last_name(loop[CALL_FUNC]) in _OWN
    ]


def _waits(facts: FunctionFacts) -> Iterator[tuple[Node, Node, Node]]:
    """The calls of `result` that wait for a loop: with the call that gave the future, and with that loop."""
    body = body_of(facts)
    bound = {
        _written(statement[ASSIGN_TARGETS][0]): statement[ASSIGN_VALUE]
        for statement in of_kind(body, "assign")
        if statement[ASSIGN_VALUE][KIND] == "call" and _written(statement[ASSIGN_TARGETS][0])
    }
    for node in of_kind(body, "call", skip=("lambda",)):
        callee = node[CALL_FUNC]
        if callee[KIND] == "attr" and callee[ATTR_NAME] == "result":
            base = bound.get(_written(callee[ATTR_BASE]), callee[ATTR_BASE])
            if (
                base[KIND] == "call"
                and last_name(base[CALL_FUNC]) == "run_coroutine_threadsafe"
                and len(base[CALL_ARGS]) > 1
            ):
                loop = base[CALL_ARGS][1]
                yield node, base, bound.get(_written(loop), loop)


def _written(node: Node) -> str:
    """A name, or an attribute of one, as it is written; empty for anything else."""
    if node[KIND] == "attr" and node[ATTR_BASE][KIND] == "name":
        return f"{node[ATTR_BASE][NAME_ID]}.{node[ATTR_NAME]}"
    return str(node[NAME_ID]) if node[KIND] == "name" else ""


def _by_helpers(program: Program) -> Iterator[Finding]:
    """Async functions that call a sync one, which waits for the loop that they give it."""
    waiting: dict[Function, tuple[str, Node]] = {}
    for function in program.calling.functions_naming({"run_coroutine_threadsafe"}):
        for _, start, loop in _waits(function.facts) if not function.is_async else ():
            if loop[KIND] == "name" and loop[NAME_ID] in function.params:
                waiting[function] = (loop[NAME_ID], start)
    paths = frozenset(program.asked)
    for caller in program.calling.functions_naming({function.name for function in waiting}):
        if not caller.is_async or caller.module.path not in paths:
            continue
        for call in program.calling.of(caller):
            target = plain_target(call, program)
            if target in waiting and any(
                node[KIND] == "call" and last_name(node[CALL_FUNC]) in _OWN
                for node in _given(call, target, waiting[target][0])
            ):
                yield _told(program, caller, call.node, waiting[target][1], target)


def _given(call: Call, target: Function, wanted: str) -> Iterator[Node]:
    """What a call gives to a parameter, by way of a variable or not."""
    shift = 1 if target.owner is not None and not target.decorated_with("staticmethod") else 0
    places = target.facts.positional[shift:]
    bound = {
        _written(statement[ASSIGN_TARGETS][0]): statement[ASSIGN_VALUE]
        for statement in of_kind(call.caller.body(), "assign")
    }
    for position, node in enumerate(call.node[2]):
        if position < len(places) and places[position] == wanted:
            yield bound.get(_written(node), node)
    for keyword, node in call.node[3]:
        if keyword == wanted:
            yield bound.get(_written(node), node)


def _told(program: Program, function: Function, node: Node, start: Node, helper: Function | None = None) -> Finding:
    who = "`result()`" if helper is None else f"`{helper.qualname}(…)`"
    message = (
        f"{who} blocks the event loop until the coroutine is done, and the coroutine needs that loop: both wait forever"
    )
    reasons = (
        Reason(f"`{function.qualname}` is `async def` and runs on the loop it gives the coroutine to", *function.place),
        Reason("the coroutine is given to the loop here", (helper or function).module.path, start[-1][0]),
    )
    return tell_at(
        program, "TR603", "waiting-for-own-loop", function, node[-1], message, sure=True, reasons=reasons,
        fix=_fix(program, function, node, start) if helper is None else None, subject="result",
    )  # fmt: skip


def _fix(program: Program, function: Function, node: Node, start: Node) -> Fix | None:
    path, coroutine = function.module.path, start[2][0]
    if node[1][1] != start or coroutine[KIND] != "call" or node[2] or path.endswith(".ipynb"):
        return None
    text = program.text(path)
    first, last = text.offset(*node[-1][:2]), text.offset(*node[-1][2:])
    inner = text.value[text.offset(*coroutine[AT][:2]) : text.offset(*coroutine[AT][2:])]
    return Fix("await the coroutine", "sure", (Edit(path, first, last, f"await {inner}"),))
