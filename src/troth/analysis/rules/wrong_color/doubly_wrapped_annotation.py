"""Doubly wrapped annotation.

What it finds: `async def f() -> Awaitable[int]` (or `Coroutine[…]`) that returns a plain value.
Why it matters: `async def` wraps its result already, so the annotation promises a coroutine that gives an awaitable. A
reader who believes it writes `await (await f())`, and a type checker lets a missing `await` pass.
How to repair: annotate what `await f()` gives: `-> int`.
How sure the fix is: the awaited type is written inside the annotation; putting it there is sure where every result is
known to be plain.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from troth.analysis.facts.fields import ATTR_NAME, INDEX_BASE, KIND, NAME_ID, VALUE
from troth.analysis.facts.nodes import of_kind
from troth.analysis.findings import Edit, Finding, Fix, Reason
from troth.analysis.rules._finding import tell_at
from troth.analysis.rules.registry import Case, rule
from troth.analysis.semantics.infer.never_awaitable import is_no_awaitable
from troth.analysis.source.tree import tree_of

if TYPE_CHECKING:
    from troth.analysis.facts.model import At, Node
    from troth.analysis.semantics import Program
    from troth.analysis.semantics.symbols import Function

CASES = [
    Case(
        "that only raises",
        good="from collections.abc import Awaitable\nclass Handler:\n    async def respond(self, payload) -> Awaitable[bytes]:\n        raise RuntimeError('Not implemented')\n",
    ),
    Case(
        "awaitable",
        bad="from typing import Awaitable\nasync def size() -> Awaitable[int]:  # here\n    return 1\n",
        fixed="from typing import Awaitable\nasync def size() -> int:  # here\n    return 1\n",
    ),
    Case(
        "coroutine",
        bad="from typing import Any, Coroutine\nasync def names(c) -> Coroutine[Any, Any, list[str]]:  # here\n    found = await c.get()\n    return [str(x) for x in found]\n",
        fixed="from typing import Any, Coroutine\nasync def names(c) -> list[str]:  # here\n    found = await c.get()\n    return [str(x) for x in found]\n",
    ),
    Case(
        "nothing returned",
        bad="from typing import Awaitable\nasync def work(c) -> Awaitable[None]:  # here\n    await c.get()\n",
    ),
    Case(
        "of a sync function",
        good="from typing import Awaitable\nasync def size(): ...\ndef later() -> Awaitable[int]:\n    return size()\n",
    ),
    Case(
        "a promise that is really returned",
        good="import asyncio\nfrom typing import Awaitable\nasync def work(): ...\nasync def start() -> Awaitable[None]:\n    return asyncio.ensure_future(work())\n",
    ),
    Case(
        "of unknown result",
        good="from typing import Awaitable\nasync def get(c) -> Awaitable[int]:\n    return c.later()\n",
    ),
    Case(
        "a function that makes one",
        good="from typing import Awaitable, Callable\nasync def get(c) -> Callable[[], Awaitable[int]]:\n    return c.later\n",
    ),
]


@rule("TR410", "doubly-wrapped-annotation", cases=CASES)
def check(program: Program) -> Iterator[Finding]:
    """Async functions annotated with what they are wrapped in."""
    for path in program.asked:
        module = program.module(path)
        for index, facts in enumerate(module.facts.functions):
            if facts.flags & 7 != 1 or facts.returns is None or _word(facts.returns) not in {"Awaitable", "Coroutine"}:
                continue
            function = module.function(index)
            if _gives_a_result(program, function):
                yield _told(program, function)


def _word(node: Node) -> str:
    if node[KIND] == "index":
        return _word(node[INDEX_BASE])
    return str(node[NAME_ID]) if node[KIND] == "name" else str(node[ATTR_NAME]) if node[KIND] == "attr" else ""


def _gives_a_result(program: Program, function: Function) -> bool:
    """Whether everything it returns is known, and nothing of that can be awaited."""
    body = function.body()
    returned = [node[VALUE] for node in of_kind(body, "return")]
    if not returned and body and body[-1][KIND] == "raise":
        return False  # what it would give is up to those who override it
    if any(
        node is not None
        and node[KIND]
        not in {"await", "const", "fstr", "compare", "not", "list", "dict", "comp", "name", "call", "attr", "tuple"}
        for node in returned
    ):
        return False
    if all(
        node is None or node[KIND] in {"const", "fstr", "compare", "not", "list", "dict", "comp", "tuple"}
        for node in returned
    ):
        return True
    if program.types.annotated(function.facts.returns or (), function.module, function.parent, function.owner) is None:
        return False
    return is_no_awaitable(program.inferred(function), program)


def _told(program: Program, function: Function) -> Finding:
    line, column = function.facts.at[:2]
    at, fix = _annotation(program, function) or ((line, column, line, column + len("async def")), None)
    word = _word(function.facts.returns or ())
    message = (
        f"`{function.qualname}` returns a plain value: `async def` wraps it already, and `{word}[…]` wraps it twice"
    )
    return tell_at(
        program, "TR410", "doubly-wrapped-annotation", function, at, message, sure=True,
        reasons=(Reason(f"`{function.qualname}` is `async def`, so `await` gives what stands after `return`", *function.place),), fix=fix,
    )  # fmt: skip


def _annotation(program: Program, function: Function) -> tuple[At, Fix | None] | None:
    """The place of the annotation, and its innermost argument in its stead."""
    path, line = function.place
    text = program.text(path)
    if path.endswith(".ipynb"):
        return None
    tree = tree_of(text.value)
    for node in () if tree is None else ast.walk(tree):
        if isinstance(node, ast.AsyncFunctionDef) and node.lineno == line and isinstance(node.returns, ast.Subscript):
            whole = node.returns
            inner = whole.slice.elts[-1] if isinstance(whole.slice, ast.Tuple) else whole.slice
            start, end = _offsets(program, path, whole)
            edit = Edit(path, start, end, text.value[slice(*_offsets(program, path, inner))])
            at = (whole.lineno, whole.col_offset, whole.end_lineno or line, whole.end_col_offset or 0)
            return at, Fix("annotate the awaited type", "sure", (edit,))
    return None


def _offsets(program: Program, path: str, node: ast.expr) -> tuple[int, int]:
    text = program.text(path)
    return text.offset(node.lineno, node.col_offset), text.offset(
        node.end_lineno or node.lineno, node.end_col_offset or 0
    )
