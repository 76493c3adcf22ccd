"""Serve one client over a port of this machine.

The server of pygls goes on listening: what a second client sends is answered as if the first had asked, and from then
on the first hears nothing. A client that dies in the middle of a message leaves it waiting for ever.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import threading
from typing import TYPE_CHECKING

from pygls.io_ import run_async

from troth.errors import MisuseError

if TYPE_CHECKING:
    from troth.lsp.server import TrothServer

__all__ = ["serve_port"]

_log = logging.getLogger("troth.lsp")
_HOST = "127.0.0.1"
_REFUSED = frozenset({errno.EADDRINUSE, errno.EADDRNOTAVAIL, errno.EACCES})


class _Reader:
    """What the client sends, as quickly as it takes what it is sent: else answers that are never read pile up."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def readline(self) -> bytes:
        await self._writer.drain()
        return await self._reader.readline()

    async def readexactly(self, count: int) -> bytes:
        return await self._reader.readexactly(count)


def serve_port(server: TrothServer, port: int) -> None:
    """Listen on a port of this machine, and serve the first client until it leaves."""
    with contextlib.suppress(SystemExit):  # how pygls ends when the client says so
        asyncio.run(_serve_first(server, port))


async def _serve_first(server: TrothServer, port: int) -> None:
    reader, writer = await _first_client(port)
    server.protocol.set_writer(writer)
    try:
        await run_async(threading.Event(), _Reader(reader, writer), server.protocol, None, server.report_server_error)
    except (asyncio.IncompleteReadError, ConnectionError, ValueError) as problem:  # the last one: an endless header
        _log.warning("the connection to the editor broke: %s", problem)
    finally:
        writer.close()


async def _first_client(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    first: asyncio.Future[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = asyncio.Future()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if first.done():
            writer.close()
        else:
            first.set_result((reader, writer))

    try:
        listening = await asyncio.start_server(connected, _HOST, port)
    except OSError as problem:
        if problem.errno not in _REFUSED:
            raise
        raise MisuseError(
            f"Cannot listen on port {port} of this machine: {os.strerror(problem.errno)}.\n"
            "Nothing was started.\nName another port."
        ) from problem
    try:
        return await first
    finally:
        listening.close()
