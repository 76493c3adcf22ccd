"""Below any prefix, in somebody else's application or behind a proxy: all addresses are relative."""

import subprocess
import sys

import pytest
from tests.server.pages.scene import fill
from tests.server.pages.test_every_page import PAGES
from tests.server.service import wait_until

pytestmark = pytest.mark.xdist_group("browser")

MOUNTED = """
import socket
import sys

import uvicorn
from app import open_server
from fastapi import FastAPI

app = FastAPI()
app.mount("/deep/troth", open_server().app)
listening = socket.socket()
listening.bind(("127.0.0.1", 0))
listening.listen(64)
print(listening.getsockname()[1], flush=True)
uvicorn.Server(uvicorn.Config(app, log_config=None)).run(sockets=[listening])
"""


@pytest.fixture
def mounted(tmp_path):
    fill(tmp_path)
    (tmp_path / "mounted.py").write_text(MOUNTED)
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "mounted.py"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=log, text=True
        )
    port = process.stdout.readline().strip()
    assert port, (tmp_path / "log").read_text()
    yield f"http://127.0.0.1:{port}/deep/troth"
    process.kill()
    process.wait(60)
    process.stdout.close()


def test_every_page_is_whole_below_the_prefix(mounted, tab):
    """All of them: each opens, follows what happens, has its styles and scripts, and leads nowhere else."""
    import httpx

    with httpx.Client(base_url=f"{mounted}/v1", trust_env=False, timeout=120) as client:
        wait_until(lambda: client.get("/health").status_code == 200, "the server")
        things = things_over_http(client)
    view = tab(url=mounted)
    for name, pattern in PAGES.items():
        page = view.open(pattern.format(**things))
        page.locator("h1").wait_for()
        assert page.locator(".panel.failed[role=alert]").count() == 0, (name, page.locator("#content").inner_text())
        if page.locator("body[data-live]").count():
            view.wait_live()
        ways = "pieces => pieces.map(piece => piece.href || piece.action || piece.src)"
        for where in page.locator("a[href], form[action], script[src], link[href]").evaluate_all(ways):
            assert where.startswith(f"{mounted}/"), (name, where)
    assert all(address.startswith(f"{mounted}/") for address in view.requests), view.requests


def things_over_http(client):
    """Something of everything, as `PAGES` names it; a conversation, a session and runs in each state."""

    def post(path, **body):
        answer = client.post(path, json=body)
        assert answer.status_code < 300, answer.text
        return answer.json()

    def run(workflow, state, order="A7"):
        inputs = {} if workflow == "gated" else {"order": order}
        run_id = post("/runs", workflow=workflow, inputs=inputs)["id"]
        wait_until(lambda: client.get(f"/runs/{run_id}").json()["state"] == state, f"{run_id} {state}")
        return run_id

    def talk(agent):
        conversation = post("/conversations", agent=agent)["id"]
        post(f"/conversations/{conversation}/messages", text="What does parcel A7 weigh?", run=True)
        wait_until(lambda: client.get(f"/conversations/{conversation}").json()["status"] == "finished", "the answer")
        return conversation

    session = post("/sessions")["id"]
    post(f"/sessions/{session}/members", agent="mover", score=0.9, actions=["lift"])
    post(f"/sessions/{session}/activate")
    return {
        "completed": run("order", "completed", "B1"),
        "failed": run("order", "failed"),
        "rolled back": run("rolls", "rolled back"),
        "rollback incomplete": run("resists", "rollback incomplete"),
        "waiting": run("asks", "waiting"),
        "running": run("gated", "running"),
        "session": session,
        "conversation": talk("clerk"),
        "calls": talk("desk"),
        "promise": "parcel-1",
        "job": "pack-1",
    }


def test_every_address_stays_below_the_prefix(mounted, tab):
    """Scripts, styles, streams, links and buttons."""
    import httpx

    with httpx.Client(base_url=mounted, trust_env=False, timeout=120) as client:
        wait_until(lambda: client.get("/v1/health").status_code == 200, "the server")
        run = client.post("/v1/runs", json={"workflow": "rolls", "inputs": {"order": "A7"}}).json()["id"]
        wait_until(lambda: client.get(f"/v1/runs/{run}").json()["state"] == "rolled back", "the end of the run")
    view = tab(url=mounted)
    page = view.open("")
    view.wait_live()
    page.locator("#failed .row-title").click()
    page.locator("#cause").get_by_text("parcel too heavy: 500 kg").first.wait_for()
    view.wait_live()
    page.get_by_role("button", name="Fork from the start").click()
    page.locator(".facts", has_text="forked from").wait_for()
    page.get_by_role("link", name="Promises").click()
    page.locator("h1", has_text="Promises").wait_for()
    assert all(address.startswith(f"{mounted}/") for address in view.requests), view.requests
