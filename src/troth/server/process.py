"""Listen on a port with uvicorn until somebody ends it."""

import asyncio
import contextlib
import os
import signal
import socket
import sys
import threading
import webbrowser
from collections.abc import Iterator
from typing import TYPE_CHECKING

import uvicorn

from troth.errors import RunError
from troth.server.context import ServerContext
from troth.server.protocol import limited

if TYPE_CHECKING:
    from troth.server.server import Server

__all__ = ["serve"]


_LAST_ANSWERS = 5  # seconds that answers under way have when the turns are over; those still at work are cancelled
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


async def serve(server: "Server", host: str, port: int, *, open_page: bool = False) -> None:
    """Serve until a signal or a cancellation ends it."""
    limits = server.context.limits
    listening = listen(host, port)
    await server.context.start()  # what is wrong with a workflow is raised here, and said as it is
    config = uvicorn.Config(
        server.app,
        log_config=None,
        access_log=False,  # paths have ids in them, and queries may have more
        server_header=False,
        lifespan="on",
        timeout_keep_alive=int(limits.idle_time),
        http=limited(limits),
        ws_max_size=limits.body,
        timeout_graceful_shutdown=_LAST_ANSWERS,
        ws="websockets-sansio",
    )
    worker = _Worker(config, server.context, open_page=open_page)
    try:
        await worker.serve(sockets=[listening])
    finally:
        listening.close()


class _Worker(uvicorn.Server):
    """Says where it listens once it does; the first signal lets it drain, the second one ends it at once."""

    def __init__(self, config: uvicorn.Config, context: ServerContext, *, open_page: bool) -> None:
        super().__init__(config)
        self._context = context
        self._open_page = open_page
        self._draining: asyncio.Task[None] | None = None

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Take SIGTERM and Ctrl-C ourselves: uvicorn would end at the first one, and raise it again at the end."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            loop.add_signal_handler(number, self._asked, number)
        try:
            yield
        finally:
            for number in _SIGNALS:
                loop.remove_signal_handler(number)

    def _asked(self, number: int) -> None:
        if self._draining is not None:
            os._exit(128 + number)  # whatever is at work is cut off, as by a crash, and goes on with the next server
        self._draining = asyncio.create_task(self._drain(), name="troth-drain")

    async def _drain(self) -> None:
        await self._context.drain()
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen."""
        await super().startup(sockets)
        for listening in sockets or ():
            host, port = listening.getsockname()[:2]
            name = f"[{host}]" if ":" in host else host
            sys.stdout.write(f"Troth listens on http://{name}:{port}\n")
            if self._context.has_pages:
                self._tell_of_pages(f"http://{_reachable(name)}:{port}/")
        sys.stdout.flush()

    def _tell_of_pages(self, address: str) -> None:
        """Say where the pages are; with a link that signs in once, where they ask for a key."""
        link = address
        if self._context.sign_ins.needs_key:
            link = f"{address}sign-in?code={self._context.sign_ins.codes.make()}"
            sys.stdout.write(f"Open it in a browser: {link}\n")
            sys.stdout.write("That link signs in once, within ten minutes; after that, paste a key.\n")
        else:
            sys.stdout.write(f"Open it in a browser: {link}\n")
        if self._open_page and not webbrowser.open(link):
            sys.stdout.write("No browser could be opened; open that address yourself.\n")


def _reachable(name: str) -> str:
    """A name under which a browser on this machine finds a server that listens on all addresses."""
    return {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}.get(name, name)  # noqa: S104  nothing is bound here


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens there; raises what to do where that cannot be."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except socket.gaierror as cause:
        raise RunError(f"The host {host!r} is unknown: {cause.strerror}. The server was not started.") from cause
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(2048)
    except OSError as cause:
        listening.close()
        raise RunError(
            f"The port {port} of {host} cannot be used: {cause.strerror}. The server was not started.\n"
            "Another program may be using it; give another port with `--port`, or 0 for any free port."
        ) from cause
    listening.setblocking(False)
    return listening
