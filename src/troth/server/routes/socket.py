"""Carry events, subscriptions and messages over one WebSocket, with acknowledgements by number both ways.

Every message is a JSON object. What the client sends has a number of its own, `n`, and a `type`:

    {"n": 1, "type": "subscribe", "run": "run_…", "after": 12}           or "conversation": "conv_…"
    {"n": 2, "type": "unsubscribe", "run": "run_…"}
    {"n": 3, "type": "send", "conversation": "conv_…", "text": "hello", "run": true, "key": "…"}
    {"type": "ack", "n": 7}                                              of a message of the server's

The server answers `{"type": "ack", "of": 1, …}` when it is done, or `{"type": "error", "of": 1, "error": {…}}`. What it
sends by itself has a number of the server's, `n`: events, with their subscription and their number in the log, and
deliveries. A delivery that is not acknowledged when the socket closes is pending again.
"""

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from functools import partial
from typing import Any

from fastapi import APIRouter, WebSocket, WebSocketDisconnect
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from troth.runtime.conversations.log import stream_of as log_of
from troth.runtime.store.aread import aread
from troth.server.access.owners import afind
from troth.server.access.scopes import Caller, Scope, check_scope
from troth.server.channels import Reader, SocketChannel
from troth.server.context import ServerContext
from troth.server.errors import ApiError, as_api_error, as_field_error, body_of
from troth.server.half_letters import refuse_half_letters
from troth.server.idempotency import Once, Seed
from troth.server.json_response import encoded
from troth.server.routes.conversations import NewMessage, opened, say
from troth.server.streams.feeds import Item, Source
from troth.server.streams.sources import LogSource, RunEventSource
from troth.server.streams.sse import Notice, check_room, one_line, tell

__all__ = ["SOCKET", "router"]

router = APIRouter()

SOCKET = {"x-troth-scope": Scope.READ.value, "x-troth-channel": SocketChannel.kind}
"""What the route needs; each verb asks for its own scope beside it."""
_QUEUE = 64  # messages that wait for a socket to take them
_MOST = 100  # subscriptions of one socket

_FORBID = ConfigDict(extra="forbid")


class _Of(BaseModel):
    model_config = _FORBID

    n: int = Field(ge=0)
    type: str
    run: str | None = Field(default=None, max_length=200)
    conversation: str | None = Field(default=None, max_length=200)

    @property
    def topic(self) -> tuple[str, str]:
        """The kind and the id of what is meant."""
        if (self.run is None) == (self.conversation is None):
            raise ApiError(400, "invalid_field", "Name either a `run` or a `conversation`.", param="run")
        return ("run", self.run) if self.run is not None else ("conversation", self.conversation or "")


class _Subscribe(_Of):
    after: int = Field(default=0, ge=0, lt=10**18)  # no log has as many, and a store could not look for more


class _Send(BaseModel):
    model_config = _FORBID

    n: int = Field(ge=0)
    type: str
    conversation: str = Field(max_length=200)
    text: str
    run: bool = False
    key: str | None = Field(default=None, min_length=1, max_length=255)


class _Ack(BaseModel):
    model_config = _FORBID

    n: int = Field(ge=0)
    type: str


@router.websocket("/socket")
async def socket(websocket: WebSocket) -> None:
    """Serve one socket until it closes. Closing it cancels nothing."""
    context: ServerContext = websocket.scope["troth.context"]
    caller: Caller = websocket.scope["troth.caller"]
    check_scope(caller, Scope.READ)
    check_room(context)
    await websocket.accept("troth" if "troth" in websocket.scope["subprotocols"] else None)
    await _Socket(websocket, context, caller).serve()


class _Socket:
    """One connection: its subscriptions, and what it has not acknowledged yet."""

    def __init__(self, websocket: WebSocket, context: ServerContext, caller: Caller) -> None:
        self._websocket = websocket
        self._context = context
        self._caller = caller
        self._out: asyncio.Queue[dict[str, Any]] = asyncio.Queue(_QUEUE)
        self._number = 0
        self._deliveries: dict[int, str] = {}
        self._subscriptions: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._verbs: dict[str, Callable[[Any], Awaitable[dict[str, Any] | None]]] = {
            "subscribe": self._subscribe,
            "unsubscribe": self._unsubscribe,
            "send": self._send,
            "ack": self._ack,
        }

    async def serve(self) -> None:
        """Read and write until one of both ends."""
        tasks = [asyncio.create_task(self._read()), asyncio.create_task(self._write())]
        try:
            ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in ended:
                task.result()
        except WebSocketDisconnect:
            pass
        except (TimeoutError, OSError):
            abort = self._websocket.scope.get("troth.abort")
            if abort is not None:
                abort()
        finally:
            everything = [*tasks, *self._subscriptions.values()]
            for task in everything:
                task.cancel()
            await asyncio.gather(*everything, return_exceptions=True)

    async def _write(self) -> None:
        while True:
            message = await self._out.get()
            async with asyncio.timeout(self._context.limits.write_time):
                await self._websocket.send_text(encoded(one_line(message)).decode())

    async def _read(self) -> None:
        while True:
            text = await self._receive()
            number: object = None
            try:
                if text is None:
                    raise ApiError(400, "invalid_message", "A message is text: send text frames, not binary frames.")
                refuse_half_letters(encoded(text))
                message = json.loads(text)
                if not isinstance(message, dict):
                    raise ApiError(400, "invalid_message", "A message is a JSON object.")
                number = message.get("n") if isinstance(message.get("n"), int) else None
                verb = self._verbs.get(str(message.get("type")))
                if verb is None:
                    verbs = ", ".join(self._verbs)
                    raise ApiError(400, "unknown_type", "The type is not known.", param="type", advice=f"Use: {verbs}.")
                answer = await verb(message)
            except WebSocketDisconnect:
                raise
            except Exception as problem:  # noqa: BLE001  whatever is wrong with a message is answered
                error = as_api_error(_wrong(problem), self._websocket.scope["troth.request_id"])
                await self._out.put({"type": "error", "of": number, **body_of(error)})
                continue
            if answer is not None:
                await self._out.put({"type": "ack", "of": number, **answer})

    async def _receive(self) -> str | None:
        """The next message; nothing if it is one of bytes."""
        message = await self._websocket.receive()
        if message["type"] == "websocket.disconnect":
            raise WebSocketDisconnect(message["code"], message.get("reason"))
        text: str | None = message.get("text")
        return text

    # What a client may ask for

    async def _subscribe(self, message: object) -> dict[str, Any]:
        request = _Subscribe.model_validate(message)
        kind, thing = topic = request.topic
        if topic in self._subscriptions:
            raise ApiError(409, "already_subscribed", f"The socket already follows the {kind} {thing!r}.", param=kind)
        if len(self._subscriptions) >= _MOST:
            raise ApiError(429, "too_many_subscriptions", f"A socket has at most {_MOST} subscriptions.")
        check_room(self._context)
        await afind(self._context, self._caller, kind, thing)
        source: Source
        if kind == "run":
            source = await aread(self._context.store, partial(RunEventSource, self._context.runtime, thing))
        else:
            await opened(self._context, self._caller, thing)
            source = LogSource(self._context.store, log_of(thing))
        self._subscriptions[topic] = asyncio.create_task(self._follow(topic, source, request.after))
        return {}

    async def _unsubscribe(self, message: object) -> dict[str, Any]:
        task = self._subscriptions.pop(_Of.model_validate(message).topic, None)
        if task is None:
            raise ApiError(404, "not_subscribed", "There is no such subscription.")
        task.cancel()
        return {}

    async def _send(self, message: object) -> dict[str, Any]:
        check_scope(self._caller, Scope.RUN)
        request = _Send.model_validate(message)
        belonging, conversation = await opened(self._context, self._caller, request.conversation)
        body = NewMessage(text=request.text, run=request.run)

        async def start(since: float | None) -> None:
            async with SocketChannel.session(self._context.channels, request.conversation):
                await self._context.turns.start(conversation, unless_since=since)

        async def work(seed: Seed) -> Any:
            from troth.server.json_response import JSONResponse

            number = await say(self._context, self._caller, belonging, conversation, body, seed, start)
            return JSONResponse({"number": number})

        words = json.dumps([request.conversation, request.text, request.run]).encode()
        once = Once(self._context, self._caller, request.key, hashlib.sha256(words).hexdigest(), None)
        answer: dict[str, Any] = json.loads(bytes((await once(work)).body))
        return answer

    async def _ack(self, message: object) -> None:
        acknowledged = _Ack.model_validate(message)
        delivery = self._deliveries.pop(acknowledged.n, None)
        if delivery is not None:
            check_scope(self._caller, Scope.ACT)
            await self._context.runtime.outbox.aack(delivery, by=f"socket:{self._caller.owner}")

    # What it is told

    async def _follow(self, topic: tuple[str, str], source: Source, after: int) -> None:
        kind, thing = topic
        try:
            if kind == "run":
                await self._tell(topic, source, after, None)
            else:
                async with SocketChannel.session(self._context.channels, thing) as reader:
                    await self._tell(topic, source, after, reader)
        except Exception as problem:  # noqa: BLE001  told: nobody else looks at this task
            body = body_of(as_api_error(problem, self._websocket.scope["troth.request_id"]))
            await self._out.put(self._numbered(topic, Notice("error", one_line(body), after)))
        self._subscriptions.pop(topic, None)  # before its end is told: whoever hears of that may subscribe again
        await self._out.put({"type": "end", "n": self._next(), kind: thing})

    async def _tell(self, topic: tuple[str, str], source: Source, after: int, reader: Reader | None) -> None:
        async with aclosing(tell(self._context, lambda: source, source.topic, after, reader=reader)) as things:
            async for notices in things:
                for notice in notices:
                    if notice.kind is not None:  # the protocol has keep-alives of its own
                        await self._out.put(self._numbered(topic, notice))

    def _numbered(self, topic: tuple[str, str], notice: Item | Notice) -> dict[str, Any]:
        data = json.loads(notice.data)
        number = self._next()
        if notice.kind == "delivery":
            self._deliveries[number] = data["id"]
            return {"type": "delivery", "n": number, topic[0]: topic[1], "data": data}
        return {
            "type": "event",
            "n": number,
            topic[0]: topic[1],
            "id": notice.seq,
            "event": notice.kind,
            "data": data,
        }

    def _next(self) -> int:
        self._number += 1
        return self._number


def _wrong(problem: Exception) -> Exception:
    """What is told of a message that cannot be read."""
    if isinstance(problem, ValidationError):
        return as_field_error([{**wrong, "loc": ("body", *wrong["loc"])} for wrong in problem.errors()])
    if isinstance(problem, ValueError | RecursionError):
        return ApiError(400, "invalid_json", "The message is not JSON.")
    return problem
