"""How many awaits that were taken out of a project come back, byte for byte, when it is fixed."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from troth.analysis.edits.apply import apply
from troth.analysis.findings import Finding
from troth.analysis.fix.settle import settle
from troth.analysis.mutate.mutant import Mutant
from troth.analysis.mutate.operators.drop_await import find
from troth.analysis.mutate.source.module import SourceModule
from troth.analysis.mutate.source.project import MutatedProject as Planted
from troth.analysis.mutate.source.text import decode as read_source
from troth.analysis.pipeline import analyse
from troth.analysis.project.discover import discover
from troth.analysis.source.encoding import decode

__all__ = ["Restored", "planted", "restored"]


_OTHER = frozenset({"tests", "test", "docs", "examples"})


class Restored(NamedTuple):
    """What came back of what was taken out of `tree`."""

    tree: str
    planted: int
    found: int
    restored: int
    strange: int  # lines that are neither as they were nor as they were made

    def __str__(self) -> str:
        """The figures, in one line."""
        found = f"{self.found} found ({self.found / max(self.planted, 1):.1%})"
        back = f"{self.restored} restored byte for byte ({self.restored / max(self.found, 1):.1%} of those found)"
        return f"{self.tree}: {self.planted} awaits taken out, {found}, {back}, {self.strange} other lines changed"


def restored(tree: Path, count: int) -> Restored:
    """Take `count` awaits out of a copy of `tree`, spread evenly, at most one from each function; fix; compare."""
    with TemporaryDirectory() as folder:
        copy = Path(folder).resolve() / tree.name
        shutil.copytree(tree, copy, ignore=shutil.ignore_patterns(".git", ".venv", ".troth_cache"))
        project = discover([str(copy)], copy).project
        whole = {path: (project.root / path).read_bytes() for path in project.files if path.endswith(".py")}
        mutants, lost = _lost(whole, count)
        for path, data in lost.items():
            (project.root / path).write_bytes(data)

        def look(changed: Mapping[str, bytes]) -> Sequence[Finding]:
            return analyse(project, overlay=changed).findings

        settled = settle(project.root, look, _awaits)
    after = {**lost, **{change.path: change.after for change in settled.changes}}
    places = {(one.path, one.line) for one in mutants}
    found = {(one.span.path, line) for one in settled.before for line in range(one.span.line, one.span.end_line + 1)}
    back, strange = 0, 0
    for path, data in after.items():
        old, planted = whole[path], lost.get(path, whole[path])
        rows = zip(old.splitlines(), planted.splitlines(), data.splitlines(), strict=True)
        for number, (was, made, now) in enumerate(rows, 1):
            if (path, number) in places and was != made:
                back += now == was
            elif now not in (was, made):
                strange += 1
    return Restored(tree.name, len(mutants), len(places & found), back, strange)


def planted(tree: Path, count: int) -> tuple[int, list[tuple[str, int]]]:
    """Take awaits out of the code of `tree` itself, tests left alone: how many were tried, and where they are found.

    What `troth check` does not find stays as it was: what is on trial is the repair.
    """
    project = discover([str(tree)], tree).project
    code = [path for path in project.files if path.endswith(".py") and _OTHER.isdisjoint(path.split("/"))]
    whole = {path: (tree / path).read_bytes() for path in code}
    mutants, lost = _lost(whole, count)
    told = {
        (one.span.path, line)
        for one in analyse(project, overlay=lost).findings
        if _awaits(one)
        for line in range(one.span.line, one.span.end_line + 1)
    }
    found = [one for one in mutants if (one.path, one.line) in told]
    for path, data in _without(whole, found).items():
        (tree / path).write_bytes(data)
    return len(mutants), [(one.path, one.line) for one in found]


def _lost(whole: Mapping[str, bytes], count: int) -> tuple[list[Mutant], dict[str, bytes]]:
    """What is taken out, and the files without it."""
    mutants = _spread([one for path in whole for one in _mutants(path, whole[path])], count)
    return mutants, _without(whole, mutants)


def _without(whole: Mapping[str, bytes], mutants: Sequence[Mutant]) -> dict[str, bytes]:
    lost: dict[str, bytes] = {}
    for path in {one.path for one in mutants}:
        source = decode(whole[path])
        edits = [edit for one in mutants if one.path == path for edit in one.edits]
        lost[path] = source.encode(apply(source.text, edits))
    return lost


def _awaits(finding: Finding) -> bool:
    return finding.fix is not None and finding.fix.title == "await the call"


def _mutants(path: str, data: bytes) -> list[Mutant]:
    try:
        module = SourceModule(read_source(path, data))
    except (SyntaxError, ValueError):
        return []
    return list({one.function: one for one in find(module, Planted({}, {}))}.values())


def _spread(mutants: Sequence[Mutant], count: int) -> list[Mutant]:
    step = max(1, len(mutants) // count)
    return list(mutants[::step])[:count]
