"""Answer what the user asks about the text: hover, lenses, inlay hints and the call hierarchy."""

from __future__ import annotations

from collections.abc import Mapping

from lsprotocol import types

from troth.lsp.features.call_hierarchy import function_named, incoming, item_at, outgoing
from troth.lsp.features.hover import hover
from troth.lsp.features.inlay import hints
from troth.lsp.features.lens import lenses, title_of
from troth.lsp.server import TrothServer
from troth.lsp.sessions.places import Places

__all__ = ["serve_call_hierarchy", "serve_questions"]


def serve_questions(server: TrothServer) -> None:
    """Answer hover, code lenses and inlay hints."""
    feature = server.feature

    @feature(types.TEXT_DOCUMENT_HOVER)
    async def on_hover(params: types.HoverParams) -> types.Hover | None:
        markdown = server.client.has_markdown
        nothing: types.Hover | None = None
        return await server.answer_about(
            params.text_document.uri,
            lambda places, path, cell: hover(places, path, cell, params.position, markdown=markdown),
            nothing,
        )

    @feature(types.TEXT_DOCUMENT_CODE_LENS)
    async def on_lens(params: types.CodeLensParams) -> list[types.CodeLens]:
        uri = params.text_document.uri
        if not server.settings.lens:
            return []
        version = server.version_of(uri) or 0
        return await server.answer_about(
            uri, lambda places, path, _: lenses(places, path, uri, version) if places.has_places(path) else [], []
        )

    @feature(types.CODE_LENS_RESOLVE)
    async def on_lens_resolve(lens: types.CodeLens) -> types.CodeLens:
        data = lens.data
        if isinstance(data, Mapping):
            uri, line = data["uri"], data["line"]
            server.refuse_other_version(uri, data["version"])
            nothing: tuple[str, list[types.Location]] = ("", [])
            title, calls = await server.answer_about(uri, lambda places, path, _: title_of(places, path, line), nothing)
            shows = server.client.shows_references and calls
            arguments = [uri, lens.range.start, calls] if shows else None
            lens.command = types.Command(title, "troth.showReferences" if shows else "", arguments=arguments)
        return lens

    @feature(types.TEXT_DOCUMENT_INLAY_HINT)
    async def on_inlay(params: types.InlayHintParams) -> list[types.InlayHint]:
        if not server.settings.inlay:
            return []
        return await server.answer_about(
            params.text_document.uri,
            lambda places, path, _: hints(places, path, params.range) if places.has_places(path) else [],
            [],
        )


def serve_call_hierarchy(server: TrothServer) -> None:
    """Answer who calls a function, and what it calls."""
    feature = server.feature

    @feature(types.TEXT_DOCUMENT_PREPARE_CALL_HIERARCHY)
    async def on_prepare(params: types.CallHierarchyPrepareParams) -> list[types.CallHierarchyItem]:
        return await server.answer_about(
            params.text_document.uri,
            lambda places, path, _: item_at(places, path, params.position) if places.has_places(path) else [],
            [],
        )

    @feature(types.CALL_HIERARCHY_INCOMING_CALLS)
    async def on_incoming(params: types.CallHierarchyIncomingCallsParams) -> list[types.CallHierarchyIncomingCall]:
        def find_incoming(places: Places, _path: str, _cell: int | None) -> list[types.CallHierarchyIncomingCall]:
            function = function_named(places, params.item.data or {})
            return [] if function is None else incoming(places, function)

        return await server.answer_about(params.item.uri, find_incoming, [])

    @feature(types.CALL_HIERARCHY_OUTGOING_CALLS)
    async def on_outgoing(params: types.CallHierarchyOutgoingCallsParams) -> list[types.CallHierarchyOutgoingCall]:
        def find_outgoing(places: Places, _path: str, _cell: int | None) -> list[types.CallHierarchyOutgoingCall]:
            function = function_named(places, params.item.data or {})
            return [] if function is None else outgoing(places, function)

        return await server.answer_about(params.item.uri, find_outgoing, [])
