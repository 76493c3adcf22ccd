"""Dropped task.

What it finds: `asyncio.create_task(…)`, `ensure_future(…)` or `gather(…)` whose result is not kept.
Why it matters: the event loop holds tasks weakly, so the work may be garbage-collected before it is done, and its errors are lost.
How to repair: keep the task until it is done, await it, or use a task group.
How sure the fix is: likely; it keeps the task in a set that the class or the module has for tasks, or in a new one, and
awaits a `gather`. What a thread was given is awaited only where nothing follows: it may end only through what does. Decide whether something should wait for the work or handle its errors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.rules._finding import call_text, tell
from troth.analysis.rules._fixes.keep_task import keep_fix
from troth.analysis.rules.registry import Case, rule
from troth.analysis.semantics.queries.thread_targets import tasks_in_threads
from troth.analysis.semantics.values import FunctionValue
from troth.analysis.semantics.walk.incident_queries import incidents_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from troth.analysis.findings import Finding
    from troth.analysis.semantics import Program
    from troth.analysis.semantics.incident import Site

_HOME = "_background_tasks: set[asyncio.Task[object]] = set()  # the loop itself holds tasks only weakly"
CASES = [
    Case(
        "create_task",
        bad="import asyncio\nasync def f(): ...\nasync def main():\n    asyncio.create_task(f())  # here\n",
        fixed=f"import asyncio\n\n{_HOME}\n\nasync def f(): ...\nasync def main():\n    task = asyncio.create_task(f())  # here\n"
        "    _background_tasks.add(task)\n    task.add_done_callback(_background_tasks.discard)\n",
    ),
    Case(
        "over several lines",
        bad="from asyncio import create_task\r\n\r\nasync def f(n): ...\r\nasync def main(task):\r\n    if task:\r\n"
        "        create_task(\r\n            f(task),\r\n        )\r\n",
        fixed=f"from asyncio import create_task\r\n\r\n{_HOME}\r\n\r\n".replace("asyncio.Task[object]", "object")
        + "async def f(n): ...\r\nasync def main(task):\r\n    if task:\r\n"
        "        background_task = create_task(\r\n            f(task),\r\n        )\r\n"
        "        _background_tasks.add(background_task)\r\n"
        "        background_task.add_done_callback(_background_tasks.discard)\r\n",
    ),
    Case(
        "where the class keeps tasks",
        bad="import asyncio\nclass Bot:\n    def __init__(self):\n        self.tasks: set[asyncio.Task[None]] = set()\n"
        "    async def run(self): ...\n    def start(self):\n        asyncio.create_task(self.run())  # here\n",
        fixed="import asyncio\nclass Bot:\n    def __init__(self):\n        self.tasks: set[asyncio.Task[None]] = set()\n"
        "    async def run(self): ...\n    def start(self):\n        task = asyncio.create_task(self.run())  # here\n"
        "        self.tasks.add(task)\n        task.add_done_callback(self.tasks.discard)\n",
    ),
    Case(
        "gather",
        bad="import asyncio\nasync def f(): ...\nasync def main():\n    asyncio.gather(f(), f())  # here\n",
        fixed="import asyncio\nasync def f(): ...\nasync def main():\n    await asyncio.gather(f(), f())  # here\n",
    ),
    Case(
        "an executor",
        bad="async def save(loop, path):\n    loop.run_in_executor(None, path.touch)  # here\n",
        fixed="async def save(loop, path):\n    await loop.run_in_executor(None, path.touch)  # here\n",
    ),
    Case(
        "an executor whose work only ends further down",
        bad="import asyncio\nasync def serve(loop, ready):\n    loop.run_in_executor(None, ready.wait)  # here\n    ready.set()\n",
        fixed="import asyncio\n\n_background_work: set[asyncio.Future[object]] = set()  # the loop itself holds futures only weakly\n\n"
        "async def serve(loop, ready):\n    work = loop.run_in_executor(None, ready.wait)  # here\n    _background_work.add(work)\n"
        "    work.add_done_callback(_background_work.discard)\n    ready.set()\n",
    ),
    Case("an executor, in a sync function", good="def save(loop, path):\n    loop.run_in_executor(None, path.touch)\n"),
    Case(
        "kept",
        good="import asyncio\nasync def f(): ...\nasync def main():\n    task = asyncio.create_task(f())\n    await task\n",
    ),
    Case(
        "in a task group",
        good="import asyncio\nasync def f(): ...\nasync def main():\n    async with asyncio.TaskGroup() as group:\n        group.create_task(f())\n",
    ),
]


def _starts_a_function(program: Program, site: Site) -> bool:
    """`create_task(load)`: a function that is not called."""
    call = next((call for call in program.calling.of(site.function) if call.at == site.at), None)
    return (
        site.awaitable == "task" and call is not None and any(isinstance(v, FunctionValue) for _, v in call.given[:1])
    )


@rule("TR112", "dropped-task", cases=CASES)
def check(program: Program) -> Iterator[Finding]:
    """Tasks that nobody holds."""
    for incident in incidents_of(program, "dropped task"):
        function = incident.site.function
        if not function.is_async and function in tasks_in_threads(program):
            continue  # worse than dropped: no loop runs there, and the rule about threads tells of it
        if _starts_a_function(program, incident.site):
            continue  # it raises, and TR118 tells of it
        call = call_text(program, incident)
        message = (
            f"the result of `{call}` is not kept, so the task may be garbage-collected before it is done, and its errors are lost"
            if incident.site.awaitable == "task" or incident.site.callee.endswith(("gather", "shield"))
            else f"nothing waits for the result of `{call}`: the result and its errors are lost"
        )
        yield tell(program, "TR112", "dropped-task", incident, message, fix=keep_fix(program, incident))
