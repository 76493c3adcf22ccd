"""`troth runs`: what is in a store, and going on with it."""

import io
import json
import sys
import threading
import time

import pytest

from troth.cli import app
from troth.cli.runtime.live import watched
from troth.runtime import Runtime, Workflow, step


def fine(value=1):
    return {"value": value}


def broken():
    raise ValueError("parcel too heavy: 198")


@pytest.fixture
def troth(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")

    def run(*argv):
        code = app.run(argv)
        out, err = capsys.readouterr()
        return code, out, err

    return run


@pytest.fixture
def store(tmp_path):
    """A store with one run that completed and one that was rolled back."""
    with Runtime(tmp_path / ".troth/runs.db") as runtime:
        good = Workflow("good", step("a", function=fine, inputs={"value": "inputs.x"}), inputs={"x": "integer"})
        bad = Workflow(
            "bad",
            step("a_step_with_a_rather_long_name", function=fine, undo=lambda: None),
            step("b", function=broken, retry={"attempts": 2, "delay": "10ms"}),
        )
        runtime.run(good, {"x": 1}, run_id="good-1")
        runtime.run(good, {"x": 2}, run_id="good-2")
        runtime.run(bad, run_id="bad-1", check=False)


def test_list(store, troth):
    """Newest first, states in words, at most eighty letters; JSON for machines."""
    code, out, _ = troth("runs", "list")
    lines = out.splitlines()
    assert code == 0
    assert [line.split()[0] for line in lines] == ["bad-1", "good-2", "good-1"]
    assert "↶ rolled back" in lines[0]
    assert "✓ completed" in lines[1]
    assert max(map(len, lines)) <= 80
    assert [one["id"] for one in json.loads(troth("runs", "list", "--json")[1])] == ["bad-1", "good-2", "good-1"]
    assert troth("runs", "list", "--state", "rolled back")[1].split()[0] == "bad-1"


def test_list_by_state(troth, tmp_path):
    """So many of that state, however many others are newer; a state that is none is refused."""
    with Runtime(tmp_path / ".troth/runs.db") as runtime:
        bad, good = Workflow("bad", step("b", function=broken)), Workflow("good", step("a", function=fine))
        runtime.run(bad, run_id="bad-1", check=False)
        for _ in range(3):
            runtime.run(good)
    assert [
        one["id"] for one in json.loads(troth("runs", "list", "--state", "failed", "--limit", "2", "--json")[1])
    ] == ["bad-1"]
    code, _, err = troth("runs", "list", "--state", "fialed")
    assert (code, "Did you mean `failed`?" in err) == (2, True)
    assert troth("runs", "list", "--limit", "0")[0] == 2


def test_show(store, troth):
    """Above the fold: the step, the user's line, the message, each attempt. One step is one row; nothing of a state is cut."""
    code, out, _ = troth("runs", "show", "bad-1")
    assert code == 0
    lines = out.splitlines()
    assert max(map(len, lines)) <= 80
    top = "\n".join(lines[:14])
    for said in (
        "✗ b failed after 2 attempts",
        "test_runs.py:",
        "ValueError: parcel too heavy: 198",
        "attempt 1  failed",
        "waited",
        "attempt 2  failed",
    ):
        assert said in top
    rows = [line for line in lines if line.startswith(("↶ a_step", "✗ b ", "✓ undo"))]
    assert len([line for line in rows if "failed after" not in line]) == 3
    assert "undone" in rows[-3] or "undone" in rows[1]
    assert "timeline" in out
    assert "█" in out
    assert "░" in out
    assert "troth runs fork bad-1" in out


def test_show_for_machines_and_pages(store, troth, tmp_path):
    """Everything the picture has is in the JSON; the page needs nothing else; Mermaid for a README."""
    told = json.loads(troth("runs", "show", "bad-1", "--json")[1])
    assert told["failures"] == ["b"]
    assert [one["outcome"] for one in told["steps"][1]["attempts"]] == ["failed", "failed"]
    assert troth("runs", "show", "bad-1", "--html", "run.html")[1] == "wrote run.html\n"
    page = (tmp_path / "run.html").read_text(encoding="utf-8")
    for outside in ("http://", "https://", "src=", "@import", "<script", "<link"):
        assert outside not in page
    assert "parcel too heavy: 198" in page
    assert "troth runs fork bad-1" in page
    assert troth("runs", "show", "good-1", "--mermaid")[1].startswith("flowchart TD\n")


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        pytest.param(["show", "nosuch"], "There is no run 'nosuch' in this store", id="unknown"),
        pytest.param(["show", "god-1"], "Did you mean 'good-1'?", id="near"),
        pytest.param(["show", "good"], "matches the beginning of 2 runs", id="not enough of it"),
        pytest.param(["resume", "bad-1"], "it cannot be resumed", id="over for good"),
        pytest.param(["resume", "good-1"], "is completed", id="completed"),
        pytest.param(["approve", "good-1"], "nothing to approve", id="no question"),
        pytest.param(["fork", "good-1", "--from", "zz"], "no step 'zz' that was started", id="no such step"),
        pytest.param(["shw", "good-1"], "invalid choice", id="no such verb"),
        pytest.param([], "VERB", id="no verb"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence(store, troth, argv, says):
    """Exit 2 and no traceback."""
    code, out, err = troth("runs", *argv)
    assert (code, out) == (2, "")
    assert says in err
    assert "Traceback" not in err


def test_no_store_at_all(troth):
    """It says how to get one, and makes none by looking."""
    code, _, err = troth("runs", "list")
    assert code == 2
    assert "There is no store '.troth/runs.db'" in err


def test_the_store_can_be_named(store, troth, monkeypatch, tmp_path):
    """By option or by variable."""
    (tmp_path / ".troth/runs.db").rename(tmp_path / "other.db")
    assert troth("runs", "list", "--store", "other.db")[0] == 0
    monkeypatch.setenv("TROTH_STORE", "other.db")
    assert troth("runs", "show", "last")[1].startswith("bad  bad-1")


def test_diff(store, troth):
    """What differs in inputs, state and output; exit 1 where something does."""
    code, out, _ = troth("runs", "diff", "good-1", "good-2")
    assert code == 1
    assert "  inputs.x\n    - 1\n    + 2\n" in out
    assert "  steps.a.value\n" in out
    assert troth("runs", "diff", "good-1", "good-1") == (0, "no difference except the times\n", "")
    assert json.loads(troth("runs", "diff", "good-1", "good-2", "--json")[1])[0] == {
        "path": "inputs.x",
        "one": 1,
        "other": 2,
    }


@pytest.mark.parametrize(
    ("argv", "paths"),
    [
        pytest.param([], ["steps.a", "steps.b", "steps.c"], id="from the start to now"),
        pytest.param(["--from", "a"], ["steps.b", "steps.c"], id="from a step on"),
        pytest.param(["--from", "a", "--to", "b"], ["steps.b"], id="between two steps"),
        pytest.param(["--from", "c", "--to", "a"], ["steps.b", "steps.c"], id="backwards: what was not there yet"),
    ],
)
def test_diff_of_one_run(troth, tmp_path, argv, paths):
    """Its state after one step and after another."""
    with Runtime(tmp_path / ".troth/runs.db") as runtime:
        runtime.run(Workflow("w", *[step(name, function=fine) for name in "abc"]), run_id="w-1")
    code, out, _ = troth("runs", "diff", "w-1", *argv, "--json")
    assert (code, [one["path"] for one in json.loads(out)]) == (1, paths)
    assert troth("runs", "diff", "w-1", "--from", "a", "--to", "a") == (0, "no difference\n", "")


def test_diff_of_a_run_that_was_undone(store, troth):
    """What was undone is no longer part of the state."""
    name = "a_step_with_a_rather_long_name"
    code, out, _ = troth("runs", "diff", "bad-1", "--from", name, "--json")
    assert (code, json.loads(out)) == (1, [{"path": f"steps.{name}", "one": {"value": 1}}])


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        pytest.param(
            ["good-1", "good-2", "--from", "a"], "cannot be combined with a second run", id="two runs and a step"
        ),
        pytest.param(["good-1", "--to", "aa"], "no step 'aa' that has ended. Did you mean `a`?", id="no such step"),
    ],
)
def test_diffs_that_mean_nothing(store, troth, argv, says):
    """Refused with exit 2."""
    code, _, err = troth("runs", "diff", *argv)
    assert code == 2
    assert says in err


def test_follow(store, troth):
    """A run that is over is told from its beginning to its end; a line of JSON for each event."""
    code, out, _ = troth("runs", "show", "bad-1", "--follow")
    assert code == 0
    assert out.splitlines()[0] == "▶ bad-1 started"
    assert "↻ b  attempt 1: ValueError: parcel too heavy: 198, retry after" in out
    assert out.splitlines()[-1] == "↶ bad-1 rolled back"
    lines = [json.loads(line) for line in troth("runs", "show", "bad-1", "--follow", "--json")[1].splitlines()]
    assert [one["what"] for one in lines][-1] == "run ended"


def test_resume_with_a_larger_budget(troth, tmp_path):
    """The command that the failed run shows, with a number."""
    flow = Workflow("w", step("l", loop=[step("a", function=fine)], at_most=4), budget={"steps": 2})
    with Runtime(tmp_path / ".troth/runs.db") as runtime:
        runtime.run(flow, run_id="w-1", check=False)
    code, out, _ = troth("runs", "show", "w-1")
    assert "troth runs resume w-1 --budget steps=…" in out
    assert troth("runs", "resume", "w-1", "--budget", "steps")[0] == 2
    code, out, err = troth("runs", "resume", "w-1", "--budget", "steps=10", "--json")
    assert (code, json.loads(out)["state"]) == (0, "completed"), err


def test_a_run_of_very_many_rounds_is_folded(troth, tmp_path):
    """The first, the last and what is odd; a row says what was left out. JSON has all of it."""

    def odd(n):
        return 1 / (n - 50)

    rounds = [
        step("a", function=fine, inputs={"value": "round"}),
        step("b", function=odd, inputs={"n": "round"}, optional=True),
    ]
    many = Workflow(
        "many", step("l", loop=rounds, at_most=200), step("e", each=list(range(100)), steps=[step("x", function=fine)])
    )
    with Runtime(tmp_path / ".troth/runs.db") as runtime:
        runtime.run(many, run_id="many-1")
    code, out, _ = troth("runs", "show", "many-1")
    assert code == 0
    assert len(out.splitlines()) < 110
    assert "~ l[50].b" in out
    assert "✓ l[51] … l[195]" in out
    assert "290 done" in out
    assert len(json.loads(troth("runs", "show", "many-1", "--json")[1])["steps"]) == 502
    troth("runs", "show", "many-1", "--html", "many.html")
    assert "l[51] … l[195]" in (tmp_path / "many.html").read_text()


def test_replay_and_fork(store, troth):
    """Replay performs nothing and says whether they agree; fork makes a new run."""
    code, out, _ = troth("runs", "replay", "good-1")
    assert (code, "workflow and record agree" in out) == (0, True)
    code, out, _ = troth("runs", "fork", "good-1", "--from", "a", "--json")
    assert (code, json.loads(out)["forked_from"]) == (0, "good-1")


def test_the_line_of_progress_ends_with_the_command(tmp_path, monkeypatch):
    """Also where the run goes on to wait: at a question, or after Ctrl-C, nobody is kept for its sake."""
    told = io.StringIO()
    told.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", told)
    monkeypatch.setenv("TERM", "xterm")
    with Runtime(tmp_path / "runs.db") as runtime:
        flow = Workflow("asks", step("a", function=fine), step("ok", approval="Go?"))
        with watched(runtime, "asks-1", 2):
            runtime.run(flow, run_id="asks-1", wait=False)
            until = time.monotonic() + 20
            while "ok asks: Go?" not in told.getvalue():
                assert time.monotonic() < until
                time.sleep(0.01)
        assert [one.name for one in threading.enumerate() if one.name == "troth-progress"] == []
    assert told.getvalue().endswith("\r\x1b[2K")


def test_a_page_that_cannot_be_written(store, troth):
    """Exit 2, and a sentence."""
    code, _, err = troth("runs", "show", "good-1", "--html", "nosuch/page.html")
    assert (code, "cannot be written to 'nosuch/page.html': No such file" in err) == (2, True)


def test_there_is_nothing_to_cancel_in_a_run_that_is_over(store, troth):
    """Exit 2, and nothing is told as if it had been cancelled."""
    code, out, err = troth("runs", "cancel", "good-1")
    assert (code, out, "is completed; there is nothing left to cancel" in err) == (2, "", True)


def test_attempts_are_counted_through_when_a_run_goes_on(troth, tmp_path):
    """The first attempt after `resume` is not called the first again."""
    with Runtime(tmp_path / ".troth/runs.db") as runtime:
        runtime.run(Workflow("bad", step("a", function=broken)), run_id="bad-2", check=False)
        runtime.resume("bad-2", check=False)
        assert [one.number for one in runtime.show("bad-2").step("a").attempts] == [1, 2]


def test_cancel(troth, tmp_path):
    """A run that waits is undone by the one who cancels it."""
    with Runtime(tmp_path / ".troth/runs.db") as runtime:
        flow = Workflow("asks", step("a", function=fine, undo=fine), step("ok", approval="Go?"))
        runtime.run(flow, run_id="asks-1", wait=False)
    code, _, err = troth("runs", "cancel", "asks-1")
    assert code == 0
    assert "cancelled" in err
    assert "undone: a" in err
