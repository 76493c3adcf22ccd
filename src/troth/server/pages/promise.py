"""A promise: from "promised" to its fate, each delivery with the receiver's own words, replay and acknowledge."""

from troth.errors import MisuseError
from troth.runtime.store.promise_records import DeliveryRecord, DeliveryState, PromiseRecord
from troth.runtime.workflows.render.markup import Html, cut, join, shown_json, tag
from troth.server.access.owners import acheck_seen
from troth.server.access.scopes import Scope, check_scope
from troth.server.errors import ApiError, not_found
from troth.server.pages.frame.layout import Page
from troth.server.pages.frame.parts import address, badge, fact, facts, field, moment, panel, times
from troth.server.pages.frame.view import View
from troth.server.routes.promises import OWNING

__all__ = ["act", "show"]

_OVER = (DeliveryState.DELIVERED, DeliveryState.EXPIRED)


async def show(view: View) -> Page:
    """The page."""
    promise, deliveries = await _find(view)
    body = join(
        tag(
            "div",
            tag("h1", cut(promise.title, 120)),
            badge(promise.state),
            tag("code", promise.id, class_="id", data_copy="id"),
            class_="title",
        ),
        tag(
            "div",
            panel(tag("b", "✗ its work failed"), tag("pre", _error(promise), class_="message"), kind="failed"),
            data_copy_error=True,
        )
        if promise.error
        else None,
        facts(
            fact("promised", moment(promise.created_at)),
            fact("its work ended", moment(promise.settled_at)) if promise.settled_at else None,
            fact("kept until", moment(promise.expires_at)) if promise.expires_at else None,
            fact("meant for", promise.channel or "whoever asks"),
            fact("of", _session(view, promise)),
            fact("work", _work(view, promise)),
        ),
        tag("h2", "Deliveries"),
        [_delivery(view, promise, record) for record in deliveries]
        or tag("p", "Nothing is to be details yet: its work is under way.", class_="soft"),
        join(tag("h2", "Result"), tag("pre", shown_json(promise.result, 20_000), class_="value", tabindex="0"))
        if promise.result is not None
        else None,
    )
    return Page(f"{promise.state}: {promise.title}", body, "promises", "on=all")


async def _find(view: View) -> tuple[PromiseRecord, list[DeliveryRecord]]:
    """A promise of whoever looks, with its deliveries."""
    reader = view.context.store.promises
    promise = await view.ask(lambda: reader.find(view.id))
    if promise is None or not await acheck_seen(view.context, view.caller, promise.session, *OWNING):
        raise not_found("promise", view.id)
    return promise, await view.ask(lambda: reader.deliveries_of(view.id))


def _error(promise: PromiseRecord) -> str:
    error = promise.error or {}
    return cut(f"{error.get('type')}: {error.get('message')}", 2000)


def _session(view: View, promise: PromiseRecord) -> Html:
    return tag("a", promise.session, href=view.link("search", text=promise.session))


def _work(view: View, promise: PromiseRecord) -> object:
    if promise.work == "run":
        return join("run ", tag("a", promise.subject, href=view.link("runs", promise.subject)))
    if promise.work == "job":
        return join("job ", tag("a", promise.subject, href=view.link("jobs", promise.subject)))
    return f"{promise.work} {promise.subject}"


def _delivery(view: View, promise: PromiseRecord, record: DeliveryRecord) -> Html:
    path = address("promises", promise.id)
    fields = {"delivery": record.id}
    rerouted = record.channel and promise.channel and record.channel != promise.channel
    buttons = [
        view.button(
            path,
            "Send it again",
            scope=Scope.ACT,
            fields={**fields, "do": "replay"},
            inputs=[field("channel", "through another channel", hint=record.channel or "", key=f"to-{record.id}-")],
        )
        if record.state in (DeliveryState.DEAD, DeliveryState.DELIVERED, DeliveryState.STORED)
        else None,
        view.button(path, "It has arrived", scope=Scope.ACT, fields={**fields, "do": "ack"})
        if record.state not in _OVER
        else None,
    ]
    details = facts(
        fact("went to", record.channel or "nobody yet", f", meant for {promise.channel}" if rerouted else None),
        fact("tried", times(record.attempt)) if record.attempt else None,
        fact("next try", moment(record.due_at)) if record.state is DeliveryState.DUE and record.due_at else None,
        fact("receipt", cut(record.receipt, 500)) if record.receipt else None,
        fact("finished", moment(record.finished_at)) if record.finished_at else None,
    )
    kind = {"dead": "failed", "delivered": "good"}.get(record.state, "next")
    return panel(
        badge(record.state),
        f" {record.kind} ",
        tag("code", record.id, class_="soft"),
        tag("pre", f"the receiver said: {cut(record.problem, 2000)}", class_="message") if record.problem else None,
        details,
        tag("pre", cut(record.text, 4000)) if record.text else None,
        tag("div", buttons, class_="buttons") if any(buttons) else None,
        kind=kind,
    )


async def act(view: View, form: dict[str, str]) -> str:
    """Replay or acknowledge."""
    check_scope(view.caller, Scope.ACT)
    promise, deliveries = await _find(view)
    delivery = form.get("delivery", "")
    if delivery not in {record.id for record in deliveries}:
        raise not_found("delivery", delivery)
    outbox = view.context.runtime.outbox
    try:
        match form.get("do"):
            case "replay":
                await outbox.areplay(delivery, channel=form.get("channel", "").strip() or None)
            case "ack":
                await outbox.aack(delivery, by=f"page:{view.caller.owner}")
            case _:
                raise ApiError(400, "invalid_request", "This button is not known here, so nothing was done.")
    except MisuseError as refused:
        message, _, advice = str(refused).partition("\n")
        raise ApiError(409, "cannot_act", message, advice=advice or None) from refused
    return address("promises", promise.id)
