"""Every route as a whole: what it declares, how its agents are bound, and the document that tells of it."""

import ast
import asyncio
import inspect
import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import httpx
import pytest
from fastapi.routing import APIRoute

from troth.runtime import Runtime
from troth.server import Scope, Server
from troth.server.routes import NOUNS, socket

SNAPSHOT = Path(__file__).with_name("openapi.json")
CHANNELS = {"http", "stream", "socket", "http+stream", None}
BEGINNING = {"astart", "arun", "astart_resume", "astart_fork", "perform_act", "start", "begin"}
"""Methods by which an agent, a workflow or an action begins to run."""


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    with Runtime(tmp_path_factory.mktemp("routes") / "x.db", in_process=False) as runtime:
        yield Server(runtime, keys=False).app


def routes():
    return [(noun, route) for noun in NOUNS for route in import_module(f"troth.server.routes.{noun}").router.routes]


def test_every_route_declares_its_scope():
    """Where it stands; health alone needs no key, and what changes something takes more than `read`."""
    for noun, route in routes():
        declared = route.openapi_extra if isinstance(route, APIRoute) else socket.SOCKET
        scope, channel = declared["x-troth-scope"], declared["x-troth-channel"]
        assert channel in CHANNELS, route.path
        if scope is None:
            assert noun == "health", route.path
            continue
        assert scope in set(Scope)
        if isinstance(route, APIRoute):
            assert route.dependencies, route.path
            assert (scope == "read") <= (route.methods == {"GET"}), route.path


def test_what_runs_an_agent_is_bound_to_its_channel():
    """Each call that begins a run stands in a `with …Channel.session(…)`, and its route says which channel."""
    modules = [f"troth.server.routes.{noun}" for noun in NOUNS]
    for noun in [*modules, "troth.server.openai_api.talk"]:
        module = import_module(noun)
        tree = ast.parse(inspect.getsource(module))
        for function in [one for one in ast.walk(tree) if isinstance(one, ast.AsyncFunctionDef | ast.FunctionDef)]:
            for call in _beginnings(function, is_bound=False):
                raise AssertionError(
                    f"{noun}: {function.name}: line {call.lineno} begins something outside of a session"
                )
    channels = {
        route.path: route.openapi_extra["x-troth-channel"] for _, route in routes() if isinstance(route, APIRoute)
    }
    running = {
        "/runs",
        "/runs/{run_id}/resume",
        "/runs/{run_id}/fork",
        "/sagas",
        "/sessions/{session_id}/execute",
        "/conversations/{conversation_id}/messages",
        "/conversations/{conversation_id}/run",
        "/chat/completions",
        "/responses",
    }
    for path in running:
        assert any(route.path == path and route.openapi_extra["x-troth-channel"] for _, route in routes()), path
    assert channels


def _beginnings(node, *, is_bound):
    """Calls that begin a run below `node` and outside of every session."""
    for child in ast.iter_child_nodes(node):
        bound = is_bound
        if isinstance(child, ast.With | ast.AsyncWith):
            bound = bound or any(
                name in ast.unparse(item.context_expr)
                for item in child.items
                for name in ("Channel.session", "Talk.session")
            )
        if isinstance(child, ast.Call) and isinstance(child.func, ast.Attribute) and not bound:
            receiver = ast.unparse(child.func.value)
            if child.func.attr in BEGINNING and (
                "runtime" in receiver or "turns" in receiver or "conversation" in receiver
            ):
                yield child
        yield from _beginnings(child, is_bound=bound)


def test_the_check_above_finds_what_it_looks_for():
    """A route that forgets its session."""
    tree = ast.parse("async def route():\n    await context.runtime.astart(w)\n")
    assert len(list(_beginnings(tree, is_bound=False))) == 1
    tree = ast.parse("async def route():\n    with HttpChannel.session(i):\n        await context.runtime.astart(w)\n")
    assert list(_beginnings(tree, is_bound=False)) == []


def shape(document):
    """What a client relies on: paths, parameters, bodies and answers, without words."""

    def strip(value):
        if isinstance(value, dict):
            return {
                key: strip(inner)
                for key, inner in value.items()
                if key not in ("description", "summary", "title", "operationId", "tags")
                or not isinstance(inner, str | list)
            }
        return [strip(inner) for inner in value] if isinstance(value, list) else value

    return strip({"paths": document["paths"], "schemas": document["components"]["schemas"]})


def test_the_document_is_as_it_was(app):
    """A change of what clients rely on is made on purpose: `python -m tests.server.test_routes` writes the snapshot."""
    now, before = shape(app.openapi()), json.loads(SNAPSHOT.read_text())
    assert _broken(before, now) == []
    assert now == before, "the document has grown: run `python -m tests.server.test_routes`"


def _broken(before, now, place=""):
    """What a client of the document `before` would miss in `now`."""
    if isinstance(before, dict) and isinstance(now, dict):
        missing = [f"{place}/{key} is gone" for key in before if key not in now]
        if place.endswith("/required") or "enum" in place:
            return missing
        return missing + [
            line for key in before if key in now for line in _broken(before[key], now[key], f"{place}/{key}")
        ]
    if isinstance(before, list) and isinstance(now, list):
        gone = [one for one in before if one not in now]
        return [f"{place} lacks {one!r}" for one in gone]
    return [] if before == now else [f"{place} was {before!r} and is {now!r}"]


def test_a_breaking_change_is_named():
    """The comparison finds what is gone and what has changed."""
    before = {"paths": {"/runs": {"get": {}, "post": {}}}, "schemas": {"Run": {"type": "object"}}}
    assert _broken(before, {"paths": {"/runs": {"get": {}}}, "schemas": {"Run": {"type": "string"}}}) == [
        "/paths//runs/post is gone",
        "/schemas/Run/type was 'object' and is 'string'",
    ]
    assert _broken(before, {**before, "more": {}}) == []


def test_the_document_is_openapi(app):
    """Version 3.1, with a scope for each operation, our own error shape, and no answer that FastAPI would make."""
    document = app.openapi()
    assert document["openapi"].startswith("3.1")
    assert "HTTPValidationError" not in json.dumps(document)
    for path, operations in document["paths"].items():
        for operation in operations.values():
            assert operation.get("x-troth-scope") or path == "/v1/health"
            assert operation["responses"]["400"]["content"]["application/json"]["schema"]["$ref"].endswith("/ErrorBody")


def test_our_own_fault_is_told_by_an_id(tmp_path, caplog):
    """500 with an id that the log has; nothing of the exception reaches the client."""
    with Runtime(tmp_path / "x.db", in_process=False) as runtime:
        server = Server(runtime, keys=False)

        async def broken() -> None:
            raise RuntimeError("a secret of ours")

        server.app.add_api_route("/v1/broken", broken)

        async def ask() -> httpx.Response:
            transport = httpx.ASGITransport(server.app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
                answer = await client.get("/v1/broken")
            await server.context.stop()
            return answer

        answer = asyncio.run(ask())
    assert answer.status_code == 500
    error = answer.json()["error"]
    assert (error["type"], error["request_id"]) == ("server_error", answer.headers["x-request-id"])
    assert "secret" not in answer.text
    assert error["request_id"] in caplog.text
    assert "a secret of ours" in caplog.text


def test_nobody_pays_for_the_server_who_does_not_use_it():
    """`import troth`, the package `troth.server` and the other commands import nothing of it."""
    code = (
        "import sys, troth, troth.server, troth.runtime, troth.cli.app; troth.cli.app.load('check'); "
        "troth.cli.app.load('run'); troth.cli.app.load('serve'); "
        "assert not {'fastapi', 'uvicorn', 'starlette', 'websockets', 'httpx'} & set(sys.modules), sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def _write():
    import tempfile

    with tempfile.TemporaryDirectory() as folder, Runtime(Path(folder) / "x.db", in_process=False) as runtime:
        document = Server(runtime, keys=False).app.openapi()
    SNAPSHOT.write_text(json.dumps(shape(document), indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    _write()
