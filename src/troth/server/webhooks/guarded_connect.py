"""Connect to a receiver: look its name up once, check every address that it has, connect to one of exactly those.

A check before the request would not do: the name can be looked up again when the connection is made, and lead
elsewhere by then. Here the connection is made to the address that was checked. TLS and the `Host` header still use the
name, because they are none of this module's business: httpcore takes them from the URL.
"""

import asyncio
from collections.abc import Iterable
from typing import Any

import httpcore

from troth.server.webhooks.addresses import Allowed
from troth.server.webhooks.name_resolution import Resolve, check_host, resolve

__all__ = ["FAULTS", "GuardedBackend"]

FAULTS = (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException, OSError)
"""What goes wrong between two machines."""


class GuardedBackend(httpcore.AsyncNetworkBackend):
    """What httpcore connects through."""

    def __init__(self, allowed: Allowed, look_up: Resolve = resolve) -> None:
        self._allowed = allowed
        self._look_up = look_up
        self._inner = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect to the first address of the name that answers, if all of them are outside."""
        problem: Exception | None = None
        for address in await check_host(host, port, self._allowed, self._look_up):
            try:
                return await self._inner.connect_tcp(str(address), port, timeout, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as refused:
                problem = refused
        assert problem is not None
        raise problem

    async def sleep(self, seconds: float) -> None:
        """Wait, for httpcore."""
        await asyncio.sleep(seconds)
