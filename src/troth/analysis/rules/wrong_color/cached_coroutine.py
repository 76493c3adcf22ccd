"""Cached coroutine.

What it finds: `functools.lru_cache`, `cache`, `cached_property` and their like on an `async def`.
Why it matters: what is cached is the coroutine, not its result. The first caller awaits it; the second gets the same
object and raises "cannot reuse already awaited coroutine".
How to repair: a cache that awaits first (`async_lru.alru_cache`), or keep the task: `asyncio.ensure_future(load())`.
How sure the fix is: where the file already imports `alru_cache`, putting it in the place of `lru_cache` is likely right.
Otherwise the cache is removed, or a cached property becomes a property: it never gave a result twice. Where code uses
the cache itself (`load.cache_clear()`), none is offered.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from troth.analysis.facts.fields import AT, KIND
from troth.analysis.facts.from_ast.expressions import ExpressionReader
from troth.analysis.findings import Edit, Finding, Fix, Reason
from troth.analysis.knowledge.semantics import semantics
from troth.analysis.rules._finding import tell_at
from troth.analysis.rules.registry import Case, rule
from troth.analysis.semantics.infer.call_graph import names_of
from troth.analysis.semantics.infer.never_awaitable import is_harmless
from troth.analysis.semantics.queries.callback_colors import calling_makes_a_coroutine, definition_of
from troth.analysis.source.tree import tree_of

if TYPE_CHECKING:
    from troth.analysis.facts.model import Node
    from troth.analysis.semantics import Program
    from troth.analysis.semantics.symbols import Function
    from troth.analysis.source.text import DecodedText

CASES = [
    Case(
        "lru_cache",
        bad="from functools import lru_cache\n@lru_cache(maxsize=8)\nasync def load(n):  # here\n    return await get(n)\n",
        fixed="from functools import lru_cache\nasync def load(n):  # here\n    return await get(n)\n",
    ),
    Case(
        "cache",
        bad="import functools\nclass A:\n    @functools.cache\n    async def load(self, n):  # here\n        return await get(n)\n",
        fixed="import functools\nclass A:\n    async def load(self, n):  # here\n        return await get(n)\n",
    ),
    Case(
        "one that is spoken to",
        bad="from functools import cache\n@cache\nasync def load(n):  # here\n    return await get(n)\ndef forget():\n    load.cache_clear()\n",
    ),
    Case(
        "a cached property",
        bad="from functools import cached_property\nclass A:\n    @cached_property\n    async def size(self):  # here\n        return await self.get()\n",
        fixed="from functools import cached_property\nclass A:\n    @property\n    async def size(self):  # here\n        return await self.get()\n",
    ),
    Case(
        "beside an async cache",
        bad="from functools import lru_cache\nfrom async_lru import alru_cache\n@lru_cache(maxsize=8)\nasync def load(n):  # here\n    return await get(n)\n",
        fixed="from functools import lru_cache\nfrom async_lru import alru_cache\n@alru_cache(maxsize=8)\nasync def load(n):  # here\n    return await get(n)\n",
    ),
    Case(
        "put around it by hand",
        bad="from functools import lru_cache\nasync def fetch(n): ...\nload = lru_cache(fetch)  # here\n",
    ),
    Case(
        "put around it with options",
        bad="import functools\nasync def fetch(n): ...\nload = functools.lru_cache(maxsize=8)(fetch)  # here\n",
    ),
    Case("put around a sync one", good="from functools import lru_cache\ndef fetch(n): ...\nload = lru_cache(fetch)\n"),
    Case("a sync function", good="from functools import lru_cache\n@lru_cache\ndef load(n):\n    return n\n"),
    Case(
        "an async cache",
        good="from async_lru import alru_cache\n@alru_cache\nasync def load(n):\n    return await get(n)\n",
    ),
    Case("a namesake", good="def cache(f):\n    return f\n@cache\nasync def load(n):\n    return await get(n)\n"),
    Case(
        "made into a task below",
        good="import asyncio\nfrom functools import cached_property, wraps\ndef task(f):\n    @wraps(f)\n    def start(*a):\n        return asyncio.ensure_future(f(*a))\n    return start\n"
        "class A:\n    @cached_property\n    @task\n    async def size(self):\n        return await self.get()\n",
    ),
]


_BY_HAND = frozenset({"lru_cache", "cache", "()"})
_PURE_CACHES = frozenset({"functools.lru_cache", "functools.cache"})


@rule("TR406", "cached-coroutine", cases=CASES)
def check(program: Program) -> Iterator[Finding]:
    """Caches that keep coroutines."""
    for path in program.asked:
        module = program.module(path)
        for index, facts in enumerate(module.facts.functions):
            if facts.decorators and facts.flags & 3 == 1:
                yield from _decorated(program, module.function(index))
            if any(callee.rpartition(".")[2] in _BY_HAND for callee in facts.calls):
                yield from _wrapped(program, module.function(index))


def _decorated(program: Program, function: Function) -> Iterator[Finding]:
    decorators = semantics().decorators
    for decorator in reversed(function.facts.decorators):
        value = program.effects.decorator(function, decorator)
        cache = next((name for name in names_of(value) if decorators.get(name) == "caches"), None)
        if cache is not None:
            line, column = function.facts.at[:2]
            message = f"`{cache}` keeps the coroutine of `{function.qualname}`, not its result: the second caller to await it gets an error"
            yield tell_at(
                program, "TR406", "cached-coroutine", function, (line, column, line, column + len("async def")), message, sure=True,
                reasons=(Reason(f"`{function.qualname}` is `async def`", *function.place), Reason(f"`{cache}` keeps what the first call gives")),
                fix=_fix(program, function, cache, decorator),
            )  # fmt: skip
            return
        if not is_harmless(program, function, decorator):
            return


def _wrapped(program: Program, function: Function) -> Iterator[Finding]:
    """`load = lru_cache(fetch)`, or `lru_cache(8)(fetch)`: a cache that is put around an async function by hand."""
    for call in program.calling.of(function):
        callee = call.node[1]
        value = call.callee
        if callee[KIND] == "call":  # what the cache with its options gives is called
            value = next((call.callee for call in program.calling.of(function) if call.at == callee[AT]), None)
        cache = next((name for name in names_of(value) if name in _PURE_CACHES), None)
        if cache is None or not call.given or not calling_makes_a_coroutine(program, call.given[0][1]):
            continue
        wrapped = definition_of(call.given[0][1])
        name = wrapped.qualname if wrapped is not None else "it"
        message = (
            f"`{cache}` keeps the coroutine of `{name}`, not its result: the second caller to await it gets an error"
        )
        reasons: tuple[Reason, ...] = (Reason(f"`{cache}` keeps what the first call gives"),)
        if wrapped is not None:
            reasons = (Reason(f"`{name}` is `async def`", *wrapped.place), *reasons)
        yield tell_at(
            program, "TR406", "cached-coroutine", function, call.at, message, sure=wrapped is not None, reasons=reasons,
            subject=name,
        )  # fmt: skip


def _fix(program: Program, function: Function, cache: str, at: Node) -> Fix | None:
    """`alru_cache`, where the file has it already; else no cache at all, as this one serves nothing but errors."""
    path = function.module.path
    written = _written(program, function, at)
    if written is None or path.endswith(".ipynb"):
        return None
    node, indent, text = written
    start, end = (
        text.offset(node.lineno, node.col_offset),
        text.offset(node.end_lineno or 0, node.end_col_offset or 0),
    )
    if cache == "functools.lru_cache" and isinstance(node, ast.Call | ast.Name):
        callee = node.func if isinstance(node, ast.Call) else node
        has_async_cache = any(
            imported.local == "alru_cache" and not imported.scope for imported in function.module.facts.imports
        )
        if has_async_cache and ast.unparse(callee) == "lru_cache":
            return Fix("use the async cache", "likely", (Edit(path, start, start + len("lru_cache"), "alru_cache"),))
    if _is_cache_used(program, function.name):
        return None
    if cache == "functools.cached_property":
        return Fix("do not cache the coroutine", "likely", (Edit(path, start, end, "property"),))
    if cache not in _PURE_CACHES or text.value[end : end + 2].lstrip(" \t\r")[:1] != "\n":
        return None
    line_end = text.value.index("\n", end) + 1
    return Fix("do not cache the coroutine", "likely", (Edit(path, start - 1 - indent, line_end, ""),))


def _is_cache_used(program: Program, name: str) -> bool:
    """Whether somebody speaks to the cache of a function, or may do so out of sight."""
    word = re.compile(rf"\b{re.escape(name)}\.cache_(?:clear|info|parameters)\b")
    texts = (text for _, text in program.own_texts())
    return any(text is None or (f"{name}.cache_" in text and word.search(text)) for text in texts)


def _written(program: Program, function: Function, at: Node) -> tuple[ast.expr, int, DecodedText] | None:
    """The decorator as it is written, how far it is indented, and the file around it."""
    text = program.text(function.module.path)
    tree = tree_of(text.value)
    line, column = function.facts.at[:2]
    for node in () if tree is None else ast.walk(tree):
        if isinstance(node, ast.AsyncFunctionDef) and (node.lineno, node.col_offset) == (line, column):
            reader = ExpressionReader()
            return next(
                ((decorator, column, text) for decorator in node.decorator_list if reader.expr(decorator) == at), None
            )
    return None
