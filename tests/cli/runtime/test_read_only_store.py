"""A store that cannot be written can be looked at; whoever wants to write to it is told why that is not possible."""

import json
import shutil

import pytest

from troth.runtime import Conversations, Runtime, Workflow, step
from troth.runtime.agents import Agent
from troth.runtime.store import ReadOnlyStoreError, SqliteStore, StoreError


class Echo(Agent):
    def step(self, conversation):
        conversation.say("hello")


def fill(path):
    with Runtime(path) as runtime:
        runtime.run(Workflow("w", step("a", function=lambda: 3)), run_id="r1")
    with Conversations(path) as home:
        talk = home.open(Echo(), "talk")
        talk.send("hi")
        talk.run()


@pytest.fixture(params=["file", "folder", "both", "a log is left", "a log is left, and its index"])
def store(request, project):
    """A store in `kept/`, which is made so that somebody whom permissions stop cannot write to it."""
    folder = project.root / "kept"
    folder.mkdir()
    if request.param.startswith("a log"):
        fill(project.root / "busy.db")
        with Runtime(project.root / "busy.db") as runtime:  # the log of a store in use is in a file of its own
            runtime.run(Workflow("w", step("a", function=lambda: 4)), run_id="r2")
            for end in ("", "-wal", *(["-shm"] if "index" in request.param else [])):
                shutil.copyfile(project.root / f"busy.db{end}", folder / f"runs.db{end}")
    else:
        fill(folder / "runs.db")
    for file in folder.iterdir():
        file.chmod(0o666 if request.param == "folder" else 0o444)
    folder.chmod(0o777 if request.param == "file" else 0o555)
    yield request.param
    folder.chmod(0o777)


def test_a_store_that_cannot_be_written_is_looked_at(project, store):
    """Runs and conversations, the newest of them too, and nothing is written beside it."""
    before = sorted(file.name for file in (project.root / "kept").iterdir())
    newest = "r2" if store.startswith("a log") else "r1"
    done = project.forbidden("troth runs list --store kept/runs.db --json")
    assert (done.code, json.loads(done.out)[0]["id"]) == (0, newest), done.err
    done = project.forbidden(
        "troth runs show last --store kept/runs.db && troth conversations show talk --store kept/runs.db "
        "&& troth runs diff last --store kept/runs.db; troth runs replay last --store kept/runs.db --json"
    )
    assert f"w  {newest}  ✓ completed" in done.out, done.err
    assert "assistant  hello" in done.out
    if store != "file":
        assert sorted(file.name for file in (project.root / "kept").iterdir()) == before


def test_whoever_would_write_is_told(project, store):
    """With a sentence and what to do, and not with a traceback."""
    project.write({"flow.yaml": "troth: 1\nname: w\nsteps: [{id: a, sleep: 1ms}]\n"})
    done = project.forbidden("troth run flow.yaml --store kept/runs.db")
    assert done.code == 1
    assert "cannot be written" in done.err
    assert "Make the file and its folder writable" in done.err
    assert "Traceback" not in done.err


def test_read_only_from_python(tmp_path):
    """Looking works, writing is refused, and nothing is left behind."""
    fill(tmp_path / "runs.db")
    with Runtime(tmp_path / "runs.db", read_only=True) as runtime:
        assert runtime.show("r1").succeeded
        with pytest.raises(ReadOnlyStoreError, match="was opened read-only"):
            runtime.run(Workflow("w", step("a", function=lambda: 3)))
    with pytest.raises(StoreError, match="could not be read"):
        SqliteStore(tmp_path / "nosuch.db", read_only=True)
    assert not (tmp_path / "nosuch.db").exists()
