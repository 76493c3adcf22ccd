"""Hand a request to its endpoint without FastAPI's resolution of dependencies, where that is not needed.

FastAPI builds the document and the validation from the endpoint's signature. At a request it resolves the dependencies
anew, one by one, which costs more than the work of many a route. Those that we wrote are a few reads of headers: a
route whose endpoint asks for nothing else is called directly. Any other is left to FastAPI, and so is a request whose
body is not plainly JSON.

Whoever answers it, a parameter of the query that the route does not have is refused: it may promise something.
"""

import inspect
import json
from collections.abc import Awaitable, Callable, Iterator
from typing import Annotated, Any, NamedTuple, TypeVar, get_args, get_origin, get_type_hints
from urllib.parse import parse_qsl

from fastapi.exceptions import RequestValidationError
from fastapi.params import Depends, Path
from fastapi.routing import APIRoute
from pydantic import BaseModel, TypeAdapter, ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from troth.server.errors import ApiError
from troth.server.half_letters import refuse_half_letters

__all__ = ["DirectRoute", "resolved_by"]

Resolver = Callable[[Request], Awaitable[Any]]
T = TypeVar("T", bound=Callable[..., Any])

_RESOLVERS: dict[Callable[..., Any], Resolver] = {}
_JSON = b"application/json"


def resolved_by(resolver: Resolver) -> Callable[[T], T]:
    """Say of a dependency how to get at its value by the request alone: the same value, and the same refusals."""

    def note(dependency: T) -> T:
        _RESOLVERS[dependency] = resolver
        return dependency

    return note


class _Plan(NamedTuple):
    """What an endpoint is called with."""

    checks: tuple[Resolver, ...]
    body: tuple[str, type[BaseModel]] | None
    paths: tuple[tuple[str, TypeAdapter[Any]], ...]
    values: tuple[tuple[str, Resolver], ...]


class DirectRoute(APIRoute):
    """A route that calls its endpoint itself if it can."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        super().__init__(path, endpoint, **options)
        self.plan = _plan(endpoint, self.dependencies)
        """None where FastAPI has to resolve what the endpoint asks for."""
        self.query = frozenset(_queries(self.dependant))
        """The names of the parameters that may stand in the query."""

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        plan, is_ours = self.plan, scope["method"] in (self.methods or ())
        if is_ours and scope["query_string"]:
            self._check_query(scope["query_string"])
        if plan is None or not is_ours or (plan.body and not _is_json(scope)):
            if is_ours and self.body_field is not None:
                receive = await _looked_at(Request(scope, receive), receive)
            await super().handle(scope, receive, send)
            return
        request = Request(scope, receive, send)
        for check in plan.checks:
            await check(request)
        arguments = _path_values(plan, scope)
        if plan.body is not None:
            name, model = plan.body
            arguments[name] = _validated(model, await request.body())
        for name, resolver in plan.values:
            arguments[name] = await resolver(request)
        response = await self.endpoint(**arguments)
        await response(scope, receive, send)

    def _check_query(self, query: bytes) -> None:
        for name, _ in parse_qsl(query.decode("latin-1"), keep_blank_values=True):
            if name not in self.query:
                names = ", ".join(f"`{name}`" for name in sorted(self.query))
                raise ApiError(
                    400,
                    "unknown_parameter",
                    f"The parameter `{name[:100]}` is not supported, so nothing was done.",
                    param=name[:100],
                    advice=f"The query of this route may have {names}." if names else "This route takes no query.",
                )


def _queries(dependant: Any) -> Iterator[str]:
    """The names of the parameters of the query that an endpoint and its dependencies ask for."""
    yield from (field.alias for field in dependant.query_params)
    for inner in dependant.dependencies:
        yield from _queries(inner)


async def _looked_at(request: Request, receive: Receive) -> Receive:
    """The same body once more, for FastAPI to read, if it is JSON that can be kept."""
    body = await request.body()
    if body and not _is_json(request.scope):
        kind = request.headers.get("content-type")
        raise ApiError(
            400,
            "not_json",
            "The body was sent without a `Content-Type`."
            if kind is None
            else f"The body was sent as `{kind[:100]}`, not JSON.",
            param="Content-Type",
            advice="Send JSON, with the header `Content-Type: application/json`.",
        )
    refuse_half_letters(body)
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return messages.pop() if messages else await receive()

    return again


def _plan(endpoint: Callable[..., Any], dependencies: "list[Depends]") -> _Plan | None:
    hints = get_type_hints(endpoint, include_extras=True)
    returned = hints.pop("return", None)
    checks = [_RESOLVERS.get(dependency.dependency) for dependency in dependencies if dependency.dependency]
    is_response = isinstance(returned, type) and issubclass(returned, Response)
    if None in checks or not is_response or not inspect.iscoroutinefunction(endpoint):
        return None
    bodies: list[tuple[str, type[BaseModel]]] = []
    paths: list[tuple[str, TypeAdapter[Any]]] = []
    values: list[tuple[str, Resolver]] = []
    for name, hint in hints.items():
        if isinstance(hint, type) and issubclass(hint, BaseModel):
            bodies.append((name, hint))
            continue
        marks = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
        mark = marks[0] if len(marks) == 1 else None
        if isinstance(mark, Path):
            paths.append((name, TypeAdapter(hint)))
            continue
        resolver = _RESOLVERS.get(mark.dependency) if isinstance(mark, Depends) and mark.dependency else None
        if resolver is None:
            return None
        values.append((name, resolver))
    if len(bodies) > 1:
        return None
    return _Plan(tuple(filter(None, checks)), bodies[0] if bodies else None, tuple(paths), tuple(values))


def _is_json(scope: Scope) -> bool:
    kinds = [value for name, value in scope["headers"] if name == b"content-type"]
    kind = kinds[0].partition(b";")[0].strip().lower() if len(kinds) == 1 else b""
    return kind == _JSON or (kind.startswith(b"application/") and kind.endswith(b"+json"))


def _path_values(plan: _Plan, scope: Scope) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, adapter in plan.paths:
        try:
            values[name] = adapter.validate_python(scope["path_params"][name])
        except ValidationError as wrong:
            raise _invalid(wrong, "path", name) from None
    return values


def _validated(model: type[BaseModel], body: bytes) -> BaseModel:
    """What the body says, or what FastAPI raises of one that is wrong."""
    if not body:
        missing = {"type": "missing", "loc": ("body",), "msg": "Field required", "input": None}
        raise RequestValidationError([missing])
    refuse_half_letters(body)
    try:
        data = json.loads(body)
    except json.JSONDecodeError as wrong:
        place = ("body", wrong.pos)
        details = {"type": "json_invalid", "loc": place, "msg": "JSON decode error", "ctx": {"error": wrong.msg}}
        raise RequestValidationError([details]) from None
    except (ValueError, RecursionError) as wrong:
        raise HTTPException(400, "There was an error parsing the body") from wrong
    try:
        return model.model_validate(data)
    except ValidationError as wrong:
        raise _invalid(wrong, "body") from None


def _invalid(wrong: ValidationError, *place: str) -> RequestValidationError:
    errors = [{**error, "loc": (*place, *error["loc"])} for error in wrong.errors(include_url=False)]
    return RequestValidationError(errors)
