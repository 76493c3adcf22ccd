"""Killed at every commit of the outbox's verbs, started again at once or later, with this channel, another or none."""

import json
from pathlib import Path

import pytest

from troth.runtime.channels import Deduplicator
from troth.runtime.promises import commit_points
from troth.testing.crash import CrashLab

from .crash_program import seen

VERBS = ["TAKE_BACK", "RENEW", "BEAT", "ACK", "REPLAY", "OFFER", "SWEEP", "RETIRE"]
POINTS = [failpoint for verb in VERBS for failpoint in getattr(commit_points, f"OUTBOX_{verb}").failpoints]
POINTS += commit_points.CHANNEL_CLOSE.failpoints
AFTER = [(channel, later) for channel in ("chat", "mail", None) for later in (False, True)]


@pytest.fixture(scope="module")
def lab():
    with CrashLab("verbs_crash_program:program", Path(__file__).parent) as lab:
        yield lab


@pytest.fixture
def path(tmp_path):
    return tmp_path / "troth.db"


def try_it(lab, folder, failpoint, channel, later):
    assert lab.run(folder, failpoint).was_killed
    restart = folder / "restart.json"
    restart.write_text(json.dumps({"channel": channel, "later": later}))
    answer = lab.run(folder).answer
    if channel is None:
        assert answer["counts"]["delivered"] + answer["counts"]["stored"] == answer["counts"]["promised"]
        restart.write_text(json.dumps({"channel": "somebody else", "later": later}))
        answer = lab.run(folder).answer
    assert answer["balanced"], answer
    assert answer["counts"]["promised"] == answer["counts"]["delivered"] == len(answer["promises"])
    fresh = Deduplicator()
    told = [entry["id"] for entry in seen(folder) if fresh.is_new(entry["id"])]
    assert sorted(told) == sorted(f"{promise}-done-1" for promise in answer["promises"])
    assert {entry["session"] for entry in seen(folder)} == {"crash"}


@pytest.mark.parametrize(("number", "failpoint"), list(enumerate(POINTS)), ids=POINTS)
def test_killed_and_started_again(lab, tmp_path, number, failpoint):
    """Nothing is lost, nothing crosses sessions, the counts add up; each point with one of six ways to go on."""
    try_it(lab, tmp_path, failpoint, *AFTER[number % len(AFTER)])


@pytest.mark.soak
@pytest.mark.parametrize(("channel", "later"), AFTER)
@pytest.mark.parametrize("failpoint", POINTS)
def test_killed_and_started_again_every_way(lab, tmp_path, failpoint, channel, later):
    """The whole matrix."""
    try_it(lab, tmp_path, failpoint, channel, later)
