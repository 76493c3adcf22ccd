"""Tell diagnostics: on request to a client that pulls them, without being asked to any other."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

from lsprotocol import types

from troth.lsp.sessions.board import Board, DiagnosticsNotice
from troth.lsp.sessions.checker import Look
from troth.lsp.sessions.session import FolderSession, UnavailableError

if TYPE_CHECKING:
    from troth.lsp.server import TrothServer

__all__ = ["Publisher"]

_NOTHING = DiagnosticsNotice("0", ())
_LOST = ("TR1", "TR2")


class Publisher:
    """The boards of all sessions, and what the client has of them."""

    def __init__(self, server: TrothServer) -> None:
        self._server = server
        self._boards: dict[FolderSession, Board] = {}
        self._pushed: dict[str, int | None] = {}  # the versions that the client has diagnostics of
        self._pulled: dict[str, str] = {}  # the names of the notices that it was given
        self._lost: dict[FolderSession, Counter[tuple[str, str]]] = {}  # how many calls each function loses
        self._news = asyncio.Event()

    # -- what sessions found -------------------------------------------------------------------------------------------

    def take(self, session: FolderSession) -> None:
        """A session has an answer, or cannot have one."""
        answer = session.answer
        if answer is None or session not in self._server.workspace_of_folders.sessions():
            if session not in self._server.workspace_of_folders.sessions():
                self.remove(session)
            return
        board = self._boards.setdefault(session, Board(self._server.client))
        if session.problem:  # what was found before would be told of texts that are no longer there
            self._tell(board.clear(), is_settled=True)
            return
        changed = board.take(answer.look, self._server.places(answer.look))
        self._tell(changed, is_settled=answer.look.is_settled)
        if answer.look.is_settled:
            self._refresh_lenses(session, answer.look)

    def remove(self, session: FolderSession | None) -> None:
        """A session has ended: what it told is taken back."""
        board = self._boards.pop(session, None) if session is not None else None
        self._lost = {known: lost for known, lost in self._lost.items() if known is not session}
        if board is not None:
            self._tell(board.clear(), is_settled=True)

    def again(self) -> None:
        """The settings say otherwise what is told: all that was told is looked at again."""
        self._tell({uri for board in self._boards.values() for uri in board.notices}, is_settled=True)

    def forget(self, uri: str) -> None:
        """A text is closed."""
        self._pushed.pop(uri, None)
        self._pulled.pop(uri, None)

    def _refresh_lenses(self, session: FolderSession, look: Look) -> None:
        """Let the client ask for its lenses again where more or fewer calls are lost.

        By itself it asks only for texts that were edited, and a lens counts the calls elsewhere.
        """
        lost = Counter(
            (finding.span.path, finding.symbol) for finding in look.report.findings if finding.code.startswith(_LOST)
        )
        before, self._lost[session] = self._lost.get(session, lost), lost
        if before != lost and self._server.settings.lens and self._server.client.refreshes_lens:
            self._server.later(self._server.workspace_code_lens_refresh_async(None))

    def _tell(self, changed: set[str], *, is_settled: bool) -> None:
        if self._server.client.pulls:
            self._offer(is_settled=is_settled)
        else:
            self._push(changed)

    # -- pushed --------------------------------------------------------------------------------------------------------

    def _push(self, changed: set[str]) -> None:
        opened = self._server.documents.texts
        edited = {uri for uri, document in opened.items() if self._pushed.get(uri, -1) != document.version}
        for uri in sorted(changed | edited):
            version = self._server.version_of(uri)
            if uri in opened:
                self._pushed[uri] = version
            items = list(self._notice(uri).items)
            self._server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, items, version))

    # -- pulled --------------------------------------------------------------------------------------------------------

    def _offer(self, *, is_settled: bool) -> None:
        """Wake whoever waits for news; and let the client ask again for texts whose notice is another one by now."""
        self._news.set()
        self._news = asyncio.Event()
        stale = [uri for uri, name in self._pulled.items() if self._notice(uri).name != name]
        if is_settled and stale and self._server.client.refreshes:
            for uri in stale:
                del self._pulled[uri]
            self._server.later(self._refresh())

    async def _refresh(self) -> None:
        await self._server.workspace_diagnostic_refresh_async(None)

    async def current(self, session: FolderSession, uri: str) -> None:
        """Wait until the notice of a text is about the text as it is now.

        For a text that was edited the first answer does; for another one, what the edits mean for it is waited for.
        """
        answer = await session.current()
        path = self._server.documents.file_of(uri)
        name = answer.look.inner(path) if path is not None else None
        if not answer.look.is_settled and (name is None or name not in session.owed):
            await session.current(settled=True)

    def report(self, uri: str, previous: str | None) -> types.DocumentDiagnosticReport:
        """The notice of a text; that it is unchanged, if the client has it."""
        notice = self._notice(uri)
        self._pulled[uri] = notice.name
        if previous is not None and previous == notice.name:
            return types.RelatedUnchangedDocumentDiagnosticReport(result_id=notice.name)
        return types.RelatedFullDocumentDiagnosticReport(items=list(notice.items), result_id=notice.name)

    async def workspace_report(self, before: Mapping[str, str]) -> list[types.WorkspaceDocumentDiagnosticReport]:
        """The notices that the client does not have; if it has all, the answer waits for the next one."""
        while True:
            for session in self._server.workspace_of_folders.sessions():
                try:
                    await session.current(settled=True)
                except UnavailableError:
                    continue
            now = {uri: self._notice(uri) for board in self._boards.values() for uri in board.notices}
            gone = {uri: _NOTHING for uri in before if uri not in now}
            items: list[types.WorkspaceDocumentDiagnosticReport] = [
                types.WorkspaceFullDocumentDiagnosticReport(
                    uri=uri,
                    version=self._server.version_of(uri),
                    items=list(notice.items),
                    result_id=notice.name,
                )
                for uri, notice in sorted({**gone, **now}.items())
                if before.get(uri) != notice.name
            ]
            if items or not before:
                return items
            await self._news.wait()

    def _notice(self, uri: str) -> DiagnosticsNotice:
        server = self._server
        is_open = uri in server.documents.texts or uri in server.documents.notebooks
        if server.settings.diagnostics == "open" and not is_open:
            return _NOTHING
        place = server.place(uri)
        board = self._boards.get(place[0]) if place is not None else None
        return board.notices.get(uri, _NOTHING) if board is not None else _NOTHING
