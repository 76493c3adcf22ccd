"""Task from a thread.

What it finds: `asyncio.create_task`, `ensure_future` or `get_running_loop` in a sync function that is given to a thread, or
that such a function calls.
Why it matters: no loop runs in that thread: the call raises "no running event loop", and the coroutine never runs.
How to repair: hand the coroutine to the loop's thread: `asyncio.run_coroutine_threadsafe(work(), loop)`, with the loop
fetched where it runs.
How sure the fix is: none is offered; the loop has to be passed to the thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from troth.analysis.findings import Finding, Reason
from troth.analysis.rules._finding import tell_at
from troth.analysis.rules.registry import Case, rule
from troth.analysis.semantics.infer.call_graph import names_of
from troth.analysis.semantics.queries.thread_targets import tasks_in_threads
from troth.analysis.semantics.values import Coroutine

if TYPE_CHECKING:
    from troth.analysis.semantics import Program
    from troth.analysis.semantics.infer.call_graph import Call

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
        "called by what a thread runs",
        bad="import asyncio, threading\nasync def f(): ...\nclass Listener:\n    def start(self):\n        threading.Thread(target=self.listen).start()\n    def listen(self):\n        for m in range(3):\n            self.on_message(m)\n"
        "    def on_message(self, m):\n        asyncio.create_task(f())  # here\n",
    ),
    Case(
        "the loop of a thread",
        bad="import asyncio\nasync def f(): ...\ndef work():\n    loop = asyncio.get_running_loop()  # here\n    loop.call_soon(print)\nasync def main():\n    await asyncio.to_thread(work)\n",
    ),
    Case(
        "prepared for there being none",
        good="import asyncio, threading\nasync def f(): ...\ndef work():\n    try:\n        asyncio.get_running_loop()\n    except RuntimeError:\n        print('none')\ndef main():\n    threading.Thread(target=work).start()\n",
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

_NEEDING = frozenset(
    {
        *("asyncio.create_task", "asyncio.tasks.create_task", "asyncio.ensure_future", "asyncio.tasks.ensure_future"),
        *("asyncio.get_running_loop", "asyncio.events.get_running_loop"),
    }
)


@rule("TR604", "task-from-thread", cases=CASES)
def check(program: Program) -> Iterator[Finding]:
    """Tasks made where no loop runs."""
    paths = frozenset(program.asked)
    needing = {name.rpartition(".")[2] for name in _NEEDING}
    if all(caller.is_async for caller in program.calling.asked_naming(needing)):
        return
    for function, start in tasks_in_threads(program).items():
        if function.module.path not in paths:
            continue
        for call in program.calling.of(function):
            if any(name in _NEEDING for name in names_of(call.callee)) and _is_about_a_coroutine(call):
                yield _told(program, call, start)
                break  # the first one raises


def _is_about_a_coroutine(call: Call) -> bool:
    return call.text.endswith("get_running_loop") or (bool(call.given) and isinstance(call.given[0][1], Coroutine))


def _told(program: Program, call: Call, start: Call) -> Finding:
    message = f"`{call.text}(…)` needs a running loop, and `{call.caller.qualname}` runs in a thread that has none: it raises RuntimeError"
    reason = Reason(f"`{start.text}(…)` starts the thread that leads here", start.caller.module.path, start.at[0])
    return tell_at(
        program, "TR604", "task-from-thread", call.caller, call.at, message, sure=False, reasons=(reason,), subject=call.text,
    )  # fmt: skip
