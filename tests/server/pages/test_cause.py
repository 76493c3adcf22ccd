"""The cause above the fold: for every kind of failure, the step, the message and the user's line are on the first screen."""

import pytest
from tests.server.pages.scene import Shop, add_session, add_talk
from tests.server.service import wait_until

from troth.runtime import Runtime

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
    "too late": ("late", {}, "slow failed", "0.05", "late.yaml:"),
    "over its budget": ("spent", {"order": "A7"}, "", "budget", "spent.yaml:"),
    "with a message of forty lines": (
        "long_error",
        {"order": "A7"},
        "tell failed",
        "the service does not take the order",
        "steps.py:",
    ),
    "inside of another workflow": (
        "inner",
        {"order": "A7"},
        "fetch failed after 2 attempts",
        "did not answer for A7",
        "steps.py:",
    ),
}


ANSWERS = {
    "a question that was denied": ("agreed failed", "was denied by ann: it is too heavy to fly", "asks.yaml:"),
    "a question that nobody answered": ("agreed failed", "no answer came within", "silence.yaml:"),
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
        assert view.axe() == [], name


@pytest.mark.parametrize("screen", SCREENS, ids=["1280 x 720", "360 x 640"])
def test_a_no_and_silence_are_on_the_first_screen(denied, tab, screen):
    """A question that was denied names who said no and why; one that no answer came in time says that."""
    view = tab(viewport={"width": screen[0], "height": screen[1]})
    for name, expected in ANSWERS.items():
        page = view.open(f"runs/{denied[name]}")
        page.locator(".title .state", has_text="failed").wait_for()
        for words in (*expected, "Ship 198 kg by plane?"):
            check_on_screen(page, screen, name, words)


@pytest.mark.parametrize("screen", SCREENS, ids=["1280 x 720", "360 x 640"])
def test_what_to_do_next_is_on_the_first_screen(shop, failures, tab, screen):
    """The button that goes on; what came of a run that is completed; why a result did not arrive."""
    view = tab(viewport={"width": screen[0], "height": screen[1]})
    page = view.open(f"runs/{failures['failed after attempts']}")
    check_on_screen(page, screen, "failed", "Resume", within=".go-on")
    page = view.open(f"runs/{shop.things['completed']}")
    check_on_screen(page, screen, "completed", "TR-001", within=".result")
    page = view.open(f"promises/{shop.things['promise']}")
    check_on_screen(page, screen, "dead", "the pager is switched off", within=".panel.failed")
    check_on_screen(page, screen, "dead", "Replay", within=".panel.failed")


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
            causes = {
                "interrupted": (
                    "interrupted at gate",
                    "The process that ran it has ended",
                    "Its process was last seen",
                ),
                "cancelled": ("cancelled at gate", "It was cancelled before it was over"),
            }
            for cause in causes[words]:
                check_on_screen(page, screen, words, cause)
            box = page.locator(".go-on .command").first.bounding_box()
            assert box["y"] + box["height"] <= screen[1], (words, box)
        page = view.open(f"runs/{killed}")
        drawn = page.locator(".bar.interrupted rect.work").bounding_box()
        assert drawn["width"] > 0, "how long it worked until then, be it no time at all"
        page = view.open(f"runs/{damaged}")
        page.locator(".title .state", has_text="damaged").wait_for()
        assert page.get_by_text("troth store check").is_visible()
        assert page.get_by_text("last completed").count() == 0, "it is not compared with itself"
        for words in ("the run is damaged", "it is not valid JSON"):
            check_on_screen(page, screen, "damaged", words)
        assert view.axe() == []
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


@pytest.fixture(scope="module")
def small_shop(tmp_path_factory):
    """A shop of its own with one thing of each kind: how much others have put above what is looked at is known."""
    shop = Shop(tmp_path_factory.mktemp("small"))
    try:
        shop.run("asks", until="waiting", order="A7")
        add_session(shop)
        add_talk(shop)
        flow, inputs, *_ = KINDS["inside of another workflow"]
        shop.things = {"newest": shop.run(flow, **inputs)}
        yield shop
    finally:
        shop.close()


@pytest.mark.parametrize("screen", SCREENS, ids=["1280 x 720", "360 x 640"])
def test_the_newest_of_a_list_is_on_the_first_screen(small_shop, tab, screen):
    """Neither the counts nor the filter push what one comes for off a phone's screen; one key brings the filter."""
    view = tab(small_shop.url, viewport={"width": screen[0], "height": screen[1]})
    newest = small_shop.things["newest"]
    page = view.open()
    check_on_screen(page, screen, "now", "did not answer for A7", within=f"#failed #run-{newest}")
    for path, rows in (("runs", "#runs-rows"), ("conversations", "#talks-rows"), ("sessions", "#sessions-rows")):
        page = view.open(path)
        view.wait_live()
        box = page.locator(f"{rows} .row").first.bounding_box()
        assert box["y"] + box["height"] <= screen[1] * 0.7, (path, box)
        page.keyboard.press("/")
        assert page.evaluate("document.activeElement.form.className") == "filters"
    page.keyboard.type("nothing is called so")
    page.keyboard.press("Enter")
    page.get_by_text("No matching sessions").wait_for()
    view.wait_live()  # its styles have come, too
    is_narrow = screen[0] < 760
    assert page.get_by_text("Filter: nothing is called so").is_visible() == is_narrow


@pytest.mark.parametrize("screen", SCREENS, ids=["1280 x 720", "360 x 640"])
def test_a_job_that_failed_says_so_first(tmp_path_factory, tab, screen):
    """How it ended stands in a box of its own, and what it printed is on the same screen."""
    folder = tmp_path_factory.mktemp("job")
    with Runtime(folder / "shop.db", in_process=False) as runtime:
        runtime.jobs.start(["sh", "-c", "echo no more paper; exit 3"], job_id="print-1")
        long = (
            r"for n in $(seq 9000); do echo page $n; done; printf '\033[32mgreen\033[0m\nthe tray is empty\n'; exit 4"
        )
        runtime.jobs.start(["sh", "-c", long], job_id="print-2")
        for job in ("print-1", "print-2"):
            wait_until(lambda job=job: runtime.jobs.get(job).is_over, "the end of the job")
    shop = Shop(folder)
    try:
        page = tab(url=shop.url, viewport={"width": screen[0], "height": screen[1]}).open("jobs/print-1")
        check_on_screen(page, screen, "job", "ended with exit code 3", within=".panel.failed")
        check_on_screen(page, screen, "job", "no more paper", within="main")
        page = tab(url=shop.url, viewport={"width": screen[0], "height": screen[1]}).open("jobs/print-2")
        check_on_screen(page, screen, "long job", "the tray is empty", within=".panel.failed")
        lines = page.locator("#output").inner_text().splitlines()
        assert lines[0].startswith("page "), "the output begins with a whole line"
        assert lines[-2:] == ["green", "the tray is empty"], "without the colors of a terminal"
        assert page.evaluate("document.querySelector('#output').scrollTop") > 0, "its end is in view"
        earlier = page.get_by_role("link", name="bytes before")
        earlier.click()
        page.wait_for_url("**after=*")
        before = f"page {int(lines[0].split()[1]) - 1}"
        assert before in page.locator("#output").inner_text().splitlines(), "nothing is left out between two pieces"
    finally:
        shop.close()
