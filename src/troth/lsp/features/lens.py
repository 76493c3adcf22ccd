"""Say over each async function who calls it, and how many of them do not wait."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from lsprotocol import types

from troth.lsp.features.symbols import callers_of, color_of_function, function_on, functions_in
from troth.lsp.sessions.places import Places

__all__ = ["lenses", "title_of"]

_LOST = ("TR1", "TR2")
_KINDS = {"generator": "async generator", "context": "async context manager"}


def lenses(places: Places, path: str, uri: str, version: int) -> list[types.CodeLens]:
    """A lens for each async function of a file, without its text: that is found out for those that are seen."""
    module = places.look.program.module(path)
    positions = places.positions(path)
    return [
        types.CodeLens(
            positions.line_range(function.facts.at[0]),
            data={"uri": uri, "line": function.facts.at[0], "version": version},
        )
        for function in functions_in(module)
        if function.is_async
    ]


def title_of(places: Places, path: str, line: int) -> tuple[str, list[types.Location]]:
    """What the lens on a line says, and the calls it counts."""
    function = function_on(places.look.program.module(path), line)
    if function is None or not function.is_async:
        return "", []
    calls = list(callers_of(places.look.program, function))
    paths = {call.caller.module.path for call in calls if places.has_places(call.caller.module.path)}
    lost = {
        (finding.span.path, _place(places.positions(finding.span.path).range_of(finding.span)))
        for finding in places.look.report.findings
        if finding.code.startswith(_LOST) and finding.span.path in paths
    }
    idle = sum((location.path, _place(location.range)) in lost for location in _located(places, calls))
    kind = _KINDS.get(color_of_function(places.look.program, function).gives, "async")
    return _words(kind, len(calls), idle), _locations(places, calls)


def _words(kind: str, calls: int, idle: int) -> str:
    if not calls:
        return f"{kind}: no caller in the project"
    callers = f"{calls} call" if calls == 1 else f"{calls} calls"
    waits = "all wait" if not idle else f"{idle} does not wait" if idle == 1 else f"{idle} do not wait"
    return f"{kind}: {callers}, {waits}"


class _Located(NamedTuple):
    """A call, where it stands."""

    path: str
    range: types.Range


def _located(places: Places, calls: Sequence[Any]) -> Iterator[_Located]:
    for call in calls:
        path = call.caller.module.path
        if places.has_places(path):
            line, column, end_line, end_column = call.at
            positions = places.positions(path)
            yield _Located(path, types.Range(positions.at(line, column), positions.at(end_line, end_column)))


def _locations(places: Places, calls: Sequence[Any]) -> list[types.Location]:
    return [types.Location(places.uri(located.path), located.range) for located in _located(places, calls)]


def _place(place: types.Range) -> tuple[int, int, int, int]:
    return place.start.line, place.start.character, place.end.line, place.end.character
