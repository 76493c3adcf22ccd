"""Call lost by its decorator.

What it finds: an `async def` under a decorator of the project whose sync wrapper calls it and throws the coroutine away.
Why it matters: every caller of the decorated function gets the wrapper's result, and the body never runs.
How sure the fix is: none is offered; return the coroutine from the wrapper, or make the wrapper `async def` and await it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.findings import Finding, Reason
from troth.analysis.rules.registry import Case, rule
from troth.analysis.semantics.walk.incident_queries import lost_by_decorators

if TYPE_CHECKING:
    from collections.abc import Iterator

    from troth.analysis.semantics import Program

CASES = [
    Case(
        "the wrapper drops it",
        bad="def logged(f):\n    def wrapper(*a):\n        print('called')\n        f(*a)\n    return wrapper\n"
        "@logged\nasync def save(): ...  # here\n",
    ),
    Case(
        "one wrapper of each color, under one name",
        good="from lib import looks_async\ndef logged(f):\n    if looks_async(f):\n        async def wrapper(*a):\n            await f(*a)\n"
        "    else:\n        def wrapper(*a):\n            f(*a)\n    return wrapper\n@logged\nasync def save(): ...\n",
    ),
    Case(
        "the wrapper returns it",
        good="def logged(f):\n    def wrapper(*a):\n        print('called')\n        return f(*a)\n    return wrapper\n"
        "@logged\nasync def save(): ...\n",
    ),
    Case(
        "the wrapper runs it",
        good="import asyncio\ndef main(f):\n    def wrapper(*a):\n        asyncio.run(f(*a))\n    return wrapper\n"
        "@main\nasync def save(): ...\n",
    ),
]


@rule("TR120", "call-lost-by-decorator", cases=CASES)
def check(program: Program) -> Iterator[Finding]:
    """Async functions whose decorator drops their coroutine."""
    for function, decorator in lost_by_decorators(program):
        line, column, _, _ = function.facts.at
        path, at = decorator.place
        width = len("async def ") + len(function.name)
        yield Finding(
            "TR120",
            "call-lost-by-decorator",
            program.span(function.module.path, (line, column, line, column + width)),
            f"the wrapper of `{decorator.name}` calls `{function.name}` and drops its coroutine, so its body never runs",
            "certain",
            (Reason(f"`{decorator.qualname}` returns a sync wrapper that throws the coroutine away", path, at),),
            None,
            function.qualname,
            decorator.name,
        )
