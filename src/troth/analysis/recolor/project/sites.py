"""Every place that calls or mentions given functions, and every namesake of which nobody can tell."""

import ast
import re
from collections.abc import Collection
from dataclasses import dataclass

from troth.analysis.recolor.project.file_lookup import FileLookup, whose_is
from troth.analysis.recolor.project.mention import Mention
from troth.analysis.recolor.project.namesakes import has_name_alone
from troth.analysis.recolor.project.tree import Tree
from troth.analysis.recolor.project.workspace import Workspace
from troth.analysis.recolor.reach.callbacks import Taker, taker_of
from troth.analysis.recolor.rewrite.value_use import Use, use_of
from troth.analysis.semantics.symbols import Function
from troth.analysis.semantics.values import External

__all__ = ["Mention", "Site", "Sites", "find_sites"]


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
        looked = FileLookup(workspace, tree, names)
        for node in list(tree.calls.values()):
            last = looked.named(node.func)
            if last in names:
                value = looked.callee(node)
                whose, ours = whose_is(value, wanted)
                by_name = False
                if whose == "other" and looked.may_be_derived(node, value, wanted):
                    whose = "unknown"
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
        mentions += [*looked.mentions(wanted), *looked.looked_up_by_name(wanted)]
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
