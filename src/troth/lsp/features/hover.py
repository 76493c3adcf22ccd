"""Say why: the color of what is under the cursor, and the chain of reasons with links."""

from __future__ import annotations

from lsprotocol import types

from troth.analysis.findings import Finding, Reason
from troth.color import Color
from troth.lsp.features.symbols import Gives, Painted, call_at, color_of, color_of_function, function_on
from troth.lsp.sessions.places import Places

__all__ = ["hover"]

_MEANS = {
    Color.SYNC: "calling it does the work",
    Color.EITHER: "it returns either an awaitable or the result; check which",
}
_GIVES: dict[Gives, str] = {
    "coroutine": "calling it makes a coroutine; the work is done when that is awaited",
    "generator": "calling it makes an async generator; the work is done while `async for` iterates over it",
    "context": "calling it makes an async context manager; the work is done when that is entered",
    "awaitable": "calling it returns an awaitable; await that to get the result",
}


def hover(
    places: Places, path: str, cell: int | None, position: types.Position, *, markdown: bool
) -> types.Hover | None:
    """What is to be said about a position; nothing where nothing is known."""
    positions = places.positions(path, cell)
    parts: list[str] = []
    place: types.Range | None = None
    for finding in places.look.findings_in(path):
        if finding.span.cell != cell:
            continue
        shown = positions.range_of(finding.span)
        if _is_in(position, shown):
            parts.append(_of_finding(finding, places))
            place = place or shown
    if places.has_places(path):
        symbol = _of_symbol(places, path, position)
        if symbol is not None:
            parts.append(symbol[0])
            place = place or symbol[1]
    if not parts:
        return None
    text = "\n\n---\n\n".join(parts)
    kind = types.MarkupKind.Markdown if markdown else types.MarkupKind.PlainText
    return types.Hover(types.MarkupContent(kind, text if markdown else _plain(text)), place)


def _of_finding(finding: Finding, places: Places) -> str:
    page = places.look.report.rules.get(finding.code)
    name = f"{finding.code} {finding.rule}"
    title = f"**[{name}]({page.url})**" if page is not None else f"**{name}**"
    likely = "" if finding.confidence == "certain" else " *(likely)*"
    lines = [f"{title}{likely}: {finding.message}", *(_reason(reason, places) for reason in finding.reasons)]
    if finding.fix is not None:
        lines.append(f"- fix: {finding.fix.title}")
    return "\n".join(lines)


def _of_symbol(places: Places, path: str, position: types.Position) -> tuple[str, types.Range] | None:
    program = places.look.program
    module = program.module(path)
    positions = places.positions(path)
    line, column = positions.place(position)
    function = function_on(module, line)
    if function is not None and column <= function.facts.at[1] + len("async def ") + len(function.name):
        return _color_text(color_of_function(program, function), places), positions.line_range(line)
    call = call_at(program, module, line, column)
    if call is None:
        return None
    first = positions.at(*call.at[:2])
    callee_end = (call.at[0], call.at[1] + len(call.text.encode()))
    if (line, column) > callee_end and call.at[0] == line:
        return None  # among the arguments: that is another thing's place
    painted = color_of(program, call.callee, call.text)
    if painted.color is Color.UNKNOWN:
        return None
    return _color_text(painted, places), types.Range(first, positions.at(*callee_end))


def _color_text(painted: Painted, places: Places) -> str:
    means = _GIVES[painted.gives] if painted.color is Color.ASYNC else _MEANS.get(painted.color, "")
    head = f"`{painted.name}` is **{painted.color.value}**: {means}"
    return "\n".join([head, *(_reason(reason, places) for reason in painted.reasons)])


def _reason(reason: Reason, places: Places) -> str:
    if reason.path is None or reason.line is None:
        return f"- because {reason.text}"
    link = f"[{reason.path}:{reason.line}]({places.uri(reason.path)}#L{reason.line})"
    return f"- because {reason.text} ({link})"


def _is_in(position: types.Position, place: types.Range) -> bool:
    point = position.line, position.character
    return (place.start.line, place.start.character) <= point <= (place.end.line, place.end.character)


def _plain(text: str) -> str:
    import re

    return re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", text).replace("**", "").replace("\n\n---\n\n", "\n\n")
