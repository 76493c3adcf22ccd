"""Knows how to write a run as a Mermaid flowchart, for a README or an issue."""

from collections.abc import Iterator

from troth.runtime.workflows.picture.graph import Graph, layout
from troth.runtime.workflows.picture.words import MARKS
from troth.runtime.workflows.report import RunReport

__all__ = ["mermaid"]


def mermaid(run: RunReport) -> str:
    """The text of the chart; each step has its state in words and a mark."""
    return "\n".join(_lines(layout(run)))


def _lines(graph: Graph) -> Iterator[str]:
    yield "flowchart TD"
    ids = {node.step.place: f"n{number}" for number, node in enumerate(graph.nodes)}
    for node in graph.nodes:
        label = f"{MARKS[node.step.state]} {node.step.place}<br/>{node.step.state}".replace('"', "'")
        left, right = ("{{", "}}") if node.step.is_block else ("[", "]")
        yield f'    {ids[node.step.place]}{left}"{label}"{right}'
    for edge in graph.edges:
        yield f"    {ids[edge[0]]} --> {ids[edge[1]]}"
