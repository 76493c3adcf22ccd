"""`troth jobs`: commands in the background, on the store of a program that is running or long gone."""

import json
import time

import pytest

from troth.cli import app
from troth.runtime import Runtime


@pytest.fixture
def troth(capsysbinary, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)

    def run(*argv):
        code = app.run(["jobs", *argv])
        out, err = capsysbinary.readouterr()
        return code, out.decode(), err.decode()

    return run


@pytest.fixture
def store(tmp_path):
    with Runtime(tmp_path / ".troth/runs.db", in_process=False) as runtime:
        runtime.jobs.start("echo hello; exit 3", job_id="j-over", watch="hello")
        runtime.jobs.wait("j-over", 30)
        runtime.jobs.start("exec sleep 60", job_id="j-runs")
        deadline = time.monotonic() + 20
        while runtime.jobs.get("j-runs").state != "running":
            assert time.monotonic() < deadline
            time.sleep(0.01)
        yield runtime
        runtime.jobs.stop("j-runs")


def test_list_show_read_stop(troth, store):
    """Each verb, in words and as JSON, while the program that started the jobs lives."""
    code, out, _ = troth("list")
    assert code == 0
    assert [line.split("  ")[:2] for line in out.splitlines()] == [["j-runs", "running"], ["j-over", "failed (3)"]]
    listed = json.loads(troth("list", "--json", "--limit", "1")[1])
    assert [(job["id"], job["state"]) for job in listed] == [("j-runs", "running")]
    assert troth("list", "--session", "nobody")[1] == "There are no jobs.\n"
    shown = troth("show", "j-over")[1]
    assert "ended with exit code 3" in shown
    assert "'hello': 1 line so far" in shown
    assert json.loads(troth("show", "j-over", "--json")[1])["exit_code"] == 3
    assert troth("read", "j-over") == (0, "hello\n", "")
    assert troth("read", "j-over", "--after", "1", "--limit", "2") == (0, "el", "3 bytes follow: `--after 3`\n")
    piece = json.loads(troth("read", "j-over", "--json", "--limit", "2")[1])
    assert (piece["text"], piece["end"], piece["size"]) == ("he", 2, 6)
    assert troth("read", "j-over")[1] == "hello\n"  # it consumed nothing
    code, out, _ = troth("stop", "j-runs")
    assert (code, "was stopped" in out) == (0, True)
    assert json.loads(troth("show", "j-runs", "--json")[1])["state"] == "stopped"


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        pytest.param(("show", "j-nobody"), "never was", id="a job"),
        pytest.param(("show", "\udcff"), "half of a character", id="bytes that are no text"),
        pytest.param(("list", "--session", "\udcff"), "half of a character", id="a session that is no text"),
        pytest.param(("list", "--limit", "0"), "would list nothing", id="a limit"),
        pytest.param(("read", "j-over", "--limit", "0"), "would print nothing", id="a piece"),
        pytest.param(("list", "--store", "nowhere.db"), "There is no store", id="a store"),
    ],
)
def test_wrong_use(troth, store, argv, says):
    """Told, with exit code 2."""
    code, _, err = troth(*argv)
    assert code == 2
    assert says in err
