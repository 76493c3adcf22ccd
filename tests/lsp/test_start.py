"""A server that starts where nothing has changed tells what the last check found, before it loads what checks."""

import subprocess
import sys

import pytest
from tests.lsp.client import BARE, PULL, PUSH, Client, codes

STORE = "class Store:\n    async def save(self, order): ...\n\n    def size(self):\n        return 1\n"
LOST = "from store import Store\n\n\nasync def main(store: Store):\n    store.save(1)\n    return store.size()\n"
TOLD = "told what an earlier check"


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "pyproject.toml").write_text("[project]\nname = 'shop'\n")
    (folder / "store.py").write_text(STORE)
    (folder / "app.py").write_text(LOST)
    subprocess.run([sys.executable, "-m", "troth", "check", "-q", "--exit-zero"], cwd=folder, check=True)
    return folder


def test_what_is_imported_first():
    """The program and the rules are imported by the first check, not before an earlier answer can be told."""
    script = "import sys, troth.lsp.serve; print(*(name for name in sys.modules if name.startswith('troth.analysis')))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    late = ("troth.analysis.semantics", "troth.analysis.pipeline", "troth.analysis.rules.lost_calls")
    assert not [name for name in done.stdout.split() if name.startswith(late)]


@pytest.mark.parametrize("profile", [PULL, PUSH], ids=["pulls", "is pushed to"])
def test_told_again(project, tmp_path, profile):
    """The findings of an earlier check are told; questions are answered, and edits judged, by the first own check."""
    log = tmp_path / "log"
    with Client(project, profile, args=("--log", str(log))) as client:
        client.open("app.py")
        pulls = profile is PULL
        assert codes(client.pull("app.py") if pulls else client.pushed("app.py", 1)) == ["TR101"]
        assert TOLD in log.read_text()
        hover = client.at("textDocument/hover", "app.py", 4, 11)
        assert "`Store.save` is **async**" in str(hover["contents"])
        assert client.actions("app.py", (4, 6))
        client.change("app.py", LOST.replace("store.save", "await store.save"))
        assert codes(client.pull("app.py") if pulls else client.pushed("app.py", 2)) == []
        client.change("app.py", LOST)
        assert codes(client.pull("app.py") if pulls else client.pushed("app.py", 3)) == ["TR101"]
    assert log.read_text().count(TOLD) == 1


@pytest.mark.parametrize("profile", [PUSH, BARE], ids=["neovim 0.7", "bare"])
def test_pushed_no_second_time(project, profile):
    """The first own check finds the same, and nothing of it is told again."""
    with Client(project, profile) as client:
        client.open("app.py")
        client.pushed("app.py", 1)
        client.at("textDocument/hover", "app.py", 4, 11)  # after the first own check
        pushes = [
            notice["params"] for notice in client.notices if notice["method"] == "textDocument/publishDiagnostics"
        ]
        # Once more without a version, where the server was quicker than the text was opened.
        assert len([push for push in pushes if push["uri"] == client.uri("app.py") and push.get("version") == 1]) == 1


@pytest.mark.parametrize("changed", ["on the disk", "in the buffer", "a file more", "other settings"])
def test_not_told_again(project, tmp_path, changed):
    """Where something is not as it was, what an earlier check found is not told."""
    log, text, settings = tmp_path / "log", LOST, None
    if changed == "on the disk":
        (project / "store.py").write_text(STORE.replace("async def", "def"))
    elif changed == "in the buffer":
        text = LOST.replace("store.save", "await store.save")
    elif changed == "a file more":
        (project / "more.py").write_text("async def more(): ...\n\n\nasync def use():\n    more()\n")
    else:
        settings = {"select": ["TR9"]}
    with Client(project, PULL, args=("--log", str(log)), options=settings, settings=settings) as client:
        client.open("app.py", text)
        found = codes(client.pull("app.py"))
        assert found == (["TR101"] if changed == "a file more" else [])
        if changed == "a file more":
            assert client.uri("more.py") in client.everything()
