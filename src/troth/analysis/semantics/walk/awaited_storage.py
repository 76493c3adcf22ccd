"""Find under which names a project awaits what was put away: `await options["key"]`, `await self.pending`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from troth.analysis.facts.model import WAITS, body_of
from troth.analysis.facts.nodes import walk
from troth.analysis.incremental.project_queries import part

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from troth.analysis.facts.model import FileFacts, Node
    from troth.analysis.semantics.program import Program

__all__ = ["is_awaited_from"]


def is_awaited_from(program: Program, target: Node) -> bool:
    """Whether somebody awaits what stands under the key or the attribute that `target` sets, in whatever object."""
    name = _name_of(target)
    if not name:
        return False
    answers: MutableMapping[str, frozenset[str]] = program.answers_to("awaited values")
    if "" not in answers:
        answers[""] = frozenset().union(*program.said("awaited values").values())
    return name in answers[""]


@part("awaited values")
def _awaited_in(file: FileFacts) -> frozenset[str]:
    names: set[str] = set()
    for function in file.functions:
        if function.flags & WAITS:
            names.update(_name_of(node[1]) for node in walk(body_of(function)) if node[0] == "await")
    return frozenset(names - {""})


def _name_of(node: Node) -> str:
    """`["partition"]` or `.pending`; empty for what has no name that means the same elsewhere."""
    if node[0] == "attr":
        return f".{node[2]}"
    key: Any = node[2] if node[0] == "index" else ()
    if node[0] == "call" and node[1][0] == "attr" and node[1][2] in {"get", "pop"} and node[2]:
        key = node[2][0]
    return f'["{key[2]}"]' if key[:2] == ("const", "str") and len(key) == 3 else ""
