"""Ask for a key once, and let the browser in."""

import re
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from troth.runtime.workflows.render.markup import tag
from troth.server.access.sign_ins import check_form, drop_cookie, set_cookie, visitor_of
from troth.server.context import context_of
from troth.server.errors import ApiError
from troth.server.pages.frame.failure import failure_page
from troth.server.pages.frame.layout import HEADERS, HtmlPage, answer, root_of

__all__ = ["sign_in", "sign_out"]

_LARGEST = 4096
_PLACE = re.compile(r"[A-Za-z0-9._~%+=&?/-]{1,1000}")
"""An address below the root, as it can stand behind `./`: it leads to nobody else."""


async def sign_in(request: Request) -> Response:
    """The form; with a key or the code of a link, the cookie and the way to the pages."""
    sign_ins = context_of(request).sign_ins
    is_form = request.url.path.endswith("/sign-in")
    if visitor_of(request).is_signed_in:
        return RedirectResponse(root_of(request), 303, HEADERS)
    code = request.query_params.get("code", "") if is_form and request.method == "GET" else ""
    if code:
        secret = await sign_ins.with_code(code)
        return _welcome(request, secret, "") if secret else _form(request, "This link was used before, or is too old.")
    if is_form and request.method == "POST":
        site = request.headers.get("sec-fetch-site")
        if site not in (None, "same-origin"):
            refusal = ApiError(
                403, "foreign_origin", "A page of another site sent this form, so you were not signed in."
            )
            return failure_page(request, refusal)
        body = await request.body()
        fields = parse_qs(body[:_LARGEST].decode("utf-8", "replace"))
        key, wanted = (fields.get(name, [""])[0] for name in ("key", "to"))
        secret = await sign_ins.with_key(key)
        if secret is None:
            return _form(request, "This key is not valid.", wanted)
        return _welcome(request, secret, wanted)
    return _form(request, "", "" if is_form else _place(request))


def _place(request: Request) -> str:
    """The address that somebody came to, seen from the root: they shall get there when they are signed in."""
    path = (request.scope.get("raw_path") or request.scope["path"].encode()).split(b"?")[0].decode("ascii", "replace")
    place = path.removeprefix(request.scope.get("root_path", "")).lstrip("/")
    query = request.scope.get("query_string", b"").decode("ascii", "replace")
    return f"{place}?{query}" if query else place


async def sign_out(request: Request) -> Response:
    """End the sign-in."""
    fields = parse_qs((await request.body())[:_LARGEST].decode("utf-8", "replace"))
    try:
        check_form(request, fields.get("token", [""])[0])
    except ApiError as refusal:
        return failure_page(request, refusal)
    await context_of(request).sign_ins.sign_out(visitor_of(request))
    response = RedirectResponse("sign-in", 303, HEADERS)
    drop_cookie(response)
    return response


def _welcome(request: Request, secret: str, wanted: str) -> Response:
    place = wanted if _PLACE.fullmatch(wanted) and ".." not in wanted else ""
    response = RedirectResponse(f"./{place}", 303, {**HEADERS, "Cache-Control": "no-store"})
    set_cookie(response, request, secret)
    return response


def _form(request: Request, problem: str, wanted: str = "") -> Response:
    body = tag(
        "section",
        tag("h1", "Sign in"),
        tag("p", f"✗ {problem}", class_="message failed", role="alert", id="problem") if problem else None,
        tag(
            "form",
            tag("label", "A key of this server", for_="key"),
            tag(
                "input",
                type="password",
                id="key",
                name="key",
                required=True,
                autocomplete="current-password",
                spellcheck="false",
                aria_describedby="hint",
                autofocus=True,
            ),
            tag("input", type="hidden", name="to", value=wanted) if wanted else None,
            tag("button", "Sign in", class_="primary"),
            method="post",
            action=f"{root_of(request)}sign-in",
            class_="sign-in",
        ),
        tag(
            "p",
            "The operator of the server makes one with ",
            tag("code", "troth keys create OWNER"),
            ". With ",
            tag("code", "--scopes read"),
            " it can read but not act. The browser stays signed in for twelve hours. ",
            tag("code", "troth serve"),
            " also prints a link that signs in once.",
            class_="soft",
            id="hint",
        ),
        class_="panel narrow",
        data_sign_in=True,
    )
    return answer(request, HtmlPage("Sign in", body, status=401 if not problem else 403))
