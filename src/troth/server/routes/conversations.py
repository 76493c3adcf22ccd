"""Talk with agents: open a conversation, send, run, interrupt, and follow what is said."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from troth.bridge import call
from troth.runtime.conversations import Conversation
from troth.runtime.conversations.log import Status
from troth.runtime.conversations.log import stream_of as log_of
from troth.runtime.store.aread import aread
from troth.runtime.store.rows.server import Belonging
from troth.server.access.concurrency import check_under_way
from troth.server.access.owners import aclaim, afind, alist, page_cursor, page_end
from troth.server.access.scopes import Caller, CallerDep, Scope, needs
from troth.server.channels import HttpChannel, StreamChannel
from troth.server.context import ContextDep, ServerContext
from troth.server.direct_route import DirectRoute
from troth.server.errors import ApiError, not_found
from troth.server.idempotency import OnceDep, Seed
from troth.server.prefer import PreferDep
from troth.server.streams.sources import LogSource
from troth.server.streams.sse import CursorDep, EventStream, FollowDep, check_room, events

__all__ = ["router"]

router = APIRouter(tags=["conversations"], route_class=DirectRoute)

ConversationId = Annotated[str, Path(max_length=200, description="the id of the conversation")]
SENT = "request"
"""The kind of the entry that says which request a message came with."""


class NewConversation(BaseModel):
    """With whom to talk."""

    model_config = ConfigDict(extra="forbid")

    agent: str = Field(description="the name of an agent of this server")


class NewMessage(BaseModel):
    """What is said to the agent."""

    model_config = ConfigDict(extra="forbid")

    text: str
    role: Literal["user", "system"] = "user"
    run: bool = Field(default=False, description="have the agent answer; a run in progress sees the message")


class MessageInfo(BaseModel):
    """One thing that was said."""

    role: str
    text: str


class ConversationInfo(BaseModel):
    """A conversation as it is now."""

    id: str
    agent: str
    status: Status
    created_at: float
    last_event: int
    error: dict[str, Any] | None = None


class ConversationDetails(ConversationInfo):
    """A conversation with what was said in it."""

    messages: list[MessageInfo]


class ConversationList(BaseModel):
    """A page of conversations, newest first."""

    data: list[ConversationInfo]
    next: str | None


class Sent(BaseModel):
    """That a message is safe. `number` is its place in the log, `status` where the conversation stands."""

    number: int
    status: Status


class Interruption(BaseModel):
    """What can be promised of the end of a run."""

    stopping: Literal["stopped", "will stop", "cannot stop"]


async def opened(context: ServerContext, caller: Caller, conversation_id: str) -> tuple[Belonging, Conversation]:
    """A conversation of the caller's."""
    belonging = await afind(context, caller, "conversation", conversation_id)
    if belonging is None:  # an admin asks for what no server has begun
        raise not_found("conversation", conversation_id)
    agent = belonging.details.get("agent", "")
    if agent not in context.agents:
        raise ApiError(
            409, "agent_missing", f"The conversation is with the agent {agent!r}, which this server does not have."
        )
    return belonging, await context.turns.open(agent, conversation_id)


async def info(belonging: Belonging, conversation: Conversation) -> dict[str, Any]:
    """A conversation as it is told."""

    def read() -> dict[str, Any]:
        state = conversation.look()
        return {
            "id": conversation.id,
            "agent": belonging.details["agent"],
            "status": conversation.status,
            "created_at": belonging.created_at,
            "last_event": state.cursor,
            "error": state.error,
        }

    return await call(read)


@router.post("/conversations", status_code=201, response_model=ConversationInfo, **needs(Scope.RUN))
async def open_conversation(body: NewConversation, context: ContextDep, caller: CallerDep, once: OnceDep) -> Response:
    """Open a conversation with an agent. Nothing runs yet."""
    if body.agent not in context.agents:
        raise ApiError(
            400,
            "unknown_agent",
            f"There is no agent {body.agent!r} here.",
            param="agent",
            advice=f"There are: {', '.join(context.agents) or 'none'}.",
        )

    async def work(seed: Seed) -> Response:
        conversation_id = seed.id("conv")
        await aclaim(context, caller, "conversation", conversation_id, {"agent": body.agent})
        belonging, conversation = await opened(context, caller, conversation_id)
        opened_info = ConversationInfo(**await info(belonging, conversation))
        headers = {"Location": f"/v1/conversations/{conversation_id}"}
        return JSONResponse(opened_info.model_dump(mode="json"), 201, headers)

    return await once(work)


@router.get("/conversations", **needs(Scope.READ))
async def list_conversations(
    context: ContextDep,
    caller: CallerDep,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
    before: Annotated[str | None, Query(max_length=300, description="`next` of the previous page")] = None,
) -> ConversationList:
    """The conversations that were opened through a server, newest first."""
    page = await alist(context, caller, "conversation", before=page_cursor(before), limit=limit)
    infos = []
    for belonging in page:
        if belonging.details.get("agent") in context.agents:
            conversation = await context.turns.open(belonging.details["agent"], belonging.id)
            infos.append(ConversationInfo(**await info(belonging, conversation)))
    return ConversationList(data=infos, next=page_end(page, limit))


@router.get("/conversations/{conversation_id}", **needs(Scope.READ))
async def show_conversation(
    conversation_id: ConversationId, context: ContextDep, caller: CallerDep
) -> ConversationDetails:
    """A conversation as it is now, with what was said."""
    belonging, conversation = await opened(context, caller, conversation_id)
    details = await info(
        belonging, conversation
    )  # before the messages: one that is told as finished has said all of them
    transcript = await call(conversation.messages)
    messages = [MessageInfo(role=message.role, text=message.text) for message in transcript]
    return ConversationDetails(**details, messages=messages)


@router.post(
    "/conversations/{conversation_id}/messages", status_code=202, response_model=Sent, **needs(Scope.RUN, "http")
)
async def send_message(
    conversation_id: ConversationId,
    body: NewMessage,
    context: ContextDep,
    caller: CallerDep,
    once: OnceDep,
    prefer: PreferDep,
) -> Response:
    """Send a message to the agent, at any time. With `run`, the agent answers it."""
    belonging, conversation = await opened(context, caller, conversation_id)

    async def start(since: float | None) -> None:
        with HttpChannel.session(conversation_id):
            await context.turns.start(conversation, unless_since=since)

    async def work(seed: Seed) -> Response:
        number = await say(context, caller, belonging, conversation, body, seed, start)
        if body.run and prefer.wait:
            await waited(context, conversation, prefer.wait)
        status = await aread(context.store, lambda: conversation.status)
        return JSONResponse(Sent(number=number, status=status).model_dump(mode="json"), 202, prefer.headers)

    return await once(work)


async def say(
    context: ServerContext,
    caller: Caller,
    belonging: Belonging,
    conversation: Conversation,
    body: NewMessage,
    seed: Seed,
    start: Callable[[float | None], Awaitable[None]],
) -> int:
    """Write a message down, once for each request, and begin a turn if it is to be answered; its number."""
    if body.run:
        await check_turns(context, caller, conversation)
        await context.turns.owe(conversation.id, belonging.details["agent"])
    number = await sent(conversation, seed)
    if number is None:
        number = await conversation.asend(body.text, role=body.role, with_events=[(SENT, {"seed": seed.base})])
    if body.run:
        await start(seed.since if seed.is_repeated else None)
    return number


async def sent(conversation: Conversation, seed: Seed) -> int | None:
    """The number of the message that an earlier attempt at this request has sent; nothing if none did."""
    if not seed.is_repeated:
        return None

    def look() -> int | None:
        for event in conversation.events():
            if event.kind == SENT and event.payload.get("seed") == seed.base:
                return event.seq - 1  # it is written with the message, right behind it
        return None

    return await call(look)


async def check_turns(context: ServerContext, caller: Caller, conversation: Conversation) -> None:
    """Refuse one turn too many of an owner; one that is under way may be told more."""
    if await aread(context.store, lambda: conversation.status) is Status.RUNNING:
        return
    await check_under_way(context, caller)


async def waited(context: ServerContext, conversation: Conversation, seconds: float) -> None:
    """Wait for the end of what runs, but not longer than so."""
    try:
        async with asyncio.timeout(seconds):
            await context.turns.await_end(conversation)
    except TimeoutError:
        pass


@router.post(
    "/conversations/{conversation_id}/run", status_code=202, response_model=ConversationInfo, **needs(Scope.RUN, "http")
)
async def run_conversation(
    conversation_id: ConversationId, context: ContextDep, caller: CallerDep, once: OnceDep, prefer: PreferDep
) -> Response:
    """Have the agent answer what was sent. 409 while a run is in progress."""
    belonging, conversation = await opened(context, caller, conversation_id)

    async def work(seed: Seed) -> Response:
        await check_under_way(context, caller)
        await context.turns.owe(conversation_id, belonging.details["agent"])
        with HttpChannel.session(conversation_id):
            since = seed.since if seed.is_repeated else None
            if not await context.turns.start(conversation, unless_since=since) and not seed.is_repeated:
                raise ApiError(
                    409,
                    "already_running",
                    f"The conversation {conversation_id!r} is running already.",
                    advice="What was sent is seen by that run. Follow it, or interrupt it.",
                )
        if prefer.wait:
            await waited(context, conversation, prefer.wait)
        started = ConversationInfo(**await info(belonging, conversation))
        headers = {"Location": f"/v1/conversations/{conversation_id}", **prefer.headers}
        return JSONResponse(started.model_dump(mode="json"), 202, headers)

    return await once(work)


@router.post("/conversations/{conversation_id}/interrupt", **needs(Scope.ACT))
async def interrupt_conversation(
    conversation_id: ConversationId, context: ContextDep, caller: CallerDep
) -> Interruption:
    """Interrupt the agent, and say what can be promised. Can be repeated."""
    _, conversation = await opened(context, caller, conversation_id)
    return Interruption(stopping=(await context.turns.interrupt(conversation)).value)


@router.get("/conversations/{conversation_id}/events", response_class=EventStream, **needs(Scope.READ))
async def conversation_events(
    conversation_id: ConversationId,
    context: ContextDep,
    caller: CallerDep,
    after: CursorDep,
    follow: FollowDep,
) -> EventStream:
    """Every entry of the log, as it is written. Results of background work arrive as `delivery`."""
    await opened(context, caller, conversation_id)
    check_room(context)
    source = LogSource(context.store, log_of(conversation_id))
    if not follow:
        return EventStream(context, events(context, lambda: source, source.topic, after, follow=False))

    async def chunks() -> AsyncIterator[bytes]:
        async with StreamChannel.session(context.channels, conversation_id) as reader:
            async for chunk in events(context, lambda: source, source.topic, after, reader=reader):
                yield chunk

    return EventStream(context, chunks())
