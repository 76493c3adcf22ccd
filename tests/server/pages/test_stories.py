"""Stories: somebody comes to a page to find out what is wrong, and does something about it."""

import re

import pytest
from tests.server.pages.scene import ASKING_MEMBER, Shop, add_session, add_talk, begin_program, begin_saga
from tests.server.service import wait_until

from troth.runtime import Runtime, bind

pytestmark = pytest.mark.xdist_group("browser")


@pytest.fixture
def own(tmp_path):
    """A shop for one test alone."""
    shop = Shop(tmp_path)
    yield shop
    shop.close()


def test_a_run_that_fails_is_found_understood_and_resumed(own, tab):
    """From Now to the cause to the button; the page shows by itself that the run went on."""
    run = own.run("order", order="A7")
    view = tab(url=own.url)
    page = view.open()
    page.locator("#failed .row-title", has_text="order").click()
    page.wait_for_url(f"**/runs/{run}")
    cause = page.locator("#cause").inner_text()
    assert "ship failed after 3 attempts" in cause
    assert "parcel too heavy: 198 kg" in cause
    assert re.search(r"steps\.py:\d+\s+raise ValueError", cause)
    assert cause.count("attempt ") == 3
    assert f"troth runs resume {run}" in page.locator(".go-on").inner_text()
    (own.folder / "repaired").write_text("")
    page.get_by_role("button", name="Resume").click()
    page.locator(".title .state.completed").wait_for()
    assert page.locator("#cause").inner_text() == ""


def test_what_differs_from_the_last_run_that_was_completed(own, tab):
    """It worked before, and it does not now: one click shows the two side by side."""
    completed, failed = own.run("order", order="B1"), own.run("order", order="A7")
    page = tab(url=own.url).open(f"runs/{failed}")
    fact = page.locator(".facts div", has_text="last completed")
    assert completed in fact.inner_text()
    fact.get_by_role("link", name="compare").click()
    page.locator("h1", has_text="What differs").wait_for()
    rows = [" ".join(row.split()) for row in page.locator(".diff tr").all_inner_texts()]
    assert 'inputs.order "B1" "A7"' in rows
    page = tab(url=own.url).open(f"runs/{completed}")
    assert page.get_by_text("last completed").count() == 0


def test_a_question_is_answered_on_one_page_and_seen_on_another(own, tab):
    """With a note and a name; the other page changes by itself, without moving the reader's focus."""
    run = own.run("asks", until="waiting", order="B1")
    asked, other = tab(url=own.url), tab(url=own.url)
    asked.open(f"runs/{run}")
    page = other.open(f"runs/{run}")
    other.wait_live()
    page.locator("input[name=note]").fill("half a note")
    page.keyboard.press("ArrowLeft")
    form = asked.page.locator("form.answer")
    form.locator("input[name=by]").fill("Ada")
    form.locator("input[name=note]").fill("it fits")
    form.get_by_role("button", name="Approve").click()
    asked.page.locator(".title .state.completed").wait_for()
    page.locator(".title .state.completed").wait_for()
    told = own.get(f"/runs/{run}")
    assert [step["output"] for step in told["steps"] if step["place"] == "agreed"] == [
        {"approved": True, "by": "Ada", "note": "it fits"}
    ]


def test_a_question_of_one_branch_is_on_now_while_another_one_works(own, tab):
    """The run is running, and a person is asked all the same; once that is answered, it is gone by itself."""
    view = tab(url=own.url)
    page = view.open("")
    view.wait_live()
    run = own.start("split")
    page.locator("#people .row", has_text="agreed asks: Ship 198 kg by plane?").wait_for()
    page.locator("#running .row", has_text=run).wait_for()
    assert page.locator(".card", has_text="wait for a person").inner_text().split()[0] == "1"
    own.post(f"/runs/{run}/approve", by="Ada")
    page.wait_for_selector("#people", state="detached")
    page.locator("#running .row", has_text=run).wait_for()


def test_what_a_run_does_just_now_is_told_first(own, tab):
    """At which step it works and since when; until when it waits, in the zone of whoever reads."""
    view = tab(url=own.url, timezone_id="Asia/Tokyo", locale="en-GB")
    nap = own.run("nap", until="waiting")
    page = view.open(f"runs/{nap}")
    line = page.locator(".activity")
    line.get_by_text("rest waits; it goes on in").wait_for()
    shown = page.evaluate("document.querySelector('.activity time .exact').textContent")
    moment = page.locator(".activity time").get_attribute("datetime")
    options = "{dateStyle: 'medium', timeStyle: 'medium'}"
    whole = page.evaluate(f"new Intl.DateTimeFormat('en-GB', {options}).format(Date.parse('{moment}'))")
    assert shown in whole
    gated = own.start("gated")
    page = view.open(f"runs/{gated}")
    page.locator(".activity", has_text="at work on gate, started").wait_for()
    (own.folder / "go").write_text("")
    page.wait_for_selector(".activity", state="detached")


def test_an_agent_is_killed_in_mid_saga_and_the_audit_says_so(own, tab):
    """Its saga is undone, and the page says what came of it in the words of the kill."""
    process = begin_saga(own)
    try:
        view = tab(url=own.url)
        page = view.open("sessions/mid-saga")
        page.get_by_role("link", name="carry").click()
        page.locator(".title .state.running").wait_for()
        page.locator(".activity", has_text="at work on carry").wait_for()
        assert page.locator("main button").count() == 0, "who goes on with it, and who ends it, is its session"
        page.locator(".facts").get_by_role("link", name="mid-saga").click()
        page.locator("summary", has_text="kill").click()
        page.locator("input[name=reason]").fill("it carries the wrong parcel")
        page.get_by_role("button", name="Kill mover").click()
        page.get_by_text("mover is terminated").wait_for()
        text = page.locator("#content").inner_text()
        assert "reason: it carries the wrong parcel" in text
        assert "undone" in text
        assert "member.killed" in page.locator(".audit").inner_text()
        assert (own.folder / "put-down.txt").exists()
        page.get_by_role("link", name="Verify the whole trail").click()
        page.locator("#content .state", has_text="valid").wait_for()
    finally:
        process.kill()
        process.wait(60)


def test_an_agent_in_a_session_asks_a_person(own, tab):
    """Its run is in the lists, and its question on *Now*; it is answered on the page of the run, which then goes on."""
    process = begin_program(own, "asking", ASKING_MEMBER)
    try:
        view = tab(url=own.url)
        page = view.open()
        page.locator("#people .row", has_text="agreed asks: Carry it over the lawn?").wait_for()
        assert page.locator(".card", has_text="wait for a person").inner_text().split()[0] == "1"
        assert "Carry it over the lawn?" in view.open("runs?asking=1").locator("#content").inner_text()
        for words in ("", "?state=waiting", "?session=garden", "?text=move-"):
            rows = view.open(f"runs{words}").locator("#run-move-1")
            assert "in the session garden, by mover" in rows.inner_text()
        name = view.open("runs").locator("#run-move-1 .row-title").inner_text()
        assert name in view.page.locator("select[name=workflow] option").all_inner_texts()
        page = view.open("sessions/garden")
        page.get_by_text("the runs that it carries out").click()
        page.locator("#run-move-1").wait_for()
        page = view.open()
        page.locator("#people .row-title").click()
        page.wait_for_url("**/runs/move-1")
        assert "garden by mover" in page.locator(".facts").inner_text()
        form = page.locator("form.answer")
        form.locator("input[name=by]").fill("Ada")
        form.get_by_role("button", name="Approve").click()
        page.locator(".title .state.completed").wait_for()
        assert page.locator("main button").count() == 0
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait(60)


def test_a_result_waits_for_a_channel_is_replayed_and_arrives(own, tab):
    """What the receiver said is there; sent again it arrives, and the sum is right before and after."""
    view = tab(url=own.url)
    page = view.open("promises")
    page.locator(".sum", has_text="✓").wait_for()
    wait_until(lambda: "dead" in view.open("promises").locator("#content").inner_text(), "the delivery to be given up")
    page.locator("#promises-rows .row-title").first.click()
    page.get_by_text("the pager is switched off").first.wait_for()
    assert page.locator("ul.attempts").count() == 0, "of one attempt, all is told already"
    (own.folder / "pager-on").write_text("")
    page.get_by_role("button", name="Replay").click()
    page.locator(".panel .state.delivered").first.wait_for()
    attempts = page.locator("ul.attempts li").all_inner_texts()
    assert "the pager is switched off" in attempts[0]
    assert "delivered, attempt 1 through pager" in attempts[-1]
    assert (own.folder / "paged.txt").exists()
    assert "page-1" in page.locator("#content").inner_text()
    view.open("promises").locator(".sum", has_text="✓").wait_for()


def test_no_button_does_what_is_refused(own, tab):
    """What is stored needs a channel; a run whose record is damaged since its page was opened is left as it is."""
    with Runtime(own.folder / "shop.db", in_process=False) as runtime, bind("later", None):
        runtime.jobs.start(["true"], job_id="quiet-1")
        wait_until(lambda: runtime.promises.get("quiet-1").state == "done", "the end of the job")
    view = tab(url=own.url)
    page = view.open("promises/quiet-1")
    page.locator(".title .state.stored").wait_for()
    assert page.locator("main button").all_inner_texts() == ["Replay", "Acknowledge"]
    channel = page.locator("input[name=channel]")
    page.get_by_role("button", name="Replay").click()
    assert channel.evaluate("field => !field.validity.valid"), "a channel has to be named"
    channel.fill("pagr")
    page.get_by_role("button", name="Replay").click()
    page.get_by_text("no process serves this channel").wait_for()
    assert "the receiver answered" not in page.locator("main").inner_text()
    page.locator(".title .state.stored").wait_for()
    page.get_by_role("button", name="Acknowledge").click()
    page.locator(".title .state.delivered").wait_for()
    run = own.run("order", order="A7")
    plain = tab(url=own.url, java_script_enabled=False)  # a page that does not follow what happens
    plain.expects_failures = True
    page = plain.open(f"runs/{run}")
    own.damage(run)
    page.get_by_role("button", name="Resume").click()
    page.get_by_text("is damaged: it is not valid JSON").wait_for()
    assert page.locator("h1").inner_text() == "Not possible now"


def test_a_phone_sleeps_and_misses_nothing(own, tab):
    """The server is killed and started again meanwhile: the page says since when, and comes back with everything."""
    run = own.start("gated")
    view = tab(url=own.url, viewport={"width": 360, "height": 640})
    view.expects_failures = True  # a browser writes into its console that a server does not answer
    page = view.open(f"runs/{run}")
    view.wait_live()
    page.locator(".title .state.running").wait_for()
    own.kill()
    page.locator("body.is-away").wait_for()
    assert "no connection since" in page.locator("#liveness").inner_text()
    assert view.axe() == [], "what may be old is grey, and can still be read"
    (own.folder / "go").write_text("")
    own.come_back()
    view.wait_live()
    page.locator(".title .state.completed").wait_for()
    assert "run ended" not in page.locator(".events").inner_text()
    assert "completed" in page.locator(".events").inner_text()


def test_a_killed_run_is_never_shown_as_running(own, tab):
    """Nobody writes that a process was killed; the page says it anyway, by itself."""
    view = tab(url=own.url)
    process = own.begin_elsewhere()
    page = view.open("runs/killed-1")
    view.wait_live()
    page.locator(".title .state.running").wait_for()
    process.kill()
    process.wait(60)
    page.locator(".title .state.interrupted").wait_for()
    assert "troth runs resume killed-1" in page.locator(".go-on").inner_text()


def test_a_talk_as_it_is_said(own, tab):
    """What the agent says comes word by word; sending, interrupting, and what that could promise."""
    talk = own.post("/conversations", agent="clerk")["id"]
    view = tab(url=own.url)
    page = view.open(f"conversations/{talk}")
    view.wait_live()
    page.locator("#say").fill("please wait for me")
    page.get_by_role("button", name="Send").click()
    page.locator("#typing", has_text="please").wait_for()
    page.get_by_role("button", name="Interrupt").click()
    page.get_by_text("The run will stop").wait_for()
    page.locator(".title .state.interrupted").wait_for()
    page.locator("#say").fill("hello again")
    page.get_by_role("button", name="Send").click()
    page.get_by_text("You said: hello again").wait_for()


def test_a_story_by_keyboard_alone(own, tab):
    """From Now to the failed run, its error copied, resumed, and back to the list; no mouse anywhere."""
    run = own.run("order", order="A7")
    view = tab(url=own.url, permissions=["clipboard-read", "clipboard-write"])
    page = view.open()
    view.wait_live()
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/runs/{run}")
    view.wait_live()
    for key, words in (("y", run), ("e", "parcel too heavy: 198 kg"), ("c", f"troth runs resume {run}")):
        page.keyboard.press(key)
        page.wait_for_function("() => document.querySelector('#liveness').textContent.startsWith('copied')")
        assert words in page.evaluate("navigator.clipboard.readText()")
    (own.folder / "repaired").write_text("")
    page.keyboard.press("a")
    page.keyboard.press("Enter")
    page.locator(".title .state.completed").wait_for()
    view.wait_live()  # the button made another page, whose keys work as soon as its script is there
    page.keyboard.press("u")
    page.wait_for_url("**/runs")
    page.keyboard.press("g")
    page.keyboard.press("n")
    page.locator("h1", has_text="Now").wait_for()


def test_a_list_holds_still_while_somebody_reads_it(own, tab):
    """Rows that are new are announced above the list; those that are there change in place, and keep their focus."""
    first = own.start("gated")
    view = tab(url=own.url)
    page = view.open("runs")
    view.wait_live()
    page.locator(f"#run-{first} a").focus()
    before = page.locator(f"#run-{first}").bounding_box()
    own.run("order", order="B1")
    page.get_by_role("button", name="1 new: show").wait_for()
    assert page.locator(f"#run-{first}").bounding_box() == before
    assert page.evaluate("document.activeElement.closest('.row').id") == f"run-{first}"
    (own.folder / "go").write_text("")
    page.locator(f"#run-{first} .state.completed").wait_for()
    assert page.evaluate("document.activeElement.closest('.row').id") == f"run-{first}"
    page.keyboard.press(".")
    page.locator("#runs-rows .row").nth(1).wait_for()


@pytest.mark.parametrize("height", [400, 900], ids=["a page that can be scrolled", "one that cannot"])
def test_what_is_pointed_at_stays_where_it_is(own, tab, height):
    """A section that comes above it does not push it away from under the pointer."""
    own.start("gated")
    page = tab(url=own.url, viewport={"width": 1280, "height": height}).open("")
    page.wait_for_selector("body.is-live")
    row = page.locator("#running .row").first
    row.hover()
    before = row.bounding_box()["y"]
    assert page.locator("#failed").count() == 0
    own.run("order", order="A7")
    page.locator("#failed .row").first.wait_for(state="attached")
    wait_until(lambda: abs(row.bounding_box()["y"] - before) < 2, "the row under the pointer")
    assert page.locator("#running .row:hover").count() == 1


def test_what_is_read_on_a_phone_stays_where_it_is(own, tab):
    """There is no pointer and no focus: what stands where one reads is kept there."""
    for _ in range(3):
        own.start("gated")
    page = tab(url=own.url, viewport={"width": 360, "height": 400}, has_touch=True).open("")
    page.wait_for_selector("body.is-live")
    row = page.locator("#running .row").first
    row.evaluate("row => scrollTo(0, row.getBoundingClientRect().top - 110)")
    before = row.bounding_box()["y"]
    own.run("order", order="A7")
    page.locator("#failed .row").first.wait_for(state="attached")
    wait_until(lambda: abs(row.bounding_box()["y"] - before) < 2, "the row that is read")


def test_an_open_detail_and_a_selection_stay_as_they_are(own, tab):
    """What changes on a page does not close what one has opened, nor move what one has selected."""
    run = own.run("asks", until="waiting", order="B1")
    view = tab(url=own.url)
    page = view.open(f"runs/{run}")
    view.wait_live()
    page.locator(".steps summary", has_text="charge").click()
    page.evaluate("() => document.getSelection().selectAllChildren(document.querySelector('.title .id'))")
    own.post(f"/runs/{run}/approve", by="Ada")
    page.locator(".title .state.completed").wait_for()
    assert page.locator(".steps details[open]").count() == 1
    assert page.evaluate("document.getSelection().toString()") == run


def test_the_same_without_scripts_in_the_dark_on_a_phone(own, tab):
    """Every page is complete without scripts, and so are its buttons: the failed run is found, resumed and done."""
    run = own.run("order", order="A7")
    look = {"viewport": {"width": 360, "height": 640}, "color_scheme": "dark"}
    page = tab(url=own.url, java_script_enabled=False, **look).open()
    page.locator("#failed .row-title", has_text="order").click()
    page.locator("#cause").get_by_text("parcel too heavy: 198 kg").first.wait_for()
    (own.folder / "repaired").write_text("")
    page.get_by_role("button", name="Resume").click()
    own.wait_for(run, "completed")
    page.reload()
    page.locator(".title .state.completed").wait_for()
    page.locator(".result").get_by_text("TR-001").wait_for()


def press(page, *keys):
    for key in keys:
        page.keyboard.press(key)


def tab_to(page, name):
    """Press Tab until what is called `name` has the focus."""
    for _ in range(80):
        page.keyboard.press("Tab")
        told = "document.activeElement.textContent + (document.activeElement.name || '')"
        if name in page.evaluate(told):
            return
    raise AssertionError(f"Tab never comes to {name!r}")


def test_a_question_a_replay_and_a_kill_by_keyboard_alone(own, tab):
    """Whatever a mouse can do, keys can: answer a question, send a result again, kill an agent."""
    own.run("asks", until="waiting", order="B1")
    view = tab(url=own.url)
    page = view.open()
    view.wait_live()
    press(page, "j", "Enter")
    page.locator("form.answer").wait_for()
    view.wait_live()
    page.keyboard.press("a")
    page.keyboard.press("Control+a")
    page.keyboard.type("Ada")
    press(page, "Tab")
    page.keyboard.type("it fits")
    press(page, "Tab", "Enter")
    page.locator(".title .state.completed").wait_for()
    assert "Ada" in page.locator(".steps").text_content()

    wait_until(lambda: "dead" in view.open("promises").locator("#content").inner_text(), "the delivery to be given up")
    view.wait_live()
    page.locator("#promises-rows .row-title", has_text="order").focus()
    press(page, "Enter")
    page.get_by_text("the pager is switched off").first.wait_for()
    (own.folder / "pager-on").write_text("")
    tab_to(page, "Replay")
    press(page, "Enter")
    page.locator(".title .state.delivered").wait_for()

    session = add_session(own)
    page = view.open(f"sessions/{session}")
    view.wait_live()
    tab_to(page, "Kill …")
    press(page, "Enter", "Tab")
    page.keyboard.type("it guesses")
    tab_to(page, "Kill mover")
    press(page, "Enter")
    page.get_by_text("mover is terminated").wait_for()


def test_send_pause_and_interrupt_by_keyboard_alone(own, tab):
    """Say something, pause the agent, let it go on, say more, and interrupt it, without a mouse."""
    talk = own.post("/conversations", agent="clerk")["id"]
    view = tab(url=own.url)
    page = view.open(f"conversations/{talk}")
    view.wait_live()
    press(page, "a")
    page.keyboard.type("please wait for me")
    press(page, "Tab")
    assert page.evaluate("document.activeElement.textContent") == "Send"
    press(page, "Enter")
    page.locator("#typing", has_text="please wait for me").wait_for()
    view.wait_live()
    tab_to(page, "Pause")
    press(page, "Enter")
    page.get_by_text("The run was asked to pause").wait_for()
    (own.folder / "go").write_text("")
    page.get_by_text("You said: please wait for me").wait_for()
    (own.folder / "go").unlink()
    page.locator(".title .state.running").wait_for(state="detached")
    view.wait_live()
    page.locator("#say").focus()  # as `a` does
    page.keyboard.type("and wait once more")
    press(page, "Tab", "Enter")
    page.locator("#typing", has_text="once more").wait_for()
    view.wait_live()
    tab_to(page, "Interrupt")
    press(page, "Enter")
    page.get_by_text("The run will stop").wait_for()
    page.locator(".title .state.interrupted").wait_for()


def test_calls_of_tools_stand_with_what_came_of_them(own, tab):
    """Arguments and answer in one box below the message that asked for them; usage and budget above."""
    talk = add_talk(own, agent="desk")
    view = tab(url=own.url)
    page = view.open(f"conversations/{talk}")
    calls = page.locator(".said.call")
    assert calls.count() == 2
    for place, (words, answer) in enumerate(
        (("calls weigh", "198 kg"), ("calls price", "the price list does not answer"))
    ):
        assert words in calls.nth(place).inner_text()
        assert answer in calls.nth(place).inner_text()
    assert "✓ it answered" in calls.nth(0).inner_text()
    assert "✗ it failed\nConnectionError: the price list does not answer" in calls.nth(1).inner_text()
    facts = page.locator(".facts").inner_text()
    assert "355 tokens" in facts
    assert "355 of 1,000 tokens used" in facts
    assert re.search(r"\d (ms|s|min|h|d)\b.* of 365 d since its first turn", facts), facts
    assert page.locator("h1").inner_text() == "desk"
    page = view.open("conversations?text=desk")
    assert page.locator("#talks-rows .row-title").all_inner_texts() == ["desk"], "found by the name that is shown"


def test_two_sessions_are_followed_at_once(own, tab):
    """Each open session is told of its own changes, within moments of their commit."""
    first, second = add_session(own), add_session(own)
    pages = {session: tab(url=own.url) for session in (first, second)}
    for session, view in pages.items():
        view.open(f"sessions/{session}")
        view.wait_live()
    for session, view in pages.items():
        own.post(f"/sessions/{session}/members/mover/kill", reason=f"of {session}")
        view.page.get_by_text(f"reason: of {session}").wait_for()


def test_what_was_said_is_searched_for_and_found(own, tab):
    """From a key on any page to the conversation, with the words in view; and the id of what was found is copied."""
    talk = add_talk(own, "a whale\nin the second line\nof a parcel")
    view = tab(url=own.url, permissions=["clipboard-read", "clipboard-write"])
    page = view.open()
    view.wait_live()
    press(page, "/")
    page.wait_for_url("**/search")
    page.wait_for_load_state("load")
    page.locator("#text").fill("PARCEL second")
    press(page, "Enter")
    page.locator("mark", has_text="second").first.wait_for()
    page.wait_for_load_state("load")  # keys work as soon as the script is there
    assert {mark.lower() for mark in page.locator("mark").all_inner_texts()} == {"second", "parcel"}
    press(page, "j", "y")
    page.wait_for_function("() => document.querySelector('#liveness').textContent.startsWith('copied')")
    assert page.evaluate("navigator.clipboard.readText()") == talk
    press(page, "Enter")
    page.get_by_text("in the second line").first.wait_for()
