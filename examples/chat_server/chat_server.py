"""A chat service: send a message, read the answer while it is written, and stop it.

uvicorn chat_server:app --timeout-graceful-shutdown 3
"""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Annotated

from fastapi import FastAPI, Header
from fastapi.responses import StreamingResponse
from pydantic import BaseModel

from troth.runtime import Conversation, Conversations
from troth.runtime.agents import Agent
from troth.runtime.conversations import AlreadyRunning


class Parrot(Agent):
    """Stands in for a model: repeats what it was told, word by word."""

    async def astep(self, conversation: Conversation) -> None:
        text = conversation.messages()[-1].text
        for word in text.split():
            conversation.token(f"{word} ")
            await asyncio.sleep(0.05)
        await conversation.asay(text)


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    home = Conversations(os.environ.get("CHATS", "chats.db"))
    app.state.home = home
    try:
        yield
    finally:
        await home.aclose()  # ends what runs; nothing that was sent is lost


app = FastAPI(lifespan=lifespan)


class Text(BaseModel):
    text: str


async def open_chat(chat: str) -> Conversation:
    """A handle for this request. All handles of one chat share its run."""
    return await app.state.home.aopen(Parrot(), chat)


@app.post("/chats/{chat}/messages", status_code=202)
async def send(chat: str, message: Text) -> dict[str, int]:
    conversation = await open_chat(chat)
    number = await conversation.asend(message.text)  # from here on it is safe
    with suppress(AlreadyRunning):  # then the run under way answers it
        await conversation.astart()  # goes on when this request is over
    return {"number": number}


@app.get("/chats/{chat}/events")
async def follow(chat: str, after: int = 0, last_event_id: Annotated[int | None, Header()] = None) -> StreamingResponse:
    conversation = await open_chat(chat)

    async def lines() -> AsyncIterator[str]:
        async for event in conversation.asubscribe(after=last_event_id or after, timeout=30):
            yield f"id: {event.seq}\nevent: {event.kind}\ndata: {json.dumps(event.payload)}\n\n"

    return StreamingResponse(lines(), media_type="text/event-stream")


@app.post("/chats/{chat}/stop")
async def stop(chat: str) -> dict[str, str]:
    conversation = await open_chat(chat)
    return {"stopping": (await conversation.ainterrupt()).value}


@app.get("/chats/{chat}")
async def look(chat: str) -> dict[str, object]:
    conversation = await open_chat(chat)
    return {
        "status": conversation.status,
        "messages": [{"role": message.role, "text": message.text} for message in conversation.messages()],
    }
