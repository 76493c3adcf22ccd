"""Serve the language server protocol: hear what the client does, and answer from the sessions of its folders."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer

from troth import __version__
from troth.lsp.features.actions import KINDS, Offer, offers
from troth.lsp.features.call_hierarchy import function_named, incoming, item_at, outgoing
from troth.lsp.features.hover import hover
from troth.lsp.features.inlay import hints
from troth.lsp.features.jobs import Outcome, carry_out
from troth.lsp.features.lens import lenses, title_of
from troth.lsp.protocol.client import Client, client_of
from troth.lsp.protocol.settings import EditorSettings, parse
from troth.lsp.protocol.workspace_edit import Piece, workspace_edit
from troth.lsp.sessions.checker import Look
from troth.lsp.sessions.documents import Documents, file_of
from troth.lsp.sessions.places import Places
from troth.lsp.sessions.progress import FirstCheck
from troth.lsp.sessions.publisher import Publisher
from troth.lsp.sessions.session import Session, UnavailableError
from troth.lsp.sessions.workspace import Workspace

__all__ = ["TrothServer", "serve"]

T = TypeVar("T")
_log = logging.getLogger("troth.lsp")
_SERVER_CANCELLED = -32802
_CONTENT_MODIFIED = -32801
_WATCHED = ("**/*.py", "**/*.pyi", "**/*.ipynb", "**/pyproject.toml", "**/troth.toml", "**/.gitignore")
_APPLY = "troth.apply"
_PARENT_EVERY = 5.0  # seconds between two looks whether the editor is still there


class TrothServer(LanguageServer):
    """The server of one client. What the client opens and changes is kept here; the rest is asked of its sessions."""

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
            max_workers=2,
        )
        self.client = Client()
        self.documents = Documents()
        self.settings = EditorSettings()
        self.workspace_of_folders = Workspace(self.documents, self._told, self._started)
        self.publisher = Publisher(self)
        self.has_left = False
        self._problems: set[str] = set()
        self._tasks: set[asyncio.Task[Any]] = set()
        # The texts are kept here: those that pygls keeps count form feeds as line ends, and would drift.
        for method in _OF_DOCUMENTS:
            self.protocol.fm.builtin_features.pop(method, None)

    def later(self, work: Any) -> None:
        """Do something while the server goes on."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Write a failure to the log; a window that pops up at each would be worse than the failure."""
        _log.error("%s: %s", getattr(source, "__name__", source), error)

    def _started(self, session: Session) -> FirstCheck:
        return FirstCheck(self, session.folder)

    def _told(self, session: Session) -> None:
        if session.problem and session.problem not in self._problems:
            self._problems.add(session.problem)
            self.window_show_message(types.ShowMessageParams(types.MessageType.Warning, f"Troth: {session.problem}"))
        self.publisher.take(session)

    # -- what requests have in common ----------------------------------------------------------------------------------

    def place(self, uri: str) -> tuple[Session, Path, int | None] | None:
        """The session, the file and the cell that a URI is about."""
        notebook = self.documents.notebook_of(uri)
        path = file_of(uri) if notebook is None else notebook.path
        if path is None:
            return None
        session = self.workspace_of_folders.session_of(path)
        cells = notebook.code_cells() if notebook is not None else []
        cell = cells.index(uri) + 1 if uri in cells else None
        return None if session is None else (session, path, cell)

    def places(self, look: Look) -> Places:
        """The places of a look, for this client."""
        return Places(look, self.workspace_of_folders.addresses(), self.documents.encoding)

    async def asked(
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
            raise JsonRpcException("the text has changed", _CONTENT_MODIFIED)
        return answer

    def documents_as_they_are(self) -> dict[str, int]:
        """The versions of all open texts."""
        return {uri: document.version for uri, document in self.documents.texts.items()}

    def version_of(self, uri: str) -> int | None:
        """The version of an open text; None for a file that is not open."""
        document = self.documents.texts.get(uri)
        return None if document is None else document.version


def _server() -> TrothServer:
    server = TrothServer()
    feature = server.feature

    # -- beginning and end ---------------------------------------------------------------------------------------------

    @feature(types.INITIALIZE)
    def initialize(params: types.InitializeParams) -> None:
        server.client = client_of(params)
        encoding = server.protocol.workspace.position_encoding
        server.documents.encoding = str(getattr(encoding, "value", encoding))
        server.settings, problems = parse(_section(params.initialization_options))
        folders = [folder.uri for folder in params.workspace_folders or ()]
        if not folders and params.root_uri:
            folders = [params.root_uri]
        name = params.client_info.name if params.client_info else "a client without a name"
        _log.info("troth %s for %s; folders: %s; %s", __version__, name, folders, server.client)
        for problem in problems:
            _log.warning("%s", problem)
        server.workspace_of_folders.settings = server.settings
        for uri in folders:
            server.workspace_of_folders.add(uri)
        if server.client.pulls:
            _serve_pulls(server)

    @feature(types.INITIALIZED)
    async def initialized(_params: types.InitializedParams) -> None:
        if server.process_id:
            server.later(_leave_with(server.process_id))
        if server.client.configures:
            await _configure(server)
        server.workspace_of_folders.start()
        await _register(server)

    @feature(types.SHUTDOWN)
    def shutdown(_params: None) -> None:
        server.has_left = True
        server.workspace_of_folders.stop()

    # -- texts ---------------------------------------------------------------------------------------------------------

    @feature(types.TEXT_DOCUMENT_DID_OPEN)
    def did_open(params: types.DidOpenTextDocumentParams) -> None:
        document = server.documents.open(params.text_document)
        server.workspace_of_folders.opened(document.path)

    @feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def did_change(params: types.DidChangeTextDocumentParams) -> None:
        document = server.documents.texts.get(params.text_document.uri)
        if document is not None:
            document.change(params.content_changes, params.text_document.version)
            server.workspace_of_folders.changed(document.path)

    @feature(types.TEXT_DOCUMENT_DID_SAVE)
    def did_save(params: types.DidSaveTextDocumentParams) -> None:
        if not server.client.watches:  # then nobody tells of files that come and go, or of settings
            server.workspace_of_folders.listed_anew(file_of(params.text_document.uri))

    @feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def did_close(params: types.DidCloseTextDocumentParams) -> None:
        document = server.documents.texts.pop(params.text_document.uri, None)
        if document is not None:
            server.publisher.forget(document.uri)
            server.workspace_of_folders.closed(document.path)

    @feature(types.NOTEBOOK_DOCUMENT_DID_OPEN)
    def notebook_did_open(params: types.DidOpenNotebookDocumentParams) -> None:
        server.documents.open_notebook(params.notebook_document, params.cell_text_documents)
        server.workspace_of_folders.opened(file_of(params.notebook_document.uri))

    @feature(types.NOTEBOOK_DOCUMENT_DID_CHANGE)
    def notebook_did_change(params: types.DidChangeNotebookDocumentParams) -> None:
        notebook = params.notebook_document
        if notebook.uri in server.documents.notebooks:
            server.documents.change_notebook(notebook.uri, notebook.version, params.change.cells)
            server.workspace_of_folders.changed(file_of(notebook.uri))

    @feature(types.NOTEBOOK_DOCUMENT_DID_SAVE)
    def notebook_did_save(_params: types.DidSaveNotebookDocumentParams) -> None:
        return

    @feature(types.NOTEBOOK_DOCUMENT_DID_CLOSE)
    def notebook_did_close(params: types.DidCloseNotebookDocumentParams) -> None:
        server.documents.close_notebook(params.notebook_document.uri, [cell.uri for cell in params.cell_text_documents])
        for cell in params.cell_text_documents:
            server.publisher.forget(cell.uri)
        server.workspace_of_folders.closed(file_of(params.notebook_document.uri))

    # -- what changes around the texts ---------------------------------------------------------------------------------

    @feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def watched(params: types.DidChangeWatchedFilesParams) -> None:
        for change in params.changes:
            path = file_of(change.uri)
            is_listed = change.type != types.FileChangeType.Changed or not change.uri.endswith(
                (".py", ".pyi", ".ipynb")
            )
            if is_listed:
                server.workspace_of_folders.listed_anew(path)
            else:
                server.workspace_of_folders.changed(path)

    @feature(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
    def folders_changed(params: types.DidChangeWorkspaceFoldersParams) -> None:
        for folder in params.event.removed:
            server.publisher.remove(server.workspace_of_folders.remove(folder.uri))
        for folder in params.event.added:
            server.workspace_of_folders.add(folder.uri)
        server.workspace_of_folders.start()

    @feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)
    async def configured(params: types.DidChangeConfigurationParams) -> None:
        if server.client.configures:
            await _configure(server)
        else:
            _take_settings(server, _section(params.settings))

    # -- questions -----------------------------------------------------------------------------------------------------

    @feature(types.TEXT_DOCUMENT_HOVER)
    async def on_hover(params: types.HoverParams) -> types.Hover | None:
        markdown = server.client.has_markdown
        nothing: types.Hover | None = None
        return await server.asked(
            params.text_document.uri,
            lambda places, path, cell: hover(places, path, cell, params.position, markdown=markdown),
            nothing,
        )

    @feature(
        types.TEXT_DOCUMENT_CODE_ACTION, types.CodeActionOptions(code_action_kinds=list(KINDS), resolve_provider=True)
    )
    async def on_code_action(params: types.CodeActionParams) -> list[types.CodeAction | types.Command]:
        uri, only = params.text_document.uri, params.context.only
        kinds = None if only is None else [str(getattr(kind, "value", kind)) for kind in only]

        def find_offers(places: Places, path: str, cell: int | None) -> list[tuple[Offer, list[Piece]]]:
            every = list(offers(places, path, cell, params.range, kinds))
            return [(offer, [Piece(*edit) for edit in places.edits(list(offer.edits))]) for offer in every]

        none: list[tuple[Offer, list[Piece]]] = []
        offered = await server.asked(uri, find_offers, none)
        shown: dict[tuple[object, int], types.Diagnostic] = {
            (diagnostic.code, diagnostic.range.start.line): diagnostic
            for diagnostic in params.context.diagnostics
            if diagnostic.source == "troth"
        }
        return [_action(server, uri, offer, pieces, shown) for offer, pieces in offered]

    @feature(types.CODE_ACTION_RESOLVE)
    async def on_resolve(action: types.CodeAction) -> types.CodeAction:
        if isinstance(action.data, dict) and "job" in action.data:
            outcome = await _carried_out(server, action.data)
            if outcome.problem:
                server.window_show_message(types.ShowMessageParams(types.MessageType.Warning, outcome.problem))
            else:
                action.edit = workspace_edit(outcome.pieces, server.client, server.version_of)
        return action

    @server.command(_APPLY)
    async def apply(*arguments: Any) -> None:
        if arguments and isinstance(arguments[0], dict):
            await _apply(server, arguments[0])

    @feature(types.TEXT_DOCUMENT_CODE_LENS)
    async def on_lens(params: types.CodeLensParams) -> list[types.CodeLens]:
        uri = params.text_document.uri
        if not server.settings.lens:
            return []
        version = server.version_of(uri) or 0
        return await server.asked(
            uri, lambda places, path, _: lenses(places, path, uri, version) if places.has_places(path) else [], []
        )

    @feature(types.CODE_LENS_RESOLVE)
    async def on_lens_resolve(lens: types.CodeLens) -> types.CodeLens:
        data = lens.data
        if isinstance(data, Mapping):
            uri, line = data["uri"], data["line"]
            _refuse_other(server, uri, data["version"])
            nothing: tuple[str, list[types.Location]] = ("", [])
            title, calls = await server.asked(uri, lambda places, path, _: title_of(places, path, line), nothing)
            shows = server.client.shows_references and calls
            arguments = [uri, lens.range.start, calls] if shows else None
            lens.command = types.Command(title, "troth.showReferences" if shows else "", arguments=arguments)
        return lens

    @feature(types.TEXT_DOCUMENT_PREPARE_CALL_HIERARCHY)
    async def on_prepare(params: types.CallHierarchyPrepareParams) -> list[types.CallHierarchyItem]:
        return await server.asked(
            params.text_document.uri,
            lambda places, path, _: item_at(places, path, params.position) if places.has_places(path) else [],
            [],
        )

    @feature(types.CALL_HIERARCHY_INCOMING_CALLS)
    async def on_incoming(params: types.CallHierarchyIncomingCallsParams) -> list[types.CallHierarchyIncomingCall]:
        def find_incoming(places: Places, _path: str, _cell: int | None) -> list[types.CallHierarchyIncomingCall]:
            function = function_named(places, params.item.data or {})
            return [] if function is None else incoming(places, function)

        return await server.asked(params.item.uri, find_incoming, [])

    @feature(types.CALL_HIERARCHY_OUTGOING_CALLS)
    async def on_outgoing(params: types.CallHierarchyOutgoingCallsParams) -> list[types.CallHierarchyOutgoingCall]:
        def find_outgoing(places: Places, _path: str, _cell: int | None) -> list[types.CallHierarchyOutgoingCall]:
            function = function_named(places, params.item.data or {})
            return [] if function is None else outgoing(places, function)

        return await server.asked(params.item.uri, find_outgoing, [])

    @feature(types.TEXT_DOCUMENT_INLAY_HINT)
    async def on_inlay(params: types.InlayHintParams) -> list[types.InlayHint]:
        if not server.settings.inlay:
            return []
        return await server.asked(
            params.text_document.uri,
            lambda places, path, _: hints(places, path, params.range) if places.has_places(path) else [],
            [],
        )

    return server


def _serve_pulls(server: TrothServer) -> None:
    """Answer pulled diagnostics; a client that cannot pull gets them pushed, and no client both ways."""

    @server.feature(
        types.TEXT_DOCUMENT_DIAGNOSTIC,
        types.DiagnosticOptions(inter_file_dependencies=True, workspace_diagnostics=True, identifier="troth"),
    )
    async def on_pull(params: types.DocumentDiagnosticParams) -> types.DocumentDiagnosticReport:
        uri = params.text_document.uri
        place = server.place(uri)
        before = server.version_of(uri)
        if place is not None:
            with contextlib.suppress(UnavailableError):
                await server.publisher.current(place[0], uri)
        if server.version_of(uri) != before:
            data = types.DiagnosticServerCancellationData(retrigger_request=True)
            raise JsonRpcException(
                "the text has changed", _SERVER_CANCELLED, {"retriggerRequest": data.retrigger_request}
            )
        return server.publisher.report(uri, params.previous_result_id)

    @server.feature(types.WORKSPACE_DIAGNOSTIC)
    async def on_workspace_pull(params: types.WorkspaceDiagnosticParams) -> types.WorkspaceDiagnosticReport:
        before = {previous.uri: previous.value for previous in params.previous_result_ids}
        return types.WorkspaceDiagnosticReport(await server.publisher.workspace_report(before))


_OF_DOCUMENTS = (
    types.TEXT_DOCUMENT_DID_OPEN,
    types.TEXT_DOCUMENT_DID_CHANGE,
    types.TEXT_DOCUMENT_DID_CLOSE,
    types.NOTEBOOK_DOCUMENT_DID_OPEN,
    types.NOTEBOOK_DOCUMENT_DID_CHANGE,
    types.NOTEBOOK_DOCUMENT_DID_CLOSE,
)


def _section(options: object) -> object:
    """Our section of what a client sends: some send it alone, others inside all their settings."""
    if isinstance(options, Mapping) and "troth" in options:
        return options["troth"]
    return options if isinstance(options, Mapping) else None


async def _configure(server: TrothServer) -> None:
    params = types.ConfigurationParams([types.ConfigurationItem(section="troth")])
    try:
        answer = await server.workspace_configuration_async(params)
    except JsonRpcException as problem:
        _log.warning("the client did not tell its settings: %s", problem)
        return
    if answer and answer[0] is not None:
        _take_settings(server, answer[0])


def _take_settings(server: TrothServer, section: object) -> None:
    settings, problems = parse(section)
    for problem in problems:
        _log.warning("%s", problem)
        server.window_log_message(types.LogMessageParams(types.MessageType.Warning, problem))
    if settings == server.settings:
        return
    before, server.settings = server.settings, settings
    server.workspace_of_folders.set_up(settings)
    server.publisher.again()
    if settings.lens != before.lens and server.client.refreshes_lens:
        server.later(server.workspace_code_lens_refresh_async(None))
    if settings.inlay != before.inlay and server.client.refreshes_hints:
        server.later(server.workspace_inlay_hint_refresh_async(None))


async def _register(server: TrothServer) -> None:
    """Ask to be told of files that change on disk, and of settings."""
    watchers: list[types.FileSystemWatcher] = [types.FileSystemWatcher(pattern) for pattern in _WATCHED]
    registrations = []
    if server.client.watches:
        options = types.DidChangeWatchedFilesRegistrationOptions(watchers)
        registrations.append(types.Registration("troth.watched", types.WORKSPACE_DID_CHANGE_WATCHED_FILES, options))
    if server.client.configures:
        registrations.append(
            types.Registration("troth.settings", types.WORKSPACE_DID_CHANGE_CONFIGURATION, {"section": "troth"})
        )
    if registrations:
        with contextlib.suppress(JsonRpcException):
            await server.client_register_capability_async(types.RegistrationParams(registrations))


async def _leave_with(process: int) -> None:
    """End when the editor has ended without a word; its pipe may be held open by somebody else."""
    while True:
        await asyncio.sleep(_PARENT_EVERY)
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            _log.warning("the editor (process %d) is gone", process)
            os._exit(1)
        except OSError:
            return


def _action(
    server: TrothServer,
    uri: str,
    offer: Offer,
    pieces: list[Piece],
    shown: Mapping[tuple[object, int], types.Diagnostic],
) -> types.CodeAction:
    client = server.client
    action = types.CodeAction(offer.title, kind=offer.kind)
    if offer.finding is not None and (match := shown.get((offer.finding.code, offer.finding.span.line - 1))):
        action.diagnostics = [match]
    if offer.is_preferred and client.has_preferred:
        action.is_preferred = True
    if offer.job is None:
        action.edit = workspace_edit(pieces, client, server.version_of)
        return action
    data = {"job": dict(offer.job), "uri": uri, "version": server.version_of(uri), "title": offer.title}
    # What changes the color of a function is shown before it is done: by the client, or by a question.
    is_plain = offer.job["do"] == "fix all"
    if client.resolves_edits and (is_plain or client.has_annotations):
        action.data = data
    else:
        action.command = types.Command(offer.title, _APPLY, arguments=[data])
    return action


async def _carried_out(server: TrothServer, data: Mapping[str, Any]) -> Outcome:
    uri = data["uri"]
    _refuse_other(server, uri, data["version"])
    place = server.place(uri)
    if place is None:
        return Outcome(problem="The file is not in a folder that is open.")
    session, job = place[0], data["job"]
    return await server.asked(
        uri, lambda places, _path, _cell: carry_out(job, session.checker, places), Outcome(), settled=True
    )


async def _apply(server: TrothServer, data: Mapping[str, Any]) -> None:
    """Carry out a job for a client that cannot show it before: say what it comes to, and ask."""
    outcome = await _carried_out(server, data)
    if outcome.problem:
        server.window_show_message(types.ShowMessageParams(types.MessageType.Warning, outcome.problem))
        return
    before = server.documents_as_they_are()
    if data["job"]["do"] != "fix all":
        question = types.ShowMessageRequestParams(
            types.MessageType.Info,
            f"{data['title'].removesuffix(' …')}? {outcome.summary}",
            [types.MessageActionItem("Apply"), types.MessageActionItem("Cancel")],
        )
        answer = await server.window_show_message_request_async(question)
        if answer is None or answer.title != "Apply":
            return
    if server.documents_as_they_are() != before:
        raise JsonRpcException("the text has changed", _CONTENT_MODIFIED)
    edit = workspace_edit(outcome.pieces, server.client, server.version_of)
    await server.workspace_apply_edit_async(types.ApplyWorkspaceEditParams(edit, data["title"]))


def _refuse_other(server: TrothServer, uri: str, version: object) -> None:
    if (server.version_of(uri) or 0) != (version or 0):
        raise JsonRpcException("the text has changed", _CONTENT_MODIFIED)


def serve(*, port: int | None = None) -> bool:
    """Serve one client, over stdin and stdout or over a port of this machine, until it leaves; whether it said so."""
    server = _server()
    if port is None:
        # Nobody else may write to the client: what is printed by accident goes to stderr, which editors show as a log.
        with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as stdout:
            os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
            with contextlib.suppress(BrokenPipeError):
                server.start_io(sys.stdin.buffer, stdout)
    else:
        server.start_tcp("127.0.0.1", port)
    return server.has_left
