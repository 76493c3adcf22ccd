"""Look up what the program knows about the calls and mentions of one file."""

import ast
from collections.abc import Collection, Iterator
from typing import Literal

from troth.analysis.facts.from_ast.expressions import at
from troth.analysis.facts.model import At
from troth.analysis.recolor.project.aliases import calls_by_variable
from troth.analysis.recolor.project.made_elsewhere import is_made_elsewhere
from troth.analysis.recolor.project.mention import Mention
from troth.analysis.recolor.project.name_pattern import FEWEST, literal_length, name_pattern
from troth.analysis.recolor.project.namesakes import fitting, is_never_ours, may_be_derived, may_follow
from troth.analysis.recolor.project.resolve import looked_up
from troth.analysis.recolor.project.tree import Definition, Tree, is_bound_around, own_nodes
from troth.analysis.recolor.project.workspace import RecolorWorkspace
from troth.analysis.recolor.reach.arguments import given_to
from troth.analysis.recolor.reach.callbacks import taker_of
from troth.analysis.recolor.reach.framework_bases import is_hook
from troth.analysis.recolor.rewrite.value_use import INDIFFERENT
from troth.analysis.semantics.infer.call_graph import Call
from troth.analysis.semantics.symbols import Class, Function
from troth.analysis.semantics.values import External, FunctionValue, Instance, Nothing, Value, members_of, union

__all__ = ["FileLookup", "Whose", "last_word", "whose_is"]

_BY_STRING = frozenset({"getattr", "methodcaller", "attrgetter"})
_CALLING = frozenset({"__call__", "__get__", "__func__", "__wrapped__"})
Whose = Literal["ours", "other", "mixed", "unknown"]


class FileLookup:
    """What the program knows about one file's calls."""

    def __init__(
        self, workspace: RecolorWorkspace, tree: Tree, names: Collection[str], properties: Collection[str] = ()
    ) -> None:
        self._workspace = workspace
        self._tree = tree
        self._names = names
        self._properties = properties  # those of the names that only properties have: they are read, never handed over
        program = workspace.program
        module = program.module(tree.view.name)
        self._module = module
        self._aliases = {
            alias.asname: alias.name
            for node in tree.imports
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
            if alias.asname is not None and alias.name in names
        }
        self.calls: dict[At, Call] = {}
        for index, facts in enumerate(module.facts.functions):
            spoken = {callee.rpartition(".")[2].rpartition(" ")[2] for callee in (*facts.calls, *facts.awaited)}
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
        value = self.value(node.func)
        return value if value is not None else self._by_callers(node.func)

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
                isinstance(part, ast.Name) and part.id == name and isinstance(part.ctx, ast.Store)
                for part in own_nodes(around)
            )
        ):
            return None
        arguments = given_to(self._workspace.program, caller, name)
        if not arguments or any(argument is None for argument in arguments):
            return None
        scope = self._workspace.program.static(self._module, caller, caller.owner)
        return union([scope.attribute(argument, node.attr, at(node)) for argument in arguments])

    def mentions(self, wanted: Collection[Function]) -> Iterator[Mention]:
        """Where one of `wanted`, or what may be one, is named and not called."""
        for node, parent in list(self._tree.parents.items()):
            if not isinstance(node, ast.Attribute | ast.Name) or not isinstance(node.ctx, ast.Load):
                continue
            if self.named(node) not in self._names or (isinstance(parent, ast.Call) and node is parent.func):
                continue
            if self.named(node) in self._properties:
                continue
            if isinstance(node, ast.Name) and (
                not any(function.owner is None for function in wanted) or is_bound_around(self._tree, node)
            ):
                continue  # a bare name is no method, and a variable of that name no function
            value, to = self._given(node, parent)
            whose, ours = whose_is(value if value is not None else self.value(node), wanted)
            if whose in {"ours", "mixed"}:
                if _is_only_looked_at(parent) or (whose == "ours" and calls_by_variable(self._tree, node) is not None):
                    continue
                taker = taker_of(self._tree, node, self.all_calls(node), self.value)
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

    def called_by_variable(self, wanted: Collection[Function]) -> Iterator[tuple[ast.Call, str, tuple[Function, ...]]]:
        """The calls of a variable that one of `wanted` is put into, with the name of the function."""
        for node, parent in list(self._tree.parents.items()):
            if not isinstance(node, ast.Attribute | ast.Name) or not isinstance(node.ctx, ast.Load):
                continue
            if self.named(node) not in self._names or not isinstance(parent, ast.Assign | ast.Call):
                continue
            if (isinstance(parent, ast.Call) and node is parent.func) or self.named(node) in self._properties:
                continue
            calls = calls_by_variable(self._tree, node)
            whose, ours = whose_is(self.value(node), wanted) if calls else ("other", ())
            if whose == "ours":
                yield from ((call, self.named(node), ours) for call in calls or ())

    def _is_another_thing(self, name: ast.Name) -> bool:
        """Whether a bare name stands for no function of the project: nothing in the file defines or imports it."""
        if is_bound_around(self._tree, name):
            return True
        if self._module.stars:
            return False
        is_defined = any(definition.name == name.id for definition in self._tree.definitions.values())
        return not is_defined and name.id not in self._imported()

    def _imported(self) -> set[str]:
        """The names that imports bind anywhere in the file."""
        return {alias.asname or alias.name.partition(".")[0] for node in self._tree.imports for alias in node.names}

    def _may_be_meant(self, node: ast.Attribute | ast.Name, wanted: Collection[Function]) -> bool:
        """Whether a mention of which nobody can tell may be one: pages run nothing, and a bare name has to be bound."""
        if self._tree.view.kind not in {"code", "notebook"}:
            return False
        if isinstance(node, ast.Name):
            return bool(self._module.stars)
        return not self.is_of_another(node, [function for function in wanted if function.name == node.attr])

    def looked_up_by_name(self, wanted: Collection[Function]) -> Iterator[Mention]:
        """Where a method is fetched by its name as a string: `getattr(x, "save")`, `methodcaller("save")`."""
        if self._tree.view.kind not in {"code", "notebook"}:
            return
        for call in list(self._tree.calls.values()):
            if last_word(call.func) not in _BY_STRING or not call.args:
                continue
            place = call.args[1] if last_word(call.func) == "getattr" and len(call.args) > 1 else call.args[0]
            pattern = name_pattern(place)
            if pattern is None:
                continue
            for name in sorted(name for name in self._names if pattern.fullmatch(name)):
                namesakes = self._fetched(call, place, name, wanted)
                if namesakes:
                    to = ast.unparse(call.func)
                    caller = self.caller(call)
                    yield Mention(self._tree, call, name, to, is_known=True, functions=tuple(namesakes), caller=caller)

    def _fetched(
        self, call: ast.Call, place: ast.expr, name: str, wanted: Collection[Function]
    ) -> Collection[Function]:
        """Which of `wanted` a call like `getattr(x, name)` may fetch."""
        namesakes = [function for function in wanted if function.name == name and function.owner is not None]
        is_written = isinstance(place, ast.Constant)
        if place is not call.args[0]:
            node = ast.copy_location(ast.Attribute(call.args[0], name, ast.Load()), call.args[0])
            self._tree.parents[node] = call  # it stands where the call stands
            whose, ours = whose_is(self.value(node), wanted)
            is_another = whose == "other" or (whose == "unknown" and self.is_of_another(node, namesakes))
            del self._tree.parents[node]
            if ours or is_another:
                return ours
        return namesakes if is_written or literal_length(place) >= FEWEST else ()

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
                value = next((value for name, value in call.given if name == keyword), None)
            elif node in outer.args and outer.args.index(node) < len(call.given):
                value = call.given[outer.args.index(node)][1]
        return value, ast.unparse(outer.func)

    def in_derived(self, node: ast.expr) -> list[Function]:
        """The methods of derived classes that a call means in a class that has none of that name itself."""
        if not isinstance(node, ast.Attribute):
            return []
        classes = self._workspace.program.classes
        functions: dict[Function, None] = {}
        for member in members_of(self.value(node.value)):
            if not isinstance(member, Instance) or not isinstance(member.cls, Class):
                return []
            for cls in classes.children(member.cls):
                for index in cls.methods.get(node.attr, ()):
                    functions[cls.module.function(index)] = None
        return list(functions)

    def meant(self, node: ast.Call, wanted: Collection[Function]) -> list[Function]:
        """Which of `wanted` a call may mean whose callee nobody can tell."""
        namesakes = [
            function
            for function in wanted
            if function.name == self.named(node.func) and not is_hook(self._workspace.program, function)
        ]
        if self.is_of_another(node.func, namesakes):
            return []
        is_scoped = isinstance(node.func, ast.Name) and self._is_another_thing(node.func)
        return fitting(node, namesakes, self._imported(), is_scoped=is_scoped)

    def may_be_derived(self, node: ast.Call, callee: Value | None, wanted: Collection[Function]) -> bool:
        """Whether the method is that of a library's class, and one of `wanted` has it in a class derived from that."""
        if any(
            isinstance(member, FunctionValue) and isinstance(member.function, Function) for member in members_of(callee)
        ):
            return False
        namesakes = [
            function for function in wanted if function.name == last_word(node.func) and function.owner is not None
        ]
        if not namesakes or not isinstance(node.func, ast.Attribute):
            return False
        return may_be_derived(self._workspace.program, self.value(node.func.value), namesakes)

    def is_of_another(self, node: ast.expr, named: Collection[Function]) -> bool:
        """Whether the receiver is known, by an annotation or what it was made by, and simply has no such method."""
        if not isinstance(node, ast.Attribute):
            return False
        caller = self.caller(node)
        if caller is not None and caller.owner is not None and ast.unparse(node.value) == "super()":
            return not may_follow(self._workspace.program, caller.owner, named)
        if is_never_ours(self._workspace.program, self.value(node.value), named):
            return True
        return is_made_elsewhere(self._workspace, self._tree, node.value, self.caller(node))

    def is_made_elsewhere(self, node: ast.expr) -> bool:
        """Whether an expression surely gives no object of the project."""
        return is_made_elsewhere(self._workspace, self._tree, node, self.caller(node))

    def value(self, node: ast.expr) -> Value | None:
        """What an expression stands for; None where nobody can tell."""
        return looked_up(self._workspace, self._tree, node, self.caller(node))


def whose_is(value: Value | None, wanted: Collection[Function]) -> tuple[Whose, tuple[Function, ...]]:
    """Whether a value is one of `wanted`, and which."""
    ours: list[Function] = []
    is_other = unknown = False
    for member in members_of(value):
        if isinstance(member, FunctionValue):
            if isinstance(member.function, Function) and member.function in wanted:
                ours.append(member.function)
            else:
                is_other = True
        elif member is None or isinstance(member, External):
            unknown = unknown or member is None
            is_other = is_other or member is not None
        elif not isinstance(member, Nothing):
            is_other = True
    if ours:
        return ("mixed" if is_other else "ours"), tuple(ours)
    return ("other" if is_other else "unknown"), ()


def _is_only_looked_at(parent: ast.AST) -> bool:
    """Whether the function is compared, or asked for an attribute (`f.__name__`): nobody calls it there."""
    return isinstance(parent, ast.Compare) or (isinstance(parent, ast.Attribute) and parent.attr not in _CALLING)


def last_word(node: ast.expr) -> str:
    """The name, or the last part of a dotted one; empty for anything else."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
