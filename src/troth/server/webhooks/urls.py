"""Check the address of a receiver, before anybody looks its name up."""

import ipaddress

import httpx

from troth.server.webhooks.addresses import Allowed
from troth.server.webhooks.errors import WebhookRefusedError

__all__ = ["check_url"]

_LONGEST = 2000


def check_url(url: object, allowed: Allowed) -> httpx.URL:
    """The address in its parts; raises `WebhookRefusedError` if nothing may be sent there."""
    if not isinstance(url, str) or len(url) > _LONGEST:
        raise WebhookRefusedError(f"A webhook's address is a text of at most {_LONGEST} characters.")
    try:
        address = httpx.URL(url)
    except (httpx.InvalidURL, ValueError) as invalid:
        raise WebhookRefusedError(f"{url!r} is no address: {invalid}. Nothing was registered.") from None
    problem = None
    if address.scheme not in ("https", "http") or not address.host:
        problem = "it does not begin with `https://` and a host"
    elif address.userinfo or address.fragment:
        problem = "it has a user, a password or a fragment, which nobody would be sent"
    elif address.scheme == "http" and not _is_allowed(address.host, allowed):
        problem = "what is sent over `http` can be read and changed on its way"
    if problem is not None:
        raise WebhookRefusedError(
            f"The address {url!r} cannot be used: {problem}.\nNothing was registered. Give an `https` address."
        )
    return address


def _is_allowed(host: str, allowed: Allowed) -> bool:
    try:
        return allowed.has_address(ipaddress.ip_address(host.strip("[]")))
    except ValueError:
        return allowed.has_name(host)
