"""Find where the steps of a run stand in a drawing: one below the other, those at once side by side."""

from collections.abc import Sequence
from dataclasses import dataclass

from troth.runtime.workflows.record.report import RunReport, StepReport

__all__ = ["Graph", "GraphNode", "layout"]

_SIDE_BY_SIDE = ("parallel", "each", "branch")
_MANY = 13  # members of a block that are drawn; the rest is counted


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A step with its row and column, counted from 0."""

    step: StepReport
    row: int
    column: float


@dataclass(frozen=True, slots=True)
class Graph:
    """Nodes, and edges between their places. `left_out` counts members that are not drawn."""

    nodes: tuple[GraphNode, ...]
    edges: tuple[tuple[str, str], ...]
    rows: int
    columns: int
    left_out: int = 0


@dataclass(slots=True)
class _Tree:
    step: StepReport
    children: "list[_Tree]"


@dataclass(slots=True)
class _Sheet:
    nodes: list[GraphNode]
    edges: list[tuple[str, str]]
    left_out: int = 0


def layout(run: RunReport) -> Graph:
    """The drawing of a run, its undoing left out: that is in the states."""
    steps = [step for step in run.steps if not step.is_undo]
    forest = _forest(steps)
    sheet = _Sheet([], [])
    rows, width, _ = _sequence(forest, 0, 0.0, [], sheet)
    return Graph(tuple(sheet.nodes), tuple(sheet.edges), rows, max(1, round(width)), sheet.left_out)


def _forest(steps: Sequence[StepReport]) -> list[_Tree]:
    roots: list[_Tree] = []
    open_trees: list[_Tree] = []
    for step in steps:
        tree = _Tree(step, [])
        del open_trees[step.depth :]
        (open_trees[-1].children if open_trees else roots).append(tree)
        open_trees.append(tree)
    return roots


def _sequence(
    trees: Sequence[_Tree], row: int, column: float, before: list[str], sheet: _Sheet
) -> tuple[int, float, list[str]]:
    """Place `trees` one below the other; answers the next free row, the width, and what the next one follows."""
    width = 1.0
    for tree in trees:
        row, used, before = _place(tree, row, column, before, sheet)
        width = max(width, used)
    return row, width, before


def _place(tree: _Tree, row: int, column: float, before: list[str], sheet: _Sheet) -> tuple[int, float, list[str]]:
    sheet.nodes.append(GraphNode(tree.step, row, column))
    sheet.edges.extend((previous, tree.step.place) for previous in before)
    after = [tree.step.place]
    if not tree.children:
        return row + 1, 1.0, after
    if tree.step.kind not in _SIDE_BY_SIDE:
        return _sequence(tree.children, row + 1, column, after, sheet)
    lowest, ends, at = row + 1, [], column
    groups = _groups(tree)
    sheet.left_out += sum(map(len, groups[_MANY:]))
    for group in groups[:_MANY]:
        bottom, used, last = _sequence(group, row + 1, at, after, sheet)
        lowest = max(lowest, bottom)
        ends.extend(last)
        at += used
    return lowest, max(at - column, 1.0), ends


def _groups(tree: _Tree) -> list[list[_Tree]]:
    """The members that run beside each other; the steps for one item, or on one way, are one of them."""
    if tree.step.kind == "parallel":
        return [[child] for child in tree.children]
    groups: dict[str, list[_Tree]] = {}
    for child in tree.children:
        if tree.step.kind == "each":
            key = child.step.place[: child.step.place.index("]", len(tree.step.place)) + 1]
        else:
            key = child.step.way
        groups.setdefault(key, []).append(child)
    return list(groups.values())
