"""The cause above the fold: for every kind of failure, the step, the message and the user's line are on the first screen."""

import pytest
from tests.server.pages.scene import Shop

pytestmark = pytest.mark.xdist_group("browser")

SCREENS = [(1280, 720), (360, 640)]
KINDS = {
    "failed after attempts": (
        "order",
        {"order": "A7"},
        "ship failed after 3 attempts",
        "parcel too heavy: 198 kg",
        "steps.py:",
    ),
    "rolled back": ("rolls", {"order": "A7"}, "ship failed", "parcel too heavy: 500 kg", "steps.py:"),
    "rollback incomplete": ("resists", {"order": "A7"}, "undo charge failed", "the bank does not answer", "steps.py:"),
    "two at once": ("both", {}, "left failed", "the left hand dropped it", "steps.py:"),
    "too late": ("late", {}, "slow failed", "0.05", ""),
    "over its budget": ("spent", {"order": "A7"}, "", "budget", ""),
    "inside of another workflow": (
        "inner",
        {"order": "A7"},
        "fetch failed after 2 attempts",
        "did not answer for A7",
        "steps.py:",
    ),
}


ANSWERS = {
    "a question that was denied": ("agreed failed", "was denied by ann: it is too heavy to fly"),
    "a question that nobody answered": ("agreed failed", "nobody answered within"),
}


@pytest.fixture(scope="module")
def failures(shop):
    return {name: shop.run(flow, **inputs) for name, (flow, inputs, *_) in KINDS.items()}


@pytest.fixture(scope="module")
def denied(shop):
    """A run in which a person said no, and one in which nobody said anything in time."""
    run = shop.run("asks", until="waiting", order="A7")
    shop.post(f"/runs/{run}/approve", deny=True, by="ann", note="it is too heavy to fly")
    shop.wait_for(run)
    return dict(zip(ANSWERS, (run, shop.run("silence")), strict=True))


def check_on_screen(page, screen, name, words, within="#cause"):
    """The words are in their box, and the box (of a long text: its beginning) is inside of the first screen."""
    box = page.locator(within).get_by_text(words).first.bounding_box()
    assert box is not None, f"{name}: {words!r} is not there"
    assert min(box["x"], box["y"]) >= 0, (name, words, box)
    assert box["y"] + min(box["height"], 60) <= screen[1], (name, words, box)
    assert box["x"] + box["width"] <= screen[0] + 1, (name, words, box)


@pytest.mark.parametrize("screen", SCREENS, ids=["1280 x 720", "360 x 640"])
def test_the_cause_is_on_the_first_screen(shop, failures, tab, screen):
    """Measured by their boxes, for every kind of failure that a report knows."""
    view = tab(viewport={"width": screen[0], "height": screen[1]})
    for name, (_, _, step, message, line) in KINDS.items():
        page = view.open(f"runs/{failures[name]}")
        for words in filter(None, (step, message, line)):
            check_on_screen(page, screen, name, words)


@pytest.mark.parametrize("screen", SCREENS, ids=["1280 x 720", "360 x 640"])
def test_a_no_and_silence_are_on_the_first_screen(denied, tab, screen):
    """A question that was denied names who said no and why; one that nobody answered in time says that."""
    view = tab(viewport={"width": screen[0], "height": screen[1]})
    for name, expected in ANSWERS.items():
        page = view.open(f"runs/{denied[name]}")
        page.locator(".title .state", has_text="failed").wait_for()
        for words in (*expected, "Ship 198 kg by plane?"):
            check_on_screen(page, screen, name, words)


@pytest.mark.parametrize("screen", SCREENS, ids=["1280 x 720", "360 x 640"])
def test_what_stopped_without_a_failed_step(tmp_path_factory, tab, screen):
    """A run whose process was killed, one that was cancelled, one of which nothing can be read: each says so at once."""
    shop = Shop(tmp_path_factory.mktemp("stopped"))
    try:
        killed = shop.interrupted()
        cancelled = shop.start("gated")
        shop.post(f"/runs/{cancelled}/cancel")
        shop.wait_for(cancelled)
        damaged = shop.run("order", order="B1")
        shop.damage(damaged)
        view = tab(url=shop.url, viewport={"width": screen[0], "height": screen[1]})
        for run, words in ((killed, "interrupted"), (cancelled, "cancelled")):
            page = view.open(f"runs/{run}")
            page.locator(".title .state", has_text=words).wait_for()
            box = page.locator(".go-on .command").first.bounding_box()
            assert box["y"] + box["height"] <= screen[1], (words, box)
        page = view.open(f"runs/{damaged}")
        page.locator(".title .state", has_text="damaged").wait_for()
        for words in ("the run is damaged", "it is no JSON any more"):
            check_on_screen(page, screen, "damaged", words)
        assert shop.get(f"/runs/{damaged}")["state"] == "damaged"
        with shop.served.client() as client:
            refused = [client.get(f"/runs/{damaged}/events"), client.post(f"/runs/{damaged}/resume", json={})]
        assert [(answer.status_code, answer.json()["error"]["code"]) for answer in refused] == [
            (409, "run_damaged")
        ] * 2
        assert {"cancelled", "damaged"} == {run["state"] for run in shop.get("/runs")["data"]}, "one hides the others"
        assert "running" not in view.open(f"runs/{killed}").locator(".title").inner_text()
    finally:
        shop.close()
