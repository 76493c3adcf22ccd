"""Find who takes a function that is handed over uncalled, and which color they ask it to have."""

import ast
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from troth.analysis.facts.from_ast.expressions import at
from troth.analysis.facts.model import At
from troth.analysis.knowledge.semantics import semantics
from troth.analysis.recolor.project.tree import Tree
from troth.analysis.semantics import Program
from troth.analysis.semantics.evidence.awaited_parameters import AwaitedParameter, awaited_parameters
from troth.analysis.semantics.infer.call_graph import Call, names_of
from troth.analysis.semantics.queries.call_target import called_body
from troth.analysis.semantics.values import Value, members_of

__all__ = ["Asked", "CallbackTaker", "asked", "taker_of"]

Asked = Literal["sync", "async", "either", "unknown"]

_ASKING = re.compile(r"(?i)is_?async|is_?coro|is_?awaitable|maybe|async_callable|bridge\.call")
_PARTIALS = frozenset({"partial", "functools.partial"})
# What only looks at the function: its name, its parameters, its color.
_LOOKING = frozenset({
    "callable", "isinstance", "hasattr", "id", "iscoroutinefunction", "isasyncgenfunction", "isgeneratorfunction",
    "isfunction", "ismethod", "signature", "getsource", "getfile", "getmodule", "getdoc", "getfullargspec", "wraps",
    "update_wrapper", "get_type_hints", "color_of", "unwrap",
})  # fmt: skip
_ANNOTATED = re.compile(r"Awaitable|Coroutine")


@dataclass(frozen=True, slots=True, eq=False)
class CallbackTaker:
    """A call that is given the function. `slot` is a position or a keyword, `call` what the program knows of it."""

    node: ast.Call
    slot: str
    call: Call | None
    value: Value | None = None  # what is called, where no call of the program says so: in a default or an annotation

    @property
    def callee(self) -> Value | None:
        """What is called."""
        return self.value if self.call is None else self.call.callee

    @property
    def text(self) -> str:
        """The callee as written."""
        return ast.unparse(self.node.func)


def taker_of(
    tree: Tree, node: ast.expr, known: Mapping[At, Call], look: Callable[[ast.expr], Value | None] = lambda _node: None
) -> CallbackTaker | None:
    """Who is given `node`; a `partial` of it is the same function with less to give. None where it is no argument."""
    parent = tree.parent(node)
    outer = tree.parent(parent) if isinstance(parent, ast.keyword) else parent
    if not isinstance(outer, ast.Call) or node is outer.func:
        return None
    if isinstance(parent, ast.keyword):
        slot = parent.arg or ""
    else:
        if node not in outer.args or any(
            isinstance(argument, ast.Starred) for argument in outer.args[: outer.args.index(node)]
        ):
            return None
        slot = str(outer.args.index(node))
    if slot == "0" and ast.unparse(outer.func) in _PARTIALS:
        return taker_of(tree, outer, known, look)
    call = known.get(at(outer))
    return CallbackTaker(outer, slot, call, look(outer.func) if call is None else None)


def asked(program: Program, taker: CallbackTaker) -> tuple[Asked, AwaitedParameter | None]:
    """Which color the taker asks for, and where it awaits what it is given, if that is code of the project."""
    if taker.text.rpartition(".")[2] in _LOOKING:
        return "either", None
    slots = semantics().slots
    for name in names_of(taker.callee):
        if name in slots and taker.slot in slots[name].wants:
            color = slots[name].wants[taker.slot]
            return ("sync" if color == "plain" else color), None
    targets = members_of(taker.callee) if taker.callee is not None else ()
    target = called_body(program, targets[0]) if len(targets) == 1 else None
    if target is None:
        return "unknown", None
    function, shift = target
    names = function.facts.positional
    param = taker.slot
    if param.isdigit():
        param = names[int(param) + shift] if int(param) + shift < len(names) else ""
    if param not in function.params:
        return "unknown", None
    awaiting = awaited_parameters(program, function).get(param)
    if awaiting is not None:
        return "async", awaiting
    if any(_ASKING.search(callee) for callee in (*function.facts.calls, *function.facts.awaited)):
        return "either", None
    return ("async" if _ANNOTATED.search(str(function.params[param][1])) else "unknown"), None
