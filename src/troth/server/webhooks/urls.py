"""Check the address of a receiver, before anybody looks its name up."""

import ipaddress
from typing import NamedTuple
from urllib.parse import urlsplit

from troth.server.webhooks.addresses import Allowed
from troth.server.webhooks.errors import WebhookRefusedError

__all__ = ["HostAndPort", "check_url"]

_LONGEST = 2000
_PORTS = {"https": 443, "http": 80}


class HostAndPort(NamedTuple):
    """Where a receiver is."""

    host: str
    port: int


def check_url(url: object, allowed: Allowed) -> HostAndPort:
    """Where the address leads; raises `WebhookRefusedError` if nothing may be sent there."""
    if not isinstance(url, str) or len(url) > _LONGEST:
        raise WebhookRefusedError(f"A webhook's address is a string of at most {_LONGEST} characters.")
    problem = None
    host, port = "", None
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError as invalid:
        raise _refused(url, str(invalid)) from None
    if parts.scheme not in _PORTS or not host:
        problem = "it does not begin with `https://` and a host"
    elif not url.isascii() or not url.isprintable() or " " in url or "\\" in url:
        problem = "it has characters that have to be encoded; write such a name as `xn--…`"
    elif parts.username is not None or parts.password is not None or parts.fragment:
        problem = "it has a user, a password or a fragment, which would not be sent"
    elif parts.scheme == "http" and not _is_allowed(host, allowed):
        problem = "what is sent over `http` can be read and changed on its way"
    if problem is not None:
        raise _refused(url, problem)
    return HostAndPort(host, port or _PORTS[parts.scheme])


def _refused(url: str, problem: str) -> WebhookRefusedError:
    return WebhookRefusedError(
        f"The address {url!r} cannot be used: {problem}.\nNothing was registered. Give an `https` address."
    )


def _is_allowed(host: str, allowed: Allowed) -> bool:
    try:
        return allowed.has_address(ipaddress.ip_address(host))
    except ValueError:
        return allowed.has_name(host)
