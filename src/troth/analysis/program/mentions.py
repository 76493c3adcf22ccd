"""Knows where functions are mentioned without being called: in tables, as callbacks, as arguments.

A function that is handed around must keep the color that whoever gets it expects.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from troth.analysis.facts.model import body_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from troth.analysis.program.link import Program

__all__ = ["mentioned"]


def mentioned(program: Program, names: Collection[str]) -> set[str]:
    """Those of `names` that stand somewhere in the project as a value, not as the callee of a call."""
    if not names:
        return set()
    pattern = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(names)))})\b(?!\s*\()")
    found: set[str] = set()
    for module in program.own_modules():
        if not module.facts.functions:  # a file that could not be read
            continue
        wanted = set(pattern.findall(program.text(module.path).value)) - found
        if not wanted:
            continue
        for function in module.facts.functions:
            _collect(body_of(function), wanted, found)
            _collect(function.decorators, wanted, found)
            for _, annotation, default, _ in function.params:
                _collect((annotation, default), wanted, found)
        for cls in module.facts.classes:
            _collect(cls.values, wanted, found)
            _collect(cls.decorators, wanted, found)
    return found


def _collect(node: Any, wanted: set[str], found: set[str]) -> None:
    if not isinstance(node, tuple) or not node:
        return
    tag = node[0]
    if tag == "name" and len(node) == 2:
        if node[1] in wanted:
            found.add(node[1])
        return
    if tag == "attr" and len(node) == 4:
        if node[2] in wanted:
            found.add(node[2])
        _collect(node[1], wanted, found)
        return
    if tag == "call" and len(node) == 5:
        callee = node[1]
        _collect(callee[1] if callee[0] == "attr" else () if callee[0] == "name" else callee, wanted, found)
        for part in node[2:4]:
            _collect(part, wanted, found)
        return
    for part in node:
        _collect(part, wanted, found)
