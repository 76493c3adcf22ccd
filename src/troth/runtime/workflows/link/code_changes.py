"""What has changed in the Python that a run called since the run began.

The fingerprint of every function is in the record (see `fingerprint`: the function itself, not what it calls). A
function whose step is done must not have changed: the record would not be what the workflow now says. One whose step
has not been done yet may have, and is what a fix looks like; it is noted and goes on.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from troth.errors import MisuseError
from troth.runtime.engine.code_digest import has_changed
from troth.runtime.store import StepRecord, StepState
from troth.runtime.workflows.kinds import blocks_of, kind_of
from troth.runtime.workflows.link.linker import LinkedWorkflow
from troth.runtime.workflows.spec import CallTarget, StepSpec

__all__ = ["ChangedWorkflowError", "Changes", "changes_since"]

_INDEX = re.compile(r"\[\d+\]")


class ChangedWorkflowError(MisuseError):
    """The workflow or a function of a step that is done has changed since the run began. It was left as it is."""


@dataclass(frozen=True, slots=True)
class Changes:
    """Steps whose function changed: those done already, and those not done yet."""

    done: tuple[str, ...] = ()
    open: tuple[str, ...] = ()
    codes: Mapping[str, str] = field(default_factory=dict)
    """Recorded fingerprints, by place, of every settled step whose function has another one now."""


def changes_since(rows: Sequence[StepRecord], linked: LinkedWorkflow) -> Changes:
    """Compare the fingerprints in `rows` with those of the functions as they are now."""
    targets = dict(_targets(linked.spec.steps, ""))
    finished: list[str] = []
    still_open: list[str] = []
    codes: dict[str, str] = {}
    for row in rows:
        target = targets.get(_INDEX.sub("", row.name))
        if row.code is None or target is None:
            continue
        now = linked.code(target)
        if now == row.code:
            continue
        if row.state.is_settled:
            codes[row.name] = row.code
        if now is not None and not has_changed(row.code, now):
            continue
        (finished if row.state is StepState.DONE else still_open).append(row.name)
    return Changes(tuple(finished), tuple(still_open), codes)


def _targets(steps: Sequence[StepSpec], prefix: str) -> Iterator[tuple[str, CallTarget]]:
    """Every place that calls something, without rounds and items, and what it calls."""
    for step in steps:
        kind = kind_of(step)
        for target, _ in kind.calls(step.body):
            yield f"{prefix}{step.id}", target
        inner = kind.inner(step.body)
        if inner is not None:
            yield from _targets(inner.steps, f"{prefix}{step.id}.")
        below = f"{prefix}{step.id}." if step.kind in ("each", "loop") else prefix
        for block in blocks_of(step):
            yield from _targets(block.steps, below)
