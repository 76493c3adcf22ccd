"""Find which findings a change has brought, by looking at the project as it was and as it is."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from troth.analysis.findings import Finding, Reason
from troth.analysis.project.git import GitChange, blobs_at, changes_since, commit_of, files_at
from troth.analysis.project.import_roots import source_roots
from troth.analysis.project.listing import SUFFIXES
from troth.analysis.project.project import Project
from troth.analysis.report.fingerprint import Mark, mark, settle, still_defines
from troth.analysis.source.definitions import Definition, definitions_in
from troth.analysis.source.lines import Lines

__all__ = ["Past", "introduced", "past_of"]


@dataclass(frozen=True, slots=True)
class Past:
    """The project as a revision has it: `overlay` holds the files that are different today."""

    revision: str
    project: Project
    overlay: dict[str, bytes]
    changes: tuple[GitChange, ...]

    @property
    def is_same(self) -> bool:
        """Whether no source file is different today, so that there is nothing to compare."""
        return not self.changes


def past_of(project: Project, revision: str, *, was_checked: Callable[[str], bool], marked: Sequence[str] = ()) -> Past:
    """Read the past out of git's objects; the work tree is not touched.

    `was_checked` says of a file that is gone today whether it would have been checked.
    """
    root = project.root
    commit = commit_of(root, revision)
    then = {path for path in files_at(root, commit) if path.endswith(SUFFIXES)}
    now = set(project.files)
    old_files = {path for path in then if path in now or (not (root / path).exists() and was_checked(path))}
    changes = [
        change
        for change in changes_since(root, commit)
        if (change.then in old_files if change.then is not None else False)
        or (change.now in now if change.now is not None else False)
    ]
    untracked = [GitChange(None, path) for path in sorted(now - then) if path not in {change.now for change in changes}]
    old_paths = sorted({change.then for change in changes if change.then is not None and change.then in old_files})
    files = tuple(sorted(old_files))
    return Past(
        revision=revision,
        project=Project(root, files, source_roots(root, files, marked)),
        overlay=blobs_at(root, commit, old_paths),
        changes=(*changes, *untracked),
    )


def introduced(past: Past, before: Sequence[Finding], today: Sequence[Finding], lines: Lines) -> list[Finding]:
    """Those of today's findings that the past did not have; where a callee changed color, with that as a reason."""
    old_lines = Lines(past.project.root, past.overlay)
    earlier: list[Mark] = [mark(finding, old_lines) for finding in before]
    new = settle(earlier, [mark(finding, lines) for finding in today], still_defines(lines)).new
    if not new:
        return []
    turned = _Turned(past, lines)
    return [turned.explain(today[index]) for index in new]


class _Turned:
    """The functions whose color a change has turned, by place and by name."""

    def __init__(self, past: Past, lines: Lines) -> None:
        self._revision = past.revision
        self._by_place: dict[tuple[str, int], Reason] = {}
        self._by_name: dict[str, Reason] = {}
        for change in past.changes:
            if change.now is None or change.then is None or change.now.endswith(".ipynb"):
                continue
            old, new = past.overlay.get(change.then), lines.data(change.now)
            if old is not None and new is not None:
                self._compare(change.now, definitions_in(old) or {}, definitions_in(new) or {})

    def explain(self, finding: Finding) -> Finding:
        """`finding`, with the change of color it comes from, if it comes from one."""
        reason = next((turned for place in finding.reasons if (turned := self._at(place))), None)
        if reason is None:
            reason = self._by_name.get(finding.subject.rpartition(".")[2].partition("(")[0])
        return finding if reason is None else finding._replace(reasons=(*finding.reasons, reason))

    def _at(self, place: Reason) -> Reason | None:
        if place.path is None or place.line is None:
            return None
        return self._by_place.get((place.path, place.line))

    def _compare(self, path: str, old: dict[str, Definition], new: dict[str, Definition]) -> None:
        for name, function in new.items():
            before = old.get(name)
            if before is None or before.is_async == function.is_async or before.is_class or function.is_class:
                continue
            was = "an `async def`" if before.is_async else "a plain `def`"
            text = f"`{name}` changed color since {self._revision}: it was {was}"
            reason = Reason(text, path, function.head[-1])
            self._by_place.update({(path, line): reason for line in function.head})
            self._by_name.setdefault(name.rpartition(".")[2], reason)
