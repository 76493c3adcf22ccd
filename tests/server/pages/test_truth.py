"""What a page shows is what `--json` tells at the same moment, and nothing is on a page that is not in it."""

import html
import json
import re
import shlex
import sqlite3
import subprocess

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.server.pages.scene import Shop, add_session
from tests.server.service import TROTH, Served, wait_until

from troth.runtime.workflows.render.markup import visible

ROW = re.compile(r'<tr[^>]*><td class="step[^"]*">(.*?)</td><td class="[^"]*">. ([a-z ]+)</td>', re.DOTALL)
SLOW = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
PLACE = re.compile(r"<summary>(.*?)</summary>|<span class=\"place\">(.*?)</span>")


def steps_on(page):
    """The steps of a run's page, as (place, state)."""
    rows = ROW.findall(page)
    return [(html.unescape("".join(PLACE.search(cell).groups(""))), state) for cell, state in rows]


def told(shop, *command):
    """What a command tells a machine."""
    answer = subprocess.run(
        [TROTH, *command, "--store", "shop.db", "--json"], cwd=shop.folder, capture_output=True, text=True, check=False
    )
    return json.loads(answer.stdout)


@settings(max_examples=6, deadline=None, suppress_health_check=SLOW)
@given(items=st.lists(st.text(max_size=20), max_size=30), flow=st.sampled_from(["many", "order", "resists", "both"]))
def test_a_page_tells_what_json_tells(shop, items, flow):
    """Every step with its state, in the same order, folded alike; the run's state, its inputs and its commands."""
    order = "A7" if len(items) % 2 else "B1"
    inputs = {"many": {"items": items}, "both": {}}.get(flow, {"order": order})
    run = shop.run(flow, **inputs)
    with httpx.Client(base_url=shop.url, trust_env=False, timeout=120) as client:
        page = client.get(f"/runs/{run}").text
    report = told(shop, "runs", "show", run)
    shown = dict(steps_on(page))
    steps = {step["place"]: step["state"] for step in report["steps"]}
    folded = {place for place in shown if "…" in place}
    assert {place: state for place, state in shown.items() if place not in folded}.items() <= steps.items()
    if not folded:
        assert set(shown) == set(steps)
    assert f"{report['state']}</span>" in page
    assert f'title="{report["source"]}">{flow}.yaml</code>' in page
    for command in report["commands"]:
        assert html.escape(command["command"], quote=False) in page


def rows_behind(client, path):
    """How many rows a list has, over all of its pages."""
    count = 0
    while path:
        page = client.get(path).text
        count += page.count('class="row"')
        following = re.search(r'href="\./([^"]+)" rel="next"', page)
        path = f"/{html.unescape(following[1])}" if following else None
    return count


def test_counts_add_up_with_the_lists_behind_them(shop):
    """Each number on Now and above the list of runs is the length of the list that it leads to."""
    with httpx.Client(base_url=shop.url, trust_env=False, timeout=120) as client:
        now, runs = client.get("/").text, client.get("/runs").text
        cards = re.findall(r'href="([^"]+)"><b>([\d,]+)</b> <span>([^<]+)<', now)
        assert len(cards) == 8
        for escaped, number, word in cards:
            address, count = html.unescape(escaped), int(number.replace(",", ""))
            if address.startswith("#"):
                section = now.split(f'id="{address[1:]}"')[-1].split("</section>")[0] if count else ""
                more = re.search(r'<a href="\./([^"]+)">([\d,]+) more', section)
                assert section.count('class="row"') + (int(more[2].replace(",", "")) if more else 0) == count, word
                if more:
                    assert rows_behind(client, f"/{html.unescape(more[1])}") == count, word
            elif "promises" not in address:
                assert rows_behind(client, address.removeprefix(".")) == count, word
            else:
                owed = client.get("/promises").text.split('id="owed-rows"')[1].split("</ol>")[0]
                assert owed.count('class="row"') == count, word
        pills = re.findall(r'href="\./runs\?state=([^"]+)"><span class="state [^"]+">. [a-z ]+ ([\d,]+)<', runs)
        assert {state for state, _ in pills} >= {"completed", "failed", "rolled+back", "waiting", "running"}
        for state, count in pills:
            assert rows_behind(client, f"/runs?state={state}") == int(count.replace(",", "")), state


def test_more_questions_than_now_shows(tmp_path):
    """The first of them, how many more there are, and a list that has all; of a run with several, each is counted once."""
    shop = Shop(tmp_path)
    try:
        runs = {shop.run("asks", until="waiting", order=f"A{number}") for number in range(21)} | {shop.start("split")}
        session = shop.post("/sessions", policy=[{"answer": "ask", "action": "lift"}])["id"]
        shop.post(f"/sessions/{session}/members", agent="mover", score=0.9, actions=["lift"])
        shop.post(f"/sessions/{session}/activate")
        act = {"agent": "mover", "action": "lift", "inputs": {"weight": 3}}
        with shop.served.client() as client:
            asked = client.post(f"/sessions/{session}/execute", json=act, headers={"Prefer": "wait=0, respond-async"})
            assert asked.status_code == 202, asked.text
        with httpx.Client(base_url=shop.url, trust_env=False, timeout=120) as client:
            wait_until(lambda: "<b>23</b> <span>wait for a person" in client.get("/").text, "all questions")
            section = client.get("/").text.split('id="people"')[1].split("</section>")[0]
            assert section.count('class="row"') == 20
            assert "<b>wants to do lift</b>" in section
            more = re.search(r'<a href="\./([^"]+)">3 more', section)
            assert rows_behind(client, f"/{html.unescape(more[1])}") == 23
            assert all(run in client.get("/runs?asking=1").text for run in runs)
            waiting = client.get("/runs?state=waiting").text
            assert waiting.count('class="row"') == 21, "the one that works beside its question is running"
    finally:
        shop.close()


@pytest.mark.parametrize(
    "store", [pytest.param((), id="the usual store"), pytest.param(("--store", "a b.db"), id="another")]
)
def test_what_to_do_first_works_as_it_stands(tmp_path, store):
    """The command on the empty page can be pasted: it runs, in the store of this server, and the page shows the run."""
    subprocess.run([TROTH, "init", "hello"], cwd=tmp_path, check=True, capture_output=True)
    served = Served(tmp_path, "--no-key", "--workflows", "hello", *store)
    try:
        with httpx.Client(base_url=served.url, trust_env=False, timeout=120) as client:
            for page in (client.get("/").text, client.get("/runs").text):
                assert "Nothing has happened here yet" in page or "No runs yet" in page
                command, over_http = re.findall(r"<pre>(.*?)</pre>", page)
            name, *words = shlex.split(html.unescape(command))
            assert name == "troth"
            subprocess.run([TROTH, *words], cwd=tmp_path, check=True, capture_output=True)
            shown = client.get("/runs").text
            assert re.findall(r'class="row-state"><span class="state (\w+)"', shown) == ["completed"]
            verb, path, body = html.unescape(over_http).split(" ", 2)
            answer = client.request(verb, path, json=json.loads(body))
            assert answer.status_code in (200, 202), answer.text
            wait_until(lambda: client.get("/runs").text.count('class="row"') == 2, "the other run on the page")
    finally:
        served.close()


def test_what_became_of_a_promise_is_what_json_tells(shop):
    """The fate of its result is the state on its page, with the receiver's own words; nothing is called done before."""
    command = ("outbox", "show", shop.things["promise"])
    wait_until(lambda: told(shop, *command)["state"] == "dead", "the delivery to be given up")
    told_of = told(shop, *command)
    with httpx.Client(base_url=shop.url, trust_env=False, timeout=120) as client:
        page = client.get(f"/promises/{shop.things['promise']}").text
    assert re.search(r'<div class="title">.*?class="state ([a-z]+)"', page)[1] == told_of["state"]
    assert html.escape(told_of["problem"], quote=False) in page
    assert f"troth outbox replay {told_of['id']}" in page


SAID = re.compile(r'<li class="said user" id="said-\d+">.*?<pre>(.*?)</pre></li>', re.DOTALL)


@settings(max_examples=8, deadline=None, suppress_health_check=SLOW)
@given(messages=st.lists(st.text(min_size=1, max_size=60).filter(str.strip), min_size=1, max_size=8))
def test_a_talk_is_what_json_tells(shop, messages):
    """Each message, in its order and to the letter; what would not be seen is written out."""
    talk = shop.post("/conversations", agent="clerk")["id"]
    for text in messages:
        shop.post(f"/conversations/{talk}/messages", text=text)
    entries = [
        entry["text"] for entry in told(shop, "conversations", "show", talk)["entries"] if entry["who"] == "user"
    ]
    with httpx.Client(base_url=shop.url, trust_env=False, timeout=120) as client:
        page = client.get(f"/conversations/{talk}").text
    assert [html.unescape(text) for text in SAID.findall(page)] == [visible(text) for text in entries]
    assert len(entries) == len(messages)


def test_the_file_shows_what_the_page_shows(shop):
    """`troth runs show --html` has the same cause, steps and states as the page."""
    run = shop.things["failed"]
    command = [TROTH, "runs", "show", run, "--store", "shop.db", "--html", "-"]
    file = subprocess.run(command, cwd=shop.folder, capture_output=True, text=True, check=True).stdout
    with httpx.Client(base_url=shop.url, trust_env=False, timeout=120) as client:
        page = client.get(f"/runs/{run}").text
    assert steps_on(file) == steps_on(page)
    cause = re.compile(r'<pre class="message"[^>]*>(.*?)</pre>', re.DOTALL)
    assert cause.findall(file) == cause.findall(page) != []
    on_page = re.findall(r'<li><span class="soft mono">(\d+)</span><span>(.*?)</span>', page)
    in_file = re.findall(r'<tr><td class="soft">(\d+)</td><td>[^<]*</td><td>(.*?)</td>', file)
    assert in_file == on_page != []


def test_the_file_of_a_talk_has_each_answer_beside_its_call(shop):
    """As the page has it: what the tool answered, or in words that it failed; nothing is told twice."""
    talk = shop.things["calls"]
    command = [TROTH, "conversations", "show", talk, "--store", "shop.db", "--html", "-"]
    file = subprocess.run(command, cwd=shop.folder, capture_output=True, text=True, check=True).stdout
    rows = {tool: re.search(rf"<td>→ {tool}\((.*?)</td></tr>", file, re.DOTALL)[1] for tool in ("weigh", "price")}
    assert "✓ it answered: 198 kg" in rows["weigh"]
    assert "✗ it failed: ConnectionError: the price list does not answer" in rows["price"]
    assert file.count("the price list does not answer") == 1


def test_the_first_entry_that_does_not_hold(tmp_path):
    """Whichever session it is of, each session's page says so once it verifies, and leads there."""
    shop = Shop(tmp_path)
    try:
        first, second = add_session(shop), add_session(shop)
        with sqlite3.connect(tmp_path / "shop.db") as connection:
            which = (first, "refused")
            (number,) = connection.execute("SELECT seq FROM audit WHERE session = ? AND kind = ?", which).fetchone()
            connection.execute("UPDATE audit SET data = replace(data, 'sell', 'give') WHERE seq = ?", (number,))
        with httpx.Client(base_url=shop.url, trust_env=False, timeout=120) as client:
            own, other = (client.get(f"/sessions/{session}?verify=1").text for session in (first, second))
            command = ("session", "show", first)
            entries = [entry["number"] for entry in told(shop, *command)["audit"]]
            assert number in entries
            for page, words in ((own, "of this session"), (other, f"of session {first}")):
                assert "✗ broken" in page
                assert words in page
                href = html.unescape(re.search(rf'href="([^"]+#entry-{number})">entry {number}</a> of', page)[1])
                followed = client.get("/" + href.removeprefix("../")).text
                entry = followed.split(f'id="entry-{number}"')[1].split("</li>")[0]
                assert "the first entry that does not hold" in entry
    finally:
        shop.close()


def test_what_each_member_did_is_what_json_tells(shop):
    """Each agent with its own acts and refusals, on the page, in the file and in `--json`."""
    session = shop.things["session"]
    members = {one["agent"]: one["did"] for one in told(shop, "session", "show", session)["members"]}
    assert [activity["outcome"] for activity in members["mover"]] == ["done", "refused"]
    assert members["novice"] == []
    with httpx.Client(base_url=shop.url, trust_env=False, timeout=120) as client:
        page = client.get(f"/sessions/{session}").text
    command = [TROTH, "session", "show", session, "--store", "shop.db", "--html", "-"]
    file = subprocess.run(command, cwd=shop.folder, capture_output=True, text=True, check=True).stdout
    mover = page.split('id="did-mover"')[1].split("</details>")[0]
    assert len(re.findall("<li>", mover)) == len(members["mover"])
    for activity in members["mover"]:
        for words in filter(None, (activity["what"], activity["outcome"], activity["why"])):
            assert words in html.unescape(mover)
            assert words in html.unescape(file)
        assert f"#entry-{activity['number']}" in mover
    assert "<b>novice</b>: nothing" in page
    assert "What mover did" in file
