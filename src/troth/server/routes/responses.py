"""Answer as OpenAI's responses do: in the foreground or in the background, followed by anybody from any number on."""

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from typing import Annotated, Any, NamedTuple

from fastapi import APIRouter, Header, Path, Query
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from troth.bridge import call
from troth.runtime.agents.model import Message
from troth.runtime.conversations.log import stream_of
from troth.runtime.store import Transaction
from troth.runtime.store.rows.server import Belonging
from troth.server.access.owners import afind
from troth.server.access.scopes import Caller, CallerDep, Scope, needs
from troth.server.context import ContextDep, ServerContext
from troth.server.direct_route import DirectRoute
from troth.server.errors import ApiError, as_api_error, not_found
from troth.server.idempotency import OnceDep, Seed
from troth.server.json_response import JSONResponse
from troth.server.openai_api.answer import ANSWER, LoggedAnswer
from troth.server.openai_api.background import RESPONSE, talk_of
from troth.server.openai_api.messages import read_input
from troth.server.openai_api.parameters import RESPONSES, check_extra
from troth.server.openai_api.response import EventWriter, response_of
from troth.server.openai_api.talk import ClosingError, OwedTurn, Talk, follow, messages_until
from troth.server.routes.chat import JSON_OR_STREAM, closing
from troth.server.routes.models import unknown_model
from troth.server.streams.sse import COMMENT, EventStream, check_room, joined

__all__ = ["router"]

router = APIRouter(tags=["responses"], route_class=DirectRoute)

ResponseId = Annotated[str, Path(max_length=200, description="the id of the response")]


class NamedConversation(BaseModel):
    """A conversation by its id."""

    model_config = ConfigDict(extra="forbid")

    id: str = Field(max_length=200)


class StreamHints(BaseModel):
    """Hints, without effect."""

    model_config = ConfigDict(extra="forbid")

    include_obfuscation: bool | None = None


class ResponseRequest(BaseModel):
    """What OpenAI's clients send. Fields that promise what an agent does not keep are refused."""

    model_config = ConfigDict(extra="allow", json_schema_extra={"additionalProperties": False})

    model: str = Field(max_length=200, description="the name of an agent of this server")
    input: str | list[dict[str, Any]]
    instructions: str | None = Field(default=None, description="a system message at the start of a new conversation")
    background: bool | None = False
    stream: bool | None = False
    stream_options: StreamHints | None = None
    previous_response_id: str | None = Field(default=None, max_length=200)
    conversation: str | NamedConversation | None = None
    metadata: dict[str, str] | None = None


class _Place(NamedTuple):
    """Where a response is answered: a conversation, and its last entry. `copied` is what a new one begins with."""

    conversation_id: str
    copied: Sequence[Message] = ()
    after: int = 0
    is_new: bool = True


@router.post("/responses", responses=JSON_OR_STREAM, **needs(Scope.RUN, "http"))
async def create_response(body: ResponseRequest, context: ContextDep, caller: CallerDep, once: OnceDep) -> Response:
    """Ask an agent: for an answer at once, for a stream, or in the `background`, where it needs no client.

    `previous_response_id` or `conversation` continues a conversation. The agent continues if the client disconnects.
    """
    check_extra(body.model_extra, RESPONSES)
    if body.model not in context.agents:
        raise unknown_model(context, body.model)
    if body.previous_response_id is not None and body.conversation is not None:
        message = "`previous_response_id` and `conversation` cannot be given together."
        raise ApiError(400, "invalid_field", message, param="previous_response_id")
    if body.instructions is not None and (body.previous_response_id is not None or body.conversation is not None):
        raise ApiError(
            400,
            "unsupported_parameter",
            "`instructions` apply from the start of a conversation; they cannot be changed later.",
            param="instructions",
            advice="Omit them, or start a new conversation.",
        )
    messages = read_input(body.input)
    if body.stream:
        check_room(context)

    async def work(seed: Seed) -> Response:
        response_id = seed.id("resp")
        earlier = await talk_of(context, response_id) if seed.is_repeated else None
        place = await _place(context, caller, body, seed) if earlier is None else await _same_place(earlier, body, seed)
        talk_messages = [*place.copied, *messages]
        if body.instructions:
            talk_messages = [Message("system", body.instructions), *talk_messages]
        about = {
            "conversation": place.conversation_id,
            "after": place.after,
            "model": body.model,
            "background": bool(body.background),
            "instructions": body.instructions,
            "previous_response_id": body.previous_response_id,
            "metadata": body.metadata or {},
        }
        talk = earlier or Talk(context, caller, body.model, place.conversation_id, response_id, place.after)
        promise = context.responses.promise(talk) if body.background else None

        def claim(tx: Transaction) -> None:
            tx.server.claim(RESPONSE, response_id, caller.owner, context.store.clock(), about)
            if promise is not None:
                promise(tx)

        begin = talk.begin_again if seed.is_repeated else talk.begin
        turn = await begin(talk_messages, is_new=place.is_new, with_work=claim)
        if promise is not None:
            context.responses.watch(response_id)
        if body.stream:
            return await _stream(context, caller, response_id, turn=turn)
        if not body.background:
            await talk.await_end(turn)
        return JSONResponse(await _shown(context, caller, response_id))

    return await once(work)


async def _same_place(earlier: Talk, body: ResponseRequest, seed: Seed) -> _Place:
    """Where an earlier attempt at this very request was answered, or was to be."""
    is_new = earlier.conversation_id == seed.id("conv")
    if is_new and body.previous_response_id is not None and not (await earlier.answer()).is_known:
        place = await _place(earlier.context, earlier.caller, body, seed)
        return _Place(earlier.conversation_id, place.copied)
    return _Place(earlier.conversation_id, after=earlier.after, is_new=is_new)


async def _place(context: ServerContext, caller: Caller, body: ResponseRequest, seed: Seed) -> _Place:
    """Where the talk goes on; a new conversation where nothing is gone on with."""
    if body.conversation is not None:
        conversation_id = body.conversation if isinstance(body.conversation, str) else body.conversation.id
        await afind(context, caller, "conversation", conversation_id)
        last = await call(context.store.last_event, stream_of(conversation_id))
        if not last:
            raise not_found("conversation", conversation_id)
        return _Place(conversation_id=conversation_id, after=last, is_new=False)
    if body.previous_response_id is None:
        return _Place(conversation_id=seed.id("conv"))
    await afind(context, caller, RESPONSE, body.previous_response_id)
    talk = await talk_of(context, body.previous_response_id)
    answer = None if talk is None else await talk.answer()
    if talk is None or answer is None:
        raise not_found(RESPONSE, body.previous_response_id)
    if not answer.is_known:
        raise await _unknown(talk)
    if not answer.is_over:
        raise ApiError(
            409,
            "response_not_over",
            f"The response {body.previous_response_id!r} is being answered.",
            param="previous_response_id",
            advice="Wait for its end, or cancel it.",
            headers={"x-should-retry": "false"},
        )
    last, is_last = await call(_look_behind, context, talk.conversation_id, answer.cursor)
    if is_last:
        return _Place(conversation_id=talk.conversation_id, after=last, is_new=False)
    copied = await call(messages_until, context, talk.conversation_id, answer.cursor)
    return _Place(conversation_id=seed.id("conv"), copied=copied)


def _look_behind(context: ServerContext, conversation_id: str, end: int) -> tuple[int, bool]:
    """The last entry of a conversation, and whether nothing was said in it after entry `end`. Blocks."""
    last, is_last = end, True
    while page := context.store.events(stream_of(conversation_id), after=last):
        is_last = is_last and not any(event.kind in (ANSWER, "message") for event in page)
        last = page[-1].seq
    return last, is_last


@router.get("/responses/{response_id}", responses=JSON_OR_STREAM, **needs(Scope.READ))
async def show_response(
    response_id: ResponseId,
    context: ContextDep,
    caller: CallerDep,
    stream: Annotated[bool, Query(description="as events, from the first one")] = False,  # noqa: FBT002
    starting_after: Annotated[int | None, Query(ge=0, description="the number of the last event that you have")] = None,
    last_event_id: Annotated[int | None, Header(ge=0, description="the same, as browsers send it")] = None,
    include_obfuscation: Annotated[  # noqa: ARG001
        bool | None, Query(description="accepted, without effect")
    ] = None,
) -> Response:
    """A response as it is now. With `stream`, its events after number `starting_after`, and new ones as they come."""
    await afind(context, caller, RESPONSE, response_id)
    if starting_after is not None and not stream:
        raise ApiError(400, "invalid_field", "`starting_after` goes with `stream=true`.", param="starting_after")
    if stream:
        check_room(context)
        cursor, name = (starting_after, "starting_after") if last_event_id is None else (last_event_id, "Last-Event-ID")
        return await _stream(context, caller, response_id, after=-1 if cursor is None else cursor, cursor_name=name)
    return JSONResponse(await _shown(context, caller, response_id))


@router.post("/responses/{response_id}/cancel", **needs(Scope.ACT))
async def cancel_response(response_id: ResponseId, context: ContextDep, caller: CallerDep) -> Response:
    """Cancel a background response. Repeated, or after its end, this returns the response as it ended."""
    belonging = await afind(context, caller, RESPONSE, response_id)
    talk = await talk_of(context, response_id)
    if belonging is None or talk is None:
        raise not_found(RESPONSE, response_id)
    if not belonging.details["background"]:
        raise ApiError(
            400,
            "not_in_background",
            "Only a response in the background can be cancelled.",
            advice="Interrupt its conversation instead.",
        )
    await talk.cancel()
    return JSONResponse(await _shown(context, caller, response_id))


async def _shown(context: ServerContext, caller: Caller, response_id: str) -> dict[str, Any]:
    belonging = await afind(context, caller, RESPONSE, response_id)
    talk = await talk_of(context, response_id)
    if belonging is None or talk is None:
        raise not_found(RESPONSE, response_id)
    answer = await talk.answer()
    if not answer.is_known:
        raise await _unknown(talk)
    return response_of(answer, belonging.details, belonging.created_at)


async def _stream(
    context: ServerContext,
    caller: Caller,
    response_id: str,
    *,
    after: int = -1,
    cursor_name: str = "starting_after",
    turn: OwedTurn | None = None,
) -> Response:
    """The events of a response, for whoever has just begun it in `turn`, or for somebody else."""
    belonging = await afind(context, caller, RESPONSE, response_id)
    talk = await talk_of(context, response_id)
    if belonging is None or talk is None:
        raise not_found(RESPONSE, response_id)
    if turn is None and not (await talk.answer()).is_known:
        raise await _unknown(talk)
    if after >= 0 and not await call(_has_event, talk, belonging, after):
        raise ApiError(
            400,
            "invalid_cursor",
            f"The response {response_id!r} has no event {after}, so what follows it is not known.",
            param=cursor_name,
            advice="Give the number of the last event that you have, or none to read from the first.",
        )
    answer = LoggedAnswer(response_id)
    writer = EventWriter(answer, belonging.details, belonging.created_at, after=after)
    return EventStream(context, _events(talk, turn, answer, writer))


def _has_event(talk: Talk, belonging: Belonging, number: int) -> bool:
    """Whether anybody can have been sent the event of that number. Blocks."""
    answer, after = LoggedAnswer(talk.answer_id), talk.after
    writer = EventWriter(answer, belonging.details, belonging.created_at, after=number)
    while page := talk.context.store.events(stream_of(talk.conversation_id), after=after):
        for happening in answer.take(page):
            if any(writer.frames(happening)) or writer.count > number:
                return True
        if answer.is_over:
            break
        after = page[-1].seq
    return False


async def _unknown(talk: Talk) -> ApiError:
    """Why the log does not have a response: it was never begun, or what the log began with is cut off."""
    stream = stream_of(talk.conversation_id)
    page = await call(lambda: talk.context.store.events(stream, after=talk.after, limit=1))
    if page and page[0].seq > talk.after + 1:
        message = f"The log of the response {talk.answer_id!r} was trimmed: its content is gone."
        return ApiError(410, "response_trimmed", message)
    return not_found(RESPONSE, talk.answer_id)


async def _events(talk: Talk, turn: OwedTurn | None, answer: LoggedAnswer, writer: EventWriter) -> AsyncIterator[bytes]:
    pages = follow(talk.context, talk.conversation_id, talk.after) if turn is None else talk.pages(turn)
    try:
        async with aclosing(pages):
            async for events in pages:
                if not events:
                    yield COMMENT
                for chunk in joined(frame for happening in answer.take(events) for frame in writer.frames(happening)):
                    yield chunk
                if answer.is_over:
                    if turn is not None:
                        talk.over(turn)
                    return
    except ClosingError:
        yield writer.broken(closing())
    except Exception as problem:  # noqa: BLE001  a stream that just ends is taken for a whole one
        yield writer.broken(as_api_error(problem, "stream"))
