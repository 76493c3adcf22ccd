"""Keep the texts and notebooks that the client has open."""

from __future__ import annotations

from lsprotocol import types

from troth.lsp.server import TrothServer
from troth.lsp.sessions.documents import file_of

__all__ = ["serve_notebooks", "serve_texts"]


def serve_texts(server: TrothServer) -> None:
    """Hear of texts that are opened, changed, saved and closed."""
    feature = server.feature

    @feature(types.TEXT_DOCUMENT_DID_OPEN)
    def did_open(params: types.DidOpenTextDocumentParams) -> None:
        server.documents.folder = server.workspace_of_folders.folder
        document = server.documents.open(params.text_document)
        server.workspace_of_folders.opened(document.path)

    @feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def did_change(params: types.DidChangeTextDocumentParams) -> None:
        document = server.documents.change(params.text_document, params.content_changes)
        if document is not None:
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


def serve_notebooks(server: TrothServer) -> None:
    """Hear of notebooks and their cells."""
    feature = server.feature

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
