"""Keep the trace context of a request with the work that it begins, so that whoever goes on with it joins the trace.

The context is the headers `traceparent` and `tracestate` of the W3C. It is kept where the work is kept: a process
that takes up a run after a crash finds it there, and needs nothing of the process that died.
"""

import re
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any

from troth.runtime.store import Store, Transaction, commit_point

__all__ = ["KIND", "Carrier", "incoming", "keep", "read_headers", "recall", "stream_of"]

Carrier = Mapping[str, str]

TRACE = commit_point("telemetry.trace", "to which trace a run belongs, before the run begins")

KIND = "trace"
"""The kind of entry that holds a carrier, in a stream of its own or in the log of a conversation."""

_TRACEPARENT = re.compile(r"^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$")
_LONGEST_STATE = 512

incoming: ContextVar[Carrier] = ContextVar("troth_trace", default={})  # noqa: B039  never changed in place


def read_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """What a request says of its trace; nothing if it says nothing, or nothing that can be believed."""
    parent = headers.get("traceparent", "").strip().lower()
    if not _TRACEPARENT.match(parent):
        return {}
    state = headers.get("tracestate", "").strip()
    is_sound = 0 < len(state) <= _LONGEST_STATE and state.isascii() and state.isprintable()
    return {"traceparent": parent, "tracestate": state} if is_sound else {"traceparent": parent}


def stream_of(run_id: str) -> str:
    """Where the trace of a run is kept."""
    return f"{KIND}/{run_id}"


def write(tx: Transaction, run_id: str, carrier: Carrier, now: float) -> None:
    """Keep it, in somebody's commit; what is kept first stays."""
    if carrier and tx.last_event(stream_of(run_id)) == 0:
        tx.append_event(stream_of(run_id), KIND, dict(carrier), now)


async def keep(store: Store, run_id: str, carrier: Carrier) -> None:
    """Keep the trace of a run that is about to begin. Nothing is written for one without a trace."""
    if carrier:
        await store.acommit(TRACE, lambda tx: write(tx, run_id, carrier, store.clock()))


def recall(store: Store, run_id: str) -> dict[str, str]:
    """The trace that a run belongs to, whoever began it."""
    for event in store.events(stream_of(run_id), limit=1):
        return of_payload(event.payload)
    return {}


def of_payload(payload: Any) -> dict[str, str]:
    """The carrier that an entry holds; nothing if it holds something else."""
    if not isinstance(payload, dict):
        return {}
    return read_headers({name: value for name, value in payload.items() if isinstance(value, str)})
