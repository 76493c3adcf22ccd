"""Find what the client can do, by the capabilities it declared."""

from __future__ import annotations

from typing import Any, NamedTuple

from lsprotocol import types

__all__ = ["Client", "client_of"]


class Client(NamedTuple):
    """What matters of a client's capabilities."""

    pulls: bool = False
    refreshes: bool = False
    has_related: bool = False
    has_links: bool = False
    has_tags: bool = False
    resolves_edits: bool = False
    has_annotations: bool = False
    has_versions: bool = False
    has_literals: bool = False
    has_preferred: bool = False
    configures: bool = False
    registers_settings: bool = False
    watches: bool = False
    shows_progress: bool = False
    applies_edits: bool = False
    refreshes_lens: bool = False
    refreshes_hints: bool = False
    has_markdown: bool = True
    shows_references: bool = False


def client_of(params: types.InitializeParams) -> Client:
    """The client that sent these parameters."""
    capabilities = params.capabilities
    options = params.initialization_options

    def get(path: str) -> Any:
        value: Any = capabilities
        for name in path.split("."):
            value = getattr(value, name, None)
            if value is None:
                return None
        return value

    published, pulled = get("text_document.publish_diagnostics"), get("text_document.diagnostic")
    diagnostics = pulled if pulled is not None and pulled.related_information is not None else published
    resolved = get("text_document.code_action.resolve_support.properties") or ()
    formats = get("text_document.hover.content_format")
    return Client(
        pulls=pulled is not None,
        refreshes=bool(get("workspace.diagnostics.refresh_support")),
        has_related=bool(getattr(diagnostics, "related_information", False)),
        has_links=bool(getattr(diagnostics, "code_description_support", False)),
        has_tags=getattr(diagnostics, "tag_support", None) is not None,
        resolves_edits="edit" in resolved and bool(get("text_document.code_action.data_support")),
        has_annotations=get("workspace.workspace_edit.change_annotation_support") is not None,
        has_versions=bool(get("workspace.workspace_edit.document_changes")),
        has_literals=get("text_document.code_action.code_action_literal_support") is not None,
        has_preferred=bool(get("text_document.code_action.is_preferred_support")),
        configures=bool(get("workspace.configuration")),
        registers_settings=bool(get("workspace.did_change_configuration.dynamic_registration")),
        watches=bool(get("workspace.did_change_watched_files.dynamic_registration")),
        shows_progress=bool(get("window.work_done_progress")),
        applies_edits=bool(get("workspace.apply_edit")),
        refreshes_lens=bool(get("workspace.code_lens.refresh_support")),
        refreshes_hints=bool(get("workspace.inlay_hint.refresh_support")),
        has_markdown=formats is None or types.MarkupKind.Markdown in formats,
        shows_references=isinstance(options, dict) and options.get("showReferences") is True,
    )
