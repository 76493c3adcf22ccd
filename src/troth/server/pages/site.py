"""Lead a request to its page: the addresses of all pages, who may see them, and what is said where one cannot be."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from importlib import import_module
from urllib.parse import parse_qsl

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from troth.server.access.scopes import Scope, check_scope
from troth.server.access.sign_ins import check_form, visitor_of
from troth.server.errors import ApiError, as_api_error
from troth.server.pages.frame.assets import asset
from troth.server.pages.frame.failure import failure_page
from troth.server.pages.frame.layout import HEADERS, HtmlPage, answer, root_of
from troth.server.pages.frame.recent import recent_page
from troth.server.pages.frame.sign_in import sign_in, sign_out
from troth.server.pages.frame.view import View
from troth.server.pages.live import streaming
from troth.server.pages.news import have_of

__all__ = ["add_pages"]

Show = Callable[[View], Awaitable[HtmlPage]]
Act = Callable[[View, dict[str, str]], Awaitable[str | Response]]

PAGES = {
    "/": "now",
    "/runs": "runs",
    "/runs/{id:path}": "run",
    "/conversations": "conversations",
    "/conversations/{id:path}": "conversation",
    "/sessions": "sessions",
    "/sessions/{id:path}": "session",
    "/promises": "promises",
    "/promises/{id:path}": "promise",
    "/jobs/{id:path}": "job",
    "/search": "search",
}
"""The module of each page: it has `show`, and `act` where it has buttons."""

_SHARED = frozenset({"now", "runs", "conversations", "sessions", "promises"})
"""Pages that follow everything: all of their tabs look again at the same moment."""

_FOLLOWED = {name: name for name in ("run", "conversation", "session", "job")}
"""What each page follows, as `news` calls it; all others follow everything."""

_LARGEST_FORM = 1_000_000


def add_pages(app: FastAPI) -> None:
    """Let an application have the pages."""
    app.add_route("/assets/{name}", asset, methods=["GET"], include_in_schema=False)
    app.add_route("/sign-in", sign_in, methods=["GET", "POST"], include_in_schema=False)
    app.add_route("/sign-out", sign_out, methods=["POST"], include_in_schema=False)
    app.add_route("/live", streaming(_sent_along), methods=["GET"], include_in_schema=False)
    for path, name in PAGES.items():
        app.add_route(path, _showing(name), methods=["GET"], include_in_schema=False)
        app.add_route(path, _acting(name), methods=["POST"], include_in_schema=False)


def _showing(name: str) -> Callable[[Request], Awaitable[Response]]:
    async def show_page(request: Request) -> Response:
        if not visitor_of(request).is_signed_in:
            return await sign_in(request)
        try:
            check_scope(visitor_of(request).caller, Scope.READ)
            return await _shown(request, name)
        except Exception as problem:  # noqa: BLE001  whatever it is, it is told on a page
            return failure_page(request, as_api_error(problem, request.scope.get("troth.request_id")))

    return show_page


async def _shown(request: Request, name: str) -> Response:
    place = recent_page(request) if name in _SHARED else None
    return (
        await _made(request, name) if place is None else await place[0].answer(place[1], partial(_made, request, name))
    )


async def _made(request: Request, name: str) -> Response:
    """A page as of now."""
    show: Show = import_module(f"troth.server.pages.{name}").show
    view = View(request)
    thing = request.path_params.get("id", "")
    have = await view.ask(lambda: have_of(view.context, _FOLLOWED.get(name, "all"), thing))
    return answer(request, replace(await show(view), have=have))


def _sent_along(path: str) -> Callable[[Request], Awaitable[Response]] | None:
    """What makes the page at an address, if it is one that is sent along with what has changed."""
    name = PAGES.get(path)
    if name is None or name not in _SHARED:
        return None

    async def make(request: Request) -> Response:
        check_scope(visitor_of(request).caller, Scope.READ)
        return await _made(request, name)

    return make


def _acting(name: str) -> Callable[[Request], Awaitable[Response]]:
    """Do what a form asks for, and lead back to the page that shows what came of it."""

    async def act_on_page(request: Request) -> Response:
        if not visitor_of(request).is_signed_in:
            return await sign_in(request)
        try:
            form = await _form(request)
            check_form(request, form.pop("token", None))
            module = import_module(f"troth.server.pages.{name}")
            if not hasattr(module, "act"):
                raise ApiError(405, "method_not_allowed", "There is no button on this page.")
            act: Act = module.act
            where = await act(View(request), form)
        except Exception as problem:  # noqa: BLE001  whatever it is, it is told on a page
            return failure_page(request, as_api_error(problem, request.scope.get("troth.request_id")))
        return where if isinstance(where, Response) else RedirectResponse(root_of(request) + where, 303, HEADERS)

    return act_on_page


async def _form(request: Request) -> dict[str, str]:
    """The fields of a form, as a browser sends them without being asked for anything special."""
    kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise ApiError(400, "invalid_request", "This is not a form of these pages, so nothing was done.")
    body = await request.body()
    if len(body) > _LARGEST_FORM:
        raise ApiError(413, "body_too_large", f"The form has more than {_LARGEST_FORM} bytes, which is the limit.")
    return dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=100))
