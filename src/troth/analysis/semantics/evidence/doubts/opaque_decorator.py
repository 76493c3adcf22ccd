"""Opaque decorator: who calls a decorated `async def` without `await` may know what the decorator made of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.semantics.evidence.call_site_evidence import siblings_of
from troth.analysis.semantics.evidence.doubts.sync_flag import asks_for_sync
from troth.analysis.semantics.evidence.question import EvidenceCase

if TYPE_CHECKING:
    from troth.analysis.facts.model import Node
    from troth.analysis.semantics.infer.inference import Inference
    from troth.analysis.semantics.symbols import Function

__all__ = ["CASES", "doubts", "starts_it"]

CASES: list[EvidenceCase] = []


def doubts(program: Inference, called: Function, node: Node, *, is_plain: bool) -> bool:
    """In a sync function where nobody awaits it, and where the call asks for the result itself."""
    return (is_plain and not _is_awaited_somewhere(program, called)) or asks_for_sync(node)


def starts_it(program: Inference, called: Function) -> bool:
    """Whether the decorator may start the call by itself, and nobody shows that there is anything to await."""
    return program.effects.may_start_it(called) and not siblings_of(program).is_awaited_by_others(called.name)


def _is_awaited_somewhere(program: Inference, function: Function) -> bool:
    """Whether a function is awaited: one inside another there, any other one wherever its name is."""
    around = function.parent
    if around is None or around.index == 0 or function.owner is not None:
        return program.counts.is_awaited(function.name)
    inside = [f for _, f in function.module.functions_in(around.index)]
    return any(function.name in facts.awaited for facts in (around.facts, *inside))
