"""Knows how the files look after a plan, and whether they are sound: they parse, and no new finding is in them."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from troth.analysis.edits.apply import apply
from troth.analysis.edits.write import Change
from troth.analysis.findings import Edit, Finding
from troth.analysis.recolor.notebooks import readable_cells
from troth.analysis.source.encoding import decode
from troth.analysis.source.syntax import problem_in
from troth.errors import InternalError

__all__ = ["new_findings", "rewritten"]

# Needless `async` is no loss of a call, and a recolor without a cascade leaves some behind on purpose.
_NOT_A_LOSS = ("T3",)


def rewritten(root: Path, edits: Sequence[Edit]) -> tuple[Change, ...]:
    """The changes of files that `edits` come to; `InternalError` if one of them would not parse."""
    by_path: dict[str, list[Edit]] = {}
    for edit in edits:
        by_path.setdefault(edit.path, []).append(edit)
    changes = []
    for path, here in sorted(by_path.items()):
        before = (root / path).read_bytes()
        if path.endswith((".py", ".pyi", ".pyw")):
            source = decode(before)
            after = source.encode(apply(source.text, here))
        else:
            after = apply(before.decode("utf-8"), here).encode("utf-8")
        problem = problem_in(path, after) if path.endswith((".py", ".pyi", ".pyw", ".ipynb")) else None
        if problem is None and path.endswith(".ipynb") and _cells(after) < _cells(before):
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
    before = Counter(map(_mark, look({})))
    fresh = []
    for finding in look({change.path: change.after for change in changes}):
        mark = _mark(finding)
        if before[mark]:
            before[mark] -= 1
        elif not finding.code.startswith(_NOT_A_LOSS):
            fresh.append(finding)
    return tuple(fresh)


def _mark(finding: Finding) -> tuple[str, str, str, str]:
    return finding.code, finding.span.path, finding.symbol, finding.subject


def _cells(data: bytes) -> int:
    return readable_cells(data.decode("utf-8"))
