"""Killed at every commit and around every send, started again: nothing is lost, and one id is one thing."""

import json
import sqlite3
from pathlib import Path

import pytest

from troth.runtime.channels import Deduplicator
from troth.runtime.promises import commit_points
from troth.runtime.store.failpoints import CommitPoint, EffectPoint
from troth.testing.crash import CrashLab

from .crash_program import seen

OF_THIS_PROGRAM = ["OUTBOX_ENROLL", "CHANNEL_OPEN", "OUTBOX_LEASE", "CHANNEL_SEND", "OUTBOX_RECEIPT"]
POINTS = [
    failpoint
    for name in OF_THIS_PROGRAM
    if isinstance(point := getattr(commit_points, name), CommitPoint | EffectPoint)
    for failpoint in point.failpoints
]
POINTS += [
    "run.start.before",
    "run.start.written",
    "run.start.after",
    "step.begin.after",
    "run.finish.before",
    "run.finish.written",
    "run.finish.after",
]


@pytest.fixture(scope="module")
def lab():
    with CrashLab("crash_program:program", Path(__file__).parent) as lab:
        yield lab


@pytest.fixture
def path(tmp_path):
    return tmp_path / "troth.db"


@pytest.mark.parametrize("nth", [1, 2])
@pytest.mark.parametrize("after", ["the same channel", "another channel", "no channel"])
@pytest.mark.parametrize("failpoint", POINTS)
def test_killed_and_started_again(lab, tmp_path, failpoint, after, nth):
    """A receiver that dedupes sees each id once, one that does not at least once; the counts add up."""
    trial = lab.run(tmp_path, failpoint, nth=nth)
    if not trial.was_killed:
        assert nth == 2  # two deliveries may share one lease
    channel = {"the same channel": "chat", "another channel": "mail", "no channel": None}[after]
    (tmp_path / "restart.json").write_text(json.dumps({"channel": channel}))
    again = lab.run(tmp_path)
    assert again.answer["balanced"], again.answer
    counts = again.answer["counts"]
    assert counts["promised"] == 2
    assert counts["expired"] == counts["dead"] == 0
    assert {entry["session"] for entry in seen(tmp_path)} <= {"crash"}
    if channel is None:
        assert counts["delivered"] + counts["stored"] == 2
        (tmp_path / "restart.json").write_text(json.dumps({"channel": "later"}))
        counts = lab.run(tmp_path).answer["counts"]
    assert counts["delivered"] == 2
    fresh = Deduplicator()
    told = [entry["id"] for entry in seen(tmp_path) if fresh.is_new(entry["id"])]
    assert sorted(told) == ["p-1-done-1", "p-2-done-1"]


def test_a_lease_of_the_dead_is_void_at_once(lab, tmp_path, path):
    """F6: killed between the lease and the receipt, and restarted within the lease's time, which is a day here."""
    assert lab.run(tmp_path, "channel.send.before").was_killed
    with sqlite3.connect(path) as store:
        store.execute("UPDATE deliveries SET leased_until = leased_until + 86400 WHERE state = 'leased'")
        assert store.total_changes >= 1
    store.close()
    assert lab.run(tmp_path).answer["counts"]["delivered"] == 2
