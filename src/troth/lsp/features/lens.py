"""Say over each async function who calls it, and how many of them do not wait."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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
    lost = {
        (finding.span.path, finding.span.line)
        for finding in places.look.report.findings
        if finding.code.startswith(_LOST)
    }
    idle = sum((call.caller.module.path, call.at[0]) in lost for call in calls)
    kind = _KINDS.get(color_of_function(places.look.program, function).gives, "async")
    return _words(kind, len(calls), idle), _locations(places, calls)


def _words(kind: str, calls: int, idle: int) -> str:
    if not calls:
        return f"{kind}: no caller in the project"
    callers = f"{calls} call" if calls == 1 else f"{calls} calls"
    waits = "all wait" if not idle else f"{idle} does not wait" if idle == 1 else f"{idle} do not wait"
    return f"{kind}: {callers}, {waits}"


def _locations(places: Places, calls: Sequence[Any]) -> list[types.Location]:
    locations = []
    for call in calls:
        path = call.caller.module.path
        if not places.has_places(path):
            continue
        positions = places.positions(path)
        place = types.Range(positions.at(*call.at[:2]), positions.at(*call.at[2:4]))
        locations.append(types.Location(places.uri(path), place))
    return locations
