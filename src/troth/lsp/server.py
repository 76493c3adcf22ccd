"""Keep what one client has opened and changed, and ask the sessions of its folders for answers."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer

from troth import __version__
from troth.lsp.protocol.client import Client
from troth.lsp.protocol.messages import TrothProtocol
from troth.lsp.protocol.settings import EditorSettings
from troth.lsp.sessions.checker import Look
from troth.lsp.sessions.documents import Documents
from troth.lsp.sessions.places import Places
from troth.lsp.sessions.progress import FirstCheck
from troth.lsp.sessions.publisher import Publisher
from troth.lsp.sessions.session import FolderSession, UnavailableError
from troth.lsp.sessions.workspace import ClientWorkspace

__all__ = ["CONTENT_MODIFIED", "TrothServer"]

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
_log = logging.getLogger("troth.lsp")
CONTENT_MODIFIED = -32801
_OF_DOCUMENTS = (
    types.TEXT_DOCUMENT_DID_OPEN,
    types.TEXT_DOCUMENT_DID_CHANGE,
    types.TEXT_DOCUMENT_DID_CLOSE,
    types.NOTEBOOK_DOCUMENT_DID_OPEN,
    types.NOTEBOOK_DOCUMENT_DID_CHANGE,
    types.NOTEBOOK_DOCUMENT_DID_CLOSE,
)


class TrothServer(LanguageServer):
    """The server of one client. What the client opens and changes is kept here; its sessions answer the rest."""

    def __init__(self) -> None:
        super().__init__(
            "troth",
            __version__,
            text_document_sync_kind=types.TextDocumentSyncKind.Incremental,
            notebook_document_sync=types.NotebookDocumentSyncOptions(
                notebook_selector=[
                    types.NotebookDocumentFilterWithCells(
                        cells=[types.NotebookCellLanguage("python")],
                        notebook=types.NotebookDocumentFilterNotebookType("*"),
                    )
                ],
                save=True,
            ),
            protocol_cls=TrothProtocol,
            max_workers=2,
        )
        self.client = Client()
        self.documents = Documents()
        self.settings = EditorSettings()
        self.workspace_of_folders = ClientWorkspace(self.documents, self._session_changed, self._started)
        self.publisher = Publisher(self)
        self.has_left = False
        self._problems: set[str] = set()
        self._tasks: set[asyncio.Task[Any]] = set()
        # The texts are kept here: those that pygls keeps count form feeds as line ends, and would drift.
        for method in _OF_DOCUMENTS:
            self.protocol.fm.builtin_features.pop(method, None)

    def feature(self, feature_name: str, options: Any | None = None) -> Callable[[F], F]:
        """Let a handler answer a message; how long each request takes is written to the log."""
        register = super().feature(feature_name, options)

        def declare(handler: F) -> F:
            register(_timed(feature_name, handler) if asyncio.iscoroutinefunction(handler) else handler)
            return handler

        return declare

    def later(self, work: Any) -> None:
        """Do something while the server goes on."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Write a failure to the log; a window that pops up at each would be worse than the failure."""
        _log.error("%s: %s", getattr(source, "__name__", source), error)

    def _started(self, session: FolderSession) -> FirstCheck:
        return FirstCheck(self, session.folder)

    def _session_changed(self, session: FolderSession) -> None:
        if session.problem and session.problem not in self._problems:
            self._problems.add(session.problem)
            self.window_show_message(types.ShowMessageParams(types.MessageType.Warning, f"Troth: {session.problem}"))
        self.publisher.take(session)

    # -- what requests have in common ----------------------------------------------------------------------------------

    def place(self, uri: str) -> tuple[FolderSession, Path, int | None] | None:
        """The session, the file and the cell that a URI is about."""
        notebook = self.documents.notebook_of(uri)
        path = self.documents.file_of(uri) if notebook is None else notebook.path
        if path is None or self.documents.is_outdated(uri):
            return None
        session = self.workspace_of_folders.session_of(path)
        cells = notebook.code_cells() if notebook is not None else []
        cell = cells.index(uri) + 1 if uri in cells else None
        return None if session is None else (session, path, cell)

    def places(self, look: Look) -> Places:
        """The places of a look, for this client."""
        return Places(look, self.workspace_of_folders.addresses(), self.documents.encoding)

    async def answer_about(
        self, uri: str, question: Callable[[Places, str, int | None], T], nothing: T, *, settled: bool = False
    ) -> T:
        """The answer to a question about a file, or an error if its text changes meanwhile."""
        place = self.place(uri)
        if place is None:
            return nothing
        session, path, cell = place
        before = self.documents_as_they_are()

        def work(look: Look) -> T:
            name = look.inner(path)
            return nothing if name is None else question(self.places(look), name, cell)

        try:
            answer = await session.ask(work, settled=settled)
        except UnavailableError:
            return nothing
        if self.documents_as_they_are() != before:
            raise JsonRpcException("the text has changed", CONTENT_MODIFIED)
        return answer

    def documents_as_they_are(self) -> dict[str, int]:
        """The versions of all open texts."""
        return {uri: document.version for uri, document in self.documents.texts.items()}

    def version_of(self, uri: str) -> int | None:
        """The version of an open text; None for a file that is not open."""
        document = self.documents.texts.get(uri)
        return None if document is None else document.version

    def refuse_other_version(self, uri: str, version: object) -> None:
        """Refuse to go on with an answer that was about another version of a text."""
        if (self.version_of(uri) or 0) != (version or 0):
            raise JsonRpcException("the text has changed", CONTENT_MODIFIED)


def _timed(name: str, handler: Callable[[Any], Awaitable[T]]) -> Callable[[Any], Awaitable[T]]:
    @wraps(handler)
    async def answer(params: Any) -> T:
        began, outcome = time.perf_counter(), "was answered"
        try:
            return await handler(params)
        except asyncio.CancelledError:
            outcome = "was taken back"
            raise
        except JsonRpcException as refusal:
            outcome = f"was refused ({refusal.message})"
            raise
        except Exception:
            outcome = "failed"
            _log.exception("%s failed; the editor hears of it", name)
            raise
        finally:
            _log.info("%s %s after %.1f ms", name, outcome, (time.perf_counter() - began) * 1000)

    return answer
