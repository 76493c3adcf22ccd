"""Knows how to apply fixes until nothing is left to do, without touching a file.

Each round looks at the whole program as it would be after the round before, so that a fix never rests on text that is
gone. A fix whose result does not parse is taken back and named; that is a bug of ours, and never reaches a file.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from troth.analysis.edits.apply import apply, compatible
from troth.analysis.edits.write import Change
from troth.analysis.findings import Edit, Finding, Fix
from troth.analysis.source.encoding import decode
from troth.analysis.source.syntax import problem_in

__all__ = ["Settled", "settle"]

_ROUNDS = 20  # a repair opens at most a few others (an await makes a dropped value visible); more is a circle


@dataclass(frozen=True, slots=True)
class Settled:
    """What fixing comes to: the findings before and after, what was applied, what could not be, and the new files.

    `applied` are the findings that are repaired, also those that shared a fix or that the fix of another repaired: as
    many of the first look as had a wanted fix, unless one was refused. What a repair brought to light comes on top.
    """

    before: tuple[Finding, ...]
    after: tuple[Finding, ...]
    applied: tuple[Finding, ...]
    refused: tuple[tuple[Finding, str], ...]
    changes: tuple[Change, ...]

    @property
    def aftermath(self) -> tuple[Finding, ...]:
        """What is found now and was not before: a repair brought it to light."""
        known = Counter(_mark(one) for one in self.before)
        new: list[Finding] = []
        for one in self.after:
            known[_mark(one)] -= 1
            if known[_mark(one)] < 0:
                new.append(one)
        return tuple(new)


def settle(
    root: Path, look: Callable[[Mapping[str, bytes]], Sequence[Finding]], wanted: Callable[[Finding], bool]
) -> Settled:
    """Apply the fixes of all `wanted` findings until none is left.

    `look` finds what is to be found with the given files in place of those on disk.
    """
    original: dict[str, bytes] = {}
    now: dict[str, bytes] = {}
    before = after = tuple(look(now))
    applied: list[Finding] = []
    refused: dict[Fix, tuple[Finding, str]] = {}
    for _ in range(_ROUNDS):
        offered: dict[Fix, list[Finding]] = {}
        for finding in after:
            if finding.fix is not None and wanted(finding) and finding.fix not in refused:
                offered.setdefault(finding.fix, []).append(finding)
        chosen = compatible(list(offered))
        if not chosen:
            break
        for fix in chosen:
            for path in {edit.path for edit in fix.edits} - original.keys():
                original[path] = now[path] = (root / path).read_bytes()
        trial, bad = _apply(now, chosen)
        for fix, reason in bad.items():
            refused[fix] = (offered[fix][0], reason)
        done = [finding for fix in chosen if fix not in bad for finding in offered[fix]]
        waiting = [finding for fix, found in offered.items() if fix not in chosen for finding in found]
        now = trial
        after = tuple(look({path: data for path, data in now.items() if data != original[path]}))
        still = Counter(_mark(one) for one in after)
        applied += done
        for finding in waiting:  # its fix was put off because of another one, which may have repaired it as well
            still[_mark(finding)] -= 1
            if still[_mark(finding)] < 0:
                applied.append(finding)
    changes = tuple(Change(path, original[path], data) for path, data in sorted(now.items()) if data != original[path])
    return Settled(before, after, tuple(applied), tuple(refused.values()), changes)


def _mark(finding: Finding) -> tuple[str, str, str, str]:
    """What a finding is about, wherever its line has moved to."""
    return finding.code, finding.span.path, finding.symbol, finding.subject


def _apply(files: Mapping[str, bytes], fixes: list[Fix]) -> tuple[dict[str, bytes], dict[Fix, str]]:
    """The files after `fixes`, and the fixes that had to be left out because a file would not parse with them."""
    bad: dict[Fix, str] = {}
    result, problems = _apply_all(files, fixes)
    if not problems:
        return result, bad
    good: list[Fix] = []
    for fix in fixes:  # rare, so one by one: each fix stays that leaves all files whole beside those before it
        _, problems = _apply_all(files, [*good, fix])
        if problems:
            bad[fix] = "; ".join(problems)
        else:
            good.append(fix)
    return _apply_all(files, good)[0], bad


def _apply_all(files: Mapping[str, bytes], fixes: list[Fix]) -> tuple[dict[str, bytes], list[str]]:
    by_path: dict[str, list[Edit]] = {}
    for fix in fixes:
        for edit in fix.edits:
            by_path.setdefault(edit.path, []).append(edit)
    result = dict(files)
    problems: list[str] = []
    for path, edits in by_path.items():
        source = decode(files[path], path)
        result[path] = source.encode(apply(source.text, edits))
        if problem := problem_in(path, result[path]):
            problems.append(problem)
    return result, problems
