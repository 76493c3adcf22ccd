"""Editors by what they say they can do: the capabilities that pytest-lsp recorded of them, and its client."""

import asyncio
import sys
import warnings

import pytest
from lsprotocol import types
from pytest_lsp import LspSpecificationWarning, client_capabilities, make_test_lsp_client

LOST = "async def f(): ...\n\n\nasync def g():\n    f()\n"
EDITORS = [
    "visual-studio-code@v1.65.2",
    "neovim@v0.6.1",
    "neovim@v0.7.0",
    "neovim@v0.8.0",
    "neovim@v0.9.1",
    "neovim@v0.10.0",
    "neovim@v0.11.0",
    "emacs@v29.1",
]
SECONDS = 150


async def talk(folder, editor):
    """Open, hear of the loss, ask why, repair it, and hear that it is gone; what was said of the file on the way."""
    client = make_test_lsp_client()
    await client.start_io(sys.executable, "-m", "troth", "lsp", cwd=folder)
    file = folder / "app.py"
    uri = file.as_uri()
    capabilities = client_capabilities(editor)
    can_pull = capabilities.text_document.diagnostic is not None
    params = types.InitializeParams(
        capabilities=capabilities,
        root_uri=folder.as_uri(),
        workspace_folders=[types.WorkspaceFolder(folder.as_uri(), folder.name)],
    )

    async def diagnostics(count):
        if can_pull:
            wanted = types.DocumentDiagnosticParams(types.TextDocumentIdentifier(uri))
            items = (await client.text_document_diagnostic_async(wanted)).items
            assert uri not in client.diagnostics  # never both ways
            return items
        while len(client.diagnostics.get(uri, [None, None])) != count:
            await client.wait_for_notification(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        return client.diagnostics[uri]

    try:
        answer = await client.initialize_session(params)
        assert (answer.capabilities.diagnostic_provider is not None) is can_pull
        client.text_document_did_open(
            types.DidOpenTextDocumentParams(types.TextDocumentItem(uri, "python", 1, file.read_text()))
        )
        (item,) = await diagnostics(1)
        assert (item.code, item.range.start) == ("TR101", types.Position(4, 4))
        if item.related_information is not None:
            assert capabilities.text_document.publish_diagnostics.related_information
        place = types.HoverParams(types.TextDocumentIdentifier(uri), types.Position(4, 4))
        assert "`f` is `async def`" in (await client.text_document_hover_async(place)).contents.value
        wanted = types.CodeActionParams(
            types.TextDocumentIdentifier(uri), item.range, types.CodeActionContext(diagnostics=[item])
        )
        actions = await client.text_document_code_action_async(wanted)
        (fix,) = [action for action in actions if action.title == "Await the call (TR101)"]
        if fix.edit is None:
            fix = await client.code_action_resolve_async(fix)
        edits = fix.edit.document_changes[0].edits if fix.edit.document_changes else fix.edit.changes[uri]
        assert [(edit.range.start, edit.new_text) for edit in edits] == [(types.Position(4, 4), "await ")]
        change = types.TextDocumentContentChangePartial(range=edits[0].range, text=edits[0].new_text)
        client.text_document_did_change(
            types.DidChangeTextDocumentParams(types.VersionedTextDocumentIdentifier(2, uri), [change])
        )
        assert list(await diagnostics(0)) == []
    finally:
        await client.shutdown_session()
        await client.stop()


@pytest.mark.parametrize("editor", EDITORS)
def test_as_that_editor(tmp_path, editor):
    """The loss is told in the way that the editor understands, once, and nothing is sent that it cannot read."""
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'shop'\n")
    (tmp_path / "app.py").write_text(LOST)
    with warnings.catch_warnings():
        warnings.simplefilter("error", LspSpecificationWarning)
        asyncio.run(asyncio.wait_for(talk(tmp_path, editor), SECONDS))
