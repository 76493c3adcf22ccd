"""Decorated: an `async def` under a decorator that nobody can follow, which nearly all others await."""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.semantics.evidence.call_site_evidence import siblings_of
from troth.analysis.semantics.evidence.common_method_names import GENERIC
from troth.analysis.semantics.evidence.question import EvidenceCase

if TYPE_CHECKING:
    from troth.analysis.findings import Reason
    from troth.analysis.semantics.infer.inference import Inference
    from troth.analysis.semantics.symbols import Function

__all__ = ["CASES", "reason_for"]

CASES = [
    EvidenceCase(
        "awaited by another",
        "from somewhere import registry\n\n\ndef traced(function):\n    return registry[function]\n"
        "\n\n@traced\nasync def refresh_cache(): ...\n\n\n"
        "async def one():\n    await refresh_cache()\n\n\nasync def two():\n    refresh_cache()  # lost\n",
    ),
]


def reason_for(program: Inference, called: Function, asking: Function) -> Reason | None:
    """Why it is believed to give an awaitable all the same: others await it, and nothing of that name is plain."""
    if not (called.is_async and asking.is_async and called.facts.decorators) or called.is_generator:
        return None
    if called.name in GENERIC or called.name in program.counts.generators:
        return None
    effects = program.effects
    if program.counts.is_plain_somewhere(called.name) or effects.may_start_it(called) or effects.may_run_it(called):
        return None
    return siblings_of(program).speak_of_decorated(called.name)
