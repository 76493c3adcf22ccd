"""The stream that open pages follow: what changed comes with the page, made once for all tabs of somebody."""

import base64
import contextlib
import gzip
import json
import re

import httpx
import pytest
from tests.server.pages.scene import Shop

from troth.runtime import Runtime
from troth.server.access.keys import Keys
from troth.server.access.scopes import Scope


@pytest.fixture(scope="module")
def keyed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("live")
    with Runtime(folder / "shop.db", in_process=False) as runtime:
        made = {name: Keys(runtime.store).create(name, [Scope.READ, Scope.RUN]) for name in ("ada", "bob")}
    shop = Shop(folder, "app:keyed", made["ada"].secret)
    shop.keys = {name: key.secret for name, key in made.items()}
    yield shop
    shop.close()


@contextlib.contextmanager
def visit(shop, key):
    """A browser's worth of a client, signed in with a key."""
    with httpx.Client(base_url=shop.url, trust_env=False, timeout=120) as client:
        assert client.post("/sign-in", data={"key": shop.keys[key]}).status_code == 303
        yield client


def frames(stream):
    """The changes that a stream tells of."""
    kind = ""
    for line in stream.iter_lines():
        if line.startswith("event: "):
            kind = line[7:]
        elif line.startswith("data: ") and kind == "changed":
            yield json.loads(line[6:])


def unpacked(change):
    return gzip.decompress(base64.b64decode(change["page"])).decode()


def head_of(page):
    """What stands above the content; the token of its form has the moment in it."""
    return re.sub(r'name="token" value="[^"]+"', "", page.split("<main")[0])


@pytest.mark.parametrize("place", ["", "runs", "runs?state=completed", "promises", "sessions", "conversations"])
def test_the_page_comes_with_the_news(keyed, place):
    """The very page that whoever asks gets: its address, its filter, and what its reader may see."""
    with visit(keyed, "ada") as client, client.stream("GET", "/live", params={"on": "all", "page": place}) as stream:
        changes = frames(stream)
        next(changes)
        run = keyed.run("rolls", order="A7")
        for change in changes:
            page = unpacked(change)
            if place in ("", "runs") and run not in page:
                continue
            break
        asked = client.get(f"/{place}").text
        assert head_of(page) == head_of(asked), "the same title, way around and account"
    with visit(keyed, "bob") as client, client.stream("GET", "/live", params={"on": "all", "page": place}) as stream:
        assert run not in unpacked(next(frames(stream)))


@pytest.mark.parametrize(
    "place", [None, "runs/x", "../v1/runs", "search?text=a", "sign-out", "runs?text=" + "a" * 3000]
)
def test_other_pages_are_asked_for(keyed, place):
    """What only few look at, or is no page at all, does not come along."""
    params = {"on": "all"} if place is None else {"on": "all", "page": place}
    with visit(keyed, "ada") as client, client.stream("GET", "/live", params=params) as stream:
        assert "page" not in next(frames(stream))


def test_whoever_is_signed_out_gets_no_more_pages(keyed):
    """The stream that is open tells that something has changed, and nothing of what."""
    with visit(keyed, "ada") as client, client.stream("GET", "/live", params={"on": "all", "page": ""}) as stream:
        changes = frames(stream)
        assert "page" in next(changes)
        token = client.get("/").text.split('name="token" value="')[1].split('"')[0]
        cookies = dict(client.cookies)
        with httpx.Client(base_url=keyed.url, cookies=cookies, trust_env=False, timeout=120) as other:
            assert other.post("/sign-out", data={"token": token}).status_code == 303
        keyed.start("rolls", order="A7")
        assert "page" not in next(changes, {}), "also where the server has ended the stream: a busy one may"
