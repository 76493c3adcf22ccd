"""Tell who calls a function and what it calls, each with its color."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lsprotocol import types

from troth.analysis.semantics.infer.call_graph import Call
from troth.analysis.semantics.symbols import Function
from troth.lsp.features.symbols import call_at, callers_of, color_of_function, function_around, function_on, targets
from troth.lsp.sessions.places import Places

__all__ = ["function_named", "incoming", "item_at", "outgoing"]


def item_at(places: Places, path: str, position: types.Position) -> list[types.CallHierarchyItem]:
    """The function that is defined or called at a position; the one around it where there is no call."""
    program = places.look.program
    module = program.module(path)
    line, column = places.positions(path).place(position)
    function = function_on(module, line)
    if function is not None:
        return [_item(places, function)]
    call = call_at(program, module, line, column)
    own = [] if call is None else [callee for callee in targets(call.callee) if places.has_places(callee.module.path)]
    if own:
        return [_item(places, callee) for callee in own]
    around = function_around(module, line, column)
    return [_item(places, around)] if around.index else []


def function_named(places: Places, data: Mapping[str, Any]) -> Function | None:
    """The function that an item was made for."""
    path, line = data.get("path"), data.get("line")
    if not isinstance(path, str) or not isinstance(line, int) or path not in places.look.stamps:
        return None
    return function_on(places.look.program.module(path), line)


def incoming(places: Places, function: Function) -> list[types.CallHierarchyIncomingCall]:
    """Who calls it."""
    calls: dict[Function, list[Call]] = {}
    for call in callers_of(places.look.program, function):
        calls.setdefault(call.caller, []).append(call)
    return [
        types.CallHierarchyIncomingCall(_item(places, caller), [_range(places, call) for call in callers_calls])
        for caller, callers_calls in calls.items()
        if places.has_places(caller.module.path)
    ]


def outgoing(places: Places, function: Function) -> list[types.CallHierarchyOutgoingCall]:
    """What it calls, of what the project itself defines."""
    calls: dict[Function, list[Call]] = {}
    for call in places.look.program.calling.of(function):
        for callee in targets(call.callee):
            if callee.module.own and places.has_places(callee.module.path):
                calls.setdefault(callee, []).append(call)
    return [
        types.CallHierarchyOutgoingCall(_item(places, callee), [_range(places, call) for call in callee_calls])
        for callee, callee_calls in calls.items()
    ]


def _item(places: Places, function: Function) -> types.CallHierarchyItem:
    path, line = function.place
    positions = places.positions(path)
    at = function.facts.at
    if function.index:
        whole = types.Range(positions.at(*at[:2]), positions.at(*at[2:4]))
        name, kind = function.qualname, types.SymbolKind.Method if function.owner else types.SymbolKind.Function
        color = color_of_function(places.look.program, function).color.value
    else:
        whole = types.Range(types.Position(0, 0), types.Position(0, 0))
        name, kind, color, line = function.module.name or path, types.SymbolKind.Module, "at import", 1
    return types.CallHierarchyItem(
        name=name,
        kind=kind,
        uri=places.uri(path),
        range=whole,
        selection_range=positions.line_range(line) if function.index else whole,
        detail=f"{color} · {path}",
        data={"path": path, "line": line if function.index else 0},
    )


def _range(places: Places, call: Call) -> types.Range:
    positions = places.positions(call.caller.module.path)
    return types.Range(positions.at(*call.at[:2]), positions.at(*call.at[2:4]))
