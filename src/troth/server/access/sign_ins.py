"""Let a browser in: a key that is pasted once, or a link with a code that works once, becomes a cookie that ends.

The cookie holds a key of its own, made for this sign-in: of it, too, only a digest is kept, it ends by itself, and
signing out or `troth keys revoke` ends it at once. It opens pages only as long as the key that it was made with does.
The API takes no cookie, so no other site can make a browser call it.

A form carries a token that is made from the cookie's secret and the time. Whoever cannot read our pages has none.
"""

import hashlib
import hmac
import secrets
import time
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response

from troth.bridge import call
from troth.server.access.keys import PAGE_KEY, Keys
from troth.server.access.scopes import LOCAL, NOBODY, Caller, Scope
from troth.server.errors import ApiError

__all__ = ["Codes", "SignIns", "Visitor", "check_form", "visitor_of"]

COOKIE = "troth_page"
LASTS = 12 * 3600.0
"""Seconds for which a sign-in lasts."""
CODE_LASTS = 600.0
"""Seconds for which the code in a link may be used."""
_TOKEN_LASTS = 12 * 3600


@dataclass(frozen=True, slots=True)
class Visitor:
    """Whoever looks at a page. `secret` is what the tokens of its forms are made from."""

    caller: Caller
    secret: str

    @property
    def is_signed_in(self) -> bool:
        """Whether it may see anything."""
        return self.caller is not NOBODY

    def may(self, scope: Scope) -> bool:
        """Whether it may press a button that takes `scope`."""
        return self.is_signed_in and self.caller.may(scope)

    def token(self, now: float | None = None) -> str:
        """What the forms of a page carry that is made now."""
        moment = f"{int(time.time() if now is None else now):x}"
        return f"{moment}.{self._sign(moment)}"

    def is_token(self, word: str, now: float | None = None) -> bool:
        """Whether a form carries what a page of this visitor has, and that page is not too old."""
        moment, _, signature = word.partition(".")
        if not hmac.compare_digest(signature.encode(), self._sign(moment).encode()):
            return False
        return 0 <= (time.time() if now is None else now) - int(moment, 16) + 60 <= _TOKEN_LASTS + 60

    def _sign(self, moment: str) -> str:
        return hmac.new(self.secret.encode(), f"page token {moment}".encode(), hashlib.sha256).hexdigest()[:40]


class Codes:
    """The codes of links. Each works once, and not for long."""

    def __init__(self) -> None:
        self._digests: dict[str, float] = {}

    def make(self) -> str:
        """A new code."""
        code = secrets.token_urlsafe(24)
        self._digests[_digest(code)] = time.monotonic() + CODE_LASTS
        return code

    def take(self, code: str) -> bool:
        """Use a code up. Answers whether it was one."""
        ends = self._digests.pop(_digest(code), None)
        return ends is not None and time.monotonic() < ends


class SignIns:
    """Who is signed in at one server."""

    def __init__(self, keys: Keys | None) -> None:
        self._keys = keys
        self._local = Visitor(LOCAL, secrets.token_urlsafe(32))
        self.codes = Codes()

    @property
    def needs_key(self) -> bool:
        """Whether anybody has to sign in at all."""
        return self._keys is not None

    async def visitor(self, headers: Headers) -> Visitor:
        """Whoever sends a request with these headers."""
        if self._keys is None:
            return self._local
        secret = _cookie(headers)
        caller = None if secret is None else await self._keys.acheck_page(secret)
        return Visitor(NOBODY, "") if caller is None or secret is None else Visitor(caller, secret)

    async def with_key(self, secret: str) -> str | None:
        """Sign in with a key; the value of the cookie, or nothing where the key opens nothing."""
        if self._keys is None:
            return None
        caller = await self._keys.acheck(secret.strip())
        if caller is None or caller.key_id is None:
            return None
        return await self._make(caller.owner, caller.scopes, caller.key_id)

    async def with_code(self, code: str) -> str | None:
        """Sign in with the code of a link, which is used up by that: whoever can read what the server prints."""
        if self._keys is None or not self.codes.take(code):
            return None
        return await self._make(LOCAL.owner, LOCAL.scopes, "link")

    async def _make(self, owner: str, scopes: frozenset[Scope], origin: str) -> str:
        assert self._keys is not None
        keys = self._keys
        new_key = await call(lambda: keys.create(owner, scopes, name=f"{PAGE_KEY}{origin}", lifetime=LASTS))
        return new_key.secret

    async def sign_out(self, visitor: Visitor) -> None:
        """End a sign-in, wherever its cookie may be."""
        if self._keys is not None and visitor.caller.key_id is not None:
            await call(self._keys.revoke, visitor.caller.key_id)


def visitor_of(request: Request) -> Visitor:
    """Whoever sent a request to a page, as the gate has found it out."""
    visitor: Visitor = request.scope["troth.visitor"]
    return visitor


def check_form(request: Request, token: object) -> None:
    """Refuse a form that another site has sent, or a page that is too old."""
    site = request.headers.get("sec-fetch-site")
    if site not in (None, "same-origin"):
        raise ApiError(
            403,
            "foreign_origin",
            "A page of another site sent this form, so nothing was done.",
            advice="Open the page here, and press its button.",
        )
    if not isinstance(token, str) or not visitor_of(request).is_token(token):
        raise ApiError(
            403,
            "old_token",
            "This form is from a page that is too old, or belongs to another user, so nothing was done.",
            advice="Reload the page, and press the button again.",
        )


def set_cookie(response: Response, request: Request, secret: str) -> None:
    """Let the browser keep a sign-in: for pages below this one's folder, out of reach of scripts and other sites."""
    parts = [f"{COOKIE}={secret}", f"Max-Age={int(LASTS)}", "HttpOnly", "SameSite=Strict"]
    if request.url.scheme == "https":
        parts.append("Secure")
    response.headers.append("set-cookie", "; ".join(parts))  # no `Path`: a prefix that a proxy takes off is not known


def drop_cookie(response: Response) -> None:
    """Let the browser forget a sign-in."""
    response.headers.append("set-cookie", f"{COOKIE}=; Max-Age=0; HttpOnly; SameSite=Strict")


def _cookie(headers: Headers) -> str | None:
    jar = SimpleCookie()
    try:
        jar.load("; ".join(headers.getlist("cookie")))
    except CookieError:
        return None
    return jar[COOKIE].value if COOKIE in jar else None


def _digest(code: str) -> str:
    return hashlib.sha256(code.encode()).hexdigest()
