"""Check one folder again and again, with the texts of open buffers in place of the files on disk.

Everything here is done by the thread of the worker.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from troth.analysis.check import CheckRequest, Prepared, check, is_cold, prepare, replay
from troth.analysis.check.filter import Reported
from troth.analysis.facts.store import Stamp, stamp, stamp_of
from troth.analysis.findings import Finding
from troth.analysis.report.content import CheckReport
from troth.analysis.source.problem import Problem

if TYPE_CHECKING:  # late: program and rules take longer to import than an earlier answer to be told
    from troth.analysis.pipeline.warm_state import Memory
    from troth.analysis.semantics import Program

__all__ = ["FolderChecker", "Look"]

_MANY = 100  # files; where there are fewer, all that depends on a change is looked at in no time


class Look(NamedTuple):
    """What a check found, and the texts it was about. One that `is_settled` has looked at all that depends on them.

    One that was only told again, from what an earlier run left, has no program to answer further questions.
    """

    report: CheckReport
    prepared: Prepared
    overlay: Mapping[str, bytes]
    stamps: Mapping[str, Stamp]
    is_settled: bool
    broken: frozenset[str] = frozenset()
    """The files that cannot be parsed now: what the program says of places in them is about an earlier text."""

    @property
    def root(self) -> Path:
        """The folder that all paths are relative to."""
        return self.prepared.root.path

    @property
    def has_program(self) -> bool:
        """Whether further questions can be asked."""
        return self.report.program is not None

    @property
    def program(self) -> Program:
        """The program that answers further questions, as long as no other look has begun."""
        assert self.report.program is not None
        return self.report.program

    def inner(self, path: Path) -> str | None:
        """The path in the project of a file that is looked at; None for another one."""
        name = _relative(path, self.root)
        return name if name in self.stamps else None

    def findings_in(self, path: str) -> list[Finding]:
        """The findings in a file."""
        return [finding for finding in self.report.findings if finding.span.path == path]


class FolderChecker:
    """The memory of one folder. `request` says what is checked, as for `troth check` in that folder."""

    def __init__(self, request: CheckRequest) -> None:
        self.request = request
        self._memory: Memory | None = None
        self._prepared: Prepared | None = None
        self._replayed: tuple[Prepared, Look] | None = None
        self._reported: tuple[Prepared, Reported] | None = None
        self._differed: set[Path] = set()

    @property
    def memory(self) -> Memory:
        """What the last look left for the next one."""
        if self._memory is None:
            from troth.analysis.pipeline.warm_state import Memory

            self._memory = Memory(judges_broken=True)
        return self._memory

    @property
    def owed(self) -> Collection[str]:
        """The files that were looked at in a hurry."""
        return () if self._memory is None else self._memory.owed

    def list_again(self, request: CheckRequest | None = None) -> None:
        """Files may have come or gone, or settings may have changed: the next look lists them anew."""
        self.request = request or self.request
        self._prepared = None

    def replay(self, buffers: Mapping[Path, bytes]) -> Look | None:
        """What an earlier run found, if no file has changed since and no buffer differs from its file; else None."""
        prepared = self._with(buffers)
        if prepared.overlay or prepared.scope.project.files != (self._prepared or prepared).scope.project.files:
            return None
        if self._replayed is not None and self._replayed[0] is self._prepared:
            return self._replayed[1]
        report = replay(prepared, self._question(prepared))
        if report is None or self._prepared is None:
            return None
        unstamped = dict.fromkeys(prepared.scope.project.files, (0, -1))  # the first look of our own tells the stamps
        look = Look(report, prepared, prepared.overlay, unstamped, is_settled=True)
        self._replayed = self._prepared, look
        return look

    def is_cold(self) -> bool:
        """Whether a first look would have much to look at, and could leave it in a cache."""
        prepared = self._with({})
        return len(prepared.scope.project.files) >= _MANY and is_cold(prepared, self._question(prepared))

    def look(
        self,
        buffers: Mapping[Path, bytes],
        *,
        hurry: bool = False,
        progress: Callable[[int, int, str], None] | None = None,
        is_wanted: Callable[[], bool] | None = None,
    ) -> Look | None:
        """Check with these texts in place of their files; in a `hurry`, only what changed since the last look.

        None where it is not wanted any more; `is_wanted` is asked by this thread, between files. Raises `MisuseError`
        where the settings are wrong.
        """
        from troth.analysis.pipeline.request import AbandonedError  # late, as all of it

        self._replayed = None
        prepared = self._with(buffers)
        files = prepared.scope.project.files
        if self.memory.kept is None and prepared.overlay and self._prepared is not None:
            # From the disk first: that can be kept for the next start, and it is what a buffer said before it broke.
            check(self._prepared, progress, self.memory, reported=self._question(self._prepared))
        is_quick = hurry and len(files) >= _MANY and self.memory.kept is not None
        if self.memory.kept is None:
            is_wanted = None  # the first look is always made to the end: the next one begins with what it leaves
        try:
            report = check(
                prepared,
                progress,
                self.memory,
                hurry=is_quick,
                reported=self._question(prepared),
                is_wanted=is_wanted,
            )
        except AbandonedError:
            return None
        warm = self.memory.kept
        assert warm is not None
        is_settled = not is_quick  # it has not looked at the disk
        broken = frozenset(path for path, facts in warm.facts.items() if isinstance(facts, Problem))
        report = report._replace(findings=report.places)  # an editor marks each place: there it is repaired
        return Look(report, prepared, prepared.overlay, warm.stamps, is_settled, broken)

    def try_out(self, look: Look, texts: Mapping[str, bytes]) -> tuple[Finding, ...]:
        """What would be found if these files had these texts; the next look finds what is there again."""
        prepared = look.prepared._replace(overlay={**look.overlay, **texts})
        return check(prepared, memory=self.memory, reported=self._question(look.prepared)).places

    def forget(self) -> None:
        """Begin anew: something went wrong in the middle of a look."""
        self._memory = self._prepared = self._replayed = None

    def _with(self, buffers: Mapping[Path, bytes]) -> Prepared:
        if self._prepared is None:
            self._prepared = prepare(self.request)
        prepared = self._prepared
        root, files = prepared.root.path, prepared.scope.project.files
        listed = set(files)
        overlay: dict[str, bytes] = {}
        new: list[str] = []
        self._differed &= buffers.keys()
        for path, data in buffers.items():
            name = _relative(path, root)
            if name is None:
                continue
            if name in listed:
                if path in self._differed or not _is_on_disk(path, data):
                    self._differed.add(path)
                    overlay[name] = data
            elif not path.exists() and prepared.would_check(name) and path.is_relative_to(self.request.cwd):
                overlay[name] = data
                new.append(name)
        if new:
            scope = prepared.scope
            project = scope.project._replace(files=tuple(sorted({*files, *new})))
            prepared = prepared._replace(scope=scope._replace(project=project, reported=scope.reported | set(new)))
        return prepared._replace(overlay=overlay)

    def _question(self, prepared: Prepared) -> Reported:
        """What is reported; worked out again where the files or the settings are others."""
        question = self._reported
        if question is None or question[0].scope is not prepared.scope or question[0].request is not prepared.request:
            question = self._reported = prepared, Reported(prepared)
        return question[1]


def _relative(path: Path, root: Path) -> str | None:
    """A path as the project counts it; None for one outside."""
    whole, folder = str(path), str(root)
    prefix = folder if folder.endswith(os.sep) else folder + os.sep
    return whole[len(prefix) :].replace(os.sep, "/") if whole.startswith(prefix) else None


def _is_on_disk(path: Path, data: bytes) -> bool:
    try:
        return stamp(str(path))[1] == len(data) and stamp_of(path.read_bytes()) == stamp_of(data)
    except OSError:
        return False
