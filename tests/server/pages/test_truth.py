"""What a page shows is what `--json` tells at the same moment, and nothing is on a page that is not in it."""

import html
import json
import re
import subprocess

import httpx
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.server.service import TROTH

ROW = re.compile(r'<tr[^>]*><td class="step[^"]*">(.*?)</td><td class="[^"]*">. ([a-z ]+)</td>', re.DOTALL)
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


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(items=st.lists(st.text(max_size=20), max_size=30), flow=st.sampled_from(["many", "order", "resists", "both"]))
def test_a_page_tells_what_json_tells(shop, items, flow):
    """Every step with its state, in the same order, folded alike; the run's state, its inputs and its commands."""
    order = "A7" if len(items) % 2 else "B1"
    inputs = {"many": {"items": items}, "both": {}}.get(flow, {"order": order})
    run = shop.run(flow, **inputs)
    with httpx.Client(base_url=shop.url, trust_env=False, timeout=60) as client:
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
        assert html.escape(command["command"].removesuffix(" --store shop.db"), quote=False) in page


def test_counts_add_up_with_the_lists_behind_them(shop):
    """Each number on Now is the length of the list that it leads to."""
    with httpx.Client(base_url=shop.url, trust_env=False, timeout=60) as client:
        now = client.get("/").text
        for state in ("running", "interrupted"):
            count = int(re.search(rf'href="\./runs\?state={state}"><b>([\d,]+)</b>', now)[1].replace(",", ""))
            rows = client.get(f"/runs?state={state}").text.count('class="row"')
            assert count == rows, state
        people = int(re.search(r'href="#people"><b>([\d,]+)</b>', now)[1])
        assert people == now.split('id="people-rows"')[1].split("</ol>")[0].count('class="row"')


def test_the_file_shows_what_the_page_shows(shop):
    """`troth runs show --html` has the same cause, steps and states as the page."""
    run = shop.things["failed"]
    command = [TROTH, "runs", "show", run, "--store", "shop.db", "--html", "-"]
    file = subprocess.run(command, cwd=shop.folder, capture_output=True, text=True, check=True).stdout
    with httpx.Client(base_url=shop.url, trust_env=False, timeout=60) as client:
        page = client.get(f"/runs/{run}").text
    assert steps_on(file) == steps_on(page)
    cause = re.compile(r'<pre class="message"[^>]*>(.*?)</pre>', re.DOTALL)
    assert cause.findall(file) == cause.findall(page) != []


def test_what_each_member_did_is_what_json_tells(shop):
    """Each agent with its own acts and refusals, on the page, in the file and in `--json`."""
    session = shop.things["session"]
    members = {one["agent"]: one["did"] for one in told(shop, "session", "show", session)["members"]}
    assert [activity["outcome"] for activity in members["mover"]] == ["done", "refused"]
    assert members["novice"] == []
    with httpx.Client(base_url=shop.url, trust_env=False, timeout=60) as client:
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
