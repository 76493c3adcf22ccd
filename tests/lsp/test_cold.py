"""A large folder without a cache is checked by a process of its own, which leaves one; it never outlives its server."""

import os
import re
import signal
import time
from pathlib import Path

import pytest
from tests.lsp.client import DEADLINE, PULL, PUSH, Client, codes

FILES = 120
STORE = "class Store:\n    async def save(self, order): ...\n\n\nasync def old(): ...\n"
LOST = "from store import Store\n\n\nasync def main(store: Store):\n    store.save(1)\n"
KEPT = LOST.replace("store.save", "await store.save")
ELSEWHERE, TOLD = "a process of its own has checked", "told what an earlier check"
HOLD = """\
import os, sys, time
if "cold_check" in " ".join(sys.orig_argv):
    folder = os.environ["HELD_IN"]
    open(os.path.join(folder, f"begun-{os.getpid()}"), "w").close()
    while not os.path.exists(os.path.join(folder, "go")):
        time.sleep(0.01)
"""


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "pyproject.toml").write_text("[project]\nname = 'shop'\n")
    (folder / "store.py").write_text(STORE)
    (folder / "app.py").write_text(LOST)
    for number in range(FILES):
        (folder / f"part_{number}.py").write_text(f"from store import old\n\n\nasync def part_{number}():\n    old()\n")
    return folder


class Held:
    """The processes of first checks wait at their very start until they are let go."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        (folder / "sitecustomize.py").write_text(HOLD)
        path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
        self.env = {"PYTHONPATH": path, "HELD_IN": str(folder)}

    def processes(self, count: int) -> list[int]:
        """The processes that have begun, once there are so many."""
        return sorted(wait_for(lambda: self._begun() if len(self._begun()) >= count else None))

    def _begun(self) -> list[int]:
        return [int(mark.name.partition("-")[2]) for mark in self.folder.glob("begun-*")]

    def let_go(self) -> None:
        (self.folder / "go").touch()


@pytest.fixture
def held(tmp_path):
    return Held(tmp_path / "held")


def wait_for(question):
    """The first answer that is not None or false."""
    end = time.monotonic() + DEADLINE
    while time.monotonic() < end:
        if answer := question():
            return answer
        time.sleep(0.02)
    raise AssertionError("it never came")


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text() if Path("/proc/self").exists() else False


@pytest.mark.parametrize("profile", [PULL, PUSH], ids=["pulls", "is pushed to"])
def test_a_folder_without_a_cache(project, tmp_path, profile):
    """All is told, with progress; the server then goes on from the cache, as a second one does."""
    log = tmp_path / "log"
    with Client(project, profile, args=("--log", str(log))) as client:
        client.open("app.py")
        pulls = profile is PULL
        assert codes(client.pull("app.py") if pulls else client.pushed("app.py", 1)) == ["TR101"]
        if pulls:
            assert len(client.everything()) == FILES + 1
            stages = [note["params"]["value"] for note in client.notices if note["method"] == "$/progress"]
            assert [stage["kind"] for stage in stages][:: len(stages) - 1] == ["begin", "end"]
            shown = [stage["percentage"] for stage in stages[:-1]]
            assert shown == sorted(shown)
            assert max(shown) == 100
        assert "`Store.save` is **async**" in str(client.at("textDocument/hover", "app.py", 4, 11)["contents"])
        client.change("app.py", KEPT)
        assert codes(client.pull("app.py") if pulls else client.pushed("app.py", 2)) == []
    with Client(project, profile, args=("--log", str(log))) as client:
        client.open("app.py")
        assert codes(client.pull("app.py") if pulls else client.pushed("app.py", 1)) == ["TR101"]
    assert log.read_text().count(ELSEWHERE) == 1
    assert log.read_text().count(TOLD) == 2


def test_a_few_files(project, tmp_path):
    """They are checked by the server itself: another process takes longer to start."""
    for number in range(50):
        (project / f"part_{number}.py").unlink()
    log = tmp_path / "log"
    with Client(project, PULL, args=("--log", str(log))) as client:
        client.open("app.py")
        assert codes(client.pull("app.py")) == ["TR101"]
    assert ELSEWHERE not in log.read_text()


def test_a_text_that_is_edited_meanwhile(project, held):
    """The answer is about the text as it is by then, and what is on the disk is what other files are judged by."""
    with Client(project, PULL, env=held.env) as client:
        client.open("app.py", KEPT)
        client.open("store.py")
        held.processes(1)
        client.change("app.py", LOST)
        client.change("store.py", STORE.replace("async def old", "def old"))
        held.let_go()
        assert codes(client.pull("app.py")) == ["TR101"]
        assert client.everything().keys() == {client.uri("app.py")}
        client.change("store.py", STORE)
        assert len(client.everything()) == FILES + 1


def test_settings_that_change_meanwhile(project, held, tmp_path):
    """The check of before is given up, and another one begins."""
    log = tmp_path / "log"
    with Client(project, PULL, env=held.env, args=("--log", str(log)), settings={"select": ["TR1"]}) as client:
        client.open("app.py")
        (first,) = held.processes(1)
        client.settings = {"select": ["TR9"]}
        client.notify("workspace/didChangeConfiguration", {"settings": None})
        _, second = sorted(held.processes(2), key=lambda pid: pid != first)
        wait_for(lambda: is_gone(first))
        assert not is_gone(second)
        held.let_go()
        assert client.pull("app.py") == []
    assert log.read_text().count(ELSEWHERE) == 1


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_a_process_that_dies(project, held, tmp_path):
    """The server checks by itself."""
    log = tmp_path / "log"
    with Client(project, PULL, env=held.env, args=("--log", str(log))) as client:
        client.open("app.py")
        (process,) = held.processes(1)
        os.kill(process, signal.SIGKILL)
        assert codes(client.pull("app.py")) == ["TR101"]
        assert len(client.everything()) == FILES + 1
    assert re.search(ELSEWHERE + r".*, exit code -9", log.read_text())


def test_a_server_that_is_told_to_leave(project, held):
    """Its process leaves with it, even one that does not answer."""
    with Client(project, PULL, env=held.env) as client:
        client.open("app.py")
        (process,) = held.processes(1)
        assert client.leave() == 0
        wait_for(lambda: is_gone(process))


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_a_server_that_is_killed(project, held):
    """Its process ends by itself, and keeps nothing."""
    with Client(project, PULL, env=held.env) as client:
        client.open("app.py")
        (process,) = held.processes(1)
        client.process.kill()
        client.process.wait()
        held.let_go()
        wait_for(lambda: is_gone(process))
    assert not (project / ".troth_cache" / "facts.bin").exists()


def test_modules_of_the_folder_are_not_imported(project, tmp_path):
    """A folder may have modules by the names of those that a check imports."""
    for name in ("asyncio", "pickle", "marshal", "mmap", "troth"):
        (project / f"{name}.py").write_text("raise SystemExit('imported')\n")
    forgetful = tmp_path / "forgetful"
    forgetful.mkdir()
    (forgetful / "sitecustomize.py").write_text("import os\nos.environ.pop('PYTHONSAFEPATH', None)\n")
    env = {"PYTHONPATH": str(forgetful), "PYTHONSAFEPATH": "1"}  # for the server, whose processes do not hear of it
    log = tmp_path / "log"
    with Client(project, PULL, args=("--log", str(log)), env=env) as client:
        client.open("app.py")
        assert codes(client.pull("app.py")) == ["TR101"]
    assert re.search(ELSEWHERE + r".*, exit code 0", log.read_text())
