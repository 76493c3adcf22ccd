"""Task from a thread.

What it finds: `asyncio.create_task` or `ensure_future` in a plain function that is given to a thread.
Why it matters: no loop runs in that thread: the call raises "no running event loop", and the coroutine never runs.
How to repair: hand the coroutine to the loop's thread: `asyncio.run_coroutine_threadsafe(work(), loop)`, with the loop
fetched where it runs.
How sure the fix is: none is offered; the loop has to be brought along.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from troth.analysis.findings import Finding, Reason
from troth.analysis.knowledge.semantics import semantics
from troth.analysis.program.calling import names_of
from troth.analysis.program.colors import arguments_of, definition_of
from troth.analysis.program.values import Coroutine
from troth.analysis.rules.registry import Case, rule
from troth.analysis.rules.telling import tell_at

if TYPE_CHECKING:
    from troth.analysis.program import Program
    from troth.analysis.program.calling import Call
    from troth.analysis.program.entities import Function

CASES = [
    Case(
        "a thread",
        bad="import asyncio, threading\nasync def f(): ...\ndef work():\n    task = asyncio.create_task(f())  # here\n    return task\ndef main():\n    threading.Thread(target=work).start()\n",
    ),
    Case(
        "an executor",
        bad="import asyncio\nasync def f(): ...\ndef work():\n    return asyncio.ensure_future(f())  # here\ndef main(loop):\n    loop = asyncio.new_event_loop()\n    loop.run_in_executor(None, work)\n",
    ),
    Case(
        "on the loop",
        good="import asyncio\nasync def f(): ...\ndef work():\n    return asyncio.create_task(f())\nasync def main():\n    await work()\n",
    ),
    Case(
        "handed over",
        good="import asyncio, threading\nasync def f(): ...\ndef work(loop):\n    asyncio.run_coroutine_threadsafe(f(), loop)\ndef main(loop):\n    threading.Thread(target=work, args=(loop,)).start()\n",
    ),
    Case(
        "a loop of its own",
        good="import asyncio, threading\nasync def f(): ...\ndef work():\n    loop = asyncio.new_event_loop()\n    asyncio.set_event_loop(loop)\n    loop.run_until_complete(asyncio.ensure_future(f()))\n"
        "def main():\n    threading.Thread(target=work).start()\n",
    ),
]

_THREADS = frozenset(
    {"Thread", "Timer", "submit", "an executor", "run_in_executor", "run_sync", "run_in_threadpool", "apply_async"}
)
_NEEDING = frozenset(
    {"asyncio.create_task", "asyncio.tasks.create_task", "asyncio.ensure_future", "asyncio.tasks.ensure_future"}
)
_OWN_LOOP = frozenset({"new_event_loop", "set_event_loop", "run_until_complete", "run_forever", "run"})


@rule("T604", "task-from-thread", cases=CASES)
def check(program: Program) -> Iterator[Finding]:
    """Tasks made where no loop runs."""
    known = semantics().slots
    asked = frozenset(program.asked)
    needing = {name.rpartition(".")[2] for name in _NEEDING}
    making = {function.name for function in program.calling.asked_naming(needing) if not function.is_async}
    started: dict[Function, Call] = {}
    for caller in program.calling.functions_naming(_THREADS) if making else ():
        if making.isdisjoint(caller.module.mentions):
            continue
        for call in program.calling.of(caller):
            if call.text.rpartition(".")[2] not in _THREADS:
                continue
            name = next((one for one in names_of(call.callee) if one in known), None)
            if name is None or name.startswith(
                ("asyncio.events.AbstractEventLoop.call", "anyio.from_thread", "trio.from_thread")
            ):
                continue
            for slot, _, value in arguments_of(call):
                function = definition_of(value)
                if function is None or function.name not in caller.module.mentions:
                    continue
                if known[name].wants.get(slot) == "plain" and not function.is_async:
                    started.setdefault(function, call)
    for function, start in started.items():
        if function.name not in making or function.module.path not in asked:
            continue
        if any(callee.rpartition(".")[2] in _OWN_LOOP for callee in function.facts.calls) or "RuntimeError" in _text(
            program, function
        ):
            continue
        for call in program.calling.of(function):
            made = isinstance(call.given[0][1], Coroutine) if call.given else False
            if made and any(name in _NEEDING for name in names_of(call.callee)):
                yield _told(program, call, start)


def _text(program: Program, function: Function) -> str:
    return program.text(function.module.path).cut(*function.facts.at)


def _told(program: Program, call: Call, start: Call) -> Finding:
    message = f"`{call.text}(…)` needs a running loop, and `{call.caller.qualname}` runs in a thread that has none: it raises RuntimeError"
    reason = Reason(
        f"`{start.text}(…)` runs `{call.caller.qualname}` in a thread", start.caller.module.path, start.at[0]
    )
    return tell_at(
        program, "T604", "task-from-thread", call.caller, call.at, message, sure=False, reasons=(reason,), subject=call.text,
    )  # fmt: skip
