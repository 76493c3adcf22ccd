"""How the value of a call is used: awaited, run, gathered, spawned, handed on, or taken as it is."""

import ast
from dataclasses import dataclass
from typing import Literal

from troth.analysis.facts.from_ast.expressions import at
from troth.analysis.facts.model import At, body_of
from troth.analysis.facts.names import last_name
from troth.analysis.facts.nodes import of_kind
from troth.analysis.recolor.project.tree import Tree
from troth.analysis.semantics.infer.call_graph import Call, names_of
from troth.analysis.semantics.symbols import Function
from troth.analysis.semantics.values import FunctionValue, members_of

__all__ = ["CONSUMES", "INDIFFERENT", "Use", "UseKind", "use_of"]

UseKind = Literal[
    "awaited", "run", "gathered", "timed", "spawned", "passed", "returned", "kept", "chosen", "lambda", "entered",
    "dropped", "value", "other thread", "managed",
]  # fmt: skip
# The uses that ask for something awaitable: there a call that gives a plain value fails.
CONSUMES = frozenset({"awaited", "run", "gathered", "timed", "spawned", "chosen", "entered", "other thread"})

_RUNNERS = frozenset({"asyncio.run", "asyncio.runners.run", "troth.bridge.run", "bridge.run"})
_RUNNER_METHODS = frozenset({"run_until_complete"})
_GATHERERS = frozenset({"asyncio.gather", "asyncio.tasks.gather"})
_TIMERS = frozenset({"asyncio.wait_for", "asyncio.tasks.wait_for", "asyncio.shield", "asyncio.tasks.shield"})
_SPAWNERS = frozenset({"create_task", "ensure_future", "start_soon"})
_OTHER_THREAD = "run_coroutine_threadsafe"
# Builtins that take any value and run nothing.
INDIFFERENT = frozenset({
    "print", "str", "repr", "bool", "len", "list", "dict", "set", "tuple", "sorted", "isinstance", "type", "int",
    "float", "any", "all", "sum", "min", "max", "next", "iter", "enumerate", "zip", "id", "hasattr", "getattr",
})  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Use:
    """What becomes of a value. `outer` is the node that takes it: the await, the call it is given to, the statement."""

    kind: UseKind
    outer: ast.AST | None = None
    by: str = ""

    @property
    def words(self) -> str:
        """For people."""
        return {
            "run": f"run by `{self.by}`",
            "gathered": f"gathered by `{self.by}`",
            "timed": f"under `{self.by}`",
            "other thread": f"given to another thread by `{self.by}`",
            "spawned": f"started by `{self.by}`",
            "passed": f"given to `{self.by}`",
            "lambda": "inside a lambda",
            "chosen": "one of several awaited values",
            "entered": "entered by `async with` or `async for`",
            "kept": "kept in a variable",
            "managed": f"given to `{self.by}`" if self.by else "entered by `with`",
            "dropped": "called and dropped",
            "value": "used as a value",
        }.get(self.kind, self.kind)


def use_of(tree: Tree, call: ast.expr, known: dict[At, Call]) -> Use:
    """How the value of `call` is used. `known` are the calls that the program has looked at, by place."""
    node: ast.AST = call
    parent = tree.parent(node)
    chosen = False
    while isinstance(parent, ast.IfExp | ast.BoolOp | ast.NamedExpr) and not (
        isinstance(parent, ast.IfExp) and node is parent.test
    ):
        chosen = True
        node, parent = parent, tree.parent(parent)
    if isinstance(parent, ast.Await):
        return Use("chosen" if chosen else "awaited", parent)
    if chosen and isinstance(parent, ast.Return | ast.Assign | ast.AnnAssign | ast.Lambda):
        kind: UseKind = "lambda" if isinstance(parent, ast.Lambda) else "kept"
        return Use("returned" if isinstance(parent, ast.Return) else kind, parent)
    if chosen:
        return Use("value", parent)
    if isinstance(parent, ast.Call) and node is not parent.func:
        return _given(parent, known)
    if isinstance(parent, ast.keyword):
        outer = tree.parent(parent)
        return _given(outer, known) if isinstance(outer, ast.Call) else Use("value", parent)
    spread = _spread(tree, node)
    if spread is not None:
        use = _given(spread, known)
        return use if use.kind in {"gathered", "spawned"} else Use("value", parent)
    match parent:
        case ast.Expr():
            return Use("dropped", parent)
        case ast.Return() | ast.Yield():
            return Use("returned", parent)
        case ast.Assign() | ast.AnnAssign():
            return Use("kept", parent)
        case ast.Lambda():
            return Use("lambda", parent)
        case ast.withitem():
            outer = tree.parent(parent)
            return Use("entered" if isinstance(outer, ast.AsyncWith) else "value", outer)
        case ast.AsyncFor() if node is parent.iter:
            return Use("entered", parent)
        case _:
            return Use("value", parent)


def _given(outer: ast.Call, known: dict[At, Call]) -> Use:
    call = known.get(at(outer))
    written = ast.unparse(outer.func)
    names = {written, *(names_of(call.callee) if call is not None else ())}
    last = {name.rpartition(".")[2] for name in names}
    if _OTHER_THREAD in last or (call is not None and _is_run_helper(call, frozenset({_OTHER_THREAD}))):
        return Use("other thread", outer, written)
    if names & _RUNNERS or last & _RUNNER_METHODS or (call is not None and _is_run_helper(call)):
        return Use("run", outer, written)
    if names & _GATHERERS:
        return Use("gathered", outer, written)
    if names & _TIMERS:
        return Use("timed", outer, written)
    if last & _SPAWNERS:
        return Use("spawned", outer, written)
    if written in INDIFFERENT:
        return Use("value", outer)
    return Use("passed", outer, written)


def _spread(tree: Tree, node: ast.AST) -> ast.Call | None:
    """The call that `node` is given to with a star: `gather(*[node for …])`, `gather(*(node, …))`."""
    parent = tree.parent(node)
    if not isinstance(parent, ast.ListComp | ast.GeneratorExp | ast.List | ast.Tuple | ast.SetComp):
        return None
    starred = tree.parent(parent)
    outer = tree.parent(starred) if isinstance(starred, ast.Starred) else None
    return outer if isinstance(outer, ast.Call) else None


_RUNS = frozenset({"run", "run_until_complete"})


def _is_run_helper(call: Call, runners: frozenset[str] = _RUNS) -> bool:
    """Whether a sync function of the project runs what it is given: `def run(coro): return asyncio.run(coro)`."""
    functions = [member.function for member in members_of(call.callee) if isinstance(member, FunctionValue)]
    return bool(functions) and all(
        isinstance(function, Function) and runs_its_argument(function, runners) for function in functions
    )


def runs_its_argument(function: Function, runners: frozenset[str] = _RUNS) -> bool:
    """Whether a runner is called in `function` with its first parameter."""
    params = [parameter[0] for parameter in function.facts.params if parameter[0] not in {"self", "cls"}]
    if function.is_async or not params:
        return False
    callees = (node[1] for node in of_kind(body_of(function.facts), "call") if ("name", params[0]) in node[2][:1])
    return any(last_name(callee) in runners for callee in callees)
