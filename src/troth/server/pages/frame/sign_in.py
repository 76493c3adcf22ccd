"""Ask for a key once, and let the browser in."""

from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from troth.runtime.workflows.render.markup import tag
from troth.server.access.sign_ins import check_form, drop_cookie, set_cookie, visitor_of
from troth.server.context import context_of
from troth.server.errors import ApiError
from troth.server.pages.frame.failure import failure_page
from troth.server.pages.frame.layout import HEADERS, Page, answer, root_of

__all__ = ["sign_in", "sign_out"]

_LARGEST = 4096


async def sign_in(request: Request) -> Response:
    """The form; with a key or the code of a link, the cookie and the way to the pages."""
    sign_ins = context_of(request).sign_ins
    is_form = request.url.path.endswith("/sign-in")
    if visitor_of(request).is_signed_in:
        return RedirectResponse(root_of(request), 303, HEADERS)
    code = request.query_params.get("code", "") if is_form and request.method == "GET" else ""
    if code:
        secret = await sign_ins.with_code(code)
        return _welcome(request, secret) if secret else _form(request, "This link was used before, or is too old.")
    if is_form and request.method == "POST":
        site = request.headers.get("sec-fetch-site")
        if site not in (None, "same-origin"):
            refusal = ApiError(403, "foreign_origin", "A page of another site sent this form, so nobody was let in.")
            return failure_page(request, refusal)
        body = await request.body()
        key = parse_qs(body[:_LARGEST].decode("utf-8", "replace")).get("key", [""])[0]
        secret = await sign_ins.with_key(key)
        return _welcome(request, secret) if secret else _form(request, "This key opens nothing here.")
    return _form(request, "")


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


def _welcome(request: Request, secret: str) -> Response:
    response = RedirectResponse("./", 303, {**HEADERS, "Cache-Control": "no-store"})
    set_cookie(response, request, secret)
    return response


def _form(request: Request, problem: str) -> Response:
    body = tag(
        "section",
        tag("h1", "Sign in"),
        tag("p", problem, class_="message", role="alert", id="problem") if problem else None,
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
            tag("button", "Sign in", class_="primary"),
            method="post",
            action=f"{root_of(request)}sign-in",
            class_="sign-in",
        ),
        tag(
            "p",
            "Whoever runs the server makes one with ",
            tag("code", "troth keys create OWNER"),
            ". With ",
            tag("code", "--scopes read"),
            " it can look and press nothing. The browser stays signed in for twelve hours. ",
            tag("code", "troth serve"),
            " also prints a link that signs in once.",
            class_="soft",
            id="hint",
        ),
        class_="panel narrow",
        data_sign_in=True,
    )
    return answer(request, Page("Sign in", body, status=401 if not problem else 403))
