"""Put findings in the order in which a person wants them: lost calls first, what only slows a program down last."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from troth.analysis.findings import Finding

__all__ = ["by_family", "in_order"]

# A loss of which nothing tells comes first. What cannot be read stands just before the last line, which counts it.
_ORDER = ("TR1", "TR2", "TR4", "TR5", "TR8", "TR7", "TR3", "TR6", "TR9", "TR0")


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """By family, and within one as they came: by place."""
    return sorted(findings, key=lambda finding: _rank(finding.code))


def by_family(findings: Sequence[Finding]) -> Iterator[tuple[str, list[Finding]]]:
    """The families in their order, by the start of their codes, each with its findings."""
    for family, members in groupby(in_order(findings), key=lambda finding: finding.code[:3]):
        yield family, list(members)


def _rank(code: str) -> int:
    return _ORDER.index(code[:3]) if code[:3] in _ORDER else len(_ORDER)
