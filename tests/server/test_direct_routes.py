"""Requests that are handed to their endpoints without FastAPI's resolution are answered as FastAPI answers them."""

import json

import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient

from troth.runtime import Runtime
from troth.runtime.agents import Agent
from troth.server import Server
from troth.server.direct_route import DirectRoute
from troth.server.routes import routers


class Parrot(Agent):
    async def astep(self, conversation):
        await conversation.asay(conversation.messages()[-1].text)


def direct():
    """The routes that are called directly."""
    routes = [route for router in routers() for route in router.routes if isinstance(route, DirectRoute)]
    return {(*route.methods, route.path) for route in routes if route.plan is not None}


def test_what_is_asked_for_most_is_called_directly():
    """A dependency more in one of these signatures would make each request dearer."""
    assert direct() >= {
        ("POST", "/chat/completions"),
        ("POST", "/responses"),
        ("POST", "/runs"),
        ("POST", "/conversations/{conversation_id}/messages"),
        ("GET", "/runs/{run_id}/events"),
        ("GET", "/conversations/{conversation_id}/events"),
    }


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """One server twice: as it is, and with every route left to FastAPI."""
    folder = tmp_path_factory.mktemp("direct")
    with Runtime(folder / "a.db", in_process=False) as runtime:
        server = Server(runtime, agents={"parrot": Parrot()}, keys=False)
        with TestClient(server.app, base_url="http://localhost") as client:
            yield client


WELL = {"model": "parrot", "messages": [{"role": "user", "content": "x"}]}
CHAT, EVENTS = "/v1/chat/completions", "/v1/runs/run_none/events"


@pytest.mark.parametrize(
    ("method", "path", "options"),
    [
        pytest.param("POST", CHAT, {"json": {**WELL, "messages": []}}, id="too short"),
        pytest.param("POST", CHAT, {"json": {"model": "parrot"}}, id="missing field"),
        pytest.param("POST", CHAT, {"json": {**WELL, "model": 7}}, id="wrong type"),
        pytest.param("POST", CHAT, {"json": {**WELL, "stream_options": {"x": 1}}}, id="unknown inner field"),
        pytest.param("POST", CHAT, {"json": [1]}, id="no object"),
        pytest.param("POST", CHAT, {"content": b"", "headers": {"Content-Type": "application/json"}}, id="no body"),
        pytest.param("POST", CHAT, {"content": b"{,}", "headers": {"Content-Type": "application/json"}}, id="no JSON"),
        pytest.param("POST", CHAT, {"content": b"\xff", "headers": {"Content-Type": "application/json"}}, id="no text"),
        pytest.param(
            "POST", CHAT, {"content": b"[" * 9_000, "headers": {"Content-Type": "application/json"}}, id="deep"
        ),
        pytest.param("POST", CHAT, {"json": WELL, "headers": {"Idempotency-Key": "k" * 300}}, id="long key"),
        pytest.param("POST", CHAT, {"json": WELL, "headers": {"Idempotency-Key": " "}}, id="empty key"),
        pytest.param("POST", f"/v1/conversations/{'c' * 201}/messages", {"json": {"text": "x"}}, id="long id"),
        pytest.param("GET", CHAT, {}, id="wrong method"),
        pytest.param("GET", f"{EVENTS}?after=x", {}, id="no number"),
        pytest.param("GET", f"{EVENTS}?after=-1", {}, id="negative number"),
        pytest.param("GET", f"{EVENTS}?follow=maybe", {}, id="no truth"),
        pytest.param("GET", EVENTS, {"headers": {"Last-Event-ID": "x"}}, id="no number in the header"),
        pytest.param("GET", EVENTS, {}, id="not there"),
    ],
)
def test_a_refusal_is_the_same(both, monkeypatch, method, path, options):
    """Status, code and field do not depend on who reads the request."""
    first = both.request(method, path, **options)
    monkeypatch.setattr(DirectRoute, "handle", APIRoute.handle)
    second = both.request(method, path, **options)
    assert 400 <= first.status_code < 500
    assert (first.status_code, told(first)) == (second.status_code, told(second))


@pytest.mark.parametrize("path", [CHAT, "/v1/conversations", "/v1/sessions/x/members"])
@pytest.mark.parametrize(
    ("headers", "says"),
    [
        pytest.param({}, "without a `Content-Type`", id="no kind of content"),
        pytest.param({"Content-Type": "application/x-www-form-urlencoded"}, "x-www-form-urlencoded", id="curl -d"),
        pytest.param({"Content-Type": "text/plain; charset=utf-8"}, "text/plain", id="text"),
    ],
)
def test_a_body_that_is_not_said_to_be_json(both, path, headers, says):
    """The commonest slip with `curl`: the answer names the header."""
    error = both.post(path, content=json.dumps(WELL).encode(), headers=headers).json()["error"]
    assert (error["code"], error["param"]) == ("not_json", "Content-Type")
    assert says in error["message"]
    assert "Content-Type: application/json" in error["advice"]


@pytest.mark.parametrize(
    ("method", "path", "name"),
    [
        pytest.param("POST", f"{CHAT}?callback_url=http://x", "callback_url", id="a promise"),
        pytest.param("POST", f"{CHAT}?background", "background", id="without a value"),
        pytest.param("GET", f"{EVENTS}?starting_after=3", "starting_after", id="of another route"),
        pytest.param("GET", f"{EVENTS}?after=3&folow=false", "folow", id="a slip"),
        pytest.param("GET", "/v1/runs?Limit=3", "Limit", id="another case"),
        pytest.param("GET", "/v1/responses/x?include=a", "include", id="not kept"),
        pytest.param("GET", "/v1/health?%00=1", "\0", id="no name at all"),
    ],
)
def test_a_parameter_that_nobody_keeps(both, method, path, name):
    """It is refused, and named; nothing is done."""
    answer = both.request(method, path, json=WELL if method == "POST" else None)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["param"]) == (400, "unknown_parameter", name)


def told(answer):
    """What a program reads off a refusal."""
    error = json.loads(answer.content)["error"]
    return error["code"], error["param"], error["type"]


def test_it_works_below_another_application(both):
    """A route is called directly wherever the application is mounted."""
    outer = FastAPI()
    outer.mount("/below", both.app)
    client = TestClient(outer, base_url="http://localhost")
    answer = client.post(f"/below{CHAT}", json=WELL)
    assert answer.json()["choices"][0]["message"]["content"] == "x"
    for _ in range(2):  # also when it is repeated
        made = client.post("/below/v1/conversations", json={"agent": "parrot"}, headers={"Idempotency-Key": "k"})
        assert made.headers["Location"] == f"/below/v1/conversations/{made.json()['id']}"
        assert client.get(made.headers["Location"]).json()["id"] == made.json()["id"]
