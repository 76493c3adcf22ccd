"""Write a run as a Mermaid flowchart, for a README or an issue."""

from collections.abc import Iterator

from troth.runtime.workflows.record.report import RunReport
from troth.runtime.workflows.render.graph import Graph, layout
from troth.runtime.workflows.render.printable import printable
from troth.runtime.workflows.render.words import MARKS

__all__ = ["mermaid"]


def mermaid(run: RunReport) -> str:
    """The text of the chart; each step has its state in words and a mark."""
    return "\n".join(_lines(layout(printable(run))))


def _lines(graph: Graph) -> Iterator[str]:
    yield "flowchart TD"
    ids = {node.step.place: f"n{number}" for number, node in enumerate(graph.nodes)}
    for node in graph.nodes:
        label = f"{MARKS[node.step.state]} {node.step.place}<br/>{node.step.state}".replace('"', "'")
        opening, closing = ("{{", "}}") if node.step.is_block else ("[", "]")
        yield f'    {ids[node.step.place]}{opening}"{label}"{closing}'
    for edge in graph.edges:
        yield f"    {ids[edge[0]]} --> {ids[edge[1]]}"
