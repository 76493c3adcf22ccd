"""Serve the style sheet and the scripts, which are in the package: nothing is fetched from elsewhere.

Their addresses hold a digest of what they are, so that a browser keeps them for good and never has old ones.
"""

import gzip
import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response

from troth.server.errors import ApiError

__all__ = ["ASSETS", "HTMX_DIGEST", "address_of", "asset"]

HTMX = "htmx-4.0.1.min.js"
HTMX_DIGEST = "a0abb04f2f45a1f89d1d4844023245537e5e6014c87b144553e0607b4cc32130"
"""SHA-256 of the vendored file, which is `dist/htmx.min.js` of the package `htmx.org` on npm."""

ASSETS = {"troth.css": "text/css", "troth.js": "text/javascript", HTMX: "text/javascript", "icon.svg": "image/svg+xml"}


@dataclass(frozen=True, slots=True)
class _Asset:
    plain: bytes
    packed: bytes
    digest: str


@cache
def _read(name: str) -> _Asset:
    plain = (files("troth.server.pages") / "assets" / name).read_bytes()
    return _Asset(plain, gzip.compress(plain, 9, mtime=0), hashlib.sha256(plain).hexdigest()[:12])


def address_of(name: str) -> str:
    """Where an asset is, from the root of the pages."""
    return f"assets/{name}?v={_read(name).digest}"


async def asset(request: Request) -> Response:
    """One of the files."""
    name = request.path_params["name"]
    if name not in ASSETS:
        raise ApiError(404, "no_such_route", f"There is no file {name!r} here.")
    contents = _read(name)
    headers = {"Cache-Control": "public, max-age=31536000, immutable", "Vary": "Accept-Encoding"}
    headers["X-Content-Type-Options"] = "nosniff"
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(contents.packed, media_type=ASSETS[name], headers={**headers, "Content-Encoding": "gzip"})
    return Response(contents.plain, media_type=ASSETS[name], headers=headers)
