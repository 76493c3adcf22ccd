"""Draw a run's graph as SVG. Each state has a word, a mark and an outline of its own."""

from html import escape as _escape

from troth.runtime.workflows.record.report import RunReport, StepReport, StepWord
from troth.runtime.workflows.render.graph import GraphNode, layout
from troth.runtime.workflows.render.markup import Html, visible
from troth.runtime.workflows.render.words import MARKS

__all__ = ["graph_svg"]

_WIDE, _HIGH, _ACROSS, _DOWN, _EDGE, _LINE = 172, 46, 188, 70, 8, 26
_OUTLINES = {
    StepWord.DONE: 'rx="6"',
    StepWord.FAILED: 'rx="0" class="thick"',
    StepWord.UNDONE: 'rx="6" stroke-dasharray="7 3"',
    StepWord.PASSED_OVER: 'rx="0" stroke-dasharray="7 3"',
    StepWord.LET_GO: 'rx="6" stroke-dasharray="2 3"',
    StepWord.WAITING: 'rx="22"',
    StepWord.RESTING: 'rx="22"',
    StepWord.RUNNING: 'rx="22" class="thick"',
    StepWord.INTERRUPTED: 'rx="22" stroke-dasharray="2 3"',
    StepWord.CANCELLED: 'rx="0" stroke-dasharray="2 3"',
}
_FAINT = 'rx="6" stroke-dasharray="1 4"'


def graph_svg(run: RunReport) -> Html:
    """The steps as boxes, one below the other, those at once side by side."""
    graph = layout(run)
    where = {node.step.place: _corner(node) for node in graph.nodes}
    resisting = {step.undoes for step in run.not_undone}
    width = max((x for x, _ in where.values()), default=0) + _WIDE + _EDGE
    height = max((y for _, y in where.values()), default=0) + _HIGH + _EDGE
    parts = [_edge(where[source], where[target]) for source, target in graph.edges]
    parts += [_box(node.step, *where[node.step.place], resists=node.step.place in resisting) for node in graph.nodes]
    if graph.left_out:
        height += _LINE
        words = f"… and {graph.left_out:,} more that are not drawn; the rows below have them"
        parts.append(f'<text x="{_EDGE}" y="{height - _EDGE}">{words}</text>')
        width = max(width, len(words) * 7)
    return Html(
        f'<svg class="graph" role="img" aria-label="graph of the steps" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}">{"".join(parts)}</svg>'
    )


def _corner(node: GraphNode) -> tuple[int, int]:
    return _EDGE + round(node.column * _ACROSS), _EDGE + node.row * _DOWN


def _edge(source: tuple[int, int], target: tuple[int, int]) -> str:
    x1, y1 = source[0] + _WIDE // 2, source[1] + _HIGH
    x2, y2 = target[0] + _WIDE // 2, target[1]
    middle = (y1 + y2) // 2
    return f'<path class="edge" d="M{x1} {y1} C{x1} {middle} {x2} {middle} {x2} {y2}"/>'


def _box(step: StepReport, x: int, y: int, *, resists: bool) -> str:
    name = step.place if len(step.place) <= 21 else step.place[:10] + "…" + step.place[-10:]
    about = "undo failed" if resists else step.kind
    state = StepWord.FAILED if resists else step.state
    word = f"{MARKS[step.state]} {step.state}"
    title = f"{step.place}: {step.kind} {step.detail}, {step.state}{', and its undo failed' if resists else ''}"
    return (
        f'<g class="{_css(state)}"><title>{_text(title)}</title>'
        f'<rect x="{x}" y="{y}" width="{_WIDE}" height="{_HIGH}" {_OUTLINES.get(state, _FAINT)}/>'
        f'<text x="{x + 12}" y="{y + 19}" class="name">{_text(name)}</text>'
        f'<text x="{x + 12}" y="{y + 37}">{_text(word)} · {_text(about)}</text></g>'
    )


def _css(state: str) -> str:
    return state.replace(" ", "-")


def _text(foreign: str) -> str:
    return _escape(visible(foreign))
