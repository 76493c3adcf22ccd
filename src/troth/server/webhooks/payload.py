"""Write the body of a webhook: what happened, when, and the id under which all of it can be had.

The same body serves both conventions. Standard Webhooks wants `type`, `timestamp` and `data`; OpenAI's client wants
`id`, `object`, `created_at`, `type` and `data.id`.
"""

import json
from datetime import UTC, datetime
from typing import Any

from troth.runtime.channels import Delivery
from troth.server.json_response import encoded

__all__ = ["LARGEST", "RESPONSE_PREFIX", "body_of", "type_of"]

LARGEST = 16_000
"""Bytes of a result that are sent along. Standard Webhooks asks for less than 20 kB in all."""

_SHORT = 500  # characters of a text that stand for one that is too long

RESPONSE_PREFIX = "resp_"
"""How the ids of promises begin that were made by OpenAI's route `responses`."""

_PROMISE = {"done": "promise.done", "failed": "promise.failed", "cancelled": "promise.cancelled"}
_RESPONSE = {"done": "response.completed", "failed": "response.failed", "cancelled": "response.cancelled"}


def type_of(delivery: Delivery) -> str:
    """The kind of event, with a dot in it."""
    if delivery.kind != "done":
        return f"promise.{delivery.kind}"
    data = delivery.data if isinstance(delivery.data, dict) else {}
    state = data.get("state", "done")
    if not delivery.promise.startswith(RESPONSE_PREFIX):
        return _PROMISE.get(state, f"promise.{state}")
    result = data.get("result")
    if state == "done" and isinstance(result, dict) and result.get("status") == "incomplete":
        return "response.incomplete"
    return _RESPONSE.get(state, f"response.{state}")


def body_of(delivery: Delivery, now: float) -> str:
    """The body as it is signed and sent."""
    event = type_of(delivery)
    happened = round(now - delivery.age, 3)
    data: dict[str, Any] = {"id": delivery.promise, "delivery": delivery.id, "session": delivery.session}
    if not event.startswith("response."):
        data |= {"count": delivery.count, **_shortened(delivery.text, delivery.data)}
    return _json(
        {
            "id": delivery.id,
            "object": "event",
            "type": event,
            "created_at": int(happened),
            "timestamp": datetime.fromtimestamp(happened, tz=UTC).isoformat(timespec="milliseconds"),
            "data": data,
        }
    )


def _shortened(text: str, data: object) -> dict[str, Any]:
    """What the delivery tells, without a result that is too large: `is_cut` says so, and `id` leads to it."""
    values = {"text": text, **(data if isinstance(data, dict) else {"result": data})}
    if len(encoded(_json(values))) <= LARGEST:
        return {**values, "is_cut": False}
    return {
        "text": text[:_SHORT],
        "state": values.get("state"),
        "title": str(values.get("title", ""))[:_SHORT],
        "result": None,
        "error": None,
        "is_cut": True,
    }


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
