"""`await` without the call.

What it finds: `await f` where `f` is a coroutine function, and `asyncio.create_task(f)`, `gather(f, g())` and their like;
`writer.flush` or `flush` on a line of its own, where that is a coroutine function.
Why it matters: a function cannot be awaited; the line raises `TypeError` and `f` never runs. A name alone does nothing at all.
How to repair: call the function, with the arguments it needs, and give or await what the call returns.
How sure the fix is: `await f()`, or `create_task(f())`, is likely right where the function of the project needs no arguments; else nothing is
offered.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from troth.analysis.findings import Edit, Fix
from troth.analysis.rules._finding import tell
from troth.analysis.rules._syntax_position import standing
from troth.analysis.rules.registry import Case, rule
from troth.analysis.semantics.symbols import Function
from troth.analysis.semantics.walk.incident_queries import incidents_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from troth.analysis.findings import Finding
    from troth.analysis.semantics import Program
    from troth.analysis.semantics.incident import LossIncident

CASES = [
    Case(
        "in an edition of a library of which the tables know another one",
        good={
            "aiogram/__init__.py": "",
            "aiogram/types.py": "class Message: ...\n",
            "aiogram/filters.py": "from aiogram import types\nclass Command:\n    async def check(self, message):\n        return (await message.bot.me).username\n",
        },
    ),
    Case(
        "a function",
        bad="async def f(): ...\nasync def main():\n    await f  # here\n",
        fixed="async def f(): ...\nasync def main():\n    await f()  # here\n",
    ),
    Case(
        "a method",
        bad="class A:\n    async def f(self, n=1): ...\n    async def main(self):\n        return (await self.f).n  # here\n",
        fixed="class A:\n    async def f(self, n=1): ...\n    async def main(self):\n        return (await self.f()).n  # here\n",
    ),
    Case("that needs arguments", bad="async def f(n): ...\nasync def main():\n    await f  # here\n"),
    Case(
        "given to somebody who wants a coroutine",
        bad="import asyncio\nasync def f(): ...\nasync def main(kept):\n    await asyncio.shield(f)  # here\n",
        fixed="import asyncio\nasync def f(): ...\nasync def main(kept):\n    await asyncio.shield(f())  # here\n",
    ),
    Case(
        "one of several",
        bad="import asyncio\nasync def f(): ...\nasync def main():\n    await asyncio.gather(f(), f)  # here\n",
    ),
    Case(
        "given to somebody who calls it",
        good="import asyncio, anyio\nasync def f(): ...\nasync def main(tasks: anyio.abc.TaskGroup):\n    tasks.start_soon(f)\n    await asyncio.gather(*map(f, [1]))\n",
    ),
    Case(
        "a method on a line of its own",
        bad="class Log:\n    async def flush(self): ...\n    async def stop(self):\n        self.flush  # here\n",
    ),
    Case(
        "a property on a line of its own",
        good="class Log:\n    @property\n    def size(self): ...\n    async def flush(self):\n        self.size\n",
    ),
    Case(
        "a function on a line of its own",
        bad="async def load(): ...\nasync def main(log):\n    async def flush():\n        await log.write()\n    flush  # here\n    await flush()\n    load  # here\n",
    ),
    Case(
        "a method that a variable holds, on a line of its own",
        bad="class Log:\n    async def flush(self): ...\nasync def stop(log: Log):\n    flush = log.flush\n    flush  # here\n    await flush()\n",
    ),
    Case(
        "a function that is known to whoever decorates it",
        good="def create(app):\n    @app.get('/')\n    async def index(): ...\n    index\n    return app\n",
    ),
    Case(
        "a name that can perhaps not be imported, a parameter, a sync function",
        good="async def has(flush):\n    try:\n        from lib import load\n        load\n    except ImportError:\n        return False\n"
        "    def show(): ...\n    show\n    flush\n    return True\n",
    ),
    Case(
        "the last line of a cell or of a session",
        good="async def load(): ...\nload\n",
    ),
    Case("called", good="async def f(): ...\nasync def main():\n    await f()\n"),
]


@rule("TR118", "await-without-call", cases=CASES)
def check(program: Program) -> Iterator[Finding]:
    """Coroutine functions under `await`."""
    for incident in incidents_of(program, "not called", "named alone"):
        name = incident.site.target_name
        message = f"`{name}` is awaited without being called: `await` raises TypeError here and `{name}` never runs"
        if incident.kind == "named alone":
            message = f"`{name}` is on a line of its own and is not called: `{name}` never runs"
        elif incident.detail:
            message = f"`{incident.detail}` wants a coroutine and gets the function `{name}`, which was not called: it raises TypeError here and `{name}` never runs"
        yield tell(program, "TR118", "await-without-call", incident, message, fix=_called(program, incident))


def _called(program: Program, incident: LossIncident) -> Fix | None:
    function = incident.site.target
    position = standing(program, incident.site.function.module.path, incident.at)
    if position is None or not isinstance(function, Function):
        return None
    awaited = _uncalled(position.node, function)
    if awaited is None:
        return None
    bound = 1 if function.owner is not None and not function.decorated_with("staticmethod") else 0
    if not isinstance(awaited, ast.Attribute if bound else ast.Attribute | ast.Name):
        return None
    if function.owner is not None and ast.unparse(awaited).startswith(f"{function.owner.name}."):
        return None  # of the class, and bound to no object
    if any(default is None and not kind.startswith("*") for _, _, default, kind in function.facts.params[bound:]):
        return None
    end = position.source.offset(awaited.end_lineno or 0, awaited.end_col_offset or 0)
    return Fix("call it", "likely", (Edit(position.path, end, end, "()"),))


def _uncalled(node: ast.expr, function: Function) -> ast.expr | None:
    """What is awaited, or the one argument of that name that is given to somebody who awaits it."""
    if isinstance(node, ast.Await):
        return node.value
    args = node.args if isinstance(node, ast.Call) else []
    matching = [
        argument
        for argument in args
        if isinstance(argument, ast.Name | ast.Attribute) and _last(argument) == function.name
    ]
    return matching[0] if len(matching) == 1 else None


def _last(node: ast.Name | ast.Attribute) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr
