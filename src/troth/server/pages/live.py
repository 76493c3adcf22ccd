"""Tell open pages that something has changed: a stream of numbers, from which a page knows that it is to look again.

What has changed is not in the stream: a page asks for itself anew, so that what it shows is always what it would show
to somebody who comes now. Whoever was away sends the number that it knows, and looks again if there is a later one.

Pages that many may have open at once can be sent along (`page=` is their address): made once for all tabs of somebody,
as they would get it if they asked. Fifty requests for it cost ten times as much as fifty frames.
"""

import base64
import gzip
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from troth.server.access.sign_ins import visitor_of
from troth.server.context import context_of
from troth.server.errors import ApiError, as_api_error
from troth.server.pages.frame.failure import failure_page
from troth.server.pages.frame.recent import key_of
from troth.server.pages.news import news_source
from troth.server.streams.feeds import Item
from troth.server.streams.sse import EventStream, check_room, cursor_of, frame, stream_of, tell

__all__ = ["streaming"]

Make = Callable[[Request], Awaitable[Response]]
_LONGEST = 2000  # letters of the address of a page that is sent along


def streaming(make_of: Callable[[str], Make | None]) -> Callable[[Request], Awaitable[Response]]:
    """The stream that a page follows: `?on=all`, `?on=run&id=…`, `?on=conversation&id=…`.

    `make_of` answers what makes the page at an address, for those that are sent along.
    """

    async def stream(request: Request) -> Response:
        try:
            if not visitor_of(request).is_signed_in:
                raise ApiError(401, "invalid_key", "Sign in to follow what happens.")
            words = request.query_params
            after = words.get("after", "")
            cursor = await cursor_of(request, int(after) if after.isdigit() and len(after) < 19 else None)
            context = context_of(request)
            source = news_source(context, words.get("on", "all"), words.get("id", ""))
            path, _, query = words.get("page", "-").partition("?")
            make = make_of(f"/{path}") if words.get("on", "all") == "all" and len(query) < _LONGEST else None
            if make is None:
                return stream_of(context, lambda: source, source.key, cursor)
            check_room(context)
            things = tell(context, lambda: source, source.key, cursor)
            return EventStream(context, _with_pages(request, things, make, path, query))
        except Exception as problem:  # noqa: BLE001  whatever it is, it is told
            return failure_page(request, as_api_error(problem, request.scope.get("troth.request_id")))

    return stream


async def _with_pages(
    request: Request, things: AsyncGenerator[Any, None], make: Make, path: str, query: str
) -> AsyncIterator[bytes]:
    async with aclosing(things):
        async for notices in things:
            for notice in notices:
                is_change = isinstance(notice, Item) and notice.kind == "changed"
                yield await _page_frame(request, notice, make, path, query) if is_change else notice.frame


async def _page_frame(request: Request, item: Item, make: Make, path: str, query: str) -> bytes:
    """The frame of a change with the page in it; without, where whoever looks is signed in no more."""
    context = context_of(request)
    visitor = await context.sign_ins.visitor(request.headers)
    if not visitor.is_signed_in:
        return item.frame
    scope = {
        **request.scope,
        "path": f"{request.scope.get('root_path', '')}/{path}",
        "raw_path": f"{request.scope.get('root_path', '')}/{path}".encode(),
        "query_string": query.encode("latin-1", "replace"),
        "headers": [(name, value) for name, value in request.scope["headers"] if name in _HEADERS],
        "troth.visitor": visitor,
        "troth.caller": visitor.caller,
    }
    look = Request(scope)

    async def make_frame() -> Response:
        page = await make(look)
        if page.status_code != 200:
            return Response(item.frame)
        body = bytes(page.body)
        if page.headers.get("content-encoding") != "gzip":
            body = gzip.compress(body, 5)
        have = json.loads(item.data)["have"]
        data = json.dumps({"have": have, "page": base64.b64encode(body).decode()})
        return Response(frame("changed", data, item.seq))

    try:
        made = await context.recent_pages.made(("frame", *key_of(look, item.seq)), make_frame)
    except Exception:  # noqa: BLE001  the page then asks for itself, and is told what is wrong
        return item.frame
    return bytes(made.body)


_HEADERS = (b"host", b"cookie", b"accept-encoding")
