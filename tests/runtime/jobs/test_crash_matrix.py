"""Killed before the row, after it, after exec, after exit, around the send: started again, everything is told."""

import json
from pathlib import Path

import pytest

from troth.runtime.channels import Deduplicator
from troth.runtime.jobs import commit_points
from troth.testing.crash import CrashLab

from .job_crash_program import seen

POINTS = [
    failpoint
    for name in ("JOB_START", "JOB_EXEC", "JOB_WATCH", "JOB_STOP", "JOB_END")
    for failpoint in getattr(commit_points, name).failpoints
]
POINTS += ["outbox.lease.after", "channel.send.before", "channel.send.after", "outbox.receipt.after"]
AFTER = [(channel, later) for channel in ("chat", "mail", None) for later in (False, True)]
NOT_STARTED = {"job.start.after", "job.exec.before"}
"""Where the row is written and nothing is asked of the supervisor yet."""


@pytest.fixture(scope="module")
def lab():
    with CrashLab("job_crash_program:program", Path(__file__).parent) as lab:
        yield lab


def try_it(lab, folder, failpoint, channel, later):
    assert lab.run(folder, failpoint).was_killed
    restart = folder / "restart.json"
    restart.write_text(json.dumps({"channel": channel, "later": later}))
    answer = lab.run(folder).answer
    if channel is None:
        assert answer["counts"]["stored"] + answer["counts"]["delivered"] == answer["counts"]["promised"]
        restart.write_text(json.dumps({"channel": "somebody else", "later": later}))
        answer = lab.run(folder).answer
    assert answer["balanced"], answer
    is_started = failpoint not in NOT_STARTED
    assert answer["jobs"]["j-1"] == (["failed", 7, None, 1] if is_started else ["failed", None, None, 0])
    assert answer["jobs"]["j-2"][0] == "stopped"
    assert (folder / "ran-1").exists() == is_started
    assert not is_started or (folder / "ran-1").read_text() == "ran\n"  # never twice
    assert answer["counts"]["promised"] == answer["counts"]["delivered"] == (3 if is_started else 2)
    fresh = Deduplicator()
    told = [entry for entry in seen(folder) if fresh.is_new(entry["id"])]
    expected = ["j-1-done-1", "j-1-watch-1", "j-2-done-1"] if is_started else ["j-1-done-1", "j-2-done-1"]
    assert sorted(entry["id"] for entry in told) == expected
    assert {entry["session"] for entry in told} == {"crash"}


@pytest.mark.parametrize(("number", "failpoint"), list(enumerate(POINTS)), ids=POINTS)
def test_killed_and_started_again(lab, tmp_path, number, failpoint):
    """The true exit code, each id once for a receiver that dedupes; each point with one of six ways to go on."""
    try_it(lab, tmp_path, failpoint, *AFTER[number % len(AFTER)])


@pytest.mark.soak
@pytest.mark.parametrize(("channel", "later"), AFTER)
@pytest.mark.parametrize("failpoint", POINTS)
def test_killed_and_started_again_every_way(lab, tmp_path, failpoint, channel, later):
    """The whole matrix."""
    try_it(lab, tmp_path, failpoint, channel, later)
