"""Keep pages of other sites away from a server without keys: what a browser sends for them is told by its headers."""

import functools
import ipaddress
from urllib.parse import urlsplit

from starlette.datastructures import Headers

from troth.server.errors import ApiError

__all__ = ["check_local"]


def check_local(headers: Headers) -> None:
    """Refuse what a page of somebody else's could send: a foreign name in `Host`, or an `Origin` that is not ours.

    A page whose name was pointed at 127.0.0.1 sends its own name as `Host`.
    """
    hosts = headers.getlist("host")
    if len(hosts) != 1 or not _is_loopback(hosts[0]):
        raise ApiError(
            403,
            "foreign_host",
            "This server has no key, so it accepts only the host `localhost` or a loopback address.",
            advice="Use that host, or start the server with a key.",
        )
    is_link = headers.get("sec-fetch-mode") == "navigate"  # that somebody follows; the page that has it reads nothing
    is_embedded = headers.get("sec-fetch-site") == "cross-site" and not is_link
    if is_embedded or any(_site_of(origin) != hosts[0].lower() for origin in headers.getlist("origin")):
        raise ApiError(
            403,
            "foreign_origin",
            "This server has no key, so it accepts no requests from pages of another origin.",
            advice="Start the server with a key, and send the key.",
        )


def _site_of(origin: str) -> str:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""  # nobody's, as `null` is


@functools.lru_cache(maxsize=16)  # clients send the same name again and again
def _is_loopback(word: str) -> bool:
    try:
        host = urlsplit(f"//{word}").hostname or ""
    except ValueError:
        return False
    if "@" in word:
        return False
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
