"""Put a delivery into words."""

import json
from typing import Any

from troth.runtime.channels import Delivery
from troth.runtime.store.promise_records import DeliveryRecord, PromiseRecord, PromiseState

__all__ = ["delivery_for", "text_of"]

_LONGEST = 2000  # characters of a result that are quoted; all of it is in `data`


def text_of(promise: PromiseRecord) -> str:
    """What a person is told of the end of the work."""
    if promise.state is PromiseState.DONE:
        if isinstance(promise.result, str):
            return promise.result
        return f"{promise.title} is done: {_short(json.dumps(promise.result, ensure_ascii=False))}"
    if promise.state is PromiseState.CANCELLED:
        return f"{promise.title} was cancelled."
    if promise.state is PromiseState.FAILED:
        error = promise.error or {}
        return f"{promise.title} failed: {error.get('type')}: {_short(str(error.get('message')))}"
    return f"{promise.title} is {promise.state}."


def _short(text: str) -> str:
    if len(text) <= _LONGEST:
        return text
    return f"{text[:_LONGEST]} … ({len(text) - _LONGEST} more characters; all of it is in the promise)"


def _data_of(promise: PromiseRecord) -> dict[str, Any]:
    return {"state": promise.state.value, "result": promise.result, "error": promise.error, "title": promise.title}


def _sendable(text: str) -> str:
    """Text that every channel can encode: a result in half a letter is whole in `data`."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


def delivery_for(record: DeliveryRecord, promise: PromiseRecord, now: float) -> Delivery:
    """What is given to a channel's `send`."""
    is_end = record.kind == "done"
    return Delivery(
        id=record.id,
        session=record.session,
        promise=record.promise,
        kind=record.kind,  # type: ignore[arg-type]  # only the three kinds are ever written
        text=_sendable(text_of(promise) if record.text is None else record.text),
        data=_data_of(promise) if is_end else record.data,
        count=record.count,
        attempt=record.attempt,
        age=max(0.0, now - record.created_at),
    )
