"""Show a delivery that is still owed, or was given up, as one row of a list."""

import time

from troth.runtime.store.list_records import DeliveryItem
from troth.runtime.workflows.render.markup import Html, cut
from troth.runtime.workflows.render.words import span
from troth.server.pages.frame.parts import badge, heading_of, moment, row, times
from troth.server.pages.frame.view import View

__all__ = ["delivery_row"]


def delivery_row(view: View, delivery: DeliveryItem) -> Html:
    """The row: where it goes, what the receiver said last, and when it is tried again."""
    parts = [f"to {delivery.channel}" if delivery.channel else "stored until requested"]
    if delivery.channel and delivery.meant_for and delivery.channel != delivery.meant_for:
        parts.append(f"meant for {delivery.meant_for}")
    if delivery.problem:
        parts.append(f"tried {times(delivery.attempt)}: {cut(delivery.problem, 160)}")
    if delivery.state == "due" and delivery.due_at is not None and delivery.due_at > time.time():
        parts.append(f"next attempt in {span(delivery.due_at - time.time())}")
    href = view.link("promises", delivery.promise)
    note = ", ".join(parts)
    key, state, at = f"owed-{delivery.id}", badge(delivery.state), moment(delivery.created_at)
    return row(key, href, state, heading_of(delivery.title) or delivery.promise, delivery.promise, note, at)
