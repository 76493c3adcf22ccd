"""Compound: two mismatches that hide each other.

What it plants: a coroutine function that returned a dict returns a model instead, and one of its callers has lost its
`await`. Putting the `await` back is then not enough, since the caller still treats the value as a dict. Refactorings
that were never run leave such pairs.
What it leaves alone: functions that return anything but dict literals with plain names as keys, and callers that
cannot be tied to the function by name in the same file.
"""

import ast
import keyword
from collections.abc import Iterator, Sequence

from troth.analysis.findings import Edit
from troth.analysis.mutate.mutant import Mutant
from troth.analysis.mutate.operator import Operator, OperatorCase
from troth.analysis.mutate.operators.drop_await import KINDS, NEEDS, await_token
from troth.analysis.mutate.source import shape as shapes
from troth.analysis.mutate.source.module import Outermost, SourceModule
from troth.analysis.mutate.source.place import NumberedPlaces
from troth.analysis.mutate.source.project import MutatedProject
from troth.analysis.mutate.source.shape import shape_of

__all__ = ["OPERATOR"]


def find(module: SourceModule, project: MutatedProject) -> Iterator[Mutant]:
    """Every awaited call of an async function or method of the same file that returns dict literals."""
    del project
    places = NumberedPlaces(module, "compound")
    makers = {maker.name: maker for maker in module.functions if "#" not in maker.name and _returns(maker)}
    for node in module.walk():
        if not (isinstance(node, ast.Await) and isinstance(node.value, ast.Call)) or module.in_fstring(node):
            continue
        maker = makers.get(_name_of_callee(module, node.value))
        if maker is None or module.homes.get(node) in (None, maker):
            continue
        edits = [await_token(module, node), *_as_model(module, maker)]
        yield places.mutant(node, shape_of(module, node), edits, subject=module.source(node.value.func), also=[maker])


def _name_of_callee(module: SourceModule, call: ast.Call) -> str:
    """The dotted name in the file of what is called, as far as `name()` and `self.name()` tell."""
    if isinstance(call.func, ast.Name):
        return call.func.id
    if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name) and call.func.value.id == "self":
        home = module.homes.get(call)
        if home is not None and "." in home.name:
            return f"{home.name.rpartition('.')[0]}.{call.func.attr}"
    return ""


def _returns(maker: Outermost) -> list[ast.Return]:
    """Its returns, if it is async and each returns a dict literal with plain names as keys; else none."""
    if not isinstance(maker.node, ast.AsyncFunctionDef):
        return []
    returns: list[ast.Return] = []
    for node in _own(maker.node):
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            return []
        if isinstance(node, ast.Return):
            if not isinstance(node.value, ast.Dict) or not _keys(node.value):
                return []
            returns.append(node)
    return returns


def _own(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function without those of functions inside it."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            yield child
            yield from _own(child)


def _keys(display: ast.Dict) -> list[str]:
    """The keys, if they are different strings that can be attribute names; else none."""
    keys = [key.value for key in display.keys if isinstance(key, ast.Constant) and isinstance(key.value, str)]
    usable = all(key.isidentifier() and not keyword.iskeyword(key) and not key.startswith("__") for key in keys)
    return keys if usable and len(set(keys)) == len(display.keys) else []


def _as_model(module: SourceModule, maker: Outermost) -> list[Edit]:
    """The edits that turn the dicts into a model; its class goes to the end of the file, where it moves no line."""
    model = "".join(part.capitalize() for part in maker.node.name.strip("_").split("_")) + "Model"
    while model in module.file.text:
        model += "2"
    fields: dict[str, None] = {}
    edits: list[Edit] = []
    for statement in _returns(maker):
        display = statement.value
        if not isinstance(display, ast.Dict):
            continue
        fields.update(dict.fromkeys(_keys(display)))
        edits += _as_call(module, display, model)
    if maker.node.returns is not None:
        note = maker.node.returns
        edits.append(Edit(module.path, module.start(note), module.end(note), f'"{model}"'))
    end = len(module.file.text)
    edits.append(Edit(module.path, end, end, _model(module, model, list(fields))))
    return edits


def _as_call(module: SourceModule, display: ast.Dict, model: str) -> list[Edit]:
    """`{"a": 1}` as `Model(a=1)`, key by key, so that the values stay as they are written."""
    start, end = module.start(display), module.end(display)
    edits = [Edit(module.path, start, start + 1, f"{model}("), Edit(module.path, end - 1, end, ")")]
    for key, value in zip(display.keys, display.values, strict=True):
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            opening = module.file.text[module.end(key) : module.start(value)].count("(")
            edits.append(Edit(module.path, module.start(key), module.start(value), f"{key.value}={'(' * opening}"))
    return edits


def _model(module: SourceModule, model: str, fields: Sequence[str]) -> str:
    newline = module.file.newline
    lines = [f"class {model}:", f"    def __init__(self, {', '.join(f'{name}=None' for name in fields)}):"]
    lines += [f"        self.{name} = {name}" for name in fields]
    head = "" if module.file.text.endswith(("\n", "\r")) else newline
    return head + newline * 2 + newline.join(lines) + newline


OPERATOR = Operator(
    name="compound",
    summary="drop an `await` and turn the dict that the callee returned into a model",
    shapes=shapes.SHAPES,
    find=find,
    kinds=KINDS,
    cures={
        shapes.BARE: "a test of what the call does; the model behind it shows only once the call runs again",
        shapes.ASSIGNED: "a test that reads a field of the value that was made from the call",
        shapes.RETURN: "a test that compares what the function returns with a plain dict",
        shapes.CONDITION: "a test of the other branch: a coroutine is always true, and so is a model",
        shapes.LARGER: "a test that looks inside the value that is built or passed on here",
    },
    needs=NEEDS,
    cases=(
        *(
            OperatorCase(
                name,
                f'async def g(x):\n    return {{"a": x, "b": (1)}}\nasync def f():\n    {before}\n',
                f"async def g(x):\n    return GModel(a=x, b=(1))\nasync def f():\n    {after}\n\n\nclass GModel:\n"
                "    def __init__(self, a=None, b=None):\n        self.a = a\n        self.b = b\n",
                shape,
            )
            for name, before, after, shape in (
                ("bare", "await g(1)", "g(1)", shapes.BARE),
                ("assigned", "x = await g(1)", "x = g(1)", shapes.ASSIGNED),
                ("returned", "return await g(1)", "return g(1)", shapes.RETURN),
                ("tested", "if await g(1): pass", "if g(1): pass", shapes.CONDITION),
                ("read from", "return (await g(1))['a']", "return (g(1))['a']", shapes.LARGER),
            )
        ),
        OperatorCase(
            "an annotated method",
            "class A:\n    async def g(self) -> dict[str, int]:\n        return {'a': 1}\n"
            "    async def f(self):\n        d = await self.g()\n",
            'class A:\n    async def g(self) -> "GModel":\n        return GModel(a=1)\n'
            "    async def f(self):\n        d = self.g()\n\n\nclass GModel:\n"
            "    def __init__(self, a=None):\n        self.a = a\n",
            shapes.ASSIGNED,
        ),
        OperatorCase(
            "another return",
            "async def g(x):\n    if x: return 1\n    return {'a': 1}\nasync def f():\n    await g(1)\n",
            None,
        ),
        OperatorCase(
            "a key that is not a name", "async def g():\n    return {'a-b': 1}\nasync def f():\n    await g()\n", None
        ),
        OperatorCase(
            "unpacked keys", "async def g(x):\n    return {'a': 1, **x}\nasync def f():\n    await g(1)\n", None
        ),
        OperatorCase(
            "an unknown callee", "async def g():\n    return {'a': 1}\nasync def f(x):\n    await x.g()\n", None
        ),
    ),
)
