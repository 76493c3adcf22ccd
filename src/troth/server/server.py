"""Serve a runtime: an ASGI application to mount anywhere, or a process of its own."""

import ipaddress
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from troth.bridge import run
from troth.errors import MisuseError
from troth.runtime.assemble import Runtime
from troth.runtime.workflows.registry import Runnable
from troth.server.access.keys import Keys
from troth.server.app import build_app
from troth.server.context import ServerContext
from troth.server.limits import Limits

if TYPE_CHECKING:
    from fastapi import FastAPI

    from troth.server.webhooks import Webhooks

__all__ = ["PORT", "Server"]

PORT = 8700


class Server:
    """A runtime that others reach over HTTP.

    `agents` are whom conversations can be had with, by name, beside those of the runtime; `workflows` are what can be
    run: files, or workflows in Python. `keys` are the keys in the runtime's store unless told otherwise; with
    `keys=False` nobody needs one, and the server listens on loopback alone.

    `webhooks` says whom to call when work is done, and what may be called at all; receivers can be registered over HTTP
    too. `content=True` lets OpenTelemetry's spans tell what people and agents say. `pages=False` leaves the pages out
    that show all of it in a browser.

    `app` is an ASGI application, to be mounted below any prefix; `serve` and `aserve` are a server of its own.
    """

    def __init__(
        self,
        runtime: Runtime,
        *,
        agents: Mapping[str, object] | None = None,
        workflows: Iterable[Runnable] = (),
        keys: Keys | bool = True,
        limits: Limits | None = None,
        webhooks: "Webhooks | None" = None,
        content: bool = False,
        pages: bool = True,
    ) -> None:
        if not isinstance(runtime, Runtime):
            raise MisuseError(f"`Server` needs a `Runtime`, not {runtime!r}. Nothing was started.")
        opening = Keys(runtime.store) if keys is True else keys or None
        self.runtime = runtime
        self.context = ServerContext(
            runtime, agents or {}, workflows, opening, limits or Limits(), webhooks, content=content, pages=pages
        )
        self.app: FastAPI = build_app(self.context)

    def serve(self, host: str = "127.0.0.1", port: int = PORT, *, open_page: bool = False) -> None:
        """Serve until SIGTERM or Ctrl-C. Blocks this thread. `open_page` opens the pages in a browser."""
        run(self.aserve(host, port, open_page=open_page))

    async def aserve(self, host: str = "127.0.0.1", port: int = PORT, *, open_page: bool = False) -> None:
        """`serve` in this task; cancelling it ends the server."""
        from troth.server.process import serve

        self.check(host)
        if open_page and not self.context.has_pages:
            raise MisuseError("This server leaves its pages out (`pages=False`), so there is none to open.")
        await serve(self, host, port, open_page=open_page)

    def check(self, host: str) -> None:
        """Refuse to listen where anybody could come in."""
        if self.context.keys is None and not _is_loopback(host):
            raise MisuseError(
                f"Without a key the server listens on loopback alone, and {host!r} is not. It was not started.\n"
                "Make a key with `troth keys create OWNER`, or listen on 127.0.0.1."
            )
        if self.context.keys is not None and not self.context.keys.has_any():
            raise MisuseError(
                "There is no valid key in the store, so no client could use the server. "
                "It was not started.\nMake one with `troth keys create OWNER`; on loopback, `--no-key` needs none."
            )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
