"""Make a page once for all tabs that ask for it at the same moment, and not once for each.

All tabs of somebody are told of a change together, and look again together. What was made since the last change is what
each of them would get; it is kept until the next one, and never for long.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable

from starlette.requests import Request
from starlette.responses import Response

from troth.runtime.store.list_records import changes_topic
from troth.server.access.sign_ins import visitor_of
from troth.server.context import ServerContext, context_of

__all__ = ["RecentPages", "key_of", "recent_page"]

_LASTS = 2.0  # seconds: times on a page are told as of when it was made
_KEPT = 64  # pages


class RecentPages:
    """The pages that were made last, by who asked for what, and since which change."""

    def __init__(self) -> None:
        self._answers: dict[Hashable, tuple[float, asyncio.Task[Response]]] = {}

    async def answer(self, key: Hashable, make: Callable[[], Awaitable[Response]]) -> Response:
        """The answer that was made for `key`, or is being made; made now where there is none."""
        first = await self.made(key, make)
        headers = [(name, value) for name, value in first.raw_headers if name != b"content-length"]
        answer = Response(first.body, first.status_code)
        answer.raw_headers = [*headers, (b"content-length", str(len(first.body)).encode())]
        return answer

    async def made(self, key: Hashable, make: Callable[[], Awaitable[Response]]) -> Response:
        """The same, as it was made: to be looked at only."""
        now = time.monotonic()
        at, task = self._answers.get(key, (0.0, None))
        if task is None or now - at > _LASTS or task.cancelled():
            task = asyncio.ensure_future(make())
            while len(self._answers) >= _KEPT:
                self._answers.pop(next(iter(self._answers)))
            self._answers[key] = now, task
        return task.result() if task.done() else await asyncio.shield(task)


def recent_page(request: Request) -> tuple[RecentPages, Hashable] | None:
    """Where a page may be found that was made for another tab; nothing where nobody follows what it shows."""
    context = context_of(request)
    number = _last_change(context)
    if number is None:
        return None
    return context.recent_pages, key_of(request, number)


def key_of(request: Request, number: int) -> tuple[Hashable, ...]:
    """What two looks at a page have in common that are to get the same: who looks, at what, since which change."""
    visitor, headers = visitor_of(request), request.headers
    return (
        number,
        visitor.secret,
        request.scope["path"],
        request.scope.get("root_path", ""),
        request.scope.get("query_string", b""),
        headers.get("cookie", ""),
        headers.get("if-none-match", ""),
        "gzip" in headers.get("accept-encoding", ""),
    )


def _last_change(context: ServerContext) -> int | None:
    """The number of the last change that open pages were told of."""
    return context.feeds.last_of(changes_topic)
