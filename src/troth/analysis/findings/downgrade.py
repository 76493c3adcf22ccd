"""Decide when so many findings have one cause that the project may mean it that way.

A call that is lost is lost once or a few times. Where one definition, or one file, has a crowd of findings, and the
project lives with it, something may not have been understood: a decorator, a metaclass, a base class that awaits in its
own way. Such findings are told all the same, but no longer called certain, and their fixes wait to be asked for; not
those of a call of an `async def` that no decorator, metaclass or unknown base can have changed. Where the result of
such a call is used as well, the finding stays certain: whoever converted a file by machine has left many.
"""

from collections import Counter
from collections.abc import Sequence

from troth.analysis.findings import Finding, Reason

__all__ = ["without_crowds"]

_CROWD = 8  # a change of color that left its callers behind leaves fewer, mostly

# Of these every finding of a project has mostly the same cause: a base class that awaits in its own way.
_OF_ONE_CAUSE = frozenset({"TR404", "TR408"})

# The value of the call is held, tested, compared, used or shown, which no pattern makes right.
_USED = frozenset({"TR102", "TR104", "TR105", "TR106", "TR107"})


def without_crowds(findings: Sequence[Finding]) -> list[Finding]:
    """The findings, none of which is certain if it is one of a crowd."""
    counted = Counter(cause for finding in findings for cause in _causes(finding))
    result: list[Finding] = []
    for finding in findings:
        crowd = max((counted[cause] for cause in _causes(finding)), default=0)
        result.append(_doubted(finding, crowd) if crowd >= _CROWD and not _is_beyond_doubt(finding) else finding)
    return result


def _is_beyond_doubt(finding: Finding) -> bool:
    return finding.code in _USED and finding.is_resolved


def _causes(finding: Finding) -> list[tuple[object, ...]]:
    """What the finding may come from: its file, and each place that its reasons name."""
    if finding.confidence != "certain" or not finding.code.startswith(("TR1", "TR2", "TR4")):
        return []
    causes: list[tuple[object, ...]] = [(finding.code, finding.span.path)]
    if finding.code in _OF_ONE_CAUSE:
        causes.append((finding.code,))
    causes += [(reason.path, reason.line) for reason in finding.reasons if reason.path is not None]
    if finding.reasons and finding.reasons[-1].path is None:
        causes.append(("", finding.reasons[-1].text))
    return causes


def _doubted(finding: Finding, crowd: int) -> Finding:
    fix = finding.fix
    if fix is not None and fix.safety == "sure" and not fix.is_resolved:
        fix = fix._replace(safety="likely")
    why = Reason(
        f"{crowd} findings share this cause; a pattern this frequent may be intentional, so they are only likely"
    )
    return finding._replace(confidence="likely", reasons=(*finding.reasons, why), fix=fix)
