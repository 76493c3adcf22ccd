"""Look up what the program knows about the calls and mentions of one file."""

import ast
from collections.abc import Collection, Iterator
from typing import Literal

from troth.analysis.facts.from_ast.expressions import at
from troth.analysis.facts.model import At
from troth.analysis.recolor.project.made_elsewhere import is_made_elsewhere
from troth.analysis.recolor.project.mention import Mention
from troth.analysis.recolor.project.namesakes import fitting, is_never_ours, may_be_derived
from troth.analysis.recolor.project.resolve import looked_up
from troth.analysis.recolor.project.tree import Definition, Tree, is_bound_around, own_nodes
from troth.analysis.recolor.project.workspace import Workspace
from troth.analysis.recolor.reach.arguments import given_to
from troth.analysis.recolor.reach.callbacks import taker_of
from troth.analysis.recolor.rewrite.value_use import INDIFFERENT
from troth.analysis.semantics.queries.call_graph import Call
from troth.analysis.semantics.symbols import Function
from troth.analysis.semantics.values import External, FunctionValue, Nothing, Value, members_of, union

__all__ = ["FileLookup", "Whose", "last_word", "whose_is"]

_BY_STRING = frozenset({"getattr", "methodcaller", "attrgetter"})
_CALLING = frozenset({"__call__", "__get__", "__func__", "__wrapped__"})
Whose = Literal["ours", "other", "mixed", "unknown"]


class FileLookup:
    """What the program knows about one file's calls."""

    def __init__(self, workspace: Workspace, tree: Tree, names: Collection[str]) -> None:
        self._workspace = workspace
        self._tree = tree
        self._names = names
        program = workspace.program
        module = program.module(tree.view.name)
        self._module = module
        self._aliases = {
            alias.asname: alias.name
            for one in ast.walk(tree.module)
            if isinstance(one, ast.ImportFrom)
            for alias in one.names
            if alias.asname is not None and alias.name in names
        }
        self.calls: dict[At, Call] = {}
        for index, facts in enumerate(module.facts.functions):
            spoken = {one.rpartition(".")[2].rpartition(" ")[2] for one in (*facts.calls, *facts.awaited)}
            if spoken & {*names, *self._aliases} or not index:
                for call in program.calling.of(module.function(index)):
                    self.calls[call.at] = call

    def named(self, node: ast.expr) -> str:
        """The last word of a name, by which the function is defined: `from x import save as keep` is a `save`."""
        word = last_word(node)
        return self._aliases.get(word, word) if isinstance(node, ast.Name) else word

    def all_calls(self, node: ast.AST) -> dict[At, Call]:
        """The calls of the function that `node` stands in, whoever they call."""
        function = self.caller(node)
        if function is not None:
            for call in self._workspace.program.calling.of(function):
                self.calls.setdefault(call.at, call)
        return self.calls

    def caller(self, node: ast.AST) -> Function | None:
        """The function that `node` stands in, a lambda aside."""
        around = self._tree.around(node)
        while isinstance(around, ast.Lambda):
            around = self._tree.around(around)
        return self._workspace.function(self._tree, around) if isinstance(around, Definition) else None

    def callee(self, node: ast.Call) -> Value | None:
        """What a call calls; None where nobody can tell."""
        call = self.calls.get(at(node))
        if call is not None and call.callee is not None:
            return call.callee
        found = self._value(node.func)
        return found if found is not None else self._by_callers(node.func)

    def _by_callers(self, node: ast.expr) -> Value | None:
        """What an untyped parameter's method is, if every call of the function around gives it something known."""
        if not (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)):
            return None
        caller, name = self.caller(node), node.value.id
        while caller is not None and name not in caller.params:
            caller = caller.parent
        around = self._tree.around(node)
        if (
            caller is None
            or caller.params[name][1] is not None
            or any(
                isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Store)
                for one in own_nodes(around)
            )
        ):
            return None
        given = given_to(self._workspace.program, caller, name)
        if not given or any(one is None for one in given):
            return None
        scope = self._workspace.program.static(self._module, caller, caller.owner)
        return union([scope.attribute(one, node.attr, at(node)) for one in given])

    def mentions(self, wanted: Collection[Function]) -> Iterator[Mention]:
        """Where one of `wanted`, or what may be one, is named and not called."""
        for node, parent in list(self._tree.parents.items()):
            if not isinstance(node, ast.Attribute | ast.Name) or not isinstance(node.ctx, ast.Load):
                continue
            if self.named(node) not in self._names or (isinstance(parent, ast.Call) and node is parent.func):
                continue
            if isinstance(node, ast.Name) and (
                not any(one.owner is None for one in wanted) or is_bound_around(self._tree, node)
            ):
                continue  # a bare name is no method, and a variable of that name no function
            value, to = self._given(node, parent)
            whose, ours = whose_is(value if value is not None else self._value(node), wanted)
            if whose in {"ours", "mixed"}:
                if _is_only_looked_at(parent):
                    continue
                taker = taker_of(self._tree, node, self.all_calls(node), self._value)
                yield Mention(
                    self._tree,
                    node,
                    last_word(node),
                    to,
                    is_known=True,
                    functions=ours,
                    taker=taker,
                    caller=self.caller(node),
                )
            elif whose == "unknown" and to and to not in INDIFFERENT and self._may_be_meant(node, wanted):
                yield Mention(self._tree, node, last_word(node), to, is_known=False, caller=self.caller(node))

    def _is_another_thing(self, name: ast.Name) -> bool:
        """Whether a bare name stands for no function of the project: nothing in the file defines or imports it."""
        if is_bound_around(self._tree, name):
            return True
        if self._module.stars:
            return False
        is_defined = any(one.name == name.id for one in self._tree.definitions.values())
        return not is_defined and name.id not in self._imported()

    def _imported(self) -> set[str]:
        """The names that imports bind anywhere in the file."""
        return {
            alias.asname or alias.name.partition(".")[0]
            for one in ast.walk(self._tree.module)
            if isinstance(one, ast.Import | ast.ImportFrom)
            for alias in one.names
        }

    def _may_be_meant(self, node: ast.Attribute | ast.Name, wanted: Collection[Function]) -> bool:
        """Whether a mention of which nobody can tell may be one: pages run nothing, and a bare name has to be bound."""
        if self._tree.view.kind not in {"code", "notebook"}:
            return False
        if isinstance(node, ast.Name):
            return bool(self._module.stars)
        return not self.is_of_another(node, [one for one in wanted if one.name == node.attr])

    def looked_up_by_name(self, wanted: Collection[Function]) -> Iterator[Mention]:
        """Where a method is fetched by its name as a string: `getattr(x, "save")`, `methodcaller("save")`."""
        if self._tree.view.kind not in {"code", "notebook"}:
            return
        for call in list(self._tree.calls.values()):
            if last_word(call.func) not in _BY_STRING or not call.args:
                continue
            place = call.args[1] if last_word(call.func) == "getattr" and len(call.args) > 1 else call.args[0]
            name = place.value if isinstance(place, ast.Constant) else None
            if not isinstance(name, str) or name not in self._names:
                continue
            named = [one for one in wanted if one.name == name and one.owner is not None]
            if place is not call.args[0]:
                node = ast.copy_location(ast.Attribute(call.args[0], name, ast.Load()), call.args[0])
                whose, ours = whose_is(self._value(node), wanted)
                if whose == "other" or (whose == "unknown" and self.is_of_another(node, named)):
                    continue
                named = list(ours) or named
            if named:
                to = ast.unparse(call.func)
                caller = self.caller(call)
                yield Mention(self._tree, call, name, to, is_known=True, functions=tuple(named), caller=caller)

    def _given(self, node: ast.expr, parent: ast.AST) -> tuple[Value | None, str]:
        """What the program saw in that argument, and the callee it is given to."""
        keyword = parent.arg if isinstance(parent, ast.keyword) else None
        outer = self._tree.parent(parent) if isinstance(parent, ast.keyword) else parent
        if not isinstance(outer, ast.Call):
            return None, ""
        call = self.calls.get(at(outer))
        value = None
        if call is not None:
            if keyword is not None:
                value = next((one for name, one in call.given if name == keyword), None)
            elif node in outer.args and outer.args.index(node) < len(call.given):
                value = call.given[outer.args.index(node)][1]
        return value, ast.unparse(outer.func)

    def meant(self, node: ast.Call, wanted: Collection[Function]) -> list[Function]:
        """Which of `wanted` a call may mean whose callee nobody can tell."""
        named = [one for one in wanted if one.name == self.named(node.func)]
        if self.is_of_another(node.func, named):
            return []
        is_scoped = isinstance(node.func, ast.Name) and self._is_another_thing(node.func)
        return fitting(node, named, self._imported(), is_scoped=is_scoped)

    def may_be_derived(self, node: ast.Call, callee: Value | None, wanted: Collection[Function]) -> bool:
        """Whether the method is that of a library's class, and one of `wanted` has it in a class derived from that."""
        if any(isinstance(one, FunctionValue) and isinstance(one.function, Function) for one in members_of(callee)):
            return False
        named = [one for one in wanted if one.name == last_word(node.func) and one.owner is not None]
        if not named or not isinstance(node.func, ast.Attribute):
            return False
        return may_be_derived(self._workspace.program, self._value(node.func.value), named)

    def is_of_another(self, node: ast.expr, named: Collection[Function]) -> bool:
        """Whether the receiver is known, by an annotation or what it was made by, and simply has no such method."""
        if not isinstance(node, ast.Attribute):
            return False
        if is_never_ours(self._workspace.program, self._value(node.value), named):
            return True
        return is_made_elsewhere(self._workspace, self._tree, node.value, self.caller(node))

    def _value(self, node: ast.expr) -> Value | None:
        return looked_up(self._workspace, self._tree, node, self.caller(node))


def whose_is(value: Value | None, wanted: Collection[Function]) -> tuple[Whose, tuple[Function, ...]]:
    """Whether a value is one of `wanted`, and which."""
    ours: list[Function] = []
    other = unknown = False
    for one in members_of(value):
        if isinstance(one, FunctionValue):
            if isinstance(one.function, Function) and one.function in wanted:
                ours.append(one.function)
            else:
                other = True
        elif one is None or isinstance(one, External):
            unknown = unknown or one is None
            other = other or one is not None
        elif not isinstance(one, Nothing):
            other = True
    if ours:
        return ("mixed" if other else "ours"), tuple(ours)
    return ("other" if other else "unknown"), ()


def _is_only_looked_at(parent: ast.AST) -> bool:
    """Whether the function is compared, or asked for an attribute (`f.__name__`): nobody calls it there."""
    return isinstance(parent, ast.Compare) or (isinstance(parent, ast.Attribute) and parent.attr not in _CALLING)


def last_word(node: ast.expr) -> str:
    """The name, or the last part of a dotted one; empty for anything else."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
