"""Every place that calls or mentions given functions, and every namesake of which nobody can tell."""

import ast
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from troth.analysis.recolor.project.entries import entries, is_entering, whose_entry
from troth.analysis.recolor.project.file_lookup import FileLookup, Whose, whose_is
from troth.analysis.recolor.project.mention import Mention
from troth.analysis.recolor.project.name_pattern import PUT_TOGETHER
from troth.analysis.recolor.project.namesakes import has_name_alone
from troth.analysis.recolor.project.property_reads import is_property, matched, property_reads, whose_property
from troth.analysis.recolor.project.tree import Tree
from troth.analysis.recolor.project.workspace import RecolorWorkspace
from troth.analysis.recolor.reach.callbacks import CallbackTaker, taker_of
from troth.analysis.recolor.rewrite.value_use import CONSUMES, Use, use_of
from troth.analysis.semantics.symbols import Class, Function
from troth.analysis.semantics.values import External, FunctionValue

__all__ = ["CallSite", "Mention", "Sites", "find_sites"]

_ENTERED = re.compile(r"\bwith\b|\benter_context\b")


@dataclass(frozen=True, slots=True, eq=False)
class CallSite:
    """One call. `caller` is the function it stands in, None at module level or in a class body."""

    tree: Tree
    node: ast.expr  # a call, or the read of a property that becomes a method
    name: str
    use: Use
    caller: Function | None
    functions: tuple[Function, ...]
    taker: CallbackTaker | None = None  # who is given the lambda it stands in
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
        return ast.unparse(self.node.func if isinstance(self.node, ast.Call) else self.node)

    @property
    def call(self) -> ast.Call:
        """The call; properties are read nowhere where this is asked."""
        assert isinstance(self.node, ast.Call)
        return self.node


@dataclass(frozen=True, slots=True)
class Sites:
    """All places: the calls that are surely meant, calls of a namesake that may be, and mentions."""

    calls: tuple[CallSite, ...]
    unknown: tuple[CallSite, ...]
    mixed: tuple[CallSite, ...]
    mentions: tuple[Mention, ...]


def find_sites(workspace: RecolorWorkspace, functions: Collection[Function]) -> Sites:
    """Every place in the workspace that calls or mentions one of `functions`."""
    subjects = frozenset(functions)
    if not subjects:
        return Sites((), (), (), ())
    names = {function.name for function in subjects}
    pattern = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(names)))})\b")
    by_owner: dict[str, list[CallSite]] = {"ours": [], "unknown": [], "mixed": [], "other": []}
    mentions: list[Mention] = []
    alone = _Alone(workspace, subjects)
    relatives = _async_relatives(workspace, subjects)
    entering = [function for function in subjects if is_entering(function)]
    properties = [function for function in subjects if is_property(function)]
    methods = {function.name for function in subjects if not is_property(function)}
    for name, view in sorted(workspace.views.items()):
        is_named = pattern.search(view.text) is not None
        may_enter = bool(entering) and view.kind in {"code", "notebook"} and _ENTERED.search(view.text) is not None
        if not is_named and not may_enter and not PUT_TOGETHER.search(view.text):
            continue
        tree = workspace.tree(name)
        if tree is None:
            continue
        looked = FileLookup(workspace, tree, names, {function.name for function in properties} - methods)
        for whose, site in (
            *(_entries(workspace, looked, tree, entering) if may_enter else ()),
            *(_reads(workspace, looked, tree, properties, alone) if is_named and properties else ()),
            *(_calls(looked, tree, (subjects, relatives), methods, alone) if is_named else ()),
            *(_calls_by_variable(looked, tree, subjects) if is_named else ()),
        ):
            by_owner[whose].append(site)
        mentions += [*(looked.mentions(subjects) if is_named else ()), *looked.looked_up_by_name(subjects)]
    calls, unknown, mixed = (tuple(sorted(by_owner[whose], key=_order)) for whose in ("ours", "unknown", "mixed"))
    return Sites(calls, unknown, mixed, tuple(mentions))


def _calls(
    looked: FileLookup,
    tree: Tree,
    wanted: tuple[frozenset[Function], Mapping[Function, tuple[Function, ...]]],
    methods: Collection[str],
    alone: "_Alone",
) -> Iterator[tuple[Whose, CallSite]]:
    """Where functions are called; `wanted` are they, and the async methods that they override or that override them."""
    subjects, relatives = wanted
    for node in list(tree.calls.values()):
        last = looked.named(node.func)
        if last not in methods:
            continue
        value = looked.callee(node)
        whose, ours = whose_is(value, subjects)
        by_name = False
        if whose in {"other", "mixed"} and relatives and use_of(tree, node, looked.calls).kind not in CONSUMES:
            both, related = whose_is(value, {*subjects, *relatives})
            if both == "ours":  # nobody awaits it, and whichever of them it is, it has to be awaited
                meant_by = (relatives.get(function, (function,)) for function in related)
                whose, ours = "ours", tuple(dict.fromkeys(function for functions in meant_by for function in functions))
        if whose == "other" and looked.may_be_derived(node, value, subjects):
            whose = "unknown"
        if whose == "unknown" and (below := looked.in_derived(node.func)):
            ours = tuple(function for function in below if function in subjects)
            whose = "other" if not ours else "ours" if len(ours) == len(below) else "mixed"
        elif whose == "unknown" and tree.view.kind in {"code", "notebook"}:
            meant = looked.meant(node, subjects)
            if not meant:
                whose = "other"
            elif alone.of(last):
                whose, ours, by_name = "ours", tuple(meant), True
        if whose == "other" and tree.view.kind in {"markdown", "docstring"} and isinstance(value, External):
            whose = "unknown"  # a page may name the package by another name than the project has it
        yield whose, _site(looked, tree, node, last, ours, by_name=by_name)


def _async_relatives(
    workspace: RecolorWorkspace, subjects: Collection[Function]
) -> dict[Function, tuple[Function, ...]]:
    """The methods that are async already and override, or are overridden by, one of `subjects`: each with those."""
    relatives: dict[Function, tuple[Function, ...]] = {}
    classes = workspace.program.classes
    for function in subjects:
        if function.owner is None or function.is_async:
            continue
        related = (*classes.order(function.owner), *classes.children(function.owner))
        for cls in (cls for cls in related if isinstance(cls, Class)):
            for index in cls.methods.get(function.name, ()):
                relative = cls.module.function(index)
                if relative.is_async and not relative.is_generator:
                    relatives[relative] = (*relatives.get(relative, ()), function)
    return relatives


def _calls_by_variable(
    looked: FileLookup, tree: Tree, subjects: Collection[Function]
) -> Iterator[tuple[Whose, CallSite]]:
    """Where a function is called by a variable that it is put into."""
    for node, name, ours in looked.called_by_variable(subjects):
        if looked.named(node.func) != name:  # else it is found by its name
            yield "ours", _site(looked, tree, node, name, ours, by_name=False)


def _site(
    looked: FileLookup, tree: Tree, node: ast.expr, name: str, ours: tuple[Function, ...], *, by_name: bool
) -> CallSite:
    use = use_of(tree, node, looked.calls)
    handed = use.outer if isinstance(use.outer, ast.Lambda) else None
    taker = taker_of(tree, handed, looked.all_calls(handed)) if handed is not None else None
    return CallSite(tree, node, name, use, looked.caller(node), ours, taker, by_name)


def _entries(
    workspace: RecolorWorkspace, looked: FileLookup, tree: Tree, entering: Collection[Function]
) -> Iterator[tuple[Whose, CallSite]]:
    """Where objects are entered that are entered by `async with` from now on."""
    for node, outer in entries(tree):
        value = looked.value(node)
        is_other, is_unknown, ours = whose_entry(workspace.program, value, entering)
        whose: Whose = ("mixed" if is_other or is_unknown else "ours") if ours else "other" if is_other else "unknown"
        if whose == "unknown" and (
            not is_unknown or (value is None and (looked.is_made_elsewhere(node) or _is_of_generator(looked, node)))
        ):
            whose = "other"
        use = Use("managed", outer, "" if isinstance(outer, ast.With) else ast.unparse(outer).partition("(")[0])
        yield whose, CallSite(tree, node, "__enter__", use, looked.caller(node), tuple(ours))


def _is_of_generator(looked: FileLookup, node: ast.expr) -> bool:
    """Whether a call gives what `@contextmanager` makes of a function: an object of no class of the project."""
    callee = looked.callee(node) if isinstance(node, ast.Call) else None
    function = callee.function if isinstance(callee, FunctionValue) else None
    return isinstance(function, Function) and function.decorated_with("contextmanager", "asynccontextmanager")


def _reads(
    workspace: RecolorWorkspace, looked: FileLookup, tree: Tree, properties: Collection[Function], alone: "_Alone"
) -> Iterator[tuple[Whose, CallSite]]:
    """Where properties that become methods are read."""
    if tree.view.kind not in {"code", "notebook"}:
        return
    names = {function.name for function in properties}
    for pattern, name in matched(tree, names):
        namesakes = tuple(function for function in properties if function.name == name)
        yield "mixed", _site(looked, tree, pattern, name, namesakes, by_name=False)  # a pattern calls nothing
    for node in property_reads(tree, names):
        base = looked.value(node.value)
        is_other, is_unknown, ours = whose_property(workspace.program, base, node.attr, properties)
        namesakes = tuple(function for function in properties if function.name == node.attr)
        whose: Whose = ("mixed" if is_other or is_unknown else "ours") if ours else "other" if is_other else "unknown"
        by_name = False
        if not ours and not is_other and base is None:
            if looked.is_of_another(node, namesakes):
                whose = "other"
            elif alone.of(node.attr):
                whose, ours, by_name = "ours", namesakes, True
        yield whose, _site(looked, tree, node, node.attr, ours, by_name=by_name)


class _Alone:
    """Which names only functions of `wanted` have; asked for where it matters, and once for each."""

    def __init__(self, workspace: RecolorWorkspace, wanted: Collection[Function]) -> None:
        self._workspace, self._wanted = workspace, wanted
        self._known: dict[str, bool] = {}

    def of(self, name: str) -> bool:
        if name not in self._known:
            self._known[name] = has_name_alone(self._workspace, name, self._wanted)
        return self._known[name]


def _order(site: CallSite) -> tuple[str, int, int]:
    return site.path, site.line, site.node.col_offset
