"""Swallow.

What it plants: a dropped `await` whose statement is wrapped in `try … except Exception: pass`.
Why it matters: the coroutine is lost as before, and what goes wrong with the value afterwards is silenced too. Code
that is afraid of its own callees looks like this, and no traceback ever points at the lost call.
What it leaves alone: statements that share their line with others, and values that are needed after the statement,
since a name that may be unbound would give the mutant away for another reason.
"""

import ast
import re
from collections.abc import Iterator

from troth.analysis.findings import Edit
from troth.analysis.mutate.mutant import Mutant
from troth.analysis.mutate.operator import Operator, OperatorCase
from troth.analysis.mutate.operators.drop_await import KINDS, NEEDS, await_token
from troth.analysis.mutate.source import shape as shapes
from troth.analysis.mutate.source.module import SourceModule
from troth.analysis.mutate.source.place import NumberedPlaces
from troth.analysis.mutate.source.project import MutatedProject
from troth.analysis.mutate.source.shape import shape_of

__all__ = ["OPERATOR"]

_REST_OF_LINE = re.compile(r"[ \t]*(?:#[^\r\n]*)?(?=\r|\n|\Z)")
_SHAPES = (shapes.BARE, shapes.RETURN, shapes.LARGER)


def find(module: SourceModule, project: MutatedProject) -> Iterator[Mutant]:
    """Every `await` of a call in a statement that can be wrapped."""
    del project
    places = NumberedPlaces(module, "swallow")
    for node, call in module.awaited_calls():
        statement = module.statement(node)
        if not isinstance(statement, (ast.Expr, ast.Return)):
            continue
        wrapping = _wrap(module, statement)
        shape = shape_of(module, node)
        if wrapping and shape in _SHAPES:
            edits = [*wrapping, await_token(module, node)]
            yield places.mutant(node, shape, edits, subject=module.source(call.func))


def _wrap(module: SourceModule, statement: ast.stmt) -> list[Edit]:
    """The edits that put the statement into a `try`, or none where it does not stand alone on its lines."""
    source = module.file
    start = module.start(statement)
    indent = source.text[source.line_starts[statement.lineno - 1] : start]
    line_end = _REST_OF_LINE.match(source.text, module.end(statement))
    if indent.strip() or line_end is None:
        return []
    step = "\t" if indent.endswith("\t") else "    "
    newline = source.newline
    after = f"{newline}{indent}except Exception:{newline}{indent}{step}pass"
    return [
        Edit(module.path, start, start, f"try:{newline}{indent}{step}"),
        Edit(module.path, line_end.end(), line_end.end(), after),
    ]


OPERATOR = Operator(
    name="swallow",
    summary="drop the `await` and wrap the statement in `except Exception: pass`",
    shapes=_SHAPES,
    find=find,
    kinds=KINDS,
    cures={
        shapes.BARE: "a test of what the call does: afterwards something was written, sent or closed",
        shapes.RETURN: "a test that compares what the function returns with a plain value",
        shapes.LARGER: "a test of what the outer call did with the value",
    },
    needs={shape: NEEDS[shape] for shape in _SHAPES},
    cases=(
        OperatorCase("at the top of a file", "await g()\n", None),
        OperatorCase(
            "bare",
            "async def f():\n    await g()  # now\n    h()\n",
            "async def f():\n    try:\n        g()  # now\n    except Exception:\n        pass\n    h()\n",
            "bare",
        ),
        OperatorCase(
            "returned, at the end of the file",
            "async def f():\n    return await g(\n        1)",
            "async def f():\n    try:\n        return g(\n        1)\n    except Exception:\n        pass",
            "return",
        ),
        OperatorCase(
            "passed on",
            "async def f():\n\th(await g())\n",
            "async def f():\n\ttry:\n\t\th(g())\n\texcept Exception:\n\t\tpass\n",
            "larger",
        ),
        OperatorCase("assigned", "async def f():\n    x = await g()\n    return x\n", None),
        OperatorCase("behind a semicolon", "async def f():\n    h(); await g()\n", None),
        OperatorCase("before a semicolon", "async def f():\n    await g(); h()\n", None),
        OperatorCase("on the line of its if", "async def f():\n    if x: await g()\n", None),
    ),
)
