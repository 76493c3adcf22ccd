"""Drop task.

What it plants: a task that was kept (in a name, on `self`, in a collection) or awaited is made and let go. The event
loop keeps only a weak hold on it: it may be collected half-way, and what it raises is told to nobody.
What it leaves alone: task groups and nurseries, which keep their tasks themselves; and names that are needed for
something else later, since a missing name would give the mutant away.
"""

import ast
from collections.abc import Iterator

from troth.analysis.findings import Edit
from troth.analysis.mutate.mutant import Mutant
from troth.analysis.mutate.operator import Operator, OperatorCase, OperatorKind
from troth.analysis.mutate.operators.drop_await import await_token
from troth.analysis.mutate.source.module import SourceModule
from troth.analysis.mutate.source.place import NumberedPlaces
from troth.analysis.mutate.source.project import MutatedProject

__all__ = ["OPERATOR"]

_NAME, _ATTRIBUTE, _COLLECTION, _AWAITED = "name", "attribute", "collection", "awaited"
_MAKERS = frozenset(("create_task", "ensure_future"))
_ABOUT = r"\btask\b|await"


def find(module: SourceModule, project: MutatedProject) -> Iterator[Mutant]:
    """Every task that is kept in a way that can be taken away without leaving a hole."""
    del project
    places = NumberedPlaces(module, "drop-task")
    for node in module.walk():
        if not isinstance(node, ast.Call) or not _makes_task(node) or node not in module.homes:
            continue
        if module.in_fstring(node):
            continue
        change = _letting_go(module, node)
        if change:
            shape, edits = change
            yield places.mutant(node, shape, edits, subject=module.source(node.func))


def _makes_task(call: ast.Call) -> bool:
    """`create_task` and `ensure_future` of asyncio or of a loop; whatever else has such a method may keep its tasks."""
    func = call.func
    if isinstance(func, ast.Name):
        return func.id in _MAKERS
    if not isinstance(func, ast.Attribute) or func.attr not in _MAKERS:
        return False
    owner = func.value
    if isinstance(owner, ast.Call):
        owner = owner.func
    word = owner.attr if isinstance(owner, ast.Attribute) else owner.id if isinstance(owner, ast.Name) else ""
    return word == "asyncio" or "loop" in word.lower()


def _letting_go(module: SourceModule, call: ast.Call) -> tuple[str, list[Edit]] | None:
    parent = module.parents[call]
    if isinstance(parent, ast.Await) and isinstance(module.parents[parent], ast.Expr):
        return _AWAITED, [await_token(module, parent)]
    if isinstance(parent, ast.Call) and isinstance(module.parents[parent], ast.Expr):
        func = parent.func
        if isinstance(func, ast.Attribute) and func.attr in ("add", "append") and parent.args == [call]:
            return _COLLECTION, _keep_only(module, parent, call)
    if isinstance(parent, (ast.Assign, ast.AnnAssign)):
        target = parent.target if isinstance(parent, ast.AnnAssign) else parent.targets[0]
        if isinstance(parent, ast.Assign) and len(parent.targets) != 1:
            return None
        if isinstance(target, ast.Attribute) and _has_another_value(module, target):
            return _ATTRIBUTE, _keep_only(module, parent, call)
        if isinstance(target, ast.Name):
            idle = _idle_uses(module, target, call)
            if idle is not None:
                blanks = [
                    Edit(module.path, module.start(statement), module.end(statement), "pass") for statement in idle
                ]
                return _NAME, [*_keep_only(module, parent, call), *blanks]
    return None


def _keep_only(module: SourceModule, whole: ast.expr | ast.stmt, part: ast.expr) -> list[Edit]:
    edits = [
        Edit(module.path, module.start(whole), module.start(part), ""),
        Edit(module.path, module.end(part), module.end(whole), ""),
    ]
    return [edit for edit in edits if edit.start != edit.end]


def _has_another_value(module: SourceModule, target: ast.Attribute) -> bool:
    """Whether the attribute is set elsewhere too (mostly to None at first), so that reading it still works."""
    for node in module.walk():
        if isinstance(node, ast.Attribute) and node is not target and node.attr == target.attr:
            parent = module.parents[node]
            if isinstance(node.ctx, ast.Store) and isinstance(parent, (ast.Assign, ast.AnnAssign)):
                return parent.value is not None
    return False


def _idle_uses(module: SourceModule, target: ast.Name, call: ast.Call) -> list[ast.Expr] | None:
    """The statements that use the name, if each only keeps or awaits the task; None if one needs it for more."""
    scope = module.around(call)
    statements: dict[ast.Expr, None] = {}
    for node in ast.walk(scope):
        if isinstance(node, (ast.Global, ast.Nonlocal)) and target.id in node.names:
            return None
        if not isinstance(node, ast.Name) or node.id != target.id or node is target:
            continue
        statement = module.statement(node)
        parent = module.parents[node]
        is_kept = isinstance(parent, ast.Call) and node in parent.args and module.parents[parent] is statement
        is_awaited = isinstance(parent, ast.Await) and module.parents[parent] is statement
        hooks = isinstance(parent, ast.Attribute) and parent.attr == "add_done_callback"
        if not isinstance(statement, ast.Expr) or not (is_kept or is_awaited or hooks):
            return None
        statements[statement] = None
    return list(statements)


OPERATOR = Operator(
    name="drop-task",
    summary="make a task and keep no reference to it",
    shapes=(_NAME, _ATTRIBUTE, _COLLECTION, _AWAITED),
    find=find,
    kinds={
        "ruff": OperatorKind(codes=r"RUF006"),
        "mypy": OperatorKind(codes=r"unused-awaitable|unused-coroutine", words=_ABOUT),
        "pyright": OperatorKind(codes=r"reportUnusedCoroutine|reportUnusedCallResult", words=_ABOUT),
        "ty": OperatorKind(codes=r"unused-awaitable", words=_ABOUT),
        "pyrefly": OperatorKind(codes=r"unused-coroutine|unused-call-result", words=_ABOUT),
        "troth": OperatorKind(codes=r"TR\d+"),
    },
    cures={
        _NAME: "a test that waits for what the task does, and one in which the task fails",
        _ATTRIBUTE: "a test that stops the object and looks whether the task has ended",
        _COLLECTION: "a test that stops the owner and looks whether all tasks have ended",
        _AWAITED: "a test of what the task did, made right after this function returns",
    },
    needs=dict.fromkeys(
        (_NAME, _ATTRIBUTE, _COLLECTION, _AWAITED), "a rule that every task of `{subject}` is kept or awaited"
    ),
    cases=(
        OperatorCase(
            "kept in a set",
            "async def f(s):\n    t = asyncio.create_task(g())\n    s.add(t)\n    t.add_done_callback(s.discard)\n",
            "async def f(s):\n    asyncio.create_task(g())\n    pass\n    pass\n",
            _NAME,
        ),
        OperatorCase(
            "awaited later",
            "async def f():\n    t: Task = loop.create_task(g())\n    h()\n    await t\n",
            "async def f():\n    loop.create_task(g())\n    h()\n    pass\n",
            _NAME,
        ),
        OperatorCase(
            "on self",
            "class A:\n    def __init__(self):\n        self.t = None\n    def f(self):\n"
            "        self.t = asyncio.ensure_future(g())\n",
            "class A:\n    def __init__(self):\n        self.t = None\n    def f(self):\n"
            "        asyncio.ensure_future(g())\n",
            _ATTRIBUTE,
        ),
        OperatorCase(
            "put into a list",
            "async def f(ts):\n    ts.append(asyncio.create_task(g()))\n",
            "async def f(ts):\n    asyncio.create_task(g())\n",
            _COLLECTION,
        ),
        OperatorCase(
            "awaited at once",
            "async def f():\n    await asyncio.create_task(g())\n",
            "async def f():\n    asyncio.create_task(g())\n",
            _AWAITED,
        ),
        OperatorCase("a task group keeps it", "async def f(tg):\n    t = tg.create_task(g())\n", None),
        OperatorCase(
            "its result is needed", "async def f():\n    t = asyncio.create_task(g())\n    return await t\n", None
        ),
        OperatorCase(
            "read before it is set", "class A:\n    def f(self):\n        self.t = asyncio.create_task(g())\n", None
        ),
    ),
)
