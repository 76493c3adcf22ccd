"""Coroutine returned from `async def` without being awaited.

What it finds: `return f()` in an `async def` where `f()` makes a coroutine, and in a plain `def` that is annotated with the
result and that is never awaited.
Why it matters: code that awaits this function gets a coroutine instead of the result, and usually drops it.
How sure the fix is: sure where the annotation or another `return` shows that a result is meant, or where all who call the
function await it once; likely otherwise.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from troth.analysis.facts.names import last_name
from troth.analysis.facts.nodes import of_kind
from troth.analysis.project.test_files import is_test
from troth.analysis.rules._finding import await_fix, call_text, tell
from troth.analysis.rules._fixes.awaited_results import is_result_awaited
from troth.analysis.rules.registry import Case, rule
from troth.analysis.semantics.infer.never_awaitable import mentions_awaitable
from troth.analysis.semantics.resolve.references import mentioned
from troth.analysis.semantics.symbols import Function
from troth.analysis.semantics.values import FunctionValue, members_of
from troth.analysis.semantics.walk.incident_queries import incidents_of, returned_on_purpose

if TYPE_CHECKING:
    from collections.abc import Iterator

    from troth.analysis.findings import Finding
    from troth.analysis.semantics import Program
    from troth.analysis.semantics.incident import Site
    from troth.analysis.semantics.infer.call_graph import Call

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
        "annotated with a model that is called like an awaitable",
        bad="from pydantic import BaseModel\nclass Task(BaseModel):\n    name: str\nclass Api:\n    async def fetch(self) -> Task: ...\n    async def fetch_any(self) -> Task:\n        return self.fetch()  # here\n",
        fixed="from pydantic import BaseModel\nclass Task(BaseModel):\n    name: str\nclass Api:\n    async def fetch(self) -> Task: ...\n    async def fetch_any(self) -> Task:\n        return await self.fetch()  # here\n",
    ),
    Case(
        "annotated with an awaitable",
        good="from collections.abc import Awaitable\nasync def load(): ...\nasync def main() -> Awaitable[None]:\n    return load()\n",
    ),
    Case(
        "from a sync function that is annotated with the result",
        bad="async def load() -> int: ...\ndef count() -> int:\n    return load()  # here\n",
    ),
    Case(
        "from a sync function, with a variable of that name that is awaited elsewhere",
        bad={
            "rows.py": "async def load() -> int: ...\ndef count() -> int:\n    return load()  # here\n",
            "each.py": "async def each(counts):\n    for count in counts:\n        await count()\n",
        },
    ),
    Case(
        "from a sync function with the wrong annotation, which is awaited",
        good="async def load() -> int: ...\ndef count() -> int:\n    return load()\nasync def main():\n    return await count()\n",
    ),
    Case(
        "from a sync function under a decorator that may run it",
        good="from somewhere import runs\nasync def load() -> int: ...\n@runs\ndef count() -> int:\n    return load()\n",
    ),
    Case(
        "from a sync function that says so",
        good="from typing import Any\nasync def load() -> int: ...\ndef count() -> object:\n    return load()\ndef other() -> Any:\n    return load()\n",
    ),
    Case(
        "from a sync route of FastAPI",
        bad="from fastapi import FastAPI\napp = FastAPI()\nasync def load(): ...\n@app.get('/')\ndef count():\n    return load()  # here\n",
    ),
    Case(
        "from an async route, awaited",
        good="from fastapi import FastAPI\napp = FastAPI()\nasync def load(): ...\n@app.get('/')\nasync def count():\n    return await load()\n",
    ),
    Case("from a sync function", good="async def load(): ...\ndef main():\n    return load()\n"),
    Case(
        "a callback in two stages, in a test",
        good={
            "tests/test_callback.py": "async def callback():\n    async def stage():\n        print(1)\n    return stage()\n"
        },
    ),
    Case(
        "gathered by its callers, once it is there",
        good="import asyncio\nasync def load(x): ...\nasync def start(x):\n    return load(x)\n"
        "async def main(xs):\n    return await asyncio.gather(*[await start(x) for x in xs])\n",
    ),
    Case(
        "gathered by its callers, from a list",
        good="import asyncio\nasync def load(x): ...\nasync def start(x):\n    return load(x)\n"
        "async def main(x):\n    pending = []\n    call = await start(x)\n    pending.append(call)\n    return await asyncio.gather(*pending)\n",
    ),
    Case(
        "yielded by an async generator, whose items are gathered",
        good="import asyncio\nasync def ask(pool, url, loop: asyncio.AbstractEventLoop):\n    return loop.run_in_executor(pool, url)\n"
        "async def ask_all(pool, urls, loop):\n    for url in urls:\n        yield await ask(pool, url, loop)\n"
        "async def main(pool, urls, loop):\n    calls = [call async for call in ask_all(pool, urls, loop)]\n    return await asyncio.gather(*calls)\n",
    ),
    Case(
        "yielded by an async generator, where nothing is gathered",
        bad="async def load(url): ...\nasync def ask(url):\n    return load(url)  # here\nasync def ask_all(urls):\n    for url in urls:\n        yield await ask(url)\n"
        "async def main(urls):\n    async for row in ask_all(urls):\n        print(row.name)\n",
    ),
    Case(
        "kept by its callers in a list of results",
        bad="import asyncio\nasync def load(x): ...\nasync def start(x):\n    return load(x)  # here\n"
        "async def main(x):\n    rows = []\n    row = await start(x)\n    rows.append(row)\n    return rows\n",
    ),
    Case(
        "handed along a chain whose links await what they are given",
        good="async def resolve(x): ...\nasync def reject(x): ...\n"
        "def first(source):\n    async def link(frame):\n        if not frame:\n            return reject(frame)\n        return resolve(await source.read(frame))\n    return link\n"
        "def then(key):\n    async def link(args):\n        row = await args\n        if key not in row:\n            return reject(row)\n        return resolve(row[key])\n    return link\n",
    ),
    Case(
        "beside a chain that awaits results",
        bad="async def resolve(x): ...\n"
        "def then(key):\n    async def link(args):\n        row = await args\n        return await resolve(row[key])\n    return link\n"
        "async def main(x) -> dict:\n    return resolve(x)  # here\n",
    ),
    Case(
        "by a wrapper that asks outside which color it is",
        good="import inspect\ndef paid(func):\n    is_async = inspect.iscoroutinefunction(func)\n"
        "    async def wrapper(*args):\n        await check()\n        if is_async:\n            return await func(*args)\n        return func(*args)\n    return wrapper\n"
        "async def check(): ...\n@paid\nasync def one(): ...\n@paid\nasync def two(): ...\n",
    ),
    Case(
        "awaited twice by its callers",
        good="async def load(): ...\nasync def start():\n    return load()\nasync def main():\n    return await (await start())\n",
    ),
    Case(
        "kept by its caller as the future that it is",
        good="import asyncio\nasync def send(batch):\n    await batch.drain()\n    return asyncio.shield(batch.future)\nasync def main(batch):\n    future = await send(batch)\n    return future\n",
    ),
    Case(
        "kept by its caller as a result",
        bad="import asyncio\nasync def send(batch):\n    await batch.drain()\n    return asyncio.shield(batch.future)  # here\nasync def main(batch):\n    row = await send(batch)\n    return row\n",
    ),
    Case(
        "a wrapper that asks a question of its own",
        good="import inspect\ndef is_async(f):\n    return inspect.iscoroutinefunction(f)\ndef traced(func):\n    async def wrapper(*args):\n        return await func(*args) if is_async(func) else func(*args)\n    return wrapper\n"
        "@traced\nasync def one(): ...\n@traced\nasync def two(): ...\n",
    ),
    Case(
        "awaited on one arm, whatever its color",
        bad="async def load(): ...\nasync def main(fresh):\n    return await load() if fresh else load()  # here\nasync def other():\n    print((await main(1)).name)\n",
    ),
]

_FOR_AWAITABLES = re.compile(r"(?i)coro|await|fut|promise|task|pending")


def _starts_by_itself(site: Site) -> bool:
    """Whether a function of the project gives a future: what it does is done, whoever awaits it."""
    if site.awaitable != "future" or not isinstance(site.target, Function):
        return False
    returns = site.target.facts.returns
    return returns is None or mentions_awaitable(returns, ("Future", "Task"))


def _is_staged(site: Site) -> bool:
    """`async def inner(): …` and `return inner()` in a test: a callback in two stages, as some libraries want it."""
    is_inner = isinstance(site.target, Function) and site.target.parent is site.function
    return is_inner and is_test(site.function.module.path)


def _is_handed_out(program: Program, function: Function) -> bool:
    """Whether a sync function within another is given away by name: whoever calls it may ask what it gets."""
    return not function.is_async and function.parent is not None and bool(mentioned(program, {function.name}))


def _is_awaited_once(program: Program, site: Site) -> bool:
    """Whether the function around it is called in the project, always under an `await`, and never handed around."""
    around = site.function
    if around.facts.decorators or mentioned(program, {around.name}):
        return False
    calls = [
        call
        for caller in program.calling.functions_naming({around.name})
        for call in program.calling.of(caller)
        if call.text.rpartition(".")[2] == around.name
    ]
    return bool(calls) and all(call.is_awaited and _is_of(call, around) for call in calls)


def _is_taken_for_a_future(program: Program, site: Site) -> bool:
    """`future = await self.send(batch)`: whoever calls the function knows that it gives one."""
    name = site.function.name
    for caller in program.calling.functions_naming({name}):
        for statement in of_kind(caller.body(), "assign"):
            value = statement[2]
            if value[0] != "await" or value[1][0] != "call" or last_name(value[1][1]) != name:
                continue
            if any(target[0] == "name" and _FOR_AWAITABLES.search(target[1]) for target in statement[1]):
                return True
    return False


def _is_of(call: Call, function: Function) -> bool:
    return any(isinstance(member, FunctionValue) and member.function is function for member in members_of(call.callee))


@rule("TR109", "returned-coroutine", cases=CASES)
def check(program: Program) -> Iterator[Finding]:
    """Coroutines that async functions return."""
    for incident in incidents_of(program, "returned"):
        verdict = returned_on_purpose(program, incident)
        if verdict == "on purpose" or _is_staged(incident.site):
            continue
        if is_result_awaited(program, incident.site.function) or _is_link(program, incident.site):
            continue
        if verdict == "perhaps" and (incident.site.target is None or _is_taken_for_a_future(program, incident.site)):
            continue
        if _starts_by_itself(incident.site) and (verdict == "perhaps" or incident.site.function.facts.returns is None):
            continue
        if verdict == "perhaps" or _is_handed_out(program, incident.site.function):
            incident.sure = False
        fix = await_fix(program, incident)
        if fix is not None and fix.safety == "likely" and fix.is_resolved and _is_awaited_once(program, incident.site):
            fix = fix._replace(safety="sure")
        call = call_text(program, incident)
        around = incident.site.function.qualname
        if not incident.site.function.is_async:
            message = (
                f"`{around}` is called for a result and returns the coroutine of `{call}`: "
                f"it is never awaited, so `{incident.site.target_name}` never runs"
            )
            yield tell(program, "TR109", "returned-coroutine", incident, message)
            continue
        message = (
            f"`{around}` returns the coroutine of `{call}` instead of its result: awaiting `{around}` "
            f"gives a coroutine, and `{incident.site.target_name}` never runs"
        )
        yield tell(program, "TR109", "returned-coroutine", incident, message, fix=fix)


def _is_link(program: Program, site: Site) -> bool:
    """Whether awaitables are handed along a chain: this function, or another that returns the same, awaits what it is given."""
    if _takes_awaitables(site.function):
        return True
    target = site.target
    if not isinstance(target, Function):
        return False
    links = program.calling.functions_naming({target.name})
    return any(_takes_awaitables(link) and _returns_call_of(link, target.name) for link in links)


def _returns_call_of(function: Function, name: str) -> bool:
    return any(
        returned[1] is not None and returned[1][0] == "call" and last_name(returned[1][1]) == name
        for returned in of_kind(function.body(), "return")
    )


def _takes_awaitables(function: Function) -> bool:
    """Whether a function within another awaits what it is given."""
    return function.parent is not None and any(
        awaited[1][0] == "name" and awaited[1][1] in function.params for awaited in of_kind(function.body(), "await")
    )
