"""Answer a client that asks for diagnostics itself."""

from __future__ import annotations

import contextlib

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from troth.lsp.server import TrothServer
from troth.lsp.sessions.session import UnavailableError

__all__ = ["serve_pulls"]

_SERVER_CANCELLED = -32802


def serve_pulls(server: TrothServer) -> None:
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
