"""Coroutine given to something that never awaits it.

What it finds: a coroutine as an argument of a function whose parameter is annotated as something else, whose body never
awaits nor keeps it, or which is known not to (`len`, `list`, `int`, …); and one in the place of a function that other code
is to call: `Thread(target=work())`, `tasks.add_task(work())`.
Why it matters: the function works on a coroutine object, and the call never runs.
How to repair: await it; where a function is wanted, hand over the function and its arguments (`start_soon(work, 1)`), or,
where that has to be a sync one, `lambda: asyncio.create_task(work(1))`.
How sure the fix is: sure where the callee is certain; in the place of a function, leaving out the parentheses is likely
right where there is nothing between them and the code that calls it can await; `start_soon(work(1))` becomes
`start_soon(work, 1)`, and a collection for `gather` gets its `*`; else none is offered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.findings import Edit, Fix
from troth.analysis.knowledge.semantics import semantics
from troth.analysis.rules._finding import await_fix, call_text, tell
from troth.analysis.rules._fixes.advice import function_handed_over
from troth.analysis.rules._fixes.hand_over_function import handed_over, starred
from troth.analysis.rules.registry import Case, rule
from troth.analysis.semantics.symbols import Function
from troth.analysis.semantics.walk.incident_queries import incidents_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from troth.analysis.findings import Finding
    from troth.analysis.semantics import Program
    from troth.analysis.semantics.incident import LossIncident

_STRIP = "def strip(data):\n    if isinstance(data, dict):\n        return {k: strip(v) for k, v in data.items()}\n    return data\n"
CASES = [
    Case(
        "what runs it, under another name",
        good="from troth.bridge import call as reach\nfrom elsewhere import run_sync as go\nasync def fetch(): ...\nasync def main():\n    go(fetch())\n    return await reach(fetch())\n",
    ),
    Case(
        "what looks at it, under another name",
        bad="from elsewhere import display as reach\nasync def fetch(): ...\nasync def main():\n    return await reach(fetch())  # here\n",
    ),
    Case(
        "what an exception is made of",
        bad="async def fetch(): ...\nclass Failed(Exception): ...\nasync def main():\n    raise Failed(fetch())  # here\n",
        fixed="async def fetch(): ...\nclass Failed(Exception): ...\nasync def main():\n    raise Failed(await fetch())  # here\n",
    ),
    Case(
        "what a builtin exception is made of",
        bad="async def fetch(): ...\ndef main():\n    raise RuntimeError('no', fetch())  # here\n",
    ),
    Case(
        "an exception that keeps what it is given",
        good="async def fetch(): ...\nclass Later(Exception):\n    def __init__(self, work):\n        self.work = work\n"
        "async def main():\n    try:\n        raise Later(fetch())\n    except Later as later:\n        await later.work\n",
    ),
    Case(
        "a function that asks for a result, and gives back all else",
        bad=f"{_STRIP}async def fetch(): ...\nasync def main():\n    return strip(fetch())  # here\n",
        fixed=f"{_STRIP}async def fetch(): ...\nasync def main():\n    return strip(await fetch())  # here\n",
    ),
    Case(
        "a function that gives back all else, and is awaited",
        good=f"{_STRIP}async def fetch(): ...\nasync def main():\n    return await strip(fetch())\n",
    ),
    Case(
        "for `trio.run`, with an argument",
        bad="import trio\nasync def work(n): ...\ntrio.run(work(1))\n",
        fixed="import trio\nasync def work(n): ...\ntrio.run(work, 1)\n",
    ),
    Case(
        "a list of them for `gather`, without a star",
        bad="import asyncio\nasync def f(): ...\nasync def main():\n    await asyncio.gather([f()])  # here\n",
        fixed="import asyncio\nasync def f(): ...\nasync def main():\n    await asyncio.gather(*[f()])  # here\n",
    ),
    Case(
        "a generator of them for `gather`, without a star",
        bad="import asyncio\nasync def f(): ...\nasync def main():\n    await asyncio.gather(f() for _ in range(2))  # here\n",
        fixed="import asyncio\nasync def f(): ...\nasync def main():\n    await asyncio.gather(*(f() for _ in range(2)))  # here\n",
    ),
    Case(
        "several of them for `gather`, without a star",
        bad="import asyncio\nasync def f(n): ...\nasync def main():\n    await asyncio.gather([\n        f(1),  # here\n        f(2),  # here\n    ])\n",
        fixed="import asyncio\nasync def f(n): ...\nasync def main():\n    await asyncio.gather(*[\n        f(1),  # here\n        f(2),  # here\n    ])\n",
    ),
    Case(
        "in the place of a function, with arguments",
        bad="import anyio\nasync def load(n, m): ...\nasync def main():\n    async with anyio.create_task_group() as group:\n        group.start_soon(load(1, 2))  # here\n",
        fixed="import anyio\nasync def load(n, m): ...\nasync def main():\n    async with anyio.create_task_group() as group:\n        group.start_soon(load, 1, 2)  # here\n",
    ),
    Case(
        "in the place of a function, with an argument by its name",
        bad="import anyio\nasync def load(n): ...\nasync def main():\n    async with anyio.create_task_group() as group:\n        group.start_soon(load(n=1))  # here\n",
    ),
    Case(
        "collections of them for `gather`, with a star",
        good="import asyncio\nasync def f(): ...\nasync def main():\n    await asyncio.gather(*[f(), f()])\n"
        "    await asyncio.gather(*(f() for _ in range(2)))\n    jobs = [f()]\n    await asyncio.gather(f(), *jobs)\n",
    ),
    Case(
        "annotated otherwise",
        bad="async def load(): ...\ndef show(name: str): ...\nasync def main():\n    show(load())  # here\n",
        fixed="async def load(): ...\ndef show(name: str): ...\nasync def main():\n    show(await load())  # here\n",
    ),
    Case(
        "a body that drops it",
        bad="async def load(): ...\ndef show(x):\n    print(x)\nasync def main():\n    show(load())  # here\n",
    ),
    Case("len", bad="async def load(): ...\nasync def main():\n    return len(load())  # here\n"),
    Case(
        "in the place of a function",
        bad="from starlette.background import BackgroundTasks\nasync def load(): ...\ndef main(tasks: BackgroundTasks):\n    tasks.add_task(load())  # here\n",
        fixed="from starlette.background import BackgroundTasks\nasync def load(): ...\ndef main(tasks: BackgroundTasks):\n    tasks.add_task(load)  # here\n",
    ),
    Case(
        "in the place of a thread's function",
        bad="import threading\nasync def load(n): ...\ndef main():\n    threading.Thread(target=load(1)).start()  # here\n",
    ),
    Case(
        "in the place of a callback",
        bad="import asyncio\nasync def load(): ...\nasync def main():\n    asyncio.get_running_loop().call_later(1, load())  # here\n",
    ),
    Case(
        "behind the function",
        good="import asyncio\nasync def load(): ...\nasync def main():\n    loop = asyncio.get_running_loop()\n    loop.call_soon(asyncio.ensure_future, load())\n    loop.call_soon(asyncio.create_task, load())\n",
    ),
    Case(
        "a body that awaits it",
        good="async def load(): ...\nasync def show(x):\n    print(await x)\nasync def main():\n    await show(load())\n",
    ),
    Case(
        "a body that keeps it",
        good="async def load(): ...\njobs = []\ndef later(x):\n    jobs.append(x)\nasync def main():\n    later(load())\n",
    ),
    Case(
        "a body that passes it on",
        good="import asyncio\nasync def load(): ...\ndef start(x):\n    return asyncio.ensure_future(x)\nasync def main():\n    await start(load())\n",
    ),
    Case(
        "a function that looks at what it is given",
        good="import inspect\nasync def f(): ...\nasync def hold(w):\n    return await w\ndef promise(work):\n    if inspect.iscoroutine(work):\n        return work\n    return hold(work)\n"
        "def run(work):\n    return drive(promise(work))\nfrom lib import drive\nrun(f())\n",
    ),
    Case(
        "a runner that leaves the running to somebody unknown",
        good="from lib import pool\nasync def load(): ...\ndef run_worker(work):\n    start = pool.start\n    return start(work)\n"
        "async def main():\n    run_worker(load())\n    await load()\n",
    ),
    Case(
        "put where the caller finds it",
        good="async def body(): ...\nasync def other():\n    await body()\n"
        "def extract(values, connection):\n    values['body'] = body()\n",
    ),
    Case(
        "put where several files put it",
        good={
            "health.py": "async def reach(url): ...\n",
            **{
                f"part_{n}.py": f"from health import reach\nasync def info():\n    return {{'name': 'x', 'reach': reach({n})}}\n"
                for n in range(3)
            },
        },
    ),
]
_SEVERAL = 3  # files that do the same do so on purpose


@rule("TR108", "coroutine-as-argument", cases=CASES)
def check(program: Program) -> Iterator[Finding]:
    """Coroutine given to something that never awaits it."""
    for incident in incidents_of(program, "argument", "handed over", "returned inside"):
        if incident.kind == "handed over" and (
            not program.judge.is_always_awaited(incident.site) or _is_handed_on_by_most(program, incident)
        ):
            continue
        call = call_text(program, incident)
        if incident.kind == "returned inside":
            incident.detail = "the code that receives the collection of results"
        message = f"`{call}` is given as a coroutine to {incident.detail}: `{incident.site.target_name}` never runs"
        taker = incident.taker
        if taker is not None and taker.how == "awaits its items":
            fix = starred(program, incident)  # with results inside, it would be refused as well
        elif taker is not None and taker.how == "calls it":
            fix = _uncalled(program, incident, taker.name)
        else:
            fix = await_fix(program, incident)
        finding = tell(program, "TR108", "coroutine-as-argument", incident, message, fix=fix)
        module = incident.site.function.module
        yield finding if finding.repair else finding._replace(repair=function_handed_over(module))


def _is_handed_on_by_most(program: Program, incident: LossIncident) -> bool:
    """Whether it is put into a dict, and in several files nobody awaits it, more than do: who collects them will."""
    if incident.taker is None or incident.taker.how not in {"keeps it as an item", "returns it in a dict"}:
        return False
    name = incident.site.callee.rpartition(".")[2]
    awaited, bare = program.judge.sites_of(name)
    files = {function.module.path for function in program.calling.functions_naming({name})}
    target = incident.site.target
    if isinstance(target, Function) and target.owner is None:  # who has a function of that name himself means his own
        files -= {namesake.module.path for namesake in program.calling.functions_named(name)} - {target.module.path}
    return bare > awaited and len(files) >= _SEVERAL


def _uncalled(program: Program, incident: LossIncident, taker: str) -> Fix | None:
    """The function itself, without its parentheses, for somebody who awaits what it gives."""
    knowledge = semantics()
    wants = (
        set(knowledge.slots[taker].wants.values()) if taker in knowledge.slots else {knowledge.spawners[taker].takes}
    )
    site = incident.site
    path = site.function.module.path
    source = program.text(path)
    if wants & {"plain"} or path.endswith(".ipynb"):
        return None
    if not source.cut(*site.at).endswith("()"):
        return handed_over(program, incident)
    end = source.offset(*site.at[2:])
    return Fix("give the function itself", "likely", (Edit(path, end - 2, end, ""),))
