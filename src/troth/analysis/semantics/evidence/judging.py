"""What a walk asks about calls that inference cannot resolve, and who believes nothing.

`evidence/judge.py` derives from it and hears witnesses and doubts. A program without it has inference alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.semantics.infer.inference import Inference

if TYPE_CHECKING:
    from troth.analysis.facts.model import Node
    from troth.analysis.findings import Reason
    from troth.analysis.semantics.incident import Site
    from troth.analysis.semantics.infer.evaluator import Evaluator
    from troth.analysis.semantics.symbols import Function
    from troth.analysis.semantics.values import External, Instance, Value

__all__ = ["Judged", "Judging"]


class Judging:
    """Believes nothing, and doubts nothing."""

    def call(self, node: Node, scope: Evaluator, external: str = "") -> Value | None:
        """An awaitable, if calling this unknown callee is believed to give one."""
        return None

    def decorated(self, called: Function, node: Node, scope: Evaluator) -> Value | None:
        """An awaitable, if an `async def` is believed to give one under a decorator that nobody can follow."""
        return None

    def receiver(self, node: Node, function: Function, wanted: str) -> Value | None:
        """What a receiver is believed to be of which nothing is known but its name; `wanted` is the method."""
        return None

    def unused(self, node: Node, scope: Evaluator, given: tuple[External, ...], *, is_tested: bool) -> Reason | None:
        """Why an unknown callee, whose result is thrown away or tested, is believed to give an awaitable."""
        return None

    def doubt_about(self, called: Function, node: Node, scope: Evaluator, *, is_guess: bool) -> str:
        """Why a call of an `async def` may give something else: "unknown", "started", or no doubt."""
        return ""

    def awaitable_object(self, instance: Instance, node: Node, scope: Evaluator, target: Function | None) -> Value:
        """An object with `__await__`, which may do its work by itself."""
        return instance

    def is_awaited_elsewhere(self, site: Site) -> bool:
        """Whether other sites await a callee of that name."""
        return False

    def is_always_awaited(self, site: Site) -> bool:
        """Whether a result rather than an awaitable is expected at `site`."""
        return False

    def sites_of(self, name: str) -> tuple[int, int]:
        """How many functions await callees of that last name, and how many call them without."""
        return 0, 0


class Judged(Inference):
    """Inference, and somebody who judges what it leaves unknown."""

    judge: Judging
