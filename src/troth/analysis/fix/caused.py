"""Find which new findings a repair has caused, and which it has only brought to light.

Once a call is awaited, its result is seen for the first time, and so is what goes wrong with it further on: that is
aftermath, for the user to look at. An `await` is also evidence: a call elsewhere that nobody awaits is seen to be lost
because its siblings are awaited now. It was lost before. Whatever else is new would not be there without the repair.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from troth.analysis.findings import Finding

__all__ = ["CauseMark", "caused", "mark", "new", "suspects"]

# What is awaited for nothing is no loss of a call, and the aftermath family speaks of nothing else.
_NO_DAMAGE = ("TR3", "TR8")
# Families of calls that are lost where they stand. An `await` in another function cannot lose them.
_LOST = ("TR1", "TR2")


class CauseMark(NamedTuple):
    """What a finding is about, wherever its line has moved to."""

    code: str
    path: str
    symbol: str
    subject: str


def mark(finding: Finding) -> CauseMark:
    """The mark of a finding."""
    return CauseMark(finding.code, finding.span.path, finding.symbol, finding.subject)


def new(before: Iterable[Finding], after: Iterable[Finding]) -> tuple[Finding, ...]:
    """What is found after a repair and was not before."""
    remaining = Counter(map(mark, before))
    new: list[Finding] = []
    for finding in after:
        remaining[mark(finding)] -= 1
        if remaining[mark(finding)] < 0:
            new.append(finding)
    return tuple(new)


def caused(found: Iterable[Finding], applied: Sequence[Finding]) -> list[Finding]:
    """Those of the new findings that are the work of the repair.

    In a function that awaits now what it lost, a finding about another call was there all along, unseen.
    """
    repaired: dict[tuple[str, str], set[str]] = {}
    for finding in applied:
        if _awaits(finding):
            repaired.setdefault((finding.span.path, finding.symbol), set()).add(finding.subject)
    damage = []
    for finding in found:
        about = repaired.get((finding.span.path, finding.symbol))
        if finding.code.startswith(_NO_DAMAGE) or (about is not None and finding.subject not in about):
            continue
        if suspects(finding, applied):
            damage.append(finding)
    return damage


def _awaits(finding: Finding) -> bool:
    return finding.fix is not None and any("await " in edit.text for edit in finding.fix.edits)


def suspects(damage: Finding, applied: Sequence[Finding]) -> list[Finding]:
    """The repairs that may have caused it, the likeliest first: in the same function, the same file, anywhere."""
    path = damage.span.path
    is_lost = damage.code.startswith(_LOST)
    told_of = {path, *(reason.path for reason in damage.reasons)}

    def is_able(one: Finding) -> bool:
        if one.fix is None or not is_lost or (one.span.path, one.symbol) == (path, damage.symbol):
            return one.fix is not None
        return not _awaits(one) and any(edit.path in told_of for edit in one.fix.edits)

    def distance(one: Finding) -> tuple[int, int]:
        assert one.fix is not None
        touched = {one.span.path, *(edit.path for edit in one.fix.edits)}
        if (one.span.path, one.symbol) == (path, damage.symbol):
            return 0, abs(one.span.line - damage.span.line)
        return (1, abs(one.span.line - damage.span.line)) if path in touched else (2, 0)

    return sorted(filter(is_able, applied), key=distance)
