"""How the files look after a plan, and whether they are sound: they parse, and no new finding is in them.

A function that has become async can await what it lost as a sync one; that is part of the change.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from troth.analysis.edits.apply import apply, compatible
from troth.analysis.edits.write import Change
from troth.analysis.findings import Edit, Finding
from troth.analysis.recolor.plan import Plan
from troth.analysis.source.encoding import decode
from troth.analysis.source.notebook import read_notebook
from troth.analysis.source.syntax import problem_in
from troth.errors import InternalError

__all__ = ["awaiting_lost", "new_findings", "not_in", "rewritten", "split_blocking"]

# Needless `async` is no loss of a call, and a recolor without a cascade leaves some behind on purpose.
_NOT_A_LOSS = ("TR3",)
_BLOCKING = "TR602"
_LOST = ("TR1", "TR2")  # the families whose repair is an `await`
_RETURNED = "TR109"


def rewritten(root: Path, edits: Sequence[Edit], overlay: Mapping[str, bytes] | None = None) -> tuple[Change, ...]:
    """The changes of files that `edits` come to; `InternalError` if one of them would not parse.

    `overlay` are texts that differ from the disk.
    """
    unsaved = overlay or {}
    by_path: dict[str, list[Edit]] = {}
    for edit in edits:
        by_path.setdefault(edit.path, []).append(edit)
    changes = []
    for path, in_file in sorted(by_path.items()):
        before = unsaved[path] if path in unsaved else (root / path).read_bytes()
        if path.endswith((".py", ".pyi", ".pyw")):
            source = decode(before)
            after = source.encode(apply(source.text, in_file))
        else:
            after = apply(before.decode("utf-8"), in_file).encode("utf-8")
        problem = problem_in(path, after) if path.endswith((".py", ".pyi", ".pyw", ".ipynb")) else None
        if (
            problem is None
            and path.endswith(".ipynb")
            and read_notebook(after).python_cells < read_notebook(before).python_cells
        ):
            problem = f"{path}: a cell is no longer Python"
        if problem is not None:
            raise InternalError(
                f"{problem}\nThe file would not be Python after the change, so nothing was written.\n"
                "Please report this with the file."
            )
        if after != before:
            changes.append(Change(path, before, after))
    return tuple(changes)


def new_findings(
    changes: Sequence[Change], look: Callable[[Mapping[str, bytes]], Sequence[Finding]]
) -> tuple[Finding, ...]:
    """What a check finds after the change and did not find before."""
    return not_in(look({}), look({change.path: change.after for change in changes}))


def not_in(before: Iterable[Finding], after: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings of `after` that are not among those of `before`."""
    remaining = Counter(map(_mark, before))
    fresh = []
    for finding in after:
        mark = _mark(finding)
        if remaining[mark]:
            remaining[mark] -= 1
        elif not finding.code.startswith(_NOT_A_LOSS):
            fresh.append(finding)
    return tuple(fresh)


def split_blocking(plan: Plan, fresh: Sequence[Finding]) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    """New findings without, and those that are, blocking calls in what has just become async.

    These blocked before as well, whoever called the function; to repair them is the next step, no reason against this.
    """
    recolored = {(function.module.path, function.qualname) for function in (*plan.definitions, *plan.followers)}
    blocking = tuple(
        finding for finding in fresh if finding.code == _BLOCKING and (finding.span.path, finding.symbol) in recolored
    )
    return tuple(finding for finding in fresh if finding not in blocking), blocking


def awaiting_lost(
    plan: Plan, changes: Sequence[Change], after: Iterable[Finding]
) -> tuple[tuple[Change, ...], tuple[Finding, ...]]:
    """The changes with an `await` at each call that a function lost while it was plain; and what is repaired by that.

    `after` is what is found after the changes, some of it only because the function is async now. Only fixes that are
    sure are taken; and where such a function returns a coroutine, a sync one gave it to whoever awaits, on some path.
    """
    recolored = {(function.module.path, function.qualname) for function in (*plan.definitions, *plan.followers)}
    texts = {change.path: decode(change.after, change.path) for change in changes}
    lost = {
        finding.fix: finding
        for finding in after
        if finding.fix is not None
        and (finding.fix.safety == "sure" or (finding.code == _RETURNED and finding.fix.safety == "likely"))
        and finding.code.startswith(_LOST)
        and (finding.span.path, finding.symbol) in recolored
        and all(edit.path in texts for edit in finding.fix.edits)
    }
    edits: dict[str, list[Edit]] = {}
    chosen = compatible(list(lost))
    for edit in (edit for fix in chosen for edit in fix.edits):
        edits.setdefault(edit.path, []).append(edit)
    awaiting = [
        replace(change, after=texts[change.path].encode(apply(texts[change.path].text, edits.get(change.path, ()))))
        for change in changes
    ]
    return tuple(awaiting), tuple(lost[fix] for fix in chosen)


def _mark(finding: Finding) -> tuple[str, str, str, str]:
    return finding.code, finding.span.path, finding.symbol, finding.subject
