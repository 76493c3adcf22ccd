"""Answer as OpenAI's chat completions do: `model` names an agent, and each request is a conversation of its own."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

from fastapi import APIRouter
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from troth.server.access.owners import created_at
from troth.server.access.scopes import CallerDep, Scope, needs
from troth.server.context import ContextDep
from troth.server.direct_route import DirectRoute
from troth.server.errors import ApiError, as_api_error
from troth.server.idempotency import OnceDep, Seed
from troth.server.json_response import JSONResponse
from troth.server.openai_api.answer import LoggedAnswer
from troth.server.openai_api.completion import ChunkWriter, completion, error_frame, failure_of
from troth.server.openai_api.messages import read_messages
from troth.server.openai_api.parameters import CHAT, check_extra
from troth.server.openai_api.talk import ClosingError, OwedTurn, Talk
from troth.server.routes.models import unknown_model
from troth.server.streams.sse import COMMENT, EventStream, check_room, joined

__all__ = ["JSON_OR_STREAM", "closing", "router"]

router = APIRouter(tags=["chat"], route_class=DirectRoute)

JSON_OR_STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The answer; with `stream`, as events.",
        "content": {
            "application/json": {"schema": {"type": "object"}},
            "text/event-stream": {"schema": {"type": "string"}},
        },
    }
}


class StreamOptions(BaseModel):
    """What is sent along with a stream."""

    model_config = ConfigDict(extra="forbid")

    include_usage: bool = False
    include_obfuscation: bool | None = Field(default=None, description="accepted, without effect")


class ChatRequest(BaseModel):
    """What OpenAI's clients send. Fields that promise what an agent does not keep are refused."""

    model_config = ConfigDict(extra="allow", json_schema_extra={"additionalProperties": False})

    model: str = Field(max_length=200, description="the name of an agent of this server")
    messages: list[dict[str, Any]] = Field(min_length=1)
    stream: bool | None = False
    stream_options: StreamOptions | None = None


@router.post("/chat/completions", responses=JSON_OR_STREAM, **needs(Scope.RUN, "http"))
async def create_completion(body: ChatRequest, context: ContextDep, caller: CallerDep, once: OnceDep) -> Response:
    """Ask an agent. With `stream`, the answer comes in chunks that end with `[DONE]`.

    A stream that breaks ends with an error. The agent continues if the client disconnects. The same request, repeated,
    gets the same answer.
    """
    check_extra(body.model_extra, CHAT)
    if body.model not in context.agents:
        raise unknown_model(context, body.model)
    if body.stream_options is not None and not body.stream:
        raise ApiError(400, "invalid_field", "`stream_options` go with `stream`.", param="stream_options")
    messages = read_messages(body.messages)
    if body.stream:
        check_room(context)

    async def work(seed: Seed) -> Response:
        talk = Talk(context, caller, body.model, seed.id("conv"), seed.id("chatcmpl"))
        begin = talk.begin_again if seed.is_repeated else talk.begin
        turn = await begin(messages, is_new=True)
        created = await created_at(context, "conversation", talk.conversation_id) if seed.is_repeated else turn.owed_at
        headers = {"x-troth-conversation": talk.conversation_id}
        if body.stream:
            with_usage = body.stream_options is not None and body.stream_options.include_usage
            known = await talk.answer() if seed.is_repeated else None
            answer = LoggedAnswer(talk.answer_id, skipped=() if known is None else known.taken_back)
            writer = ChunkWriter(answer, body.model, created, with_usage=with_usage)
            return EventStream(context, _chunks(talk, turn, answer, writer), headers)
        answer = await talk.await_end(turn)
        if answer.state != "completed":
            raise failure_of(answer)
        return JSONResponse(completion(answer, body.model, created), headers=headers)

    return await once(work)


async def _chunks(talk: Talk, turn: OwedTurn, answer: LoggedAnswer, writer: ChunkWriter) -> AsyncIterator[bytes]:
    try:
        async with aclosing(talk.pages(turn)) as pages:
            async for events in pages:
                if not events:
                    yield COMMENT
                for chunk in joined(frame for happening in answer.take(events) for frame in writer.frames(happening)):
                    yield chunk
                if answer.taken_back:
                    return
                if answer.is_over:
                    talk.over(turn)
                    return
    except ClosingError:
        yield error_frame(closing())
    except Exception as problem:  # noqa: BLE001  a stream that just ends is taken for a whole one
        yield error_frame(as_api_error(problem, "stream"))


def closing() -> ApiError:
    """What is told to whoever follows an answer while the server ends."""
    return ApiError(
        503,
        "closing",
        "The server is shutting down. The agent continues when the server starts again.",
        advice="Send the request again, with its `Idempotency-Key` if it had one.",
    )
