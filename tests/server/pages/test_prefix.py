"""Below any prefix, in somebody else's application or behind a proxy: all addresses are relative."""

import subprocess
import sys

import pytest
from tests.server.pages.scene import fill
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


def test_every_address_stays_below_the_prefix(mounted, tab):
    """Scripts, styles, streams, links and buttons."""
    import httpx

    with httpx.Client(base_url=mounted, trust_env=False, timeout=60) as client:
        wait_until(lambda: client.get("/v1/health").status_code == 200, "the server")
        run = client.post("/v1/runs", json={"workflow": "rolls", "inputs": {"order": "A7"}}).json()["id"]
        wait_until(lambda: client.get(f"/v1/runs/{run}").json()["state"] == "rolled back", "the end of the run")
    view = tab(url=mounted)
    page = view.open("")
    view.wait_live()
    page.locator("#failed .row-title").click()
    page.locator("#cause").get_by_text("parcel too heavy: 500 kg").first.wait_for()
    view.wait_live()
    page.get_by_role("button", name="Run it again").click()
    page.locator(".facts", has_text="forked from").wait_for()
    page.get_by_role("link", name="Promises").click()
    page.locator("h1", has_text="Promises").wait_for()
    assert all(address.startswith(f"{mounted}/") for address in view.requests), view.requests
