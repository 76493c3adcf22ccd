"""Apply fixes until nothing is left to do, without touching a file.

Each round looks at the whole program as it would be after the round before, so that a fix never rests on text that is
gone. Of fixes that change the same text, one is applied and the others wait for the next round, where their findings
may be gone. The rounds end when no wanted fix is left.

A fix is taken back and named if

- its result does not parse: the round applies its fixes one by one and leaves out those that break a file;
- it never comes to an end: after twenty rounds something is still being repaired, so two fixes undo each other;
- it does damage: a finding is there afterwards that was not there before and that a repair has caused (`caused.py`).
  What a repair only brings to light is no damage: an awaited call has a result, and mistakes with it become visible.

In the last two cases all rounds begin again without the fix. Which fix has done the damage is found by leaving out
the likeliest ones, first one at a time, then those of the same function, of the same file, and all. Of the first group
without which there is less damage only the half is barred, if that is enough, and of this the half again. After a dozen
such attempts nothing is applied at all. None of these tries ever reaches a file; the caller writes what is returned.
"""

from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from troth.analysis.edits.apply import apply, compatible
from troth.analysis.edits.write import Change
from troth.analysis.findings import Edit, Finding, Fix
from troth.analysis.fix.caused import CauseMark, caused, mark, new, suspects
from troth.analysis.source.encoding import decode
from troth.analysis.source.syntax import problem_in

__all__ = ["Settled", "settle", "settle_in_stages"]

_ROUNDS = 20  # a repair opens at most a few others (an await makes a dropped value visible); more is a circle
_ATTEMPTS = 12  # findings that repairs have caused; hardly ever more than one, as each is a bug of ours
_SUSPECTS = 6  # repairs that are left out one at a time to see which of them has caused a finding
_EVERY = "\n"  # no line has this text

Look = Callable[[Mapping[str, bytes]], Sequence[Finding]]


class _Key(NamedTuple):
    """Which repair it is, however often the same is found in one function: the text of its line tells them apart."""

    mark: CauseMark
    title: str
    line: str


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


@dataclass(frozen=True, slots=True)
class _Trial:
    """One way through all rounds: its result, the key of each repair, and what was still being repaired at the end."""

    settled: Settled
    keys: Mapping[Finding, _Key]
    endless: tuple[Finding, ...]

    excused: Container[CauseMark] = frozenset()

    @property
    def damage(self) -> list[Finding]:
        found = caused(self.settled.aftermath, self.settled.applied)
        return [finding for finding in found if mark(finding) not in self.excused]

    def has_less_of(self, damage: Finding, other: "_Trial") -> bool:
        """Whether it is found less often here than in the other trial."""
        here, there = (map(mark, trial.settled.aftermath) for trial in (self, other))
        return Counter(here)[mark(damage)] < Counter(there)[mark(damage)]


def settle_in_stages(
    root: Path,
    look: Look,
    stages: Sequence[Callable[[Finding], bool]],
    overlay: Mapping[str, bytes] | None = None,
) -> Settled:
    """Settle what the first stage wants, and on top of it what each further one wants.

    What is sure is done first and stays: no fix that is only likely can be the reason to take it back.
    """
    whole: Settled | None = None
    for is_of_stage in stages:
        if whole is None:
            whole = settle(root, look, is_of_stage, overlay)
        elif any(is_of_stage(finding) for finding in whole.after):
            whole = _on_top(root, look, is_of_stage, overlay, whole)
    assert whole is not None
    return whole


def _on_top(
    root: Path, look: Look, wanted: Callable[[Finding], bool], overlay: Mapping[str, bytes] | None, below: Settled
) -> Settled:
    base = {change.path: change.after for change in below.changes}
    above = settle(root, lambda texts: look({**base, **texts}), wanted, {**(overlay or {}), **base}, before=below.after)
    before = {change.path: change.before for change in (*above.changes, *below.changes)}
    after = {change.path: change.after for change in (*below.changes, *above.changes)}
    return Settled(
        below.before,
        above.after,
        (*below.applied, *above.applied),
        tuple(dict.fromkeys((*below.refused, *above.refused))),
        tuple(Change(path, before[path], text) for path, text in sorted(after.items()) if text != before[path]),
    )


def settle(
    root: Path,
    look: Look,
    wanted: Callable[[Finding], bool],
    overlay: Mapping[str, bytes] | None = None,
    *,
    before: tuple[Finding, ...] | None = None,
) -> Settled:
    """Apply the fixes of all `wanted` findings until none is left, but for those that do damage.

    `look` finds what is to be found with the given files in place of those on disk. `overlay` are files that do not
    come from the disk to begin with; `before` is what is found there, if that is known.
    """

    def read(path: str) -> bytes:
        return overlay[path] if overlay is not None and path in overlay else (root / path).read_bytes()

    start = tuple(look({})) if before is None else before
    barred: dict[_Key, str] = {}
    excused: set[CauseMark] = set()  # what no repair has caused: it is there whichever of them is left out

    def attempt(more: Mapping[_Key, str]) -> _Trial:
        return replace(_settle(read, look, wanted, start, {**barred, **more}), excused=excused)

    trial = attempt({})
    for _ in range(_ATTEMPTS):
        if trial.endless:  # two fixes that undo each other, or one that does not repair what it is for
            keys = (
                trial.keys[finding]._replace(line=_EVERY) for finding in trial.endless
            )  # each round its line is another
            barred |= dict.fromkeys(keys, "its fixes never settle")
            trial = attempt({})
        elif trial.damage:
            blamed, without = _without(trial, attempt)
            barred |= blamed
            if not blamed:
                excused.add(mark(trial.damage[0]))
            trial = without
        else:
            return trial.settled
    return _settle(read, look, lambda _: False, start, barred).settled


def _without(trial: _Trial, attempt: Callable[[Mapping[_Key, str]], _Trial]) -> tuple[dict[_Key, str], _Trial]:
    """The repairs without which the first finding that they caused is gone, as few as possible, and what is then.

    None of them where it is there without them as well.
    """
    damage = trial.damage[0]
    why = f"with it, {damage.code} would be found at {damage.span.path}:{damage.span.line}: {damage.message}"
    likeliest = suspects(damage, trial.settled.applied)
    nearest = [
        finding for finding in likeliest if (finding.span.path, finding.symbol) == (damage.span.path, damage.symbol)
    ]
    in_file = [finding for finding in likeliest if finding.span.path == damage.span.path]
    groups = [*([finding] for finding in likeliest[:_SUSPECTS]), nearest, in_file, likeliest]
    for group in (group for group in groups if group):
        blamed = {trial.keys[finding]: why for finding in group}
        without = attempt(blamed)
        if without.has_less_of(damage, trial):
            return _fewer(trial, damage, group, why, attempt) or (blamed, without)
    return {}, trial


def _fewer(
    trial: _Trial, damage: Finding, group: Sequence[Finding], why: str, attempt: Callable[[Mapping[_Key, str]], _Trial]
) -> tuple[dict[_Key, str], _Trial] | None:
    """A part of the group that is enough to leave out; None if only the whole is."""
    best: tuple[dict[_Key, str], _Trial] | None = None
    while len(group) > 1:
        middle = len(group) // 2
        for half in (group[:middle], group[middle:]):
            blamed = {trial.keys[finding]: why for finding in half}
            without = attempt(blamed)
            if without.has_less_of(damage, trial):
                group, best = half, (blamed, without)
                break
        else:
            break
    return best


def _key(finding: Finding, text: str) -> _Key:
    assert finding.fix is not None
    lines = text.splitlines()
    inside = finding.span.cell is None and finding.span.line <= len(lines)
    return _Key(mark(finding), finding.fix.title, lines[finding.span.line - 1].strip() if inside else "")


def _settle(
    read: Callable[[str], bytes],
    look: Look,
    wanted: Callable[[Finding], bool],
    before: tuple[Finding, ...],
    barred: Mapping[_Key, str],
) -> _Trial:
    """One way through all rounds."""
    original: dict[str, bytes] = {}
    now: dict[str, bytes] = {}
    after = before
    applied: list[Finding] = []
    refused: dict[Fix, tuple[Finding, str]] = {}
    keys: dict[Finding, _Key] = {}
    repaired: list[Finding] = []
    for _ in range(_ROUNDS):
        offered: dict[Fix, list[Finding]] = {}
        texts: dict[str, str] = {}
        for finding in after:
            if finding.fix is None or finding.fix in refused or not wanted(finding):
                continue
            path = finding.span.path
            if path not in texts:
                texts[path] = _text(path, now.get(path) or read(path))
            key = keys[finding] = _key(finding, texts[path])
            if (why := barred.get(key, barred.get(key._replace(line=_EVERY)))) is not None:
                refused[finding.fix] = (finding, why)
            else:
                offered.setdefault(finding.fix, []).append(finding)
        offered = {fix: findings for fix, findings in offered.items() if fix not in refused}
        chosen = compatible(list(offered))
        if not chosen:
            repaired = []
            break
        for fix in chosen:
            for path in {edit.path for edit in fix.edits} - original.keys():
                original[path] = now[path] = read(path)
        now, bad = _apply(now, chosen)
        for fix, reason in bad.items():
            refused[fix] = (offered[fix][0], reason)
        repaired = [finding for fix in chosen if fix not in bad for finding in offered[fix]]
        waiting = [finding for fix, findings in offered.items() if fix not in chosen for finding in findings]
        after = tuple(look({path: data for path, data in now.items() if data != original[path]}))
        still = Counter(map(mark, after))
        applied += repaired
        for finding in waiting:  # its fix was put off because of another one, which may have repaired it as well
            still[mark(finding)] -= 1
            if still[mark(finding)] < 0:
                applied.append(finding)
    changes = tuple(Change(path, original[path], data) for path, data in sorted(now.items()) if data != original[path])
    reported = {(mark(finding), why): (finding, why) for finding, why in refused.values()}
    return _Trial(Settled(before, after, tuple(applied), tuple(reported.values()), changes), keys, tuple(repaired))


def _text(path: str, data: bytes) -> str:
    return "" if path.endswith(".ipynb") else decode(data, path).text


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
        try:
            result[path] = source.encode(apply(source.text, edits))
        except UnicodeError:
            problems.append(f"`{path}` is written in {source.encoding}, which cannot say what it would become")
            continue
        if problem := problem_in(path, result[path]):
            problems.append(problem)
    return result, problems
