"""Write an answer as a chat completion, whole or chunk by chunk."""

import json
from collections.abc import Iterator
from typing import Any

from troth.server.errors import ApiError, body_of
from troth.server.json_response import one_line
from troth.server.openai_api.answer import Happening, LoggedAnswer
from troth.server.streams.sse import frame

__all__ = ["DONE", "ChunkWriter", "completion", "error_frame", "failure_of"]

DONE = b"data: [DONE]\n\n"


def failure_of(answer: LoggedAnswer) -> ApiError:
    """What is told of an answer that failed or was stopped. It is not to be tried again: that would tell the same."""
    headers = {"x-should-retry": "false"}
    if answer.state == "failed":
        kind = str((answer.error or {}).get("type") or "an exception")
        return ApiError(
            500,
            "agent_failed",
            f"The agent failed with `{kind}`.",
            advice="The conversation's log has the details. The same request gets the same answer.",
            headers=headers,
        )
    ending = "was cancelled" if answer.state == "cancelled" else "was stopped before its end"
    return ApiError(409, "agent_stopped", f"The agent's turn {ending}.", headers=headers)


def usage(answer: LoggedAnswer) -> dict[str, int]:
    """What the models of the agent used, all turns together."""
    total = answer.input_tokens + answer.output_tokens
    return {
        "prompt_tokens": answer.input_tokens,
        "completion_tokens": answer.output_tokens,
        "total_tokens": total,
    }


def completion(answer: LoggedAnswer, model: str, created: float) -> dict[str, Any]:
    """The whole."""
    message = {"role": "assistant", "content": answer.text, "refusal": None}
    return {
        "id": answer.id,
        "object": "chat.completion",
        "created": int(created),
        "model": model,
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}],
        "usage": usage(answer),
    }


def error_frame(error: ApiError, request_id: str | None = None) -> bytes:
    """What is sent instead of the rest: OpenAI's client takes a stream that is cut for a whole one."""
    return frame(None, json.dumps(body_of(error, request_id)))


def _begun_anew() -> ApiError:
    """What is told to whoever was sent the beginning of a text that is said once more: a chunk cannot be taken back."""
    return ApiError(
        503,
        "answer_begun_anew",
        "The process that answered has died, and another one begins this text again.",
        advice="Send the request again, with its `Idempotency-Key` if it had one.",
    )


class ChunkWriter:
    """Writes the chunks of one completion."""

    def __init__(self, answer: LoggedAnswer, model: str, created: float, *, with_usage: bool) -> None:
        self._answer = answer
        self._with_usage = with_usage
        self._head = {
            "id": answer.id,
            "object": "chat.completion.chunk",
            "created": int(created),
            "model": model,
        }

    def frames(self, happening: Happening) -> Iterator[bytes]:
        """What is sent of one happening."""
        match happening.kind:
            case "created":
                yield self._chunk({"role": "assistant", "content": "", "refusal": None})
            case "text begun" if any(index < happening.index for index in self._answer.counting):
                yield self._chunk({"content": "\n\n"})
            case "text":
                yield self._chunk({"content": happening.text})
            case "text taken back":
                yield error_frame(_begun_anew())
            case "over" if self._answer.state == "completed":
                yield self._chunk({}, "stop")
                if self._with_usage:
                    yield frame(None, one_line({**self._head, "choices": [], "usage": usage(self._answer)}))
                yield DONE
            case "over":
                yield error_frame(failure_of(self._answer))

    def _chunk(self, delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        more = {"usage": None} if self._with_usage else {}
        return frame(None, one_line({**self._head, "choices": [choice], **more}))
