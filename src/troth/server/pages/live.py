"""Tell open pages that something has changed: a stream of numbers, from which a page knows that it is to look again.

What has changed is not in the stream: a page asks for itself anew, so that what it shows is always what it would show
to somebody who comes now. Whoever was away sends the number that it knows, and looks again if there is a later one.
"""

from starlette.requests import Request
from starlette.responses import Response

from troth.server.access.sign_ins import visitor_of
from troth.server.context import context_of
from troth.server.errors import ApiError, as_api_error
from troth.server.pages.frame.failure import failure_page
from troth.server.pages.news import news_source
from troth.server.streams.sse import cursor_of, stream_of

__all__ = ["stream"]


async def stream(request: Request) -> Response:
    """The stream that a page follows: `?on=all`, `?on=run&id=…`, `?on=conversation&id=…`."""
    try:
        if not visitor_of(request).is_signed_in:
            raise ApiError(401, "invalid_key", "Sign in to follow what happens.")
        after = request.query_params.get("after", "")
        cursor = await cursor_of(request, int(after) if after.isdigit() and len(after) < 19 else None)
        context = context_of(request)
        source = news_source(context, request.query_params.get("on", "all"), request.query_params.get("id", ""))
        return stream_of(context, lambda: source, source.topic, cursor)
    except Exception as problem:  # noqa: BLE001  whatever it is, it is told
        return failure_page(request, as_api_error(problem, request.scope.get("troth.request_id")))
