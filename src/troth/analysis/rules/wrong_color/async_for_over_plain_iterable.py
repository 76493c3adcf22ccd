"""Async loop over a plain iterable.

What it finds: `async for x in rows` (or such a comprehension) where `rows` is a list, a sync generator, or an object that
has no `__aiter__`.
Why it matters: the loop raises `TypeError: 'async for' requires an object with __aiter__ method` before its first turn.
How to repair: use a plain `for`, or make what gives the items async.
How sure the fix is: likely; inside a comprehension nothing is offered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.facts.fields import CALL_FUNC, KIND, VALUE
from troth.analysis.facts.names import callee_text
from troth.analysis.findings import Edit, Finding, Fix
from troth.analysis.rules._finding import tell_at
from troth.analysis.rules.registry import Case, rule
from troth.analysis.semantics.queries.refused_operands import Refusal, refused

if TYPE_CHECKING:
    from collections.abc import Iterator

    from troth.analysis.facts.model import Node
    from troth.analysis.semantics import Program

CASES = [
    Case(
        "a list",
        bad="async def main():\n    async for row in [1, 2]:  # here\n        print(row)\n",
        fixed="async def main():\n    for row in [1, 2]:  # here\n        print(row)\n",
    ),
    Case(
        "a parameter by its annotation",
        bad="async def main(rows: list[int]):\n    async for row in rows:  # here\n        print(row)\n",
        fixed="async def main(rows: list[int]):\n    for row in rows:  # here\n        print(row)\n",
    ),
    Case(
        "a field",
        bad="class Store:\n    def __init__(self):\n        self.rows: list[int] = []\n    async def show(self):\n        async for row in self.rows:  # here\n            print(row)\n",
    ),
    Case(
        "a sync generator",
        bad="def rows():\n    yield 1\nasync def main():\n    async for row in rows():  # here\n        print(row)\n",
        fixed="def rows():\n    yield 1\nasync def main():\n    for row in rows():  # here\n        print(row)\n",
    ),
    Case(
        "in a comprehension",
        bad="def rows():\n    yield 1\nasync def main():\n    return [row async for row in rows()]  # here\n",
    ),
    Case(
        "what a coroutine gives",
        bad="async def load() -> list[int]:\n    return []\nasync def main():\n    async for row in await load():  # here\n        print(row)\n",
        fixed="async def load() -> list[int]:\n    return []\nasync def main():\n    for row in await load():  # here\n        print(row)\n",
    ),
    Case(
        "an object that is looped over plainly",
        bad="class Rows:\n    def __iter__(self):\n        return iter(())\nasync def main():\n    async for row in Rows():  # here\n        print(row)\n",
    ),
    Case(
        "an async generator",
        good="async def rows():\n    yield 1\nasync def main():\n    async for row in rows():\n        print(row)\n",
    ),
    Case(
        "an object for both",
        good="class Rows:\n    def __iter__(self):\n        return iter(())\n    def __aiter__(self):\n        return self\n    async def __anext__(self): ...\nasync def main():\n    async for row in Rows():\n        print(row)\n",
    ),
    Case(
        "an object whose subclass has it",
        good="class Rows:\n    def __iter__(self):\n        return iter(())\nclass Live(Rows):\n    def __aiter__(self):\n        return self\nasync def main(rows: Rows):\n    async for row in rows:\n        print(row)\n",
    ),
    Case(
        "an async iterator by its annotation",
        good="from collections.abc import AsyncIterator\nasync def main(rows: AsyncIterator[int]):\n    async for row in rows:\n        print(row)\n",
    ),
    Case(
        "an async iterator, or a list that is turned into one",
        good="from collections.abc import AsyncIterator\nasync def each(rows):\n    for row in rows:\n        yield row\nasync def main(rows: AsyncIterator[int] | list[int]):\n    if isinstance(rows, list):\n        rows = each(rows)\n    async for row in rows:\n        print(row)\n",
    ),
    Case(
        "what a context of its own hands out, of an unknown kind",
        good="from somewhere import listen\nclass Life:\n    async def __aenter__(self):\n        return listen(self)\n    async def __aexit__(self, *args): ...\n"
        "async def main():\n    async with Life() as events:\n        async for event in events:\n            print(event)\n",
    ),
    Case(
        "a context that hands out itself",
        bad="class Life:\n    async def __aenter__(self):\n        return self\n    async def __aexit__(self, *args): ...\n"
        "async def main():\n    async with Life() as events:\n        async for event in events:  # here\n            print(event)\n",
    ),
    Case(
        "an unknown object",
        good="async def main(rows):\n    async for row in rows:\n        print(row)\n",
    ),
    Case(
        "a queue of another class",
        good="from somewhere import Queue\nasync def main():\n    async for row in Queue():\n        print(row)\n",
    ),
]


@rule("TR416", "async-for-over-plain-iterable", cases=CASES)
def check(program: Program) -> Iterator[Finding]:
    """Plain iterables under `async for`."""
    for refusal in refused(program, "async for"):
        line, column, *_ = refusal.operand.at
        name = _named(refusal.operand.node)
        over = f"{name}, {refusal.what}," if name else refusal.what
        message = f"`async for` over {over} raises TypeError before its first turn"
        at = (line, column, line, column + len("async for")) if _is_statement(program, refusal) else refusal.operand.at
        yield tell_at(
            program, "TR416", "async-for-over-plain-iterable", refusal.function, at, message,
            sure=refusal.sure, reasons=refusal.reasons, fix=_fix(program, refusal), subject="async for",
        )  # fmt: skip


def _named(node: Node) -> str:
    if node[KIND] == "await" and node[VALUE][KIND] == "call":
        return f"`await {callee_text(node[VALUE][CALL_FUNC])}(…)`"
    if node[KIND] == "call":
        return f"`{callee_text(node[CALL_FUNC])}(…)`"
    return f"`{callee_text(node)}`" if node[KIND] in {"name", "attr"} else ""


def _is_statement(program: Program, refusal: Refusal) -> bool:
    text = program.text(refusal.function.module.path)
    return text.value.startswith("async for ", text.offset(*refusal.operand.at[:2]))


def _fix(program: Program, refusal: Refusal) -> Fix | None:
    path = refusal.function.module.path
    if path.endswith(".ipynb") or not _is_statement(program, refusal):
        return None
    start = program.text(path).offset(*refusal.operand.at[:2])
    return Fix("use a plain `for`", "likely", (Edit(path, start, start + len("async "), ""),))
