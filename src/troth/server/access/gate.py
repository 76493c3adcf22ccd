"""Let a request in, or not: before its body is read and before any route sees it.

It gives each request an id, checks `Host` and `Origin` where no key is asked for, finds out who the caller is, counts
requests, holds bodies to their size and time, and turns what a route raises into an answer.
"""

import asyncio
import contextlib
import json
import secrets
from typing import Any

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from troth.server.access.foreign_pages import check_local
from troth.server.access.scopes import LOCAL, NOBODY, Caller
from troth.server.context import ServerContext
from troth.server.errors import ApiError, as_api_error, body_of
from troth.server.streams.feeds import frame
from troth.server.within import within

__all__ = ["AccessGate"]

_LAST_WORD = 1.0  # seconds in which a reader may take the reason for the end of its stream

OPEN_PATHS = ("/v1/health", "/health")
"""What anybody may ask."""


class AccessGate:
    """The outermost part of the application."""

    def __init__(self, app: ASGIApp, context: ServerContext) -> None:
        self._app = app
        self._context = context
        self._requests = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or hand it on."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        request_id = f"req_{secrets.token_hex(12)}"
        passage = _Passage(scope, receive, send, request_id, self._context)
        scope["troth.context"], scope["troth.request_id"] = self._context, request_id
        transport = getattr(getattr(receive, "__self__", None), "transport", None)  # uvicorn's, where nobody is between
        scope["troth.abort"] = getattr(transport, "abort", None)
        is_counted = False
        try:
            await self._context.start()
            caller = scope["troth.caller"] = await self._admit(scope)
            if scope["type"] == "http":
                check_framing(scope)
                self._check_room()
                self._requests += 1
                is_counted = passage.is_counted = True
                passage.on_stream = self._left
            passage.key_id = caller.key_id
            await self._app(scope, passage.receive, passage.send)
        except ClientDisconnect:  # it left before its body was whole: no fault of ours, and nobody is there to answer
            if not passage.has_begun:
                await passage.fail(_cut_off())
        except asyncio.CancelledError:
            if not self._context.connections.take_refused():
                raise
            await passage.end(_invalid_key())
        except Exception as problem:  # noqa: BLE001  whatever a route raises is answered
            await passage.fail(as_api_error(problem, request_id))
        finally:
            if is_counted and passage.is_counted:
                self._left()
            passage.close()

    def _left(self) -> None:
        self._requests -= 1

    def _check_room(self) -> None:
        if self._requests >= self._context.limits.requests:
            raise ApiError(503, "too_many_requests", "The server is at its limit of requests.")

    async def _admit(self, scope: Scope) -> Caller:
        headers = Headers(scope=scope)
        keys = self._context.keys
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        if self._context.has_pages and scope["type"] == "http" and not _is_api(path):
            if keys is None:
                check_local(headers)
            visitor = scope["troth.visitor"] = await self._context.sign_ins.visitor(headers)
            return visitor.caller
        if keys is None:
            check_local(headers)
            return LOCAL
        if path in OPEN_PATHS:
            return NOBODY
        secret = _secret(scope, headers)
        caller = None if secret is None else await keys.acheck(secret)
        if caller is None:
            raise _invalid_key()
        return caller


def _cut_off() -> ApiError:
    return ApiError(400, "body_cut_off", "The connection ended before the body did.", headers={"Connection": "close"})


def _invalid_key() -> ApiError:
    return ApiError(
        401,
        "invalid_key",
        "No key was sent, or the key is not valid.",
        advice="Send `Authorization: Bearer KEY`. `troth keys create` makes a key.",
        headers={"WWW-Authenticate": 'Bearer realm="troth"'},
    )


def _is_api(path: str) -> bool:
    """Whether this is asked for by programs, with a key in a header; all else is pages, with a cookie."""
    return path == "/v1" or path.startswith("/v1/") or path in OPEN_PATHS


def _secret(scope: Scope, headers: Headers) -> str | None:
    """The key that was sent. A page cannot send headers with a WebSocket: there it is a subprotocol, `bearer.KEY`."""
    words = headers.getlist("authorization")
    if not words and scope["type"] == "websocket":
        return next((word[7:] for word in scope["subprotocols"] if word.startswith("bearer.")), None)
    scheme, _, secret = (words[0] if len(words) == 1 else "").partition(" ")
    return secret.strip() if scheme.lower() == "bearer" else None


class _Passage:
    """One request on its way: its body is held to the limits, and its answer carries the request's id."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, request_id: str, context: ServerContext) -> None:
        self._scope = scope
        self._receive = receive
        self._send = send
        self._request_id = request_id
        self._prefix = str(scope.get("root_path", "")).rstrip("/").encode()
        self._limits = context.limits
        self._got = 0
        self._is_body_over = False
        self._body_until: float | None = None
        self.has_begun = False
        self._is_stream = False
        self.is_counted = False
        self.on_stream: Any = lambda: None
        self.key_id: str | None = None
        self._connections = context.connections
        self._watched = contextlib.ExitStack()
        length = Headers(scope=scope).get("content-length", "")
        self._declared = int(length) if length.isdigit() else 0

    async def receive(self) -> Message:
        """The next part of the body, in time and not too much of it."""
        if self._scope["type"] == "websocket" or self._is_body_over:
            return await self._receive()
        if self._declared > self._limits.body:
            raise self._too_large()
        if self._body_until is None:  # from the first look on, however many pieces follow
            self._body_until = asyncio.get_running_loop().time() + self._limits.body_time
        try:
            message = await within(self._body_until, self._receive())
        except TimeoutError:
            raise ApiError(
                408,
                "body_too_slow",
                f"The body did not arrive within {self._limits.body_time:g} s.",
                headers={"Connection": "close"},
            ) from None
        if message["type"] == "http.request":
            self._got += len(message.get("body", b""))
            self._is_body_over = not message.get("more_body", False)
            if self._got > self._limits.body:
                raise self._too_large()
        return message

    def _too_large(self) -> ApiError:
        return ApiError(
            413,
            "body_too_large",
            f"The body has more than {self._limits.body} bytes, which is the limit.",
            advice="Send less, or send the place where the data is stored.",
            headers={"Connection": "close"},
        )

    async def send(self, message: Message) -> None:
        """Pass on a part of the answer."""
        if message["type"] in ("http.response.start", "websocket.accept"):
            self.has_begun = True
            headers = [*message.get("headers", []), (b"x-request-id", self._request_id.encode())]
            if self._prefix:
                headers = [(name, self._below(value) if name == b"location" else value) for name, value in headers]
            message = {**message, "headers": headers}
            self._is_stream = any(b"text/event-stream" in value for _, value in headers)
            if self._is_stream or self._scope["type"] == "websocket":
                self._watched.enter_context(self._connections.watched(self.key_id))
            if self.is_counted and self._is_stream:
                self.is_counted = False  # a stream lasts long, and is counted among the streams
                self.on_stream()
        await self._send(message)

    async def fail(self, error: ApiError) -> None:
        """Tell of an error; where the answer has begun already, end it, so that it is not taken for a whole one."""
        if self.has_begun:
            raise error
        if self._scope["type"] == "websocket":
            await self._close(error)
            return
        body = json.dumps(body_of(error, self._request_id)).encode()
        headers = {"content-type": "application/json", "content-length": str(len(body)), **error.headers}
        encoded = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()]
        await self.send({"type": "http.response.start", "status": error.status, "headers": encoded})
        await self._send({"type": "http.response.body", "body": body})

    def _below(self, location: bytes) -> bytes:
        """Where a thing is found if this application is mounted below another one."""
        return self._prefix + location if location.startswith(b"/v1/") else location

    def close(self) -> None:
        """The request is over."""
        self._watched.close()

    async def end(self, error: ApiError) -> None:
        """End what was under way with an error, whether it has begun to be answered or not."""
        if not self.has_begun:
            await self.fail(error)
            return
        try:
            async with asyncio.timeout(_LAST_WORD):
                if self._scope["type"] == "websocket":
                    await self._close(error)
                    return
                body = frame("error", json.dumps(body_of(error, self._request_id))) if self._is_stream else b""
                await self._send({"type": "http.response.body", "body": body, "more_body": False})
        except (TimeoutError, OSError):
            abort = self._scope["troth.abort"]
            if abort is not None:
                abort()

    async def _close(self, error: ApiError) -> None:
        with contextlib.suppress(RuntimeError):  # it was closed meanwhile
            await self._send({"type": "websocket.close", "code": 4000 + error.status, "reason": error.message[:100]})


def check_framing(scope: Scope) -> None:
    """Refuse a body with two lengths: whoever stands before this server may have believed the other one."""
    names = {name for name, _ in scope["headers"]}
    if {b"content-length", b"transfer-encoding"} <= names:
        raise ApiError(
            400,
            "ambiguous_length",
            "The request has both `Content-Length` and `Transfer-Encoding`, so it is unclear where it ends.",
            advice="Send one of them.",
            headers={"Connection": "close"},
        )
