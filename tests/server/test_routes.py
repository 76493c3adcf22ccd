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
RUNNERS = ("runtime", "turns", "conversation", "hypervisor", "promises")
"""Parts of the names of whose methods they are."""


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
    """Whatever begins a run stands in a `with …Channel.session(…)`: in routes, pages, and all that they call."""
    home = Path(import_module("troth.server").__file__).parent
    modules = {path.relative_to(home).as_posix(): path for path in home.rglob("*.py")}
    del modules["turns.py"]  # is called by those that are looked at here, and binds nothing by itself
    unbound = [
        f"{name}:{place.lineno}: `{ast.unparse(place)}` begins something outside of a session"
        for name, path in modules.items()
        for place in _beginnings(ast.parse(path.read_text()), is_bound=False)
    ]
    assert unbound == []


def test_a_route_that_runs_an_agent_says_by_which_channel():
    """And no other route does: the endpoints are followed into what they call in their own module."""
    for noun, route in routes():
        if not isinstance(route, APIRoute):
            continue
        module = ast.parse(inspect.getsource(import_module(f"troth.server.routes.{noun}")))
        functions = {
            node.name: node for node in module.body if isinstance(node, ast.AsyncFunctionDef | ast.FunctionDef)
        }
        assert _reaches_session(functions, route.endpoint.__name__) == (
            route.openapi_extra["x-troth-channel"] is not None
        ), f"{noun}: {route.path}"


PUSHED = {"conversation_events"}
"""Streams that are told of a conversation's results: they bind their reader, and run nothing."""


def _reaches_session(functions, name, seen=frozenset()):
    """Whether a function binds a session, or begins a talk, by itself or in what it calls in its module."""
    if name in PUSHED or name in seen or name not in functions:
        return False
    for node in ast.walk(functions[name]):
        if isinstance(node, ast.Attribute) and ast.unparse(node).endswith(("Channel.session", "talk.begin")):
            return True
        if isinstance(node, ast.Name) and _reaches_session(functions, node.id, seen | {name}):
            return True
    return False


def _beginnings(node, *, is_bound):
    """What begins a run below `node` and outside of every session, called there or handed on to be called."""
    for child in ast.iter_child_nodes(node):
        bound = is_bound
        if isinstance(child, ast.With | ast.AsyncWith):
            bound = bound or any(
                name in ast.unparse(item.context_expr)
                for item in child.items
                for name in ("Channel.session", "Talk.session")
            )
        elif isinstance(child, ast.Attribute) and child.attr in BEGINNING and not bound:
            receiver = ast.unparse(child.value)
            if any(word in receiver for word in RUNNERS):
                yield child
        yield from _beginnings(child, is_bound=bound)


@pytest.mark.parametrize(
    ("body", "count"),
    [
        pytest.param("await context.runtime.astart(w)", 1, id="a workflow"),
        pytest.param("await context.turns.start(talk)", 1, id="a turn"),
        pytest.param("await conversation.astart()", 1, id="a conversation"),
        pytest.param("await call(hypervisor.perform_act, s, a)", 1, id="handed on"),
        pytest.param("go = context.runtime.astart_fork\n    await go(r)", 1, id="under another name"),
        pytest.param(
            "with HttpChannel.session(i):\n        pass\n    await runtime.astart(w)", 1, id="behind a session"
        ),
        pytest.param("with HttpChannel.session(i):\n        await runtime.astart(w)", 0, id="in a session"),
        pytest.param("async with SocketChannel.session(c, i):\n        await turns.start(t)", 0, id="in a socket's"),
        pytest.param("await runtime.ashow(r)", 0, id="nothing is begun"),
    ],
)
def test_the_check_above_finds_what_it_looks_for(body, count):
    """A route that forgets its session."""
    tree = ast.parse(f"async def route():\n    {body}\n")
    assert len(list(_beginnings(tree, is_bound=False))) == count


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
