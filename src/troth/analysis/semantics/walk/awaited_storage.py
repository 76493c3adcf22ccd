"""Find under which names a project awaits what was put away: `await options["key"]`, `await self.pending`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from troth.analysis.facts.fields import ATTR_NAME, CALL_ARGS, CALL_FUNC, CONST_VALUE, INDEX_KEY, KIND, VALUE
from troth.analysis.facts.model import WAITS, body_of
from troth.analysis.facts.nodes import walk
from troth.analysis.incremental.project_queries import part

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from troth.analysis.facts.model import FileFacts, Node
    from troth.analysis.semantics.resolve.project_files import ProjectFiles

__all__ = ["is_awaited_from"]


def is_awaited_from(program: ProjectFiles, target: Node) -> bool:
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
            names.update(_name_of(node[VALUE]) for node in walk(body_of(function)) if node[KIND] == "await")
    return frozenset(names - {""})


def _name_of(node: Node) -> str:
    """`["partition"]` or `.pending`; empty for what has no name that means the same elsewhere."""
    if node[KIND] == "attr":
        return f".{node[ATTR_NAME]}"
    key: Any = node[INDEX_KEY] if node[KIND] == "index" else ()
    if (
        node[KIND] == "call"
        and node[CALL_FUNC][KIND] == "attr"
        and node[CALL_FUNC][ATTR_NAME] in {"get", "pop"}
        and node[CALL_ARGS]
    ):
        key = node[CALL_ARGS][0]
    return f'["{key[CONST_VALUE]}"]' if key[:2] == ("const", "str") and len(key) == 3 else ""
