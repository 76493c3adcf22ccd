"""Make a span of every request, and let what it begins belong to the trace that the client brought along."""

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from troth.server.telemetry import tracing
from troth.server.telemetry.names import Attribute, SpanName
from troth.server.telemetry.trace_context import incoming, read_headers

__all__ = ["Traced"]


class Traced:
    """A part of the application that all requests pass."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, within its span."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        carrier = read_headers(Headers(scope=scope))
        token = incoming.set(carrier)
        try:
            if tracing.is_used():
                await self._traced(scope, receive, send, carrier)
            else:
                await self._app(scope, receive, send)
        finally:
            incoming.reset(token)

    async def _traced(self, scope: Scope, receive: Receive, send: Send, carrier: dict[str, str]) -> None:
        status = 500

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        values = {Attribute.METHOD: scope["method"]}
        with tracing.span(SpanName.REQUEST, values, parent=carrier) as span:
            try:
                await self._app(scope, receive, sending)
            finally:
                span.set({Attribute.STATUS: status, Attribute.ROUTE: _route(scope)})
                if status >= 500:
                    span.fail(f"HTTP {status}")


def _route(scope: Scope) -> str | None:
    """The route, with names in the place of ids; some versions of FastAPI leave out the prefix of its router."""
    path: str | None = getattr(scope.get("route"), "path", None)
    return path if path is None or path.startswith("/v1") else f"/v1{path}"
