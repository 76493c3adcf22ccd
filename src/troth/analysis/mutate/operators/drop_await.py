"""Drop await.

What it plants: `await call()` becomes `call()`, so the coroutine is made and never runs.
Why it matters: this is the mismatch that code written in a hurry has most of, and Python speaks of it only when the
object is collected, far from the call.
What it leaves alone: `await` on a name or an attribute, which may be a task that runs anyway; and f-strings, since
Python 3.11 does not say where in the file their parts stand.
"""

import ast
import re
from collections.abc import Iterator

from troth.analysis.findings import Edit
from troth.analysis.mutate.mutant import Mutant
from troth.analysis.mutate.operator import Operator, OperatorCase, OperatorKind
from troth.analysis.mutate.source import shape as shapes
from troth.analysis.mutate.source.module import SourceModule
from troth.analysis.mutate.source.place import NumberedPlaces
from troth.analysis.mutate.source.project import MutatedProject
from troth.analysis.mutate.source.shape import shape_of

__all__ = ["KINDS", "NEEDS", "OPERATOR", "await_token"]

_AWAIT = re.compile(r"await[ \t]*")
_ABOUT = r"corout|await|\bFuture\b|\bTask\b"


def find(module: SourceModule, project: MutatedProject) -> Iterator[Mutant]:
    """Every `await` of a call."""
    del project
    places = NumberedPlaces(module, "drop-await")
    for node, call in module.awaited_calls():
        yield places.mutant(node, shape_of(module, node), [await_token(module, node)], subject=module.source(call.func))


def await_token(module: SourceModule, node: ast.Await) -> Edit:
    """The edit that removes the word `await` and the blanks behind it, but never a line end."""
    start = module.start(node)
    word = _AWAIT.match(module.file.text, start)
    if word is None:
        raise ValueError(f"{module.path}:{node.lineno}: no `await` where the syntax tree says there is one")
    return Edit(module.path, start, word.end(), "")


KINDS = {
    "ruff": OperatorKind(words=_ABOUT, never=r"RUF029|ASYNC\d+"),
    "mypy": OperatorKind(
        codes=r"unused-coroutine|unused-awaitable|truthy-\w+|redundant-expr|return-value", words=_ABOUT
    ),
    "pyright": OperatorKind(codes=r"reportUnusedCoroutine|reportUnnecessaryComparison", words=_ABOUT),
    "ty": OperatorKind(codes=r"unused-awaitable|redundant-condition\S*", words=_ABOUT),
    "pyrefly": OperatorKind(
        codes=r"unused-coroutine|implicit-bool|redundant-condition|unnecessary-comparison", words=_ABOUT
    ),
    "troth": OperatorKind(codes=r"TR\d+", never=r"^TR\d+ needless"),
}

NEEDS = {
    shapes.BARE: "knowing that `{subject}` is async, though its type is not known here",
    shapes.ASSIGNED: "following the value of `{subject}` to where it is used, or not used, without `await`",
    shapes.RETURN: "an annotation of what this function returns, or knowing that `{subject}` is async",
    shapes.CONDITION: "knowing that `{subject}` is async, and a rule against coroutines as truth values",
    shapes.LARGER: "knowing that `{subject}` is async, and what the expression around it takes",
}

OPERATOR = Operator(
    name="drop-await",
    summary="remove the `await` before a call",
    shapes=shapes.SHAPES,
    find=find,
    kinds=KINDS,
    cures={
        shapes.BARE: "a test of what the call does: afterwards something was written, sent or closed",
        shapes.ASSIGNED: "a test of what is made from the value, not only that nothing is raised",
        shapes.RETURN: "a test that compares what the function returns with a plain value",
        shapes.CONDITION: "a test of the other branch: a coroutine is always true",
        shapes.LARGER: "a test that looks inside the value that is built or passed on here",
    },
    needs=NEEDS,
    cases=(
        OperatorCase("at the top of a file", "await g()\nclass A:\n    await g()\n", None),
        OperatorCase("bare", "async def f():\n    await g()\n", "async def f():\n    g()\n", "bare"),
        OperatorCase("assigned", "async def f():\n    x = await g(1)\n", "async def f():\n    x = g(1)\n", "assigned"),
        OperatorCase(
            "annotated", "async def f():\n    x: int = await g()\n", "async def f():\n    x: int = g()\n", "assigned"
        ),
        OperatorCase(
            "returned", "async def f():\n    return await g()\n", "async def f():\n    return g()\n", "return"
        ),
        OperatorCase(
            "tested", "async def f():\n    if await g(): pass\n", "async def f():\n    if g(): pass\n", "condition"
        ),
        OperatorCase(
            "negated", "async def f():\n    x = not await g()\n", "async def f():\n    x = not g()\n", "condition"
        ),
        OperatorCase(
            "compared",
            "async def f():\n    while await g() == 1: pass\n",
            "async def f():\n    while g() == 1: pass\n",
            "condition",
        ),
        OperatorCase("passed on", "async def f():\n    h(await g())\n", "async def f():\n    h(g())\n", "larger"),
        OperatorCase(
            "read from", "async def f():\n    x = (await g()).y\n", "async def f():\n    x = (g()).y\n", "larger"
        ),
        OperatorCase("without a blank", "async def f():\n    await(g())\n", "async def f():\n    (g())\n", "bare"),
        OperatorCase(
            "over two lines",
            "async def f():\n    return await \\\n        g()\n",
            "async def f():\n    return \\\n        g()\n",
            "return",
        ),
        OperatorCase(
            "behind a wide letter", "async def f():\n    é = await g()\n", "async def f():\n    é = g()\n", "assigned"
        ),
        OperatorCase("a task that runs anyway", "async def f(task):\n    await task\n", None),
        OperatorCase("in an f-string", 'async def f():\n    x = f"{await g()}"\n', None),
        OperatorCase("no function around it", "x = 1\n", None),
    ),
)
