"""A promise: from "promised" to its fate, each delivery with the receiver's own words, replay and acknowledge."""

from shlex import quote

from troth.errors import MisuseError
from troth.runtime.assemble import store_options
from troth.runtime.store.promise_records import DeliveryRecord, DeliveryState, PromiseRecord
from troth.runtime.workflows.render.markup import Html, cut, join, shown_json, tag, text_box
from troth.server.access.owners import acheck_seen
from troth.server.access.scopes import Scope, check_scope
from troth.server.errors import ApiError, not_found
from troth.server.pages.frame.layout import HtmlPage
from troth.server.pages.frame.parts import address, badge, fact, facts, field, heading_of, moment, panel, times
from troth.server.pages.frame.view import View
from troth.server.routes.promises import OWNING

__all__ = ["act", "show"]

_KINDS = {"done": "reports how the work ended", "progress": "reports progress"}
_OUTCOMES = {"delivered": "✓", "acknowledged": "✓", "failed": "✗", "declined": "↩", "lost": "?"}
_OVER = (DeliveryState.DELIVERED, DeliveryState.EXPIRED)
_REPLAYED = (DeliveryState.DEAD, DeliveryState.DELIVERED, DeliveryState.STORED)


async def show(view: View) -> HtmlPage:
    """The page."""
    promise, deliveries = await _find(view)
    fate = _fate(promise, deliveries)
    body = join(
        tag(
            "div",
            tag("h1", cut(heading_of(promise.title), 120)),
            badge(fate),
            tag("code", promise.id, class_="id", data_copy="id"),
            class_="title",
        ),
        tag("p", _story(promise, fate)),
        tag(
            "div",
            panel(
                tag("b", "✗ its work failed"),
                text_box(_error(promise), 2000),
                tag("p", "Why: see the ", _work(view, promise), "."),
                kind="failed",
            ),
            data_copy_error=True,
        )
        if promise.error
        else None,
        [_delivery(view, promise, record) for record in deliveries],
        facts(
            fact("promised", moment(promise.created_at)),
            fact("its work", _ended(promise)),
            fact("kept until", moment(promise.expires_at)) if promise.expires_at else None,
            fact("meant for", promise.channel or "no channel: stored until requested"),
            fact("session", _session(view, promise)),
            fact("work", _work(view, promise)),
        ),
        join(tag("h2", "Result"), tag("pre", shown_json(promise.result, 20_000), class_="value", tabindex="0"))
        if promise.result is not None
        else None,
    )
    return HtmlPage(f"{fate}: {heading_of(promise.title)}", body, "promises", "on=all")


def _fate(promise: PromiseRecord, deliveries: list[DeliveryRecord]) -> str:
    """What became of what was promised: where its end is told, what became of telling it."""
    ends = [record.state for record in deliveries if record.kind == "done"]
    return str(ends[-1] if ends else promise.state)


_STORIES = {
    "due": "Its result is ready to be sent.",
    "leased": "Its result is being sent.",
    "stored": "Its result is stored until it is requested: no channel could push it.",
    "delivered": "Its result was delivered.",
    "expired": "Its result was not requested in time, and has expired.",
    "dead": "Its result was not delivered: every attempt failed. Replay it to try again.",
    "open": "The work is not finished. There is nothing to send yet.",
}


def _story(promise: PromiseRecord, fate: str) -> str:
    """Where it stands, in a sentence."""
    story = _STORIES.get(fate, "")
    return story.replace("Its result", "The report of its failure", 1) if promise.error else story


def _ended(promise: PromiseRecord) -> object:
    return join(badge(promise.state), " ", moment(promise.settled_at)) if promise.settled_at else badge(promise.state)


async def _find(view: View) -> tuple[PromiseRecord, list[DeliveryRecord]]:
    """A promise of whoever looks, with its deliveries."""
    reader = view.context.store.promises
    promise = await view.ask(lambda: reader.find(view.id))
    if promise is None or not await acheck_seen(view.context, view.caller, promise.session, *OWNING):
        raise not_found("promise", view.id)
    return promise, await view.ask(lambda: reader.deliveries_of(view.id))


def _error(promise: PromiseRecord) -> str:
    error = promise.error or {}
    return f"{error.get('type')}: {error.get('message')}"


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
    has_gone = record.attempt > 0 or record.state in _OVER
    is_stored = record.state is DeliveryState.STORED  # where to is what is missing
    buttons = [
        view.button(
            path,
            "Replay",
            scope=Scope.ACT,
            fields={**fields, "do": "replay"},
            inputs=[
                field(
                    "channel",
                    "through another channel",
                    required=is_stored,
                    hint=record.channel or "",
                    key=f"to-{record.id}-",
                )
            ],
        )
        if record.state in _REPLAYED  # what is pending is not sent again
        else None,
        view.button(path, "Acknowledge", scope=Scope.ACT, fields={**fields, "do": "ack"})
        if record.state not in _OVER
        else None,
    ]
    details = facts(
        fact(
            "went to" if has_gone else "goes to",
            record.channel or "not sent yet",
            f", meant for {promise.channel}" if rerouted else None,
        ),
        fact("tried", times(record.attempt)) if record.attempt else None,
        fact("next try", moment(record.due_at)) if record.state is DeliveryState.DUE and record.due_at else None,
        fact("receipt", cut(record.receipt, 500)) if record.receipt else None,
        fact("finished", moment(record.finished_at)) if record.finished_at else None,
        fact(
            "as a command",
            tag("code", f"troth outbox replay {quote(record.id)}{store_options(view.context.store)}", class_="command"),
        )
        if record.state is DeliveryState.DEAD
        else None,
    )
    kind = {"dead": "failed", "delivered": "good"}.get(record.state, "next")
    return panel(
        badge(record.state),
        f" {_KINDS.get(record.kind, record.kind)} ",
        tag("code", record.id, class_="soft"),
        text_box(f"the receiver answered: {record.problem}" if has_gone else record.problem, 2000)
        if record.problem
        else None,
        details,
        _attempts(record),
        tag("pre", cut(record.text, 4000)) if record.text else None,
        tag("div", buttons, class_="buttons") if any(buttons) else None,
        kind=kind,
    )


def _attempts(record: DeliveryRecord) -> Html | None:
    """What the receiver said to each attempt; nothing where there was one alone, of which all is told above."""
    attempts = record.attempts
    if len(attempts) < 2 and (record.problem or record.receipt or not attempts):
        return None
    items = (
        tag(
            "li",
            tag("b", f"{_OUTCOMES.get(attempt.outcome, '')} {attempt.outcome}"),
            f", attempt {attempt.number} through {attempt.channel} "
            if attempt.channel and attempt.outcome != "acknowledged"
            else " ",
            moment(attempt.at),
            text_box(attempt.words, 400) if attempt.words else None,
        )
        for attempt in attempts
    )
    earlier = record.attempt - len(attempts)
    return join(
        tag("p", f"{times(earlier, 'earlier attempt')} {'is' if earlier == 1 else 'are'} not kept", class_="soft")
        if earlier > 0
        else None,
        tag("ul", items, class_="attempts", aria_label="Each attempt"),
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
                raise ApiError(400, "invalid_request", "This button is not supported, so nothing was done.")
    except MisuseError as refused:
        message, _, advice = str(refused).partition("\n")
        raise ApiError(409, "cannot_act", message, advice=advice or None) from refused
    return address("promises", promise.id)
