"""Join findings of one cause: a function that blocks is one problem, with all async functions that call it."""

from collections.abc import Sequence

from troth.analysis.findings.finding import Finding, Reason

__all__ = ["once_per_cause"]

_NAMED = 3


def once_per_cause(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """One finding for each cause, at the first of its places; the others are counted in it."""
    by_cause: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        if finding.cause:
            by_cause.setdefault((finding.code, finding.cause), []).append(finding)
    joined: list[Finding] = []
    for finding in findings:
        same = by_cause.get((finding.code, finding.cause), [finding])
        if finding is same[0]:
            joined.append(_with_others(finding, same[1:]) if len(same) > 1 else finding)
    return tuple(joined)


def _with_others(finding: Finding, others: list[Finding]) -> Finding:
    reasons = [
        Reason(f"`{other.symbol or other.span.path}` calls `{other.subject}` as well", other.span.path, other.span.line)
        for other in others[:_NAMED]
    ]
    more = len(others) - _NAMED
    if more > 0:
        reasons.append(Reason("1 further call in async code" if more == 1 else f"{more:,} further calls in async code"))
    count = len(others) + 1
    return finding._replace(
        message=f"{finding.message}; {count:,} calls in async code lead there", reasons=(*finding.reasons, *reasons)
    )
