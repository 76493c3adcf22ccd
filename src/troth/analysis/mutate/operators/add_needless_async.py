"""Add needless async.

What it plants: a plain `def` becomes `async def`, and all its callers await it. Nothing is lost, everything still
works; but a function without one `await` of its own now drags every future caller into the other color.
What it leaves alone: all that could break or that somebody may require: names with a second definition or any use but
a call, callers that are not async, generators, decorated functions, public methods of classes with bases, special
methods.
"""

import ast
from collections.abc import Iterator
from dataclasses import replace

from troth.analysis.findings import Edit
from troth.analysis.mutate.mutant import Mutant
from troth.analysis.mutate.operator import Operator, OperatorCase, OperatorKind
from troth.analysis.mutate.source.module import SourceModule
from troth.analysis.mutate.source.place import NumberedPlaces
from troth.analysis.mutate.source.project import MutatedProject

__all__ = ["OPERATOR"]

_FUNCTION, _METHOD = "function", "method"


def find(module: SourceModule, project: MutatedProject) -> Iterator[Mutant]:
    """Every sync function whose callers are all async functions of the same file."""
    places = NumberedPlaces(module, "add-needless-async")
    uses = _uses(module)
    for outermost in module.functions:
        node = outermost.node
        if not isinstance(node, ast.FunctionDef) or not _is_free(module, node):
            continue
        if project.mentions.get(node.name, frozenset()) != {module.path}:
            continue
        is_method = isinstance(module.parents[node], ast.ClassDef)
        calls = _calls(module, uses.get(node.name, []), is_method=is_method)
        if not calls:
            continue
        edits = [Edit(module.path, module.start(node), module.start(node), "async ")]
        edits += [edit for call in calls for edit in _await(module, call)]
        callers = [module.homes[call] for call in calls]
        shape = _METHOD if is_method else _FUNCTION
        inside = node.body[1 if _is_docstring(node.body[0]) and len(node.body) > 1 else 0]
        mutant = places.mutant(node, shape, edits, subject=node.name, also=callers, reached_at=inside)
        yield replace(mutant, marks=mutant.marks[:1])  # only the line of the `def`: the node spans the whole body


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _uses(module: SourceModule) -> dict[str, list[ast.AST]]:
    """Every use of a name or attribute in the file, by that name; definitions and strings are uses too."""
    uses: dict[str, list[ast.AST]] = {}
    for node in module.walk():
        name = _name_in(node)
        if name:
            uses.setdefault(name, []).append(node)
    return uses


def _name_in(node: ast.AST) -> str | None:
    match node:
        case ast.Name():
            return node.id
        case ast.Attribute():
            return node.attr
        case ast.arg() | ast.keyword():
            return node.arg
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() | ast.alias():
            return node.name
        case ast.Constant() if isinstance(node.value, str):
            return node.value
    return None


def _is_free(module: SourceModule, node: ast.FunctionDef) -> bool:
    """Whether nothing but the callers has a say in the color of this function.

    A base may require a method to be plain, but hardly one with a private name.
    """
    if node.decorator_list or (node.name.startswith("__") and node.name.endswith("__")):
        return False
    parent = module.parents[node]
    if isinstance(parent, ast.ClassDef):
        has_no_base = all(isinstance(base, ast.Name) and base.id == "object" for base in parent.bases)
        if not (has_no_base or node.name.startswith("_")) or parent.keywords or parent.decorator_list:
            return False
    elif not isinstance(parent, ast.Module):
        return False
    return not any(isinstance(inner, (ast.Yield, ast.YieldFrom)) for inner in ast.walk(node))


def _calls(module: SourceModule, uses: list[ast.AST], *, is_method: bool) -> list[ast.Call]:
    """The calls, if there are some and there is no other use; else none."""
    calls: list[ast.Call] = []
    for use in uses:
        if isinstance(use, ast.FunctionDef):
            continue  # its own; a second one is told by the uses being more than calls and one definition
        call = module.parents[use]
        of_self = isinstance(use, ast.Attribute) and isinstance(use.value, ast.Name) and use.value.id == "self"
        if not (of_self if is_method else isinstance(use, ast.Name)):
            return []
        if not isinstance(call, ast.Call) or call.func is not use or not _can_await(module, call):
            return []
        calls.append(call)
    return calls if len(uses) == len(calls) + 1 else []


def _can_await(module: SourceModule, call: ast.Call) -> bool:
    if not isinstance(module.around(call), ast.AsyncFunctionDef) or module.in_fstring(call):
        return False
    if isinstance(module.parents[call], ast.Await):
        return False  # what is awaited as it is is no plain value
    for up in module.ancestors(call):
        if isinstance(up, ast.GeneratorExp):
            return False  # an `await` would make an async generator of it
        if isinstance(up, ast.stmt):
            break
    # A call inside another call of the same function would need its brackets nested; none is worth that.
    return not any(
        isinstance(inner, ast.Call) and ast.dump(inner.func) == ast.dump(call.func) for inner in _inside(call)
    )


def _inside(call: ast.Call) -> Iterator[ast.AST]:
    for part in (*call.args, *call.keywords):
        yield from ast.walk(part)


def _await(module: SourceModule, call: ast.Call) -> list[Edit]:
    """The edits that await a call; with brackets only where what follows would take hold of it first."""
    start, end = module.start(call), module.end(call)
    parent = module.parents[call]
    if call in (getattr(parent, "func", None), getattr(parent, "value", None)) and isinstance(
        parent, ast.Call | ast.Attribute | ast.Subscript
    ):
        return [Edit(module.path, start, start, "(await "), Edit(module.path, end, end, ")")]
    return [Edit(module.path, start, start, "await ")]


OPERATOR = Operator(
    name="add-needless-async",
    summary="make a sync function async, and await it in all callers",
    shapes=(_FUNCTION, _METHOD),
    find=find,
    kinds={
        "ruff": OperatorKind(codes=r"RUF029"),
        "troth": OperatorKind(words=r"^(?:needless|unused|useless)-async|without (?:an? )?await|never awaits"),
    },
    cures={
        _FUNCTION: "no test can, because everything still works; a rule against `async def` without `await`",
        _METHOD: "no test can, because everything still works; a rule against `async def` without `await`",
    },
    needs=dict.fromkeys(
        (_FUNCTION, _METHOD), "a rule against `async def` without `await` that knows who calls `{subject}`"
    ),
    cases=(
        OperatorCase(
            "a function",
            "def g(x):\n    return x\nasync def f():\n    y = g(1)\n    return g(2) + y\n",
            "async def g(x):\n    return x\nasync def f():\n    y = await g(1)\n    return await g(2) + y\n",
            "function",
        ),
        OperatorCase(
            "a method",
            "class A:\n    def g(self):\n        return {}\n    async def f(self):\n        return self.g().x\n",
            "class A:\n    async def g(self):\n        return {}\n    async def f(self):\n"
            "        return (await self.g()).x\n",
            "method",
        ),
        OperatorCase(
            "in the argument of an awaited call",
            "def g(): pass\nasync def f():\n    await h(g())\n",
            "async def g(): pass\nasync def f():\n    await h(await g())\n",
            "function",
        ),
        OperatorCase("awaited as it is", "def g(): pass\nasync def f():\n    await g()\n", None),
        OperatorCase("a sync caller", "def g(): pass\ndef f(): g()\nasync def h(): g()\n", None),
        OperatorCase("it has no callers", "def g(): pass\nasync def f(): pass\n", None),
        OperatorCase("passed as a value", "def g(): pass\nasync def f():\n    g()\n    h(g)\n", None),
        OperatorCase("named in a string", "__all__ = ['g']\ndef g(): pass\nasync def f():\n    g()\n", None),
        OperatorCase("a generator", "def g():\n    yield 1\nasync def f():\n    return list(g())\n", None),
        OperatorCase("decorated", "@d\ndef g(): pass\nasync def f():\n    g()\n", None),
        OperatorCase(
            "a base may require it",
            "class A(B):\n    def g(self): pass\n    async def f(self):\n        self.g()\n",
            None,
        ),
        OperatorCase(
            "in a generator expression", "def g(x): pass\nasync def f():\n    return any(g(x) for x in y)\n", None
        ),
        OperatorCase("two definitions", "def g(): pass\ndef g(): pass\nasync def f():\n    g()\n", None),
    ),
)
