"""Put a page into its frame: the head, the way around, who looks at it, and the headers that keep others out."""

import gzip
import hashlib
from dataclasses import dataclass, field

from starlette.requests import Request
from starlette.responses import Response

from troth import __version__
from troth.runtime.workflows.render.markup import Html, join, tag
from troth.server.access.sign_ins import Visitor, visitor_of
from troth.server.pages.frame.assets import HTMX, address_of

__all__ = ["HEADERS", "HtmlPage", "answer", "root_of"]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # without any, a browser hides where a form came from
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_HTMX = (
    '{"includeIndicatorCSS": false, "history": false, "defaultSettleDelay": 0, "noSwap": [204, 304], '
    '"morphIgnore": ["data-htmx-powered", "open", "data-held"]}'
)
SECTIONS = (
    ("now", "Now", "./", "g n"),
    ("runs", "Runs", "runs", "g r"),
    ("conversations", "Conversations", "conversations", "g c"),
    ("sessions", "Sessions", "sessions", "g s"),
    ("promises", "Promises", "promises", "g p"),
    ("search", "Search", "search", "/"),
)
_MANY = 900  # bytes from which packing pays


@dataclass(frozen=True, slots=True)
class HtmlPage:
    """What one page shows. `live` says what it follows, as the address of a stream wants it; empty for nothing."""

    title: str
    body: Html
    section: str = ""
    live: str = ""
    have: str = ""
    """The word for how things were when it was made, as the stream tells it, too."""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


def root_of(request: Request) -> str:
    """The way from this page up to the root of all pages: relative, so that any prefix works."""
    path = request.scope.get("raw_path") or request.scope["path"].encode()
    prefix = request.scope.get("root_path", "")
    depth = path.split(b"?")[0].count(b"/") - prefix.rstrip("/").count("/")
    return "../" * (depth - 1) or "./"


def answer(request: Request, page: HtmlPage) -> Response:
    """The page as it is sent."""
    text = _document(request, page).encode("utf-8", "backslashreplace")
    tag_of = f'"{hashlib.sha256(text).hexdigest()[:24]}"'
    headers = {**HEADERS, "Cache-Control": "private, no-cache", "Vary": "Accept-Encoding, Cookie", "ETag": tag_of}
    headers.update(page.headers)
    if request.headers.get("if-none-match") == tag_of and page.status == 200:
        return Response(status_code=304, headers=headers)
    if len(text) > _MANY and "gzip" in request.headers.get("accept-encoding", ""):
        text = gzip.compress(text, 5)
        headers["Content-Encoding"] = "gzip"
    return Response(text, page.status, headers, media_type="text/html")


def _document(request: Request, page: HtmlPage) -> str:
    root, visitor = root_of(request), visitor_of(request)
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="htmx-config", content=_HTMX),
        tag("title", f"{page.title} · Troth"),
        tag("link", rel="icon", href=root + address_of("icon.svg"), type="image/svg+xml"),
        tag("link", rel="stylesheet", href=root + address_of("troth.css")),
        tag("script", src=root + address_of(HTMX), defer=True),
        tag("script", src=root + address_of("troth.js"), defer=True),
    )
    main = tag("main", tag("div", page.body, id="content", data_have=page.have or None), id="main", tabindex="-1")
    body = tag(
        "body",
        tag("a", "Skip to the content", href="#main", class_="skip"),
        _header(page, root, visitor),
        main,
        _footer(),
        data_root=root,
        data_live=page.live or None,
    )
    return f'<!doctype html><html lang="en">{head}{body}</html>\n'


def _header(page: HtmlPage, root: str, visitor: Visitor) -> Html:
    brand = tag("a", "Troth", href=root, class_="brand")
    if not visitor.is_signed_in:
        return tag("header", brand, class_="top")
    links = (
        tag(
            "a",
            word,
            href=root if path == "./" else root + path,
            aria_current="page" if key == page.section else None,
            data_keys=keys,
        )
        for key, word, path, keys in SECTIONS
    )
    return tag(
        "header",
        brand,
        tag("nav", links, aria_label="Pages"),
        tag("p", "", id="liveness", class_="liveness", role="status"),
        _account(root, visitor),
        class_="top",
    )


def _account(root: str, visitor: Visitor) -> Html:
    if visitor.caller.key_id is None:
        return Html("")
    return tag(
        "form",
        tag("span", visitor.caller.owner, class_="soft", title="whose key opened these pages"),
        tag("input", type="hidden", name="token", value=visitor.token()),
        tag("button", "Sign out", class_="plain"),
        method="post",
        action=f"{root}sign-out",
        class_="account",
    )


def _footer() -> Html:
    keys = (
        ("g then n, r, c, s, p", "go to Now, Runs, Conversations, Sessions, Promises"),
        ("/", "search, or filter this list"),
        ("j / k", "next and previous row"),
        ("Enter or o", "open the row"),
        ("u", "up to the list"),
        ("y", "copy the id"),
        ("c", "copy the command to continue"),
        ("e", "copy the error"),
        ("a", "go to the first button"),
        (".", "show what is new"),
        ("?", "show or hide these keys"),
    )
    rows = (join(tag("dt", tag("kbd", key)), tag("dd", says)) for key, says in keys)
    return tag(
        "footer",
        tag("details", tag("summary", "Keys"), tag("dl", rows), id="keys"),
        tag("p", f"Troth {__version__}", class_="soft"),
    )
