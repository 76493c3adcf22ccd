"""Who gets in, who may press what, and what other sites can do: nothing."""

import contextlib
import re

import httpx
import pytest
from tests.server.pages.scene import Shop, fill
from tests.server.service import Served, wait_until

from troth.runtime import Runtime
from troth.server import Keys

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
    with httpx.Client(base_url=shop.url, headers=headers, trust_env=False, timeout=60) as client:
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


def test_a_button_is_there_for_whoever_may_press_it(keyed):
    """A key that may only read sees no button, and is refused where it sends the form anyway."""
    with visit(keyed, "owner") as client:
        assert "Go on" in client.get(f"/runs/{keyed.failed}").text
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
