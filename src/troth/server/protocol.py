"""Hold connections to limits of time that uvicorn does not have: for the head of a request, before it, and for reading.

A client that reads nothing would keep its answer in the memory of the server for as long as it likes.
"""

import asyncio
import socket
import struct
from typing import Any, ClassVar, cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from troth.server.limits import Limits

__all__ = ["HeadWithBody", "limited"]

_TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
_DROP = struct.pack("ii", 1, 0)
_FINAL_HEAD, _INTERIM_HEAD = b"HTTP/1.1 ", b"HTTP/1.1 1"
_LAST = 1.0  # seconds for which a client that was too slow may still take the answer


class HeadWithBody:
    """A transport that sends the head of an answer together with what follows it at once.

    uvicorn writes them one after the other, and each write costs a call of the system and wakes the client up.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self.transport = transport
        self._loop = loop
        self._head = b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.transport, name)

    def write(self, data: bytes) -> None:
        """Send, or keep the head of an answer until more of it comes, or the loop has its next turn."""
        if self._head:
            data, self._head = self._head + data, b""
        elif data.startswith(_FINAL_HEAD) and not data.startswith(_INTERIM_HEAD):
            self._head = data
            self._loop.call_soon(self._send_head)
            return
        self.transport.write(data)

    def close(self) -> None:
        """Send what is kept, and close."""
        self._send_head()
        self.transport.close()

    def _send_head(self) -> None:
        if self._head:
            head, self._head = self._head, b""
            self.transport.write(head)


class _LimitedProtocol(H11Protocol):
    """HTTP/1.1 whose clients have to send the head of a request in time, and to read what they are sent."""

    limits: ClassVar[Limits]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._deadline: asyncio.TimerHandle | None = None
        self._reading: asyncio.TimerHandle | None = None
        """The moment at which a client that had much to read must have read some of it."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self.transport = cast("asyncio.Transport", HeadWithBody(transport, self.loop))
        self._wait(self.limits.idle_time)

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        """Hand the connection itself on: what a socket sends has no heads."""
        self.transport = cast("HeadWithBody", self.transport).transport
        super().handle_websocket_upgrade(event)

    def data_received(self, data: bytes) -> None:
        """Take notice of the head of a request: its time runs from its first byte to its last."""
        was_silent = self._deadline is None or self._is_silent
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._forget()
        elif was_silent:
            self._wait(self.limits.header_time, is_silent=False)

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing any more."""
        self._forget()
        self._forget_reading()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Much waits to be read: some of it has to be in time."""
        super().pause_writing()
        self._await_reading()

    def resume_writing(self) -> None:
        """It reads."""
        self._forget_reading()
        super().resume_writing()

    def timeout_keep_alive_handler(self) -> None:
        """The connection is not needed any more. What was not read is not kept for ever."""
        super().timeout_keep_alive_handler()
        if self._reading is None:
            self._await_reading()

    def _await_reading(self) -> None:
        self._forget_reading()
        unread = self.transport.get_write_buffer_size()
        if unread:
            self._reading = self.loop.call_later(self.limits.write_time, self._look_at_reading, unread)

    def _look_at_reading(self, unread: int) -> None:
        self._reading = None
        if self.transport.get_write_buffer_size() < unread:
            self._await_reading()
        else:
            connection = self.transport.get_extra_info("socket")
            if connection is not None:  # else the system would keep what it has taken, and wait in its turn
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _DROP)
            self.transport.abort()

    def _forget_reading(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    def _wait(self, seconds: float, *, is_silent: bool = True) -> None:
        self._forget()
        self._is_silent = is_silent
        self._deadline = self.loop.call_later(seconds, self._too_slow)

    def _forget(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _too_slow(self) -> None:
        self._deadline = None
        if self.transport.is_closing():
            return
        if not self._is_silent:
            self.transport.write(_TOO_SLOW)
        self.transport.close()
        self.loop.call_later(_LAST, self.transport.abort)


def limited(limits: Limits) -> type[H11Protocol]:
    """The protocol with these limits, for uvicorn."""
    return type("LimitedProtocol", (_LimitedProtocol,), {"limits": limits})
