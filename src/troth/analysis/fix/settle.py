"""Knows how to apply fixes until nothing is left to do, without touching a file.

Each round looks at the whole program as it would be after the round before, so that a fix never rests on text that is
gone. A fix is taken back and named if its result does not parse, if it never comes to an end, or if a finding is there
afterwards that was not there before and that it has caused; none of these ever reaches a file.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from troth.analysis.edits.apply import apply, compatible
from troth.analysis.edits.write import Change
from troth.analysis.findings import Edit, Finding, Fix
from troth.analysis.fix.caused import Mark, caused, mark, new, suspects
from troth.analysis.source.encoding import decode
from troth.analysis.source.syntax import problem_in

__all__ = ["Settled", "settle"]

_ROUNDS = 20  # a repair opens at most a few others (an await makes a dropped value visible); more is a circle
_ATTEMPTS = 12  # ways through all rounds; hardly ever more than one, as each further one takes back a bug of ours

_Key = tuple[Mark, str]


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
        return new(self.before, self.after)


def settle(
    root: Path, look: Callable[[Mapping[str, bytes]], Sequence[Finding]], wanted: Callable[[Finding], bool]
) -> Settled:
    """Apply the fixes of all `wanted` findings until none is left, but for those that do damage.

    `look` finds what is to be found with the given files in place of those on disk.
    """
    before = tuple(look({}))
    barred: dict[_Key, str] = {}
    for attempt in range(_ATTEMPTS):
        settled, last = _settle(root, look, wanted, before, barred)
        damage = caused(settled.aftermath, settled.applied)
        if last:  # still at it: two fixes that undo each other, or one that does not repair what it is for
            barred |= {_key(one): "repairing it never comes to an end" for one in last}
        elif damage:
            one = damage[0]
            why = f"with it, {one.code} would be found at {one.span.path}:{one.span.line}: {one.message}"
            likeliest = suspects(one, settled.applied)
            # One after the other, as few as possible; when that takes too long, whoever may have done it.
            barred |= {_key(suspect): why for suspect in likeliest[: 1 if attempt < _ATTEMPTS // 2 else None]}
        else:
            return settled
    return _settle(root, look, lambda _: False, before, barred)[0]


def _key(finding: Finding) -> _Key:
    assert finding.fix is not None
    return mark(finding), finding.fix.title


def _settle(
    root: Path,
    look: Callable[[Mapping[str, bytes]], Sequence[Finding]],
    wanted: Callable[[Finding], bool],
    before: tuple[Finding, ...],
    barred: Mapping[_Key, str],
) -> tuple[Settled, list[Finding]]:
    """One way through all rounds, and what was still being repaired when the rounds were over."""
    original: dict[str, bytes] = {}
    now: dict[str, bytes] = {}
    after = before
    applied: list[Finding] = []
    refused: dict[Fix, tuple[Finding, str]] = {}
    done: list[Finding] = []
    for _ in range(_ROUNDS):
        offered: dict[Fix, list[Finding]] = {}
        for finding in after:
            if finding.fix is None or finding.fix in refused:
                continue
            if (why := barred.get(_key(finding))) is not None:
                refused[finding.fix] = (finding, why)
            elif wanted(finding):
                offered.setdefault(finding.fix, []).append(finding)
        chosen = compatible(list(offered))
        if not chosen:
            done = []
            break
        for fix in chosen:
            for path in {edit.path for edit in fix.edits} - original.keys():
                original[path] = now[path] = (root / path).read_bytes()
        now, bad = _apply(now, chosen)
        for fix, reason in bad.items():
            refused[fix] = (offered[fix][0], reason)
        done = [finding for fix in chosen if fix not in bad for finding in offered[fix]]
        waiting = [finding for fix, found in offered.items() if fix not in chosen for finding in found]
        after = tuple(look({path: data for path, data in now.items() if data != original[path]}))
        still = Counter(map(mark, after))
        applied += done
        for finding in waiting:  # its fix was put off because of another one, which may have repaired it as well
            still[mark(finding)] -= 1
            if still[mark(finding)] < 0:
                applied.append(finding)
    changes = tuple(Change(path, original[path], data) for path, data in sorted(now.items()) if data != original[path])
    named = {(mark(finding), why): (finding, why) for finding, why in refused.values()}
    return Settled(before, after, tuple(applied), tuple(named.values()), changes), done


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
