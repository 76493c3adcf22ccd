"""Offer code actions, and carry out the one that the user picked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from troth.lsp.protocol.action_kinds import KINDS
from troth.lsp.protocol.workspace_edit import GroupedEdit, workspace_edit
from troth.lsp.server import CONTENT_MODIFIED, TrothServer
from troth.lsp.sessions.places import Places

if TYPE_CHECKING:  # late: they bring the program with them, and it is not needed to tell what an earlier run found
    from troth.lsp.features.actions import Offer, Outcome

__all__ = ["serve_code_actions"]

_APPLY = "troth.apply"
_READY = "edits"  # the job of a client that takes commands alone: the edits of the offer itself
_SHOWN = (_READY, "fix all")  # the title says all of it; what changes the color of a function is shown first


def serve_code_actions(server: TrothServer) -> None:
    """Answer which actions there are, what one of them comes to, and the command that applies it."""
    feature = server.feature

    @feature(
        types.TEXT_DOCUMENT_CODE_ACTION, types.CodeActionOptions(code_action_kinds=list(KINDS), resolve_provider=True)
    )
    async def on_code_action(params: types.CodeActionParams) -> list[types.CodeAction | types.Command]:
        uri, only = params.text_document.uri, params.context.only
        kinds = None if only is None else [str(getattr(kind, "value", kind)) for kind in only]

        def find_offers(places: Places, path: str, cell: int | None) -> list[tuple[Offer, list[GroupedEdit]]]:
            from troth.lsp.features.actions import offers

            every = list(offers(places, path, cell, params.range, kinds))
            return [(offer, [GroupedEdit(*edit) for edit in places.edits(list(offer.edits))]) for offer in every]

        none: list[tuple[Offer, list[GroupedEdit]]] = []
        offered = await server.answer_about(uri, find_offers, none)
        shown: dict[tuple[object, int], types.Diagnostic] = {
            (diagnostic.code, diagnostic.range.start.line): diagnostic
            for diagnostic in params.context.diagnostics
            if diagnostic.source == "troth"
        }
        actions = [_action(server, uri, offer, pieces, shown) for offer, pieces in offered]
        return [action for action in actions if action is not None]

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


def _action(
    server: TrothServer,
    uri: str,
    offer: Offer,
    pieces: list[GroupedEdit],
    shown: Mapping[tuple[object, int], types.Diagnostic],
) -> types.CodeAction | types.Command | None:
    """An offer as this client can take it; None where it can neither show nor make the change."""
    client = server.client
    data = {"job": dict(offer.job or {}), "uri": uri, "version": server.version_of(uri), "title": offer.title}
    if not client.has_literals:
        if offer.job is None:
            data["job"] = {"do": _READY, "edits": [[piece.uri, piece.edit] for piece in pieces]}
        return types.Command(offer.label, _APPLY, arguments=[data]) if client.applies_edits else None
    action = types.CodeAction(offer.label, kind=offer.kind)
    if offer.finding is not None and (match := shown.get((offer.finding.code, offer.finding.span.line - 1))):
        action.diagnostics = [match]
    if offer.is_preferred and client.has_preferred:
        action.is_preferred = True
    if offer.job is None:
        action.edit = workspace_edit(pieces, client, server.version_of)
        return action
    # The rest is shown before it is done: by the client, or by a question.
    keeps_colors = offer.job["do"] in _SHOWN
    if client.resolves_edits and (keeps_colors or client.has_annotations):
        action.data = data
    elif client.applies_edits:
        action.command = types.Command(offer.label, _APPLY, arguments=[data])
    else:
        return None
    return action


async def _carried_out(server: TrothServer, data: Mapping[str, Any]) -> Outcome:
    from troth.lsp.features.actions import Outcome

    uri = data["uri"]
    server.refuse_other_version(uri, data["version"])
    place = server.place(uri)
    if place is None:
        return Outcome(problem="The file is not in a folder that is open.")
    session, job = place[0], data["job"]
    if job["do"] == _READY:
        return Outcome(tuple(_ready(job["edits"])))

    def work(places: Places, _path: str, _cell: int | None) -> Outcome:
        from troth.lsp.features.jobs import carry_out  # late: it brings all of recolor with it

        return carry_out(job, session.checker, places)

    return await server.answer_about(uri, work, Outcome(), settled=True)


def _ready(edits: Sequence[tuple[str, Mapping[str, Any]]]) -> Iterator[GroupedEdit]:
    """Edits that were sent to the client with an offer, as it sends them back."""
    for uri, edit in edits:
        place = edit["range"]
        ends = [types.Position(place[end]["line"], place[end]["character"]) for end in ("start", "end")]
        yield GroupedEdit(uri, types.TextEdit(types.Range(*ends), edit["newText"]))


async def _apply(server: TrothServer, data: Mapping[str, Any]) -> None:
    """Carry out a job for a client that cannot show it before: say what it comes to, and ask."""
    outcome = await _carried_out(server, data)
    if outcome.problem:
        server.window_show_message(types.ShowMessageParams(types.MessageType.Warning, outcome.problem))
        return
    before = server.documents_as_they_are()
    if data["job"]["do"] not in _SHOWN:
        question = types.ShowMessageRequestParams(
            types.MessageType.Info,
            f"{data['title']}? {outcome.summary}",
            [types.MessageActionItem("Apply"), types.MessageActionItem("Cancel")],
        )
        answer = await server.window_show_message_request_async(question)
        if answer is None or answer.title != "Apply":
            return
    if server.documents_as_they_are() != before:
        raise JsonRpcException("the text has changed", CONTENT_MODIFIED)
    edit = workspace_edit(outcome.pieces, server.client, server.version_of)
    await server.workspace_apply_edit_async(types.ApplyWorkspaceEditParams(edit, data["title"]))
