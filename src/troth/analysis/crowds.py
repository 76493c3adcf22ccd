"""Knows when so many findings have one cause that the project may mean it that way.

A call that is lost is lost once or a few times. Where one cause has a crowd of findings, and the project lives with it,
there may be something that was not understood: a decorator, a metaclass, a base class that awaits in its own way. Such
findings are told all the same, but no longer called certain, and their fixes wait to be asked for.
"""

from collections.abc import Sequence
from dataclasses import replace

from troth.analysis.findings import Finding

__all__ = ["without_crowds"]

_CROWD = 8  # a change of color that left its callers behind leaves fewer, mostly

# Of these every finding has the same cause: nobody runs such tests.
_OF_ONE_CAUSE = frozenset({"T408"})


def without_crowds(findings: Sequence[Finding]) -> list[Finding]:
    """The findings, none of which is certain if it is one of a crowd."""
    causes: dict[tuple[object, ...], int] = {}
    for finding in findings:
        cause = _cause(finding)
        if cause is not None:
            causes[cause] = causes.get(cause, 0) + 1
    return [_doubted(one) if causes.get(_cause(one) or (), 0) >= _CROWD else one for one in findings]


def _cause(finding: Finding) -> tuple[object, ...] | None:
    """What the finding comes from: the definition that its last reason names, where the chain of reasons ends."""
    if finding.confidence != "certain" or finding.code[1] not in "124":
        return None
    if finding.code in _OF_ONE_CAUSE:
        return (finding.code,)
    if not finding.reasons:
        return None
    last = finding.reasons[-1]
    return ("", last.text) if last.path is None else (last.path, last.line)


def _doubted(finding: Finding) -> Finding:
    fix = None if finding.fix is None else replace(finding.fix, safety="likely")
    return replace(finding, confidence="likely", fix=fix)
