"""Keep the answer for one folder up to date: at once for what was edited, then for what depends on it.

Each change counts the generation up. An answer belongs to the generation whose texts it was made from, and is thrown
away if another one has begun meanwhile: nothing is ever told about a text that is no longer there.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

from troth.analysis.gc_pause import uncollected
from troth.errors import MisuseError
from troth.lsp.protocol.settings import in_editor_words
from troth.lsp.sessions.checker import FolderChecker, Look
from troth.lsp.sessions.cold_check import ColdCheck
from troth.lsp.sessions.progress import FirstCheck
from troth.lsp.sessions.worker import WorkerThread

__all__ = ["FolderSession", "OutdatedError", "SessionAnswer", "UnavailableError"]

T = TypeVar("T")
_log = logging.getLogger("troth.lsp")
_TELLING = 0.05  # seconds for an earlier answer to reach the client, before the program and the rules are imported
_QUIET = 0.03  # seconds without a keystroke, before what depends on the last one is looked at
_PAUSE = 0.2  # seconds without a keystroke, before garbage is collected


class OutdatedError(Exception):
    """The text that was asked about has changed."""


class UnavailableError(Exception):
    """The folder cannot be checked as it is; the text says why."""


class SessionAnswer(NamedTuple):
    """A look, and the generation of texts it is about."""

    generation: int
    look: Look


class FolderSession:
    """One folder, or one file outside of all folders."""

    def __init__(
        self,
        folder: Path,
        checker: FolderChecker,
        worker: WorkerThread,
        cold_check: ColdCheck,
        buffers: Callable[[], Mapping[Path, bytes]],
        tell: Callable[[FolderSession], None],
    ) -> None:
        self.folder = folder
        self.checker = checker
        self.answer: SessionAnswer | None = None
        self.problem = ""
        self._worker = worker
        self._cold_check = cold_check
        self._buffers = buffers
        self._tell = tell
        self.progress: FirstCheck | None = None
        self._generation = 0
        self._failed = -1
        self._wake = asyncio.Event()
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to check, and go on until `stop`."""
        self._wake.set()
        self._task = asyncio.create_task(self._run())

    def stop(self) -> None:
        """Check no more."""
        if self._task is not None:
            self._task.cancel()

    @property
    def root(self) -> Path:
        """The folder of the project, which may reach beyond the one that is open."""
        return self.folder if self.answer is None else self.answer.look.root

    @property
    def owed(self) -> Collection[str]:
        """The files that were looked at in a hurry."""
        return self.checker.owed

    def changed(self) -> None:
        """A text has changed."""
        self._generation += 1
        self._wake.set()

    async def current(self, *, settled: bool = False, with_program: bool = False) -> SessionAnswer:
        """The answer for the texts of now; with `settled`, the one that has looked at all that depends on them.

        The first answer may be that of an earlier run; `with_program` asks for one that answers further questions.
        """
        while True:
            answer = self.answer
            if self._failed == self._generation:
                raise UnavailableError(self.problem)
            is_current = answer is not None and answer.generation == self._generation
            if (
                answer is not None
                and is_current
                and (answer.look.is_settled or not settled)
                and (answer.look.has_program or not with_program)
            ):
                return answer
            await self._news.wait()

    async def ask(self, question: Callable[[Look], T], *, settled: bool = False) -> T:
        """The answer to a question about the program as it is now."""
        while True:
            answer = await self.current(settled=settled, with_program=True)

            def work(look: Look = answer.look) -> T:
                if self.checker.memory.program is not look.report.program:
                    raise OutdatedError
                with uncollected(), look.program.aside():
                    look.program.prepare()
                    return question(look)

            try:
                return await self._worker.do(work)
            except OutdatedError:
                await asyncio.sleep(0)
                if answer is self.answer:  # tried out something since: look again
                    self.changed()

    async def _run(self) -> None:
        has_begun = False
        while True:
            await self._wait_for_change()
            generation = self._generation
            try:
                if not has_begun:
                    await self._begin()
                    has_begun = True
                self._wake.clear()
                generation = self._generation
                await self._check(generation)
            except MisuseError as problem:
                self._fail(generation, in_editor_words(str(problem), self.checker.request))
            except Exception:  # noqa: BLE001 - an editor goes on working, and so does its server
                _log.exception("The check of %s failed; the next one starts again", self.folder)
                has_begun = True
                self.checker.forget()
                self._fail(generation, "Troth has a bug here; the log has the details.")

    async def _begin(self) -> None:
        """Tell what an earlier run found, if that is still right; else tell how far the first check has come."""
        if await self._replayed():
            return
        if self.progress is not None:
            beginning = asyncio.create_task(self.progress.begin())
            beginning.add_done_callback(lambda task: task.cancelled() or task.exception())
        while await self._worker.do(self.checker.is_cold):
            is_of_now = await self._check_elsewhere()
            if await self._replayed() or is_of_now:
                return

    async def _replayed(self) -> bool:
        """Tell what an earlier run found, if that is still right; whether it is."""
        while True:
            self._wake.clear()
            generation, began = self._generation, time.perf_counter()
            look = await self._worker.do(partial(self.checker.replay, self._buffers()))
            if look is None:
                return False
            if generation == self._generation:
                _log.info("told what an earlier check of %s found, after %.1f ms", self.folder, _since(began))
                self._take(SessionAnswer(generation, look))
                await asyncio.sleep(_TELLING)
                return True

    async def _check_elsewhere(self) -> bool:
        """Have what is on the disk checked by a process of its own; whether it still is what is asked for."""
        request = self.checker.request
        check = asyncio.create_task(self._cold_check.check(request, self.progress))
        check.add_done_callback(lambda _: self._wake.set())
        try:
            while not check.done() and self.checker.request == request:
                self._wake.clear()
                await self._wake.wait()
        finally:
            check.cancel()
            await asyncio.wait({check})
        if not check.cancelled() and check.exception() is not None:
            _log.error("a first check in a process of its own failed: %r", check.exception())
        return self.checker.request == request

    async def _wait_for_change(self) -> None:
        """Wait for the next change; in a pause, or where much has come together, collect garbage first."""
        collector = self._worker.collector
        if not collector.is_due:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), _PAUSE)
                return
        await self._worker.do(collector.collect)
        await self._wake.wait()

    async def _check(self, generation: int) -> None:
        for hurry in (True, False):
            buffers = self._buffers()
            began, used = time.perf_counter(), time.process_time()
            # What looks at a few files is made to the end, so that somebody who never stops typing hears of something.
            is_wanted = None if hurry else partial(self._is_of_now, generation)
            look = await self._worker.do(
                partial(self.checker.look, buffers, hurry=hurry, progress=self.progress, is_wanted=is_wanted)
            )
            if look is None:
                _log.info("a check of %s was given up after %.1f ms: the text has changed", self.folder, _since(began))
                return
            is_stale = generation != self._generation
            _log.info(
                "checked %s: %d findings in %d files, %.1f ms, %.1f ms of CPU%s%s",
                self.folder,
                len(look.report.findings),
                look.report.checked,
                _since(began),
                (time.process_time() - used) * 1000,
                "" if look.is_settled else ", dependents to come",
                ", thrown away: the text has changed" if is_stale else "",
            )
            if is_stale:
                return
            self.problem = ""
            self._take(SessionAnswer(generation, look))
            if look.is_settled:
                return
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), _QUIET)
            if self._wake.is_set():
                return

    def _is_of_now(self, generation: int) -> bool:
        return generation == self._generation

    def _take(self, answer: SessionAnswer) -> None:
        self.answer = answer
        self._tell(self)
        self._wake_waiters()

    def _fail(self, generation: int, problem: str) -> None:
        _log.warning("%s cannot be checked: %s", self.folder, problem)
        self._failed, self.problem = generation, problem
        self._tell(self)
        self._wake_waiters()

    def _wake_waiters(self) -> None:
        if self.progress is not None:
            self.progress.end()
        self._news.set()
        self._news = asyncio.Event()


def _since(began: float) -> float:
    return (time.perf_counter() - began) * 1000
