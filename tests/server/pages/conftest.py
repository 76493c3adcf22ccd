"""A shop with its server, started once for all tests of a worker, and a browser that looks at it."""

import contextlib

import pytest
from tests.server.pages.browser import Tab, chromium
from tests.server.pages.scene import Shop, add_session, add_talk


@pytest.fixture(scope="session")
def shop(tmp_path_factory):
    """One shop without keys, with something of everything in it."""
    shop = Shop(tmp_path_factory.mktemp("shop"))
    try:
        shop.things = {
            "completed": shop.run("order", order="B1"),
            "failed": shop.run("order", order="A7"),
            "rolled back": shop.run("rolls", order="A7"),
            "rollback incomplete": shop.run("resists", order="A7"),
            "waiting": shop.run("asks", until="waiting", order="A7"),
            "running": shop.start("gated"),
            "session": add_session(shop),
            "conversation": add_talk(shop),
            "calls": add_talk(shop, agent="desk"),
            "promise": "parcel-1",
            "job": "pack-1",
        }
        yield shop
    finally:
        shop.close()


@pytest.fixture(scope="module")
def browser():
    """Ended with its module: while playwright is there, its loop runs in this thread, and no other test could start one."""
    with chromium() as browser:
        yield browser


@pytest.fixture
def tab(browser, request):
    """Open tabs on the shop; whatever went wrong in one of them fails the test."""
    with contextlib.ExitStack() as stack:
        tabs = []

        def make(url=None, **options):
            made = Tab(browser, url or request.getfixturevalue("shop").url, **options)
            stack.callback(made.close)
            tabs.append(made)
            return made

        yield make
        assert [problem for made in tabs for problem in made.problems] == []
