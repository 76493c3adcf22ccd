"""Connect to a receiver: look its name up once, check every address that it has, connect to one of exactly those.

A check before the request would not do: the name can be looked up again when the connection is made, and lead
elsewhere by then. Here the connection is made to the address that was checked. TLS and the `Host` header still use the
name, because they are none of this module's business: httpcore takes them from the URL.
"""

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

import httpcore

from troth.server.webhooks.addresses import Address, Allowed, why_inside

__all__ = ["GuardedBackend", "InsideError", "Resolve", "UnknownHostError", "check_host", "resolve"]

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Look a name up: all its addresses."""


class InsideError(Exception):
    """A name leads inside, so nothing was sent."""


class UnknownHostError(Exception):
    """A name leads nowhere."""


async def resolve(host: str, port: int) -> Sequence[str]:
    """The addresses of a name, as the system knows them."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as problem:
        raise UnknownHostError(f"the name {host!r} could not be looked up: {problem}") from problem
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


async def check_host(host: str, port: int, allowed: Allowed, look_up: Resolve = resolve) -> list[Address]:
    """The addresses of a host, all of them outside; raises `InsideError` if one of them is not."""
    bare = host.strip("[]")
    try:
        addresses: list[Address] = [ipaddress.ip_address(bare)]
    except ValueError:
        addresses = [_read(text, host) for text in await look_up(bare, port)]
    if not addresses:
        raise UnknownHostError(f"the name {host!r} has no address")
    if allowed.has_name(bare):
        return addresses
    for address in addresses:
        why = None if allowed.has_address(address) else why_inside(address)
        if why is not None:
            where = str(address) if str(address) == bare else f"{host}, which is {address},"
            raise InsideError(f"{where} is not on the public internet: it is {why}")
    return addresses


def _read(text: str, host: str) -> Address:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        raise UnknownHostError(f"the name {host!r} has {text!r}, which is no address") from None


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
