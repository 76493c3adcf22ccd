"""Who gets in, who may press what, and what other sites can do: nothing."""

import contextlib
import html
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest
from tests.server.pages.scene import Shop, begin_program, fill
from tests.server.service import Served, wait_until

from troth.runtime import Runtime
from troth.server import Keys
from troth.server.access.scopes import LOCAL
from troth.server.access.sign_ins import Visitor

FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@pytest.fixture(scope="module")
def keyed(tmp_path_factory):
    """A shop with keys: one that may do everything, one that may read what the first began, one of a stranger."""
    folder = tmp_path_factory.mktemp("keyed")
    with Runtime(folder / "shop.db", in_process=False) as runtime:
        keys = Keys(runtime.store)
        made = {
            "admin": keys.create("boss", ["admin"]),
            "owner": keys.create("shop", ["read", "run", "act"]),
            "reader": keys.create("shop", ["read"]),
            "stranger": keys.create("other", ["read"]),
            "revoked": keys.create("shop", ["read"]),
        }
    shop = Shop(folder, "app:keyed", made["owner"].secret)
    shop.keys = {name: key.secret for name, key in made.items()}
    shop.key_ids = {name: key.row.id for name, key in made.items()}
    shop.failed = shop.run("order", order="A7")
    yield shop
    shop.close()


@contextlib.contextmanager
def visit(shop, key=None, **headers):
    """A browser's worth of a client, signed in with a key."""
    with httpx.Client(base_url=shop.url, headers=headers, trust_env=False, timeout=120) as client:
        if key:
            answer = client.post("/sign-in", data={"key": shop.keys[key]})
            assert answer.status_code == 303, answer.text
        yield client


def token_in(page):
    return re.search(r'name="token" value="([^"]+)"', page.text)[1]


def test_nobody_sees_anything_before_signing_in(keyed):
    """Every page asks for a key; the API takes no cookie."""
    with visit(keyed) as client:
        for path in ("/", "/runs", f"/runs/{keyed.failed}", "/promises", "/search?text=a"):
            page = client.get(path)
            assert page.status_code == 401
            assert "A key of this server" in page.text
            assert "order" not in page.text
        assert client.get("/live?on=all").status_code == 401
        assert client.post("/sign-in", data={"key": "troth_nonsense"}).status_code == 403
    with visit(keyed, "owner") as client:
        assert client.get("/runs").status_code == 200
        assert client.get("/v1/runs").status_code == 401


def test_the_cookie_is_kept_from_others_and_ends(keyed):
    """Out of reach of scripts and other sites; it ends by itself, by signing out, and with the key."""
    with visit(keyed) as client:
        answer = client.post("/sign-in", data={"key": keyed.keys["owner"]})
        cookie = answer.headers["set-cookie"]
        assert all(word in cookie for word in ("HttpOnly", "SameSite=Strict", "Max-Age=43200"))
        assert keyed.keys["owner"] not in cookie
        page = client.get("/")
        before = dict(client.cookies)
        assert client.post("/sign-out", data={"token": token_in(page)}).status_code == 303
        client.cookies.update(before)
        assert client.get("/").status_code == 401
    with visit(keyed, "revoked") as client:
        assert client.get("/").status_code == 200
        with Runtime(keyed.folder / "shop.db", in_process=False) as runtime:
            Keys(runtime.store).revoke(keyed.key_ids["revoked"])
        wait_until(lambda: client.get("/").status_code == 401, "the end of a revoked key")


def test_signing_in_leads_to_what_was_asked_for(keyed):
    """A link that somebody was sent still leads there; a wrong key loses it as little."""
    for path in (f"/runs/{keyed.failed}", "/runs?state=failed&since=24h", "/sessions/a%2Fb"):
        with visit(keyed) as client:
            place = html.unescape(re.search(r'name="to" value="([^"]+)"', client.get(path).text)[1])
            again = client.post("/sign-in", data={"key": "troth_nonsense", "to": place})
            assert html.unescape(re.search(r'name="to" value="([^"]+)"', again.text)[1]) == place
            answer = client.post("/sign-in", data={"key": keyed.keys["owner"], "to": place})
            assert answer.headers["location"] == f".{path}"
    for place in (
        "//evil.example/",
        "https://evil.example",
        "../../elsewhere",
        "\\\\evil.example",
        "a\r\nSet-Cookie: x",
    ):
        with visit(keyed) as client:
            answer = client.post("/sign-in", data={"key": keyed.keys["owner"], "to": place})
            assert httpx.URL(f"{keyed.url}/sign-in").join(answer.headers["location"]).host == "127.0.0.1"
            assert ".." not in answer.headers["location"]
            assert "x" not in answer.cookies


@pytest.mark.parametrize("word", ["nan", "inf", "-inf", "1e400", "-5", "9" * 400, "9" * 15, "x", ""])
def test_a_cookie_that_says_nothing_sensible_breaks_no_page(keyed, word):
    """Another site on the same host may have written it; *Now* is shown as to somebody who comes first."""
    with visit(keyed, "owner", Cookie=f"troth_seen={word}") as client:
        client.headers["Cookie"] = f"troth_seen={word}; " + "; ".join(f"{k}={v}" for k, v in client.cookies.items())
        page = client.get("/")
        assert page.status_code == 200
        assert "failed, last 24 h" in page.text
        answer = client.post("/", data={"seen": word, "token": token_in(page)})
        assert answer.status_code == 303
        assert re.search(r"troth_seen=\d{10}\.\d{3};", answer.headers["set-cookie"])


def test_a_link_signs_in_once(keyed):
    """`troth serve` prints it; the second time it opens nothing."""
    line = keyed.served.process.stdout.readline()
    link = re.search(r"http\S+code=\S+", line)[0]
    with visit(keyed) as client:
        assert client.get(link).status_code == 303
        assert client.get("/runs").status_code == 200
    with visit(keyed) as client:
        page = client.get(link)
        assert page.status_code == 403
        assert "used before" in page.text


def test_a_stranger_sees_nothing_of_others(keyed):
    """What one owner began is told to no other one: not in lists, not by its id, not in a search."""
    with visit(keyed, "stranger") as client:
        assert client.get(f"/runs/{keyed.failed}").status_code == 404
        for path in ("/", "/runs", f"/search?text={keyed.failed[:12]}", "/promises", "/conversations", "/sessions"):
            page = client.get(path)
            assert page.status_code == 200, path
            assert keyed.failed not in page.text


RUN_IN_SESSION = """
import sys
from pathlib import Path

from troth.runtime import Hypervisor, Saga

saga = Saga("move").step("lift", do=lambda: "lifted", undo=None)
with Hypervisor(Path(__file__).parent / "shop.db") as hypervisor:
    hypervisor.member("{session}", "mover").run(saga, run_id="move-1")
"""


def test_a_run_in_a_session_is_seen_by_the_owner_of_the_session_alone(keyed):
    """No server began it; for anybody else it is as if there were none."""
    session = keyed.post("/sessions")["id"]
    keyed.post(f"/sessions/{session}/members", agent="mover", score=0.9)
    keyed.post(f"/sessions/{session}/activate")
    assert begin_program(keyed, "in_session", RUN_IN_SESSION.format(session=session)).wait(120) == 0
    for key in ("admin", "owner", "reader"):
        with visit(keyed, key) as client:
            page = client.get("/runs/move-1")
            assert page.status_code == 200, key
            assert f"sessions/{session}" in page.text
            assert "Resume" not in page.text
            for path in ("/runs", f"/runs?session={session}", "/runs?text=move-1", "/search?text=move-1"):
                assert "move-1" in client.get(path).text.replace("text=move-1", ""), (key, path)
        bearer = {"Authorization": f"Bearer {keyed.keys[key]}"}
        run = httpx.get(f"{keyed.url}/v1/runs/move-1", headers=bearer, trust_env=False, timeout=120)
        assert (run.status_code, run.json()["session"], run.json()["agent"]) == (200, session, "mover")
        events = httpx.get(f"{keyed.url}/v1/runs/move-1/events", headers=bearer, trust_env=False, timeout=120)
        assert (events.status_code, "run ended" in events.text) == (200, True)
    bearer = {"Authorization": f"Bearer {keyed.keys['stranger']}"}
    assert httpx.get(f"{keyed.url}/v1/runs/move-1", headers=bearer, trust_env=False, timeout=120).status_code == 404
    with visit(keyed, "stranger") as client:
        assert 'id="run-move-1"' not in client.get("/runs").text
        assert 'id="run-move-1"' not in client.get(f"/runs?session={session}").text
        refused, missing = client.get("/runs/move-1"), client.get("/runs/move-9")
        assert (refused.status_code, missing.status_code) == (404, 404)
        assert refused.text.replace("move-1", "") == missing.text.replace("move-9", "")


def test_what_was_said_is_found_by_its_owner_alone(keyed):
    """Each key of the owner finds it, by words in any order; a stranger's does not."""
    talk = keyed.post("/conversations", agent="clerk")["id"]
    keyed.post(f"/conversations/{talk}/messages", text="a whale in a parcel")
    for key, is_found in (("admin", True), ("owner", True), ("reader", True), ("stranger", False)):
        with visit(keyed, key) as client:
            page = client.get("/search?text=parcel+WHALE")
            assert (f"conversations/{talk}" in page.text) is is_found, key


def test_a_button_is_there_for_whoever_may_press_it(keyed):
    """A key that may only read sees no button, and is refused where it sends the form anyway."""
    with visit(keyed, "owner") as client:
        assert "Resume" in client.get(f"/runs/{keyed.failed}").text
    with visit(keyed, "reader") as client:
        page = client.get(f"/runs/{keyed.failed}")
        assert "parcel too heavy" in page.text
        assert "<button" not in page.text.split("<main")[1]
        answer = client.post(f"/runs/{keyed.failed}", data={"token": token_in(page), "do": "resume"})
        assert answer.status_code == 403
        assert "does not have the scope" in answer.text


@pytest.mark.parametrize(
    ("headers", "token", "word"),
    [
        pytest.param({"Sec-Fetch-Site": "cross-site"}, None, "another site", id="a form of another site"),
        pytest.param({"Sec-Fetch-Site": "same-site"}, None, "another site", id="a form of a neighbour"),
        pytest.param({}, "", "too old", id="no token"),
        pytest.param({}, "65a0b0c0.00", "too old", id="a token that somebody made up"),
    ],
)
def test_other_sites_can_do_nothing(keyed, headers, token, word):
    """Refused with words, and nothing is done."""
    with visit(keyed, "owner") as client:
        page = client.get(f"/runs/{keyed.failed}")
        form = {"token": token_in(page) if token is None else token, "do": "fork"}
        count = len(client.get("/runs").text.split('class="row"'))
        answer = client.post(f"/runs/{keyed.failed}", data=form, headers=headers)
        assert answer.status_code == 403
        assert word in answer.text
        assert len(client.get("/runs").text.split('class="row"')) == count


def test_a_token_of_another_visitor_is_refused(keyed):
    """A token is of one sign-in."""
    with visit(keyed, "owner") as client, visit(keyed, "owner") as other:
        token = token_in(other.get(f"/runs/{keyed.failed}"))
        assert client.post(f"/runs/{keyed.failed}", data={"token": token, "do": "fork"}).status_code == 403


def test_no_page_can_be_framed_or_run_anything_foreign(keyed):
    """The policy allows what this server has, and nothing inline."""
    with visit(keyed, "owner") as client:
        headers = client.get("/").headers
    policy = headers["content-security-policy"]
    assert all(word in policy for word in ("default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'"))
    assert "unsafe" not in policy
    assert headers["x-frame-options"] == "DENY"
    assert headers["x-content-type-options"] == "nosniff"


def test_a_foreign_name_opens_nothing_without_a_key(shop):
    """A page whose name was pointed at loopback sends its own name."""
    with httpx.Client(base_url=shop.url, trust_env=False) as client:
        assert client.get("/", headers={"Host": "evil.example"}).status_code == 403
        assert client.get("/", headers={"Origin": "http://evil.example"}).status_code == 403
        assert client.get("/").status_code == 200


def test_pages_can_be_left_out(tmp_path):
    """`Server(..., pages=False)` serves the API alone."""
    shop = Shop(tmp_path, "app:bare")
    try:
        with httpx.Client(base_url=shop.url, trust_env=False) as client:
            assert client.get("/").status_code == 404
            assert client.get("/v1/health").status_code == 200
    finally:
        shop.close()


def test_a_browser_is_opened_where_that_is_asked_for(tmp_path):
    """`troth serve --open` hands the browser the same address that it prints."""
    opener = tmp_path / "browser"
    opener.write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/opened\n')
    opener.chmod(0o755)
    fill(tmp_path)
    served = Served(tmp_path, "--no-key", "--open", env={"BROWSER": f"{opener} %s"})
    try:
        line = served.process.stdout.readline()
        wait_until(lambda: (tmp_path / "opened").exists() and (tmp_path / "opened").read_text().strip(), "the browser")
        assert (tmp_path / "opened").read_text().strip() == line.split()[-1] == f"{served.url}/"
    finally:
        served.close()


def test_a_token_ends():
    """A page that was open for longer than a sign-in lasts presses nothing; neither does one from the future."""
    visitor = Visitor(LOCAL, "a secret")
    now = 1_800_000_000.0
    assert visitor.is_token(visitor.token(now), now + 11 * 3600)
    assert not visitor.is_token(visitor.token(now), now + 13 * 3600)
    assert not visitor.is_token(visitor.token(now + 3600), now)
    assert not Visitor(LOCAL, "another").is_token(visitor.token(now), now)


def test_what_takes_another_scope_is_not_shown_and_refused(keyed):
    """`act` neither kills nor talks: no such button, and no such form."""
    with keyed.served.client(keyed.keys["admin"]) as client:
        session = client.post("/sessions", json={}).json()["id"]
        client.post(f"/sessions/{session}/members", json={"agent": "mover", "score": 0.9, "actions": ["lift"]})
        client.post(f"/sessions/{session}/activate", json={})
        talk = client.post("/conversations", json={"agent": "clerk"}).json()["id"]
    with Runtime(keyed.folder / "shop.db", in_process=False) as runtime:
        keyed.keys["actor"] = Keys(runtime.store).create("boss", ["read", "act"]).secret
        keyed.keys["all"] = Keys(runtime.store).create("boss", ["read", "act", "run", "kill"]).secret
    for path, button, form, scope in (
        (f"/sessions/{session}", "Kill mover", {"do": "kill", "agent": "mover", "reason": "why not"}, "kill"),
        (f"/conversations/{talk}", "Send", {"do": "send", "text": "hello"}, "run"),
    ):
        with visit(keyed, "actor") as client:
            page = client.get(path)
            assert page.status_code == 200
            assert button not in page.text
            answer = client.post(path, data={"token": token_in(page), **form})
            assert answer.status_code == 403
            assert f"`{scope}`" in answer.text
        with visit(keyed, "all") as client:
            assert button in client.get(path).text


EVIL = """<!doctype html><title>evil</title>
<iframe name="framed" src="{url}/runs/{run}" width="900" height="600"></iframe>
<iframe name="target"></iframe>
<form method="post" action="{url}/runs/{run}" target="target"><input name="do" value="fork"><button>win</button></form>"""


@pytest.fixture
def evil(shop):
    """A page of another site: a server of its own, under another name."""

    class Pages(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(EVIL.format(url=shop.url, run=shop.things["failed"]).encode())

        def log_message(self, *_):
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://localhost:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.xdist_group("browser")
def test_a_page_of_another_site_can_frame_nothing_and_press_nothing(shop, evil, browser):
    """In a real browser: what is framed stays empty, and a form that is sent from there is refused."""
    run = shop.things["failed"]
    count = len(shop.get("/runs?limit=100")["data"])
    context = browser.new_context()
    try:
        page = context.new_page()
        with page.expect_response(f"{shop.url}/runs/{run}") as framing:
            page.goto(evil)
        assert framing.value.headers["x-frame-options"] == "DENY"
        with page.expect_response(lambda answer: answer.request.method == "POST") as pressing:
            page.get_by_role("button", name="win").click()
        assert pressing.value.status == 403
        for frame in page.frames[1:]:
            assert "parcel too heavy" not in frame.content()
            assert "Troth" not in frame.content()
    finally:
        context.close()
    assert len(shop.get("/runs?limit=100")["data"]) == count
