"""A language server that does nothing but look for a word: what pygls itself costs."""

import re

from lsprotocol import types
from pygls.lsp.server import LanguageServer

server = LanguageServer("floor", "0", text_document_sync_kind=types.TextDocumentSyncKind.Incremental)


@server.feature(types.TEXT_DOCUMENT_DIAGNOSTIC)
def pull(params: types.DocumentDiagnosticParams) -> types.RelatedFullDocumentDiagnosticReport:
    """The lines in which the word stands."""
    text = server.workspace.get_text_document(params.text_document.uri).source
    items = []
    for match in re.finditer(r"planted_\d+", text):
        line = text.count("\n", 0, match.start())
        place = types.Range(types.Position(line, 0), types.Position(line, 1))
        items.append(types.Diagnostic(place, match[0]))
    return types.RelatedFullDocumentDiagnosticReport(items=items)


if __name__ == "__main__":
    server.start_io()
