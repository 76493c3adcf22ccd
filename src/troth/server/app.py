"""Put the application together: the routes, the gate before them, and what every answer has in common."""

import inspect
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from troth import __version__
from troth.server.access.gate import AccessGate
from troth.server.context import ServerContext
from troth.server.errors import ApiError, ErrorBody, as_api_error, as_field_error, body_of, unreadable
from troth.server.json_response import JSONResponse
from troth.server.openapi.document import document
from troth.server.pages.frame.failure import failure_page
from troth.server.pages.site import add_pages
from troth.server.routes import routers
from troth.server.telemetry.request_spans import Traced

__all__ = ["build_app"]

_ERRORS: dict[int | str, dict[str, Any]] = {
    400: {"model": ErrorBody, "description": "The request is wrong; nothing was done."},
    401: {"model": ErrorBody, "description": "No key, or an invalid one."},
    403: {"model": ErrorBody, "description": "The key lacks the scope, or the caller is a foreign page."},
    404: {"model": ErrorBody, "description": "There is none, or it belongs to another owner."},
    409: {"model": ErrorBody, "description": "It is not possible in the current state."},
    405: {"model": ErrorBody, "description": "The method is not allowed."},
    408: {"model": ErrorBody, "description": "The body arrived too slowly."},
    410: {"model": ErrorBody, "description": "It existed, and has expired."},
    413: {"model": ErrorBody, "description": "The body is too large."},
    429: {"model": ErrorBody, "description": "Too many requests of one owner; `Retry-After` says when to try again."},
    500: {"model": ErrorBody, "description": "An internal error; the log has details under the id."},
    501: {"model": ErrorBody, "description": "No such action is registered."},
    503: {"model": ErrorBody, "description": "Temporarily unavailable; `Retry-After` says when to try again."},
}


def build_app(context: ServerContext) -> FastAPI:
    """The ASGI application of one server."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await context.start()
        try:
            yield
        finally:
            await context.stop()

    app = FastAPI(
        title="Troth",
        version=__version__,
        summary="Runs, conversations, sessions and promises over HTTP.",
        docs_url=None,  # their pages load scripts from elsewhere
        redoc_url=None,
        openapi_url="/v1/openapi.json",
        lifespan=lifespan,
        redirect_slashes=False,
        default_response_class=JSONResponse,
        **_without_foreign_spans(),
    )
    for router in routers():
        app.include_router(router, prefix="/v1", responses=_ERRORS)
    if context.has_pages:
        add_pages(app)  # behind the routes, which are tried in order: programs ask more often than people
    app.add_exception_handler(ApiError, _failed)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(Exception, _failed)
    app.add_middleware(Traced)
    app.add_middleware(AccessGate, context=context)
    app.openapi = partial(document, app)  # type: ignore[method-assign]  # as FastAPI wants it extended
    return app


def _without_foreign_spans() -> dict[str, Any]:
    """Newer versions of FastAPI make spans of their own, with addresses, and tell the log of exceptions with all words.

    There would be two spans of each request, and what people and agents say would leave the program unasked.
    """
    if "telemetry" not in inspect.signature(FastAPI).parameters:
        return {}
    return {"telemetry": dict.fromkeys(("tracing", "metrics", "logs", "operation_spans", "auto_configure"), False)}


def _answer(request: Request, error: ApiError) -> Response:
    if "troth.visitor" in request.scope:
        return failure_page(request, error)
    body = body_of(error, request.scope.get("troth.request_id"))
    return JSONResponse(body, error.status, headers=error.headers)


async def _failed(request: Request, problem: Exception) -> Response:
    return _answer(request, as_api_error(problem, request.scope.get("troth.request_id")))


async def _refused(request: Request, problem: Exception) -> Response:
    assert isinstance(problem, HTTPException)
    if isinstance(problem.__cause__, ApiError):  # raised while the body was read, and wrapped on its way
        error = problem.__cause__
    elif problem.status_code == 400 and problem.__cause__ is not None:
        error = unreadable(problem.__cause__)
    elif problem.status_code == 404:
        error = ApiError(404, "no_such_route", f"There is nothing at {request.url.path!r}.")
    elif problem.status_code == 405:
        message = f"{request.method} cannot be done with {request.url.path!r}."
        error = ApiError(405, "method_not_allowed", message, headers=problem.headers)
    else:
        error = ApiError(problem.status_code, "invalid_request", str(problem.detail), headers=problem.headers)
    return _answer(request, error)


async def _invalid(request: Request, problem: Exception) -> Response:
    assert isinstance(problem, RequestValidationError)
    return _answer(request, as_field_error(problem.errors()))
