"""Send events as they come: server-sent events with a number on each frame, for readers who may come back.

A reader goes on from `Last-Event-ID` or `?after=`. A number that is not there any more, or not yet, is answered with a
frame `gap`. A quiet stream sends comments. A reader who is too slow is told so and disconnected; it comes back with its
number. Leaving a stream cancels nothing.
"""

import asyncio
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import asdict
from typing import Annotated, Any, NamedTuple

from fastapi import Depends, Query, Request
from pydantic import TypeAdapter, ValidationError
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from troth.bridge import call
from troth.server.channels import Reader
from troth.server.context import ServerContext
from troth.server.direct_route import resolved_by
from troth.server.errors import ApiError, as_api_error, body_of
from troth.server.json_response import one_line
from troth.server.limits import Limits
from troth.server.streams.feeds import EventPage, Feed, Item, Source, frame
from troth.server.within import within

__all__ = [
    "CursorDep",
    "EventStream",
    "FollowDep",
    "Notice",
    "check_room",
    "events",
    "frame",
    "joined",
    "one_line",
    "stream_of",
    "tell",
]

COMMENT = b": keep-alive\n\n"
_AT_ONCE = 16_000  # letters of events that are sent at once


async def _cursor(request: Request) -> int:
    word = request.query_params.get("after")
    if word is not None and (not word.isascii() or not word.isdigit() or len(word) > 18):
        message = f"`after` is {word[:40]!r}, which is not the number of an event."
        raise ApiError(400, "invalid_field", message, param="after")
    return await cursor_of(request, None if word is None else int(word))


@resolved_by(_cursor)
async def cursor_of(  # async: FastAPI calls a sync one in a thread
    request: Request,
    after: Annotated[int | None, Query(ge=0, description="the number of the last event that you have")] = None,
) -> int:
    """Where a reader goes on: the last event that it knows. The header wins: a browser sends it by itself."""
    header = request.headers.get("last-event-id")
    if header is None:
        return after or 0
    if not header.isascii() or not header.isdigit() or len(header) > 18:
        raise ApiError(
            400,
            "invalid_cursor",
            f"`Last-Event-ID` is {header[:40]!r}, which is not the number of an event.",
            param="Last-Event-ID",
            advice="Send back the `id` of the last frame that you have, or leave it out to read from the start.",
        )
    return int(header)


CursorDep = Annotated[int, Depends(cursor_of)]


async def _following(request: Request) -> bool:
    word = request.query_params.get("follow")
    try:
        return True if word is None else _BOOL.validate_python(word)
    except ValidationError:
        message = f"`follow` is {word[:40]!r}; it can be `true` or `false`."  # type: ignore[index]  # not None
        raise ApiError(400, "invalid_field", message, param="follow") from None


_BOOL = TypeAdapter(bool)


@resolved_by(_following)
async def following(  # async: FastAPI calls a sync one in a thread
    follow: Annotated[bool, Query(description="false to end with what there is now")] = True,  # noqa: FBT002
) -> bool:
    """Whether a stream waits for what is to come."""
    return follow


FollowDep = Annotated[bool, Depends(following)]


class EventStream(Response):
    """Sends chunks as they come. The chunks' iterator is closed when the reader leaves."""

    media_type = "text/event-stream"

    def __init__(
        self,
        context: ServerContext,
        chunks: AsyncIterator[bytes],
        headers: Mapping[str, str] | None = None,
        status_code: int = 200,
    ) -> None:
        self.status_code = status_code
        self.background = None
        self._context = context
        self._chunks = chunks
        self.init_headers({"Cache-Control": "no-cache", "X-Accel-Buffering": "no", **(headers or {})})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until the chunks end or the reader leaves."""
        sending = asyncio.current_task()
        assert sending is not None
        watching = asyncio.create_task(_watch(receive, sending))
        try:
            await self._send(send)
        except (TimeoutError, OSError):
            abort = scope.get("troth.abort")  # it reads nothing: what waits for it is dropped
            if abort is not None:
                abort()
        except asyncio.CancelledError:
            if not (watching.done() and not watching.cancelled() and sending.uncancel() == 0):
                raise  # somebody else wants an end
        finally:
            watching.cancel()
            close = getattr(self._chunks, "aclose", None)
            if close is not None:
                await asyncio.shield(asyncio.ensure_future(close()))

    async def _send(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        clock, write_time = asyncio.get_running_loop().time, self._context.limits.write_time
        async for chunk in self._chunks:
            message = {"type": "http.response.body", "body": chunk, "more_body": True}
            await within(clock() + write_time, send(message))
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _watch(receive: Receive, sending: "asyncio.Task[Any]") -> None:
    """End the sending when the reader leaves. Two tasks without a group: a thousand readers wait in them."""
    while (await receive())["type"] != "http.disconnect":
        pass
    sending.cancel()


def stream_of(
    context: ServerContext,
    make: Callable[[], Source],
    topic: str,
    after: int,
    *,
    follow: bool = True,
    reader: Reader | None = None,
) -> EventStream:
    """The stream of a log, for one reader from `after` on."""
    check_room(context)
    return EventStream(context, events(context, make, topic, after, follow=follow, reader=reader))


def check_room(context: ServerContext) -> None:
    """Refuse one stream too many, and any while the server ends."""
    if context.is_draining:
        raise ApiError(503, "closing", "The server is shutting down; connect again to continue the stream.")
    if context.feeds.readers >= context.limits.streams:
        raise ApiError(503, "too_many_streams", "As many streams are open as the server can serve.")


class Notice(NamedTuple):
    """One thing that a reader is told beside events. Without a kind it says only that the connection lives."""

    kind: str | None
    data: str
    number: int

    @property
    def seq(self) -> int:
        """Where the reader stands with it."""
        return self.number

    @property
    def frame(self) -> bytes:
        """As a stream sends it."""
        return COMMENT if self.kind is None else frame(self.kind, self.data, self.number)


async def events(
    context: ServerContext,
    make: Callable[[], Source],
    topic: str,
    after: int,
    *,
    follow: bool = True,
    reader: Reader | None = None,
) -> AsyncIterator[bytes]:
    """The frames of a log after number `after`, and those to come."""
    async with aclosing(tell(context, make, topic, after, follow=follow, reader=reader)) as things:
        async for notices in things:
            yield notices[0].frame if len(notices) == 1 else b"".join([notice.frame for notice in notices])


async def tell(
    context: ServerContext,
    make: Callable[[], Source],
    topic: str,
    after: int,
    *,
    follow: bool = True,
    reader: Reader | None = None,
) -> AsyncGenerator[Sequence[Item | Notice], None]:
    """What a reader is told of a log after number `after`: its events, gaps, deliveries, and how it ends.

    What comes together is told together, up to a size that a slow reader can take at once.
    """
    async with context.feeds.following(topic, make) as feed:
        cursor = after
        caught_up_at: float | None = None  # when it last had everything; None while it reads what came before it
        try:
            while True:
                for delivery in () if reader is None else reader.take():
                    yield [Notice("delivery", one_line(asdict(delivery)), cursor)]
                items = feed.after(cursor)
                if items is None:
                    page = await call(feed.source.read, cursor)
                    gap = _gap(page, cursor)
                    if gap is not None:
                        cursor = gap["next"] - 1
                        yield [Notice("gap", json.dumps(gap), cursor)]
                        continue
                    items = list(page.items)
                if caught_up_at is not None and _is_slow(feed.last - cursor, caught_up_at, context.limits):
                    slow = {"cursor": cursor, "behind": feed.last - cursor, "advice": "Connect again with this cursor."}
                    yield [Notice("slow", json.dumps(slow), cursor)]
                    return
                for batch in _batches(items):
                    yield batch
                    cursor = batch[-1].seq
                if items:
                    continue
                if not follow or (feed.is_over and cursor >= feed.last):
                    if caught_up_at is not None:
                        await asyncio.sleep(0)  # everybody has the end before anybody's connection is cleared away
                    return
                if feed.problem is not None:
                    raise feed.problem
                if feed.is_closing or context.is_draining:
                    yield [Notice("closing", json.dumps({"cursor": cursor, "advice": "Connect again."}), cursor)]
                    return
                if not await _news(feed, reader, cursor, context.limits.keep_alive):
                    yield [Notice(None, "", cursor)]
                caught_up_at = time.monotonic()
        except Exception as problem:  # noqa: BLE001  a stream that just ends is taken for a whole one
            error = as_api_error(problem, "stream")
            yield [Notice("error", json.dumps(body_of(error)), cursor)]


def _batches(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    """The events in pieces that are sent at once: each piece is one more chance to notice a reader who takes none."""
    start = size = 0
    for number, item in enumerate(items):
        size += len(item.data)
        if size > _AT_ONCE:
            yield items[start : number + 1]
            start, size = number + 1, 0
    if start < len(items):
        yield items[start:]


def joined(frames: Iterable[bytes]) -> Iterator[bytes]:
    """Frames in pieces that are sent at once, as `_batches` does it."""
    piece, size = list[bytes](), 0
    for data in frames:
        piece.append(data)
        size += len(data)
        if size > _AT_ONCE:
            yield b"".join(piece)
            piece, size = [], 0
    if piece:
        yield b"".join(piece)


def _is_slow(behind: int, caught_up_at: float, limits: Limits) -> bool:
    """Whether a reader falls behind, and not merely had a burst of events."""
    return behind > limits.lag and time.monotonic() - caught_up_at > limits.write_time


async def _news(feed: Feed, reader: Reader | None, cursor: int, timeout: float) -> bool:
    """Wait until there may be something to send."""
    if feed.after(cursor) != [] and feed.last >= 0:
        return True
    if reader is None:
        return await feed.wait(timeout)
    # A task begins to wait in the next turn of the loop: an event that comes before is one nobody would be told of.
    change, delivery = feed.wait(timeout), asyncio.ensure_future(reader.wait())
    try:
        ended, _ = await asyncio.wait((change, delivery), timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        return any(future is delivery or future.result() for future in ended)
    finally:
        change.cancel()
        delivery.cancel()


def _gap(page: EventPage, cursor: int) -> dict[str, int] | None:
    """What to tell a reader whose cursor the log does not have; nothing where it does."""
    if cursor > page.last:
        return {"after": cursor, "next": page.last + 1, "last": page.last}
    if page.first > cursor + 1:
        return {"after": cursor, "next": page.first, "last": page.last}
    return None
