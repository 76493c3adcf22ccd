"""Async `with` on a plain context.

What it finds: `async with x` where `x` is made by a plain `@contextmanager`, or is an object that has no `__aenter__`:
a lock of threads, a sync client or session.
Why it matters: the statement raises `TypeError`; nothing is entered.
How to repair: use a plain `with`, or the async object that was intended (`asyncio.Lock`, `httpx.AsyncClient`).
How sure the fix is: likely, because the async object may have been intended; nothing is offered where the same statement
enters something else too.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from troth.analysis.facts.fields import AT, CALL_FUNC, KIND, NAME_ID, VALUE, WITH_BODY, WITH_ITEMS
from troth.analysis.facts.names import callee_text
from troth.analysis.facts.nodes import of_kind
from troth.analysis.findings import Edit, Finding, Fix
from troth.analysis.rules._finding import tell_at
from troth.analysis.rules.registry import Case, rule
from troth.analysis.semantics.queries.refused_operands import Refusal, refused
from troth.analysis.semantics.values import Instance, members_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from troth.analysis.facts.model import Node
    from troth.analysis.findings import Safety
    from troth.analysis.semantics import Program

_PLAIN = "from contextlib import contextmanager\n@contextmanager\ndef open_file():\n    yield 1\n"
_CLASS = (
    "class Timer:\n    def __enter__(self):\n        return self\n    def __exit__(self, *a):\n        return None\n"
)
CASES = [
    Case(
        "one that lacks what its type has",
        good=f"{_CLASS}    def connect(self): ...\nasync def main(timer: Timer):\n    if hasattr(timer, 'connect'):\n        timer.connect()\n"
        "    else:\n        async with timer:\n            print(1)\n",
    ),
    Case(
        "an object that nothing enters",
        bad="class Connection:\n    def close(self): ...\nasync def main(connection: Connection):\n    async with connection:  # here\n        print(1)\n",
    ),
    Case(
        "a function",
        bad=f"{_PLAIN}async def main():\n    async with open_file() as file:  # here\n        print(file)\n",
        fixed=f"{_PLAIN}async def main():\n    with open_file() as file:  # here\n        print(file)\n",
    ),
    Case(
        "a class",
        bad=f"{_CLASS}async def main():\n    async with Timer():  # here\n        print(1)\n",
        fixed=f"{_CLASS}async def main():\n    with Timer():  # here\n        print(1)\n",
    ),
    Case(
        "a sync connection whose block waits for it",
        bad="from sqlalchemy import create_engine\nengine = create_engine('sqlite://')\nasync def main(make):\n"
        "    async with engine.begin() as conn:  # here\n        await conn.run_sync(make)\n",
    ),
    Case(
        "beside another one",
        bad=f"{_CLASS}async def main(other):\n    async with Timer(), other:  # here\n        print(1)\n",
    ),
    Case(
        "a lock of threads",
        bad="import threading\nclass Store:\n    def __init__(self):\n        self.lock = threading.Lock()\n    async def save(self):\n        async with self.lock:  # here\n            print(1)\n",
    ),
    Case(
        "a client of a library",
        bad="import httpx\nasync def main():\n    async with httpx.Client() as client:  # here\n        print(client)\n",
    ),
    Case(
        "a class that cannot be entered at all",
        bad="class Job:\n    def run(self):\n        return 1\nasync def main():\n    async with Job() as job:  # here\n        print(job)\n",
    ),
    Case(
        "an async function",
        good="from contextlib import asynccontextmanager\n@asynccontextmanager\nasync def session():\n    yield 1\nasync def main():\n    async with session() as one:\n        print(one)\n",
    ),
    Case(
        "a class for both",
        good=f"{_CLASS}    async def __aenter__(self):\n        return self\n    async def __aexit__(self, *a): ...\nasync def main():\n    async with Timer():\n        print(1)\n",
    ),
    Case(
        "a class whose subclass has it",
        good=f"{_CLASS}class Live(Timer):\n    async def __aenter__(self):\n        return self\n    async def __aexit__(self, *a): ...\nasync def main(timer: Timer):\n    async with timer:\n        print(1)\n",
    ),
    Case(
        "a class with an unknown base",
        good="from somewhere import Base\nclass Timer(Base):\n    def __enter__(self): ...\nasync def main():\n    async with Timer():\n        print(1)\n",
    ),
    Case(
        "a lock of asyncio",
        good="import asyncio\nlock = asyncio.Lock()\nasync def main():\n    async with lock:\n        print(1)\n",
    ),
    Case(
        "an async client of a library",
        good="import httpx\nasync def main():\n    async with httpx.AsyncClient() as client:\n        print(client)\n",
    ),
    Case(
        "an error that is expected",
        good=f"import pytest\n{_CLASS}async def test():\n    with pytest.raises(TypeError):\n        async with Timer():\n            print(1)\n",
    ),
]


@rule("TR417", "async-with-on-plain-context", cases=CASES)
def check(program: Program) -> Iterator[Finding]:
    """Plain contexts under `async with`."""
    for refusal in refused(program, "async with"):
        line, column, *_ = refusal.operand.at
        named = _named(refusal.operand.node)
        what = f"{named}, {refusal.what}," if named else refusal.what
        message = f"`async with` on {what} raises TypeError and enters nothing"
        yield tell_at(
            program, "TR417", "async-with-on-plain-context", refusal.function,
            (line, column, line, column + len("async with")), message,
            sure=refusal.sure, reasons=refusal.reasons, fix=_fix(program, refusal), subject="async with",
        )  # fmt: skip


def _named(node: Node) -> str:
    if node[KIND] == "call":
        return f"`{callee_text(node[CALL_FUNC])}(…)`"
    return f"`{callee_text(node)}`" if node[KIND] in {"name", "attr"} else ""


def _fix(program: Program, refusal: Refusal) -> Fix | None:
    path, at = refusal.function.module.path, refusal.operand.at
    text = program.text(path)
    start = text.offset(at[0], at[1])
    match = re.compile(r"async\s+(?=with\b)").match(text.value, start)
    if path.endswith(".ipynb") or match is None or not _is_alone(refusal) or not _can_be_entered(program, refusal):
        return None
    safety: Safety = "guess" if _is_used_as_async(refusal) else "likely"
    return Fix("use a plain `with`", safety, (Edit(path, start, match.end(), ""),))


def _can_be_entered(program: Program, refusal: Refusal) -> bool:
    """Whether a plain `with` enters it: an object of the project may be made for neither."""
    return all(
        program.classes.has(member.cls, "__enter__") is not False
        for member in members_of(refusal.operand.value)
        if isinstance(member, Instance)
    )


def _is_used_as_async(refusal: Refusal) -> bool:
    """Whether the block awaits what was entered: `await conn.run_sync(…)` wants the async object."""
    for node in of_kind(refusal.function.body(), "with"):
        if node[AT] == refusal.operand.at:
            entered = {
                target[NAME_ID] for _, target in node[WITH_ITEMS] if target is not None and target[KIND] == "name"
            }
            waits = of_kind(node[WITH_BODY], "await")
            callees = [callee_text(wait[VALUE][CALL_FUNC]) for wait in waits if wait[VALUE][KIND] == "call"]
            return any(callee.partition(".")[0] in entered for callee in callees)
    return False


def _is_alone(refusal: Refusal) -> bool:
    return any(
        node[AT] == refusal.operand.at and len(node[WITH_ITEMS]) == 1
        for node in of_kind(refusal.function.body(), "with")
    )
