"""Every place that calls or mentions given functions, and every namesake of which nobody can tell."""

import ast
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Literal

from troth.analysis.facts.from_ast.expressions import at
from troth.analysis.facts.model import At
from troth.analysis.recolor.project.made_elsewhere import is_made_elsewhere
from troth.analysis.recolor.project.namesakes import fitting, has_name_alone, is_never_ours
from troth.analysis.recolor.project.resolve import looked_up
from troth.analysis.recolor.project.tree import Definition, Tree, is_bound_around, own_nodes
from troth.analysis.recolor.project.workspace import Workspace
from troth.analysis.recolor.reach.arguments import given_to
from troth.analysis.recolor.reach.callbacks import Taker, taker_of
from troth.analysis.recolor.rewrite.value_use import INDIFFERENT, Use, use_of
from troth.analysis.semantics.queries.call_graph import Call
from troth.analysis.semantics.symbols import Function
from troth.analysis.semantics.values import External, FunctionValue, Nothing, Value, members_of, union

__all__ = ["Mention", "Site", "Sites", "find_sites"]

_CALLING = frozenset({"__call__", "__get__", "__func__", "__wrapped__"})
Whose = Literal["ours", "other", "mixed", "unknown"]


@dataclass(frozen=True, slots=True, eq=False)
class Site:
    """One call. `caller` is the function it stands in, None at module level or in a class body."""

    tree: Tree
    node: ast.Call
    name: str
    use: Use
    caller: Function | None
    functions: tuple[Function, ...]
    taker: Taker | None = None  # who is given the lambda it stands in
    by_name: bool = False  # nobody can tell the receiver, and nothing else has a method of that name

    @property
    def path(self) -> str:
        """The file it is in."""
        return self.tree.view.path

    @property
    def line(self) -> int:
        """Its line; in a notebook the line of the JSON says nothing, so it is the line of the code."""
        return self.node.lineno

    @property
    def text(self) -> str:
        """The callee as written."""
        return ast.unparse(self.node.func)


@dataclass(frozen=True, slots=True, eq=False)
class Mention:
    """A function handed around without being called. `to` is what it is given to, "" where that is not a call."""

    tree: Tree
    node: ast.expr
    name: str
    to: str
    is_known: bool
    functions: tuple[Function, ...] = ()
    taker: Taker | None = None
    caller: Function | None = None  # the function it stands in

    @property
    def path(self) -> str:
        """The file it is in."""
        return self.tree.view.path

    @property
    def line(self) -> int:
        """Its line."""
        return self.node.lineno


@dataclass(frozen=True, slots=True)
class Sites:
    """All places: the calls that are surely meant, calls of a namesake that may be, and mentions."""

    calls: tuple[Site, ...]
    unknown: tuple[Site, ...]
    mixed: tuple[Site, ...]
    mentions: tuple[Mention, ...]


def find_sites(workspace: Workspace, functions: Collection[Function]) -> Sites:
    """Every place in the workspace that calls or mentions one of `functions`."""
    wanted = frozenset(functions)
    if not wanted:
        return Sites((), (), (), ())
    names = {one.name for one in wanted}
    pattern = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(names)))})\b")
    found: dict[str, list[Site]] = {"ours": [], "unknown": [], "mixed": [], "other": []}
    mentions: list[Mention] = []
    alone = _Alone(workspace, wanted)
    for name, view in sorted(workspace.views.items()):
        if not pattern.search(view.text):
            continue
        tree = workspace.tree(name)
        if tree is None:
            continue
        looked = _Looked(workspace, tree, names)
        for node in list(tree.calls.values()):
            last = _last(node.func)
            if last in names:
                value = looked.callee(node)
                whose, ours = _whose(value, wanted)
                by_name = False
                if whose == "unknown" and view.kind in {"code", "notebook"}:
                    meant = looked.meant(node, wanted)
                    if not meant:
                        whose = "other"
                    elif alone.of(last):
                        whose, ours, by_name = "ours", tuple(meant), True
                if whose == "other" and view.kind in {"markdown", "docstring"} and isinstance(value, External):
                    whose = "unknown"  # a page may name the package by another name than the project has it
                caller = looked.caller(node)
                use = use_of(tree, node, looked.calls)
                handed = use.outer if isinstance(use.outer, ast.Lambda) else None
                taker = taker_of(tree, handed, looked.all_calls(handed)) if handed is not None else None
                site = Site(tree, node, last, use, caller, ours, taker, by_name)
                found[whose].append(site)
        mentions += looked.mentions(wanted)
    calls, unknown, mixed = (tuple(sorted(found[one], key=_order)) for one in ("ours", "unknown", "mixed"))
    return Sites(calls, unknown, mixed, tuple(mentions))


class _Alone:
    """Which names only functions of `wanted` have; asked for where it matters, and once for each."""

    def __init__(self, workspace: Workspace, wanted: Collection[Function]) -> None:
        self._workspace, self._wanted = workspace, wanted
        self._known: dict[str, bool] = {}

    def of(self, name: str) -> bool:
        if name not in self._known:
            self._known[name] = has_name_alone(self._workspace, name, self._wanted)
        return self._known[name]


def _order(site: Site) -> tuple[str, int, int]:
    return site.path, site.line, site.node.col_offset


class _Looked:
    """What the program knows about one file's calls."""

    def __init__(self, workspace: Workspace, tree: Tree, names: Collection[str]) -> None:
        self._workspace = workspace
        self._tree = tree
        self._names = names
        program = workspace.program
        module = program.module(tree.view.name)
        self._module = module
        self.calls: dict[At, Call] = {}
        for index, facts in enumerate(module.facts.functions):
            spoken = {one.rpartition(".")[2].rpartition(" ")[2] for one in (*facts.calls, *facts.awaited)}
            if spoken & set(names) or not index:
                for call in program.calling.of(module.function(index)):
                    self.calls[call.at] = call

    def all_calls(self, node: ast.AST) -> dict[At, Call]:
        """The calls of the function that `node` stands in, whoever they call."""
        function = self.caller(node)
        if function is not None:
            for call in self._workspace.program.calling.of(function):
                self.calls.setdefault(call.at, call)
        return self.calls

    def caller(self, node: ast.AST) -> Function | None:
        around = self._tree.around(node)
        while isinstance(around, ast.Lambda):
            around = self._tree.around(around)
        return self._workspace.function(self._tree, around) if isinstance(around, Definition) else None

    def callee(self, node: ast.Call) -> Value | None:
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
        for node, parent in list(self._tree.parents.items()):
            if not isinstance(node, ast.Attribute | ast.Name) or not isinstance(node.ctx, ast.Load):
                continue
            if _last(node) not in self._names or (isinstance(parent, ast.Call) and node is parent.func):
                continue
            if isinstance(node, ast.Name) and (
                not any(one.owner is None for one in wanted) or is_bound_around(self._tree, node)
            ):
                continue  # a bare name is no method, and a variable of that name no function
            value, to = self._given(node, parent)
            whose, ours = _whose(value if value is not None else self._value(node), wanted)
            if whose in {"ours", "mixed"}:
                if _is_only_looked_at(parent):
                    continue
                taker = taker_of(self._tree, node, self.all_calls(node), self._value)
                yield Mention(
                    self._tree,
                    node,
                    _last(node),
                    to,
                    is_known=True,
                    functions=ours,
                    taker=taker,
                    caller=self.caller(node),
                )
            elif whose == "unknown" and to and to not in INDIFFERENT and self._may_be_meant(node):
                yield Mention(self._tree, node, _last(node), to, is_known=False, caller=self.caller(node))

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

    def _may_be_meant(self, node: ast.Attribute | ast.Name) -> bool:
        """Whether a mention of which nobody can tell may be one: pages run nothing, and a bare name has to be bound."""
        if self._tree.view.kind not in {"code", "notebook"}:
            return False
        return bool(self._module.stars) if isinstance(node, ast.Name) else not self.is_of_another(node)

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
        if self.is_of_another(node.func):
            return []
        is_scoped = isinstance(node.func, ast.Name) and self._is_another_thing(node.func)
        named = (one for one in wanted if one.name == _last(node.func))
        return fitting(node, named, self._imported(), is_scoped=is_scoped)

    def is_of_another(self, node: ast.expr) -> bool:
        """Whether the receiver is known, by an annotation or what it was made by, and simply has no such method."""
        if not isinstance(node, ast.Attribute):
            return False
        if is_never_ours(self._workspace.program, self._value(node.value)):
            return True
        return is_made_elsewhere(self._workspace, self._tree, node.value, self.caller(node))

    def _value(self, node: ast.expr) -> Value | None:
        return looked_up(self._workspace, self._tree, node, self.caller(node))


def _whose(value: Value | None, wanted: Collection[Function]) -> tuple[Whose, tuple[Function, ...]]:
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


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
