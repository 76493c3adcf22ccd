"""Each page in a real browser: nothing leaves the origin, nothing is wrong in it, and everybody can use it."""

import hashlib
import re
import subprocess
from importlib import resources
from urllib.parse import urlsplit

import httpx
import pytest
from tests.server.service import TROTH, wait_until

from troth.server.pages.frame import assets

pytestmark = pytest.mark.xdist_group("browser")

PAGES = {
    "now": "",
    "runs": "runs",
    "filtered runs": "runs?state=failed&since=24h",
    "no runs": "runs?workflow=order&state=cancelled",
    "runs that failed": "runs?failed_since=1",
    "what waits for a person": "runs?asking=1",
    "failed run": "runs/{failed}",
    "completed run": "runs/{completed}",
    "running run": "runs/{running}",
    "run that resists": "runs/{rollback incomplete}",
    "difference": "runs/{failed}?diff={completed}",
    "waiting run": "runs/{waiting}",
    "rolled back run": "runs/{rolled back}",
    "conversations": "conversations",
    "conversation": "conversations/{conversation}",
    "calls of tools": "conversations/{calls}",
    "sessions": "sessions",
    "session": "sessions/{session}",
    "verified session": "sessions/{session}?verify=1",
    "promises": "promises",
    "promise": "promises/{promise}",
    "job": "jobs/{job}",
    "search": "search?text=order",
}
LOOKS = {
    "wide": {},
    "narrow and dark": {"viewport": {"width": 360, "height": 640}, "color_scheme": "dark"},
    "tablet": {"viewport": {"width": 820, "height": 1180}},
    "4K": {"viewport": {"width": 3840, "height": 2160}},
}


@pytest.mark.parametrize("look", LOOKS)
def test_every_page_is_whole(shop, tab, look):
    """Axe finds nothing, nothing is wider than the screen, the console is clean, and nothing was asked for elsewhere."""
    view = tab(**LOOKS[look])
    problems = {}
    for name, pattern in PAGES.items():
        page = view.open(pattern.format(**shop.things))
        wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        wrong = [*view.axe(), *([f"{wide} px wider than the screen"] if wide else [])]
        if page.locator("h1").count() != 1 or page.locator(".panel.failed[role=alert]").count():
            wrong.append(page.locator("#content").inner_text()[:300])
        if wrong:
            problems[name] = wrong
    assert problems == {}
    assert {urlsplit(address).netloc for address in view.requests} == {urlsplit(shop.url).netloc}


def test_every_page_without_scripts(shop, tab):
    """All of it can be read with scripts off: the same headings and states, and the way around."""
    plain, scripted = tab(java_script_enabled=False), tab()
    for pattern in PAGES.values():
        path = pattern.format(**shop.things)
        told = [_told(view.open(path)) for view in (plain, scripted)]
        assert told[0] == told[1]
        assert plain.page.locator("nav[aria-label=Pages] a").count() == 6


def _told(page):
    """The headings and states of a page."""
    return page.locator("h1, #content .state").all_inner_texts()


def test_what_a_first_visit_costs(shop):
    """60 kB of scripts and styles at most, packed; a list is below 30 kB; all of it comes from this server."""
    with httpx.Client(base_url=shop.url, headers={"Accept-Encoding": "gzip"}, trust_env=False) as client:
        page = client.get("/runs")
        names = re.findall(r'(?:src|href)="(\./assets/[^"]+)"', page.text)
        assert len(names) == 4
        sizes = [int(client.get(f"/{name}").headers["content-length"]) for name in names]
        assert sum(sizes) + int(page.headers["content-length"]) <= 60_000
        assert int(page.headers["content-length"]) <= 30_000


def test_the_vendored_script_is_what_was_published():
    """Its version is in its name, its licence beside it, and its digest in the source."""
    folder = resources.files("troth.server.pages") / "assets"
    script = (folder / assets.HTMX).read_bytes()
    assert hashlib.sha256(script).hexdigest() == assets.HTMX_DIGEST
    assert "4.0.1" in assets.HTMX
    assert b"4.0.1" in script
    assert "BSD" in (folder / "htmx-LICENSE.txt").read_text()


def test_printing_a_run_gives_a_report(shop, tab):
    """On paper there is the cause and every step, and neither the way around nor a button."""
    view = tab()
    page = view.open(f"runs/{shop.things['failed']}")
    page.emulate_media(media="print", color_scheme="dark")
    ink = "getComputedStyle(document.querySelector('#cause .message')).color.match(/\\d+/g).map(Number)"
    assert max(page.evaluate(ink)) < 100, "dark ink on paper, whatever the screen has"
    assert not page.locator("nav[aria-label=Pages]").is_visible()
    assert not page.get_by_role("button", name="Resume").is_visible()
    assert page.locator("#cause").get_by_text("parcel too heavy: 198 kg").first.is_visible()
    assert page.locator(".steps tbody tr").count() == 3
    page = view.open(f"runs/{shop.run('many', items=[str(number) for number in range(40)])}")
    edges = page.evaluate(
        "[document.querySelector('.result pre').getBoundingClientRect().bottom,"
        " document.querySelector('.result').getBoundingClientRect().bottom,"
        " document.querySelector('svg.graph').getBoundingClientRect().right, innerWidth]"
    )
    assert edges[0] <= edges[1], "a long output ends before what comes after it"
    assert edges[2] <= edges[3], "a wide graph is as wide as the paper"


def test_what_is_folded_is_printed(shop, tab):
    """Inputs, outputs and tracebacks of each step."""
    page = tab().open(f"runs/{shop.things['failed']}")
    page.emulate_media(media="print")
    folded = page.locator(".steps details pre")
    assert folded.count() >= 5
    is_visible = "piece => piece.checkVisibility({contentVisibilityAuto: true, visibilityProperty: true})"
    assert all(folded.nth(number).evaluate(is_visible) for number in range(folded.count()))


def test_words_of_a_table_stay_whole_on_a_tablet_and_on_paper(shop, tab):
    """Where a table is narrow, what may be long is broken: neither its headings nor states, rings and scores."""
    page = tab(viewport={"width": 794, "height": 1123}).open(f"sessions/{shop.things['session']}")
    for media in ("screen", "print"):
        page.emulate_media(media=media)
        heights = page.evaluate(
            "[...document.querySelectorAll('.members th, .members td:nth-child(-n+4)')]"
            ".map(cell => { const text = document.createRange(); text.selectNodeContents(cell);"
            " return [cell.innerText, text.getBoundingClientRect().height]; })"
        )
        assert len(heights) > 8
        assert [cell for cell, height in heights if height > 40] == [], media
    row = tab(viewport={"width": 820, "height": 1180}).open("runs").locator("#runs-rows .row:has(.state.failed)").first
    name, note = (row.locator(part).bounding_box() for part in (".row-id", ".row-note"))
    assert name["height"] < 30, "an id stands on one line"
    assert note["y"] >= name["y"] + name["height"] - 1, "and what is known of the run below it"


def test_header_and_content_are_as_wide_on_every_page(shop, tab):
    """On a large screen they begin at the same place, so that nothing jumps between pages."""
    view = tab(viewport={"width": 1720, "height": 900})
    edges = set()
    for path in ("", "runs", f"runs/{shop.things['failed']}", f"sessions/{shop.things['session']}", "promises"):
        page = view.open(path)
        edges |= {round(page.locator(where).bounding_box()["x"]) for where in (".brand", "#content")}
    assert len(edges) == 1, edges


FILES = {
    "run": (("runs", "show", "{failed}"), ("ship failed after 3 attempts", "charge done")),
    "session": (("session", "show", "{session}"), ("it needs ring 1", "member.joined", "▶ active")),
    "conversation": (("conversations", "show", "{calls}"), ("198 kg", "✓ finished")),
    "delivery": (("outbox", "show", "{promise}"), ("the pager is switched off", "✗ dead")),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_on_a_phone(shop, tab, name):
    """What `--html` writes shows all of its words on a narrow screen, and none of them beside it."""
    command, expected = FILES[name]
    command = [word.format(**shop.things) for word in command]
    if name == "delivery":
        wait_until(lambda: "dead" in _printed(shop, *command), "the delivery to be given up")
    page = tab(viewport={"width": 360, "height": 640}).page
    page.set_content(_printed(shop, *command, "--html", "-"))
    text = page.locator("body").inner_text()
    assert [words for words in expected if words not in text] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    hidden = (
        "[...document.querySelectorAll('.log td')].filter(cell => cell.textContent && !cell.checkVisibility()).length"
    )
    assert page.evaluate(hidden) == 0


def _printed(shop, *command):
    """What a command prints about the shop."""
    command = [TROTH, *command, "--store", "shop.db"]
    return subprocess.run(command, cwd=shop.folder, capture_output=True, text=True, check=True).stdout
