"""Put edits into the shape that the client can take: with versions, and with what has to be confirmed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from lsprotocol import types

from troth.lsp.protocol.client import Client

__all__ = ["Group", "GroupedEdit", "workspace_edit"]


class Group(NamedTuple):
    """Edits of one kind, which the client shows under one name; unticked where they are to be confirmed."""

    label: str
    description: str = ""
    is_to_confirm: bool = False


class GroupedEdit(NamedTuple):
    """One edit, and the group it belongs to."""

    uri: str
    edit: types.TextEdit
    group: Group | None = None


def workspace_edit(
    pieces: Sequence[GroupedEdit], client: Client, version_of: Callable[[str], int | None]
) -> types.WorkspaceEdit:
    """The edit of all pieces; a client without versions gets them by file, and without groups."""
    by_uri: dict[str, list[GroupedEdit]] = {}
    for piece in pieces:
        by_uri.setdefault(piece.uri, []).append(piece)
    if not client.has_versions:
        return types.WorkspaceEdit(
            changes={uri: [piece.edit for piece in file_pieces] for uri, file_pieces in by_uri.items()}
        )
    groups = {piece.group: f"troth.{number}" for number, piece in enumerate(pieces) if piece.group is not None}

    def edit(piece: GroupedEdit) -> types.TextEdit | types.AnnotatedTextEdit | types.SnippetTextEdit:
        if piece.group is None or not client.has_annotations:
            return piece.edit
        return types.AnnotatedTextEdit(groups[piece.group], piece.edit.range, piece.edit.new_text)

    documents: list[types.TextDocumentEdit | types.CreateFile | types.RenameFile | types.DeleteFile] = [
        types.TextDocumentEdit(
            types.OptionalVersionedTextDocumentIdentifier(uri, version_of(uri)), [edit(piece) for piece in file_pieces]
        )
        for uri, file_pieces in by_uri.items()
    ]
    annotations = {
        name: types.ChangeAnnotation(group.label, group.is_to_confirm, group.description or None)
        for group, name in groups.items()
    }
    return types.WorkspaceEdit(
        document_changes=documents,
        change_annotations=annotations if annotations and client.has_annotations else None,
    )
