"""Write an answer as a response of OpenAI's, whole or event by event.

Events are made from the log in its order, and counted from 0. The log never changes, so an event has the same number
for every reader: whoever knows number N reads the whole again, and is sent what comes after N.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from troth.server.errors import ApiError, body_of
from troth.server.json_response import one_line
from troth.server.openai_api.answer import Happening, LoggedAnswer
from troth.server.streams.sse import frame

__all__ = ["EventWriter", "response_of"]

_ENDINGS = {
    "completed": "response.completed",
    "failed": "response.failed",
    "incomplete": "response.incomplete",
    "cancelled": "response.incomplete",  # their streams know no other word for it; `status` says `cancelled`
}


def response_of(answer: LoggedAnswer, about: Mapping[str, Any], created: float) -> dict[str, Any]:
    """The response as it is now. `about` is what was kept of the request."""
    state = answer.state
    error = None
    if state == "failed":
        kind = str((answer.error or {}).get("type") or "an exception")
        error = {"code": "server_error", "message": f"The agent failed with `{kind}`."}
    total = answer.input_tokens + answer.output_tokens
    used = {
        "input_tokens": answer.input_tokens,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": answer.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": total,
    }
    return {
        "id": answer.id,
        "object": "response",
        "created_at": int(created),
        "completed_at": None if answer.ended_at is None or state != "completed" else int(answer.ended_at),
        "status": state,
        "background": about["background"],
        "error": error,
        "incomplete_details": None,
        "instructions": about.get("instructions"),
        "max_output_tokens": None,
        "metadata": about.get("metadata") or {},
        "model": about["model"],
        "output": [item_of(answer, index) for index in answer.counting],
        "parallel_tool_calls": True,
        "previous_response_id": about.get("previous_response_id"),
        "conversation": {"id": about["conversation"]},
        "reasoning": {"effort": None, "summary": None},
        "store": True,
        "temperature": None,
        "text": {"format": {"type": "text"}},
        "tool_choice": "auto",
        "tools": [],
        "top_p": None,
        "truncation": "disabled",
        "usage": used if answer.is_over else None,
        "user": None,
    }


def _item_id(answer: LoggedAnswer, index: int) -> str:
    return f"msg_{answer.id.partition('_')[2]}_{index}"


def item_of(answer: LoggedAnswer, index: int, *, is_new: bool = False) -> dict[str, Any]:
    """One text as an item of the output."""
    piece = answer.pieces[index]
    if is_new:
        status, content = "in_progress", []
    else:
        is_whole = piece.is_done and answer.state not in ("failed", "cancelled", "incomplete")
        is_whole = is_whole and not piece.is_taken_back
        is_cut = answer.is_over or piece.is_taken_back
        status = "completed" if is_whole else "incomplete" if is_cut else "in_progress"
        content = [_part(piece.text)]
    return {"id": _item_id(answer, index), "type": "message", "role": "assistant", "status": status, "content": content}


def _part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


class EventWriter:
    """Writes the events of one response, those after number `after`."""

    def __init__(self, answer: LoggedAnswer, about: Mapping[str, Any], created: float, *, after: int = -1) -> None:
        self._answer = answer
        self._about = about
        self._created = created
        self._after = after
        self._next = 0

    @property
    def count(self) -> int:
        """How many events there are so far, those that were not sent included."""
        return self._next

    def frames(self, happening: Happening) -> Iterator[bytes]:
        """What is sent of one happening."""
        for kind, more in self._events(happening):
            number, self._next = self._next, self._next + 1
            if number > self._after:
                data = {"type": kind, "sequence_number": number, **more}
                yield frame(kind, one_line(data), number)

    def broken(self, error: ApiError, request_id: str | None = None) -> bytes:
        """What is sent instead of the rest. It has no number: whoever comes back is sent what it did not get."""
        details = body_of(error, request_id)["error"]
        data = {
            "type": "error",
            "sequence_number": self._next,
            "code": error.code,
            "message": error.message,
            "param": error.param,
            "error": details,  # what makes OpenAI's client raise
        }
        return frame("error", json.dumps(data))

    def _events(self, happening: Happening) -> Iterator[tuple[str, dict[str, Any]]]:
        answer, index = self._answer, happening.index
        match happening.kind:
            case "created":
                yield "response.created", {"response": self._whole()}
            case "begun":
                yield "response.in_progress", {"response": self._whole()}
            case "text begun":
                item = item_of(answer, index, is_new=True)
                yield "response.output_item.added", {"output_index": index, "item": item}
                yield "response.content_part.added", {**self._place(index), "part": _part("")}
            case "text":
                delta = {"delta": happening.text, "logprobs": []}
                yield "response.output_text.delta", {**self._place(index), **delta}
            case "text done" | "text taken back":
                whole_text = {"text": happening.text, "logprobs": []}
                yield "response.output_text.done", {**self._place(index), **whole_text}
                yield "response.content_part.done", {**self._place(index), "part": _part(happening.text)}
                yield "response.output_item.done", {"output_index": index, "item": item_of(answer, index)}
            case "over":
                yield _ENDINGS[answer.state], {"response": self._whole()}

    def _place(self, index: int) -> dict[str, Any]:
        return {"item_id": _item_id(self._answer, index), "output_index": index, "content_index": 0}

    def _whole(self) -> dict[str, Any]:
        return response_of(self._answer, self._about, self._created)
