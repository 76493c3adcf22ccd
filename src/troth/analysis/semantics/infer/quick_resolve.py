"""What a callee, as written, stands for without a walk through the function it is called in.

That can be told where its first name is the method's own object, a parameter, bound by the module, or a variable that
is bound in one simple way only, here or in a function around: to a literal, or to what a call gives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.facts.fields import ATTR_BASE, CALL_FUNC, KIND
from troth.analysis.facts.names import last_name
from troth.analysis.facts.nodes import of_kind
from troth.analysis.semantics.infer.evaluator import BUILTIN_FUNCTIONS
from troth.analysis.semantics.infer.identity_functions import gives_back
from troth.analysis.semantics.symbols import Function
from troth.analysis.semantics.values import Builtin, ClassObject, External, FunctionValue, members_of

if TYPE_CHECKING:
    from collections.abc import Collection, MutableMapping

    from troth.analysis.facts.model import Node
    from troth.analysis.semantics.infer.inference import Inference
    from troth.analysis.semantics.symbols import Class
    from troth.analysis.semantics.values import Value

__all__ = ["Glance"]

_NOWHERE = (0, 0, 0, 0)
_UNNAMED = frozenset({"?", "[]", "()", ""})
_SUPER = ("call", ("name", "super"))
_DEEPEST = 8  # variables made of variables
_BY_ARGUMENTS = frozenset({"cast", "next", "copy", "deepcopy", "partial", "min", "max"})


class Glance:
    """Callees seen at a glance, each looked at once for all functions in which it means the same."""

    def __init__(self, program: Inference) -> None:
        self._program = program
        self._seen: MutableMapping[tuple[object, str], Value | None] = program.answers()
        self._made: MutableMapping[tuple[Function, str], Value | None] = program.answers()

    def scope(self, function: Function, callee: str) -> object | None:
        """Where the first name of `callee` gets its meaning; None where only a walk can tell."""
        root, _, tail = callee.partition(".")
        if root in _UNNAMED:
            return None
        owner = _owner(function)
        if owner is not None and owner[0] == root and tail:
            return owner[1]
        holder = _variable(function, root) if tail else None
        if holder is not None and not _is_rooted(holder, root):
            return None
        if holder is not None and self._held(holder, root) is None and self._is_told_by_more(holder, root):
            return None
        if root in function.params or holder is not None:
            # What a parameter or a variable is, a function that asks finds out itself.
            return None if "isinstance" in function.facts.calls else function
        if root in function.module.bindings and not _binds(function, root):
            return function.module
        return None

    def alternatives(self, function: Function, callee: str) -> tuple[Value | None, ...] | None:
        """What `callee` may stand for in the function, whichever way it runs; None where only a walk can tell."""
        scope = self.scope(function, callee)
        return None if scope is None else members_of(self.value(function, callee, scope))

    def callees(self, function: Function, callee: str) -> tuple[Value | None, ...] | None:
        """What a callee in the facts may be, that of `super()` too: every constructor may call that of its base."""
        base, _, name = callee.rpartition(".")
        if base == "?" and "super" in function.facts.calls:
            called = [
                call[CALL_FUNC] for call in of_kind(function.body(), "call") if last_name(call[CALL_FUNC]) == name
            ]
            if called and all(node[KIND] == "attr" and node[ATTR_BASE][:2] == _SUPER for node in called):
                values = [self._program.value_of(node, function.module, function) for node in called]
                return tuple(member for value in values for member in members_of(value))
        return self.alternatives(function, callee)

    def may_call(self, function: Function, names: Collection[str], wanted: Collection[Function]) -> bool:
        """Whether a callee of these last names is one of the wanted functions, or only a walk can tell."""
        for callee in (*function.facts.calls, *function.facts.awaited):
            text = callee.rpartition(" ")[2]
            if text.rpartition(".")[2] in names:
                members = self.callees(function, text)
                if members is None or not all(
                    isinstance(member, FunctionValue | External | ClassObject) for member in members
                ):
                    return True
                if any(isinstance(member, FunctionValue) and member.function in wanted for member in members):
                    return True
        return False

    def value(self, function: Function, callee: str, scope: object) -> Value | None:
        """What `callee` stands for in that `scope` of the function."""
        key = (scope, callee)
        if key not in self._seen:
            self._seen[key] = self._look(function, callee, _node_of(callee))
        return self._seen[key]

    def _look(self, function: Function, callee: str, node: Node) -> Value | None:
        evaluator = self._program.static(function.module, function)
        root = callee.partition(".")[0]
        around = _variable(function, root)
        if around is not None:
            evaluator.env[root] = self._held(around, root)
        try:
            return evaluator.value(node)
        except RecursionError:  # a row of attributes, or of names behind names, that nobody can follow
            return None

    def _held(self, function: Function, name: str) -> Value | None:
        """What a variable of `function` holds."""
        key = (function, name)
        if key not in self._made:
            self._made[key] = None  # while it is being found out
            origin = function.origins[name]
            if origin.endswith("()"):
                how, _, callee = origin.removesuffix("()").rpartition(" ")
                node: Node = ("call", _node_of(callee), (), (), _NOWHERE)
                if how == "await":
                    node = ("await", node, _NOWHERE)
                elif how:
                    node = ("entered", how == "async with", node)
                self._made[key] = self._look(function, callee, node)
            else:
                self._made[key] = Builtin(origin)
        return self._made[key]

    def _is_told_by_more(self, function: Function, name: str) -> bool:
        """Whether more than the name of what was called may tell what it gave: what it was given, or how it is used."""
        origin = function.origins[name]
        callee = origin.removesuffix("()").rpartition(" ")[2]
        if "with " in origin or callee.rpartition(".")[2] in _BY_ARGUMENTS:
            return True
        called = self._look(function, callee, _node_of(callee))
        return any(
            isinstance(member, FunctionValue)
            and isinstance(member.function, Function)
            and gives_back(self._program, member.function)
            for member in members_of(called)
        )


def _node_of(callee: str) -> Node:
    """A callee as written, with no place."""
    first, *attributes = callee.split(".")
    node: Node = ("name", first)
    for name in attributes:
        node = ("attr", node, name, _NOWHERE)
    return node


def _variable(function: Function, name: str) -> Function | None:
    """The function, this one or one around, in which `name` is a variable that is bound in one way only."""
    around: Function | None = function
    while around is not None:
        if name in around.origins:
            return around
        if name in around.params or name in around.module.inner(around.index):
            return None
        around = around.parent
    return None


def _is_rooted(function: Function, name: str, depth: int = 0) -> bool:
    """Whether what a variable is made of can be seen: not something that `for` or an unpacking has bound."""
    origin = function.origins[name]
    root = origin.removesuffix("()").rpartition(" ")[2].partition(".")[0]
    if not origin.endswith("()"):
        return True
    if root in _UNNAMED or root == name or depth > _DEEPEST:
        return False
    holder = _variable(function, root)
    if holder is not None:
        return _is_rooted(holder, root, depth + 1)
    return _binds(function, root) or root in function.module.bindings or root in BUILTIN_FUNCTIONS


def _binds(function: Function | None, name: str) -> bool:
    """Whether a function, or one around it, has a parameter or a definition of that name."""
    while function is not None:
        if name in function.params or name in function.module.inner(function.index):
            return True
        function = function.parent
    return False


def _owner(function: Function) -> tuple[str, Class] | None:
    """The name of the object that a method, or a function inside one, belongs to, and its class."""
    method: Function | None = function
    while method is not None:
        if method.owner is not None:
            params = method.facts.params
            return (params[0][0], method.owner) if params else None
        method = method.parent
    return None
