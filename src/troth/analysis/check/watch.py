"""Check a project again whenever its files change: at once what was edited, then what depends on it."""

import gc
import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import NamedTuple

from troth.analysis.check.check import check
from troth.analysis.check.filter import Reported
from troth.analysis.check.prepare import Prepared, prepare
from troth.analysis.check.request import CheckRequest
from troth.analysis.pipeline.warm_state import Memory
from troth.analysis.report.content import CheckReport
from troth.errors import MisuseError

__all__ = ["WatchAnswer", "watch"]

_SHORTEST = 0.04  # seconds between two looks at the disk; nobody saves faster
_LONGEST = 0.1
_SHARE = 20  # a look at the disk takes a twentieth of the time at most, up to the longest pause
_SETTLING = 0.05  # while a file is saved there may be none, or an empty one, for a moment
_MANY = 100  # files; where there are fewer, all that depends on a change is looked at in no time
_SETTINGS = ("pyproject.toml", "troth.toml", ".gitignore")

Stamp = tuple[int, int]


class WatchAnswer(NamedTuple):
    """A report, the files whose change it answers, and how long that took; the first has no change to answer.

    One that is not `settled` tells of the changed files alone; what the change means for others follows at once.
    """

    report: CheckReport
    changed: tuple[str, ...]
    seconds: float
    settled: bool
    problem: str = ""
    """Why the project cannot be checked as it is now, settings with a mistake in them; the report is then the last."""


def watch(request: CheckRequest, *, rest: Callable[[float], None] = time.sleep) -> Iterator[WatchAnswer]:
    """Answers, the first at once and the others as files change, forever; `rest` waits between two looks.

    Nothing but source files and settings is looked at, so that a report written into the project wakes nobody. Garbage
    is collected while nobody waits: the collector would stop the answer for longer than the answer takes.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield from _Watch(request).answers(rest)
    finally:
        gc.unfreeze()
        if collecting:
            gc.enable()


class _Watch:
    def __init__(self, request: CheckRequest) -> None:
        self._request = request
        self._memory = Memory()
        self._prepared: Prepared = prepare(request)
        self._reported = Reported(self._prepared)
        self._files: dict[str, Stamp] = {}
        self._around: dict[str, Stamp] = {}  # folders, which change as files come and go, and settings
        self._listed = 0.0  # when the folders were listed last, and how long that took
        self._listing = 0.0

    def answers(self, rest: Callable[[float], None]) -> Iterator[WatchAnswer]:
        began = time.perf_counter()
        self._note(time.monotonic())
        last = check(self._prepared, memory=self._memory, reported=self._reported)
        yield WatchAnswer(last, (), time.perf_counter() - began, settled=True)
        gc.collect()
        gc.freeze()  # the facts stay: what is collected later are the leavings of single answers
        pause = _SHORTEST
        while True:
            rest(pause)
            began = time.perf_counter()
            changed, problem = self._look()
            pause = min(max(_SHORTEST, (time.perf_counter() - began) * _SHARE), _LONGEST)
            if problem:
                yield WatchAnswer(last, changed, time.perf_counter() - began, settled=True, problem=problem)
            elif changed:
                for answer in self._answer(changed, began):
                    last = answer.report
                    yield answer
                gc.collect()

    def _answer(self, changed: tuple[str, ...], began: float) -> Iterator[WatchAnswer]:
        if len(self._files) >= _MANY:
            first = check(self._prepared, memory=self._memory, hurry=True, reported=self._reported)
            settled = not self._memory.owed
            yield WatchAnswer(first, changed, time.perf_counter() - began, settled=settled)
            if settled:
                return
        whole = check(self._prepared, memory=self._memory, reported=self._reported)
        yield WatchAnswer(whole, changed, time.perf_counter() - began, settled=True)

    def _look(self) -> tuple[tuple[str, ...], str]:
        """The files that changed since the last look; and what is wrong with the settings, if they changed."""
        changed = self._changed(self._files)
        if any(_stamp(self._whole(path))[1] <= 0 for path in changed):
            time.sleep(_SETTLING)
            changed = self._changed(self._files)
        stamps = {path: _stamp(self._whole(path)) for path in self._around}
        around = [path for path, stamp in stamps.items() if stamp != self._around[path]]
        is_due = time.monotonic() - self._listed > max(1.0, self._listing * _SHARE)
        if not around and not is_due:
            self._files.update((path, _stamp(self._whole(path))) for path in changed)
            return tuple(changed), ""
        edited = [path for path in around if path.endswith(_SETTINGS)]
        began = time.monotonic()
        try:
            prepared = prepare(self._request)
        except MisuseError as problem:
            self._note(began, changed, stamps)
            return (*changed, *edited), str(problem) if around else ""
        if edited or prepared.scope != self._prepared.scope:
            changed += sorted({*prepared.scope.project.files} ^ self._files.keys())
            self._prepared, self._reported = prepared, Reported(prepared)
        self._note(began, changed, stamps)
        return tuple(dict.fromkeys([*changed, *edited])), ""

    def _note(self, listed_at: float, changed: Collection[str] = (), stamps: Mapping[str, Stamp] | None = None) -> None:
        """Remember how all files, folders and settings look; `listed_at` is when they were listed.

        Of what was there before, it is how it looked when it was compared (`stamps` has folders and settings): listing
        takes its time, and what is saved meanwhile has to be seen as a change by the next look.
        """
        scope = self._prepared.scope
        folders = {path.rpartition("/")[0] for path in scope.project.files} | {""}
        settings = {f"{folder}/{name}".lstrip("/") for folder in (*scope.marked, "") for name in _SETTINGS}
        same = self._files.keys() - set(changed)
        before, compared = self._files, stamps or {}
        self._files = {
            path: before[path] if path in same else _stamp(self._whole(path)) for path in scope.project.files
        }
        self._around = {
            path: compared[path] if path in compared else _stamp(self._whole(path)) for path in (*folders, *settings)
        }
        self._listed = time.monotonic()
        self._listing = self._listed - listed_at

    def _changed(self, stamps: dict[str, Stamp]) -> list[str]:
        return [path for path, stamp in stamps.items() if _stamp(self._whole(path)) != stamp]

    def _whole(self, path: str) -> str:
        return f"{self._prepared.root.path}/{path}"


_ABSENT: Stamp = (0, -1)


def _stamp(path: str) -> Stamp:
    try:
        status = os.stat(path)  # noqa: PTH116  a thousand of them, twenty times a second
    except OSError:
        return _ABSENT
    return status.st_mtime_ns, status.st_size
