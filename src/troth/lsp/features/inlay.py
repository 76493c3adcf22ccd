"""Show the color of callables that nobody has annotated: the parameters of a function that it calls."""

from __future__ import annotations

import ast

from lsprotocol import types

from troth.analysis.source.tree import tree_of
from troth.lsp.features.symbols import functions_in, unannotated_callables
from troth.lsp.sessions.places import Places

__all__ = ["hints"]


def hints(places: Places, path: str, within: types.Range) -> list[types.InlayHint]:
    """The hints of a file between two lines."""
    program = places.look.program
    positions = places.positions(path)
    tree = tree_of(places.text(path))
    if tree is None:
        return []
    names = {
        (node.lineno, parameter.arg): (parameter.end_lineno or 0, parameter.end_col_offset or 0)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for parameter in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
    }
    inlays = []
    for function in functions_in(program.module(path)):
        line = function.facts.at[0]
        if not within.start.line <= line - 1 <= within.end.line:
            continue
        for name, painted in unannotated_callables(program, function):
            place = names.get((line, name))
            if place is not None:
                inlays.append(
                    types.InlayHint(
                        positions.at(*place),
                        f": {painted.color.value}",
                        kind=types.InlayHintKind.Type,
                        tooltip=f"with the arguments of its callers, `{name}` is {painted.color.value}",
                    )
                )
    return inlays
