"""Look a receiver's name up, and check every address that it has."""

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Sequence

from troth.server.webhooks.addresses import Address, Allowed, why_inside

__all__ = ["InsideError", "Resolve", "UnknownHostError", "check_host", "resolve"]

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Look a name up: all its addresses."""


class InsideError(Exception):
    """A name leads inside, so nothing was sent."""


class UnknownHostError(Exception):
    """A name leads nowhere."""


async def resolve(host: str, port: int) -> Sequence[str]:
    """The addresses of a name, as the system knows them."""
    try:
        infos = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as problem:
        raise UnknownHostError(f"the name {host!r} could not be looked up: {problem}") from problem
    return list(dict.fromkeys(str(entry[4][0]) for entry in infos))


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
        raise UnknownHostError(f"the name {host!r} has {text!r}, which is not an address") from None
