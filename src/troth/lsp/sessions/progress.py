"""Show how far the first check of a folder has come."""

from __future__ import annotations

import asyncio
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from lsprotocol import types

if TYPE_CHECKING:
    from troth.lsp.server import TrothServer

__all__ = ["FirstCheck"]

_STEP = 10  # percent between two reports


class FirstCheck:
    """Called by the worker's thread with how many of how many files are read; told to the client by the loop."""

    def __init__(self, server: TrothServer, folder: Path) -> None:
        self._server = server
        self._folder = folder
        self._token = f"troth-{uuid.uuid4()}"
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_shown = False
        self._is_over = False
        self._shown_percent = 0

    async def begin(self) -> None:
        """The check begins."""
        self._loop = asyncio.get_running_loop()
        if self._server.client.shows_progress and not self._is_over:
            _ = await self._server.work_done_progress.create_async(self._token)
            begin = types.WorkDoneProgressBegin(title="Troth", message=f"reading {self._folder.name}", percentage=0)
            self._server.work_done_progress.begin(self._token, begin)
            self._is_shown = True
            if self._is_over:
                self._finish()

    def __call__(self, count: int, total: int, _name: str = "") -> None:
        """So many of so many files are read."""
        percent = count * 100 // max(total, 1)
        if self._loop is not None and not self._is_over and percent >= self._shown_percent + _STEP:
            self._shown_percent = percent
            self._loop.call_soon_threadsafe(self._report, percent, f"{count} of {total} files")

    def end(self) -> None:
        """The check is over."""
        if not self._is_over:
            self._is_over = True
            if self._is_shown:
                self._finish()

    def _report(self, percent: int, message: str) -> None:
        if self._is_shown and not self._is_over:
            report = types.WorkDoneProgressReport(percentage=percent, message=message)
            self._server.work_done_progress.report(self._token, report)

    def _finish(self) -> None:
        self._server.work_done_progress.end(self._token, types.WorkDoneProgressEnd())
