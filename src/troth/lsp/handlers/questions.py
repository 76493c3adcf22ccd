"""Answer what the user asks about the text: hover, lenses, inlay hints and the call hierarchy.

The features are imported by the first question, in the thread that answers it: they bring the program with them, which
is not needed to tell what an earlier run found.
"""

from __future__ import annotations

from collections.abc import Mapping

from lsprotocol import types

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

        def ask(places: Places, path: str, cell: int | None) -> types.Hover | None:
            from troth.lsp.features.hover import hover

            return hover(places, path, cell, params.position, markdown=markdown)

        return await server.answer_about(params.text_document.uri, ask, nothing)

    @feature(types.TEXT_DOCUMENT_CODE_LENS)
    async def on_lens(params: types.CodeLensParams) -> list[types.CodeLens]:
        uri = params.text_document.uri
        if not server.settings.lens:
            return []
        version = server.version_of(uri) or 0

        def ask(places: Places, path: str, _cell: int | None) -> list[types.CodeLens]:
            from troth.lsp.features.lens import lenses

            return lenses(places, path, uri, version) if places.has_places(path) else []

        return await server.answer_about(uri, ask, [])

    @feature(types.CODE_LENS_RESOLVE)
    async def on_lens_resolve(lens: types.CodeLens) -> types.CodeLens:
        data = lens.data
        if isinstance(data, Mapping):
            uri, line = data["uri"], data["line"]
            server.refuse_other_version(uri, data["version"])
            nothing: tuple[str, list[types.Location]] = ("", [])

            def ask(places: Places, path: str, _cell: int | None) -> tuple[str, list[types.Location]]:
                from troth.lsp.features.lens import title_of

                return title_of(places, path, line)

            title, calls = await server.answer_about(uri, ask, nothing)
            shows = server.client.shows_references and calls
            arguments = [uri, lens.range.start, calls] if shows else None
            lens.command = types.Command(title, "troth.showReferences" if shows else "", arguments=arguments)
        return lens

    @feature(types.TEXT_DOCUMENT_INLAY_HINT)
    async def on_inlay(params: types.InlayHintParams) -> list[types.InlayHint]:
        if not server.settings.inlay:
            return []

        def ask(places: Places, path: str, _cell: int | None) -> list[types.InlayHint]:
            from troth.lsp.features.inlay import hints

            return hints(places, path, params.range) if places.has_places(path) else []

        return await server.answer_about(params.text_document.uri, ask, [])


def serve_call_hierarchy(server: TrothServer) -> None:
    """Answer who calls a function, and what it calls."""
    feature = server.feature

    @feature(types.TEXT_DOCUMENT_PREPARE_CALL_HIERARCHY)
    async def on_prepare(params: types.CallHierarchyPrepareParams) -> list[types.CallHierarchyItem]:
        def ask(places: Places, path: str, _cell: int | None) -> list[types.CallHierarchyItem]:
            from troth.lsp.features.call_hierarchy import item_at

            return item_at(places, path, params.position) if places.has_places(path) else []

        return await server.answer_about(params.text_document.uri, ask, [])

    @feature(types.CALL_HIERARCHY_INCOMING_CALLS)
    async def on_incoming(params: types.CallHierarchyIncomingCallsParams) -> list[types.CallHierarchyIncomingCall]:
        def find_incoming(places: Places, _path: str, _cell: int | None) -> list[types.CallHierarchyIncomingCall]:
            from troth.lsp.features.call_hierarchy import function_named, incoming

            function = function_named(places, params.item.data or {})
            return [] if function is None else incoming(places, function)

        return await server.answer_about(params.item.uri, find_incoming, [])

    @feature(types.CALL_HIERARCHY_OUTGOING_CALLS)
    async def on_outgoing(params: types.CallHierarchyOutgoingCallsParams) -> list[types.CallHierarchyOutgoingCall]:
        def find_outgoing(places: Places, _path: str, _cell: int | None) -> list[types.CallHierarchyOutgoingCall]:
            from troth.lsp.features.call_hierarchy import function_named, outgoing

            function = function_named(places, params.item.data or {})
            return [] if function is None else outgoing(places, function)

        return await server.answer_about(params.item.uri, find_outgoing, [])
