"""What an attempt comes to, and when there is another one: a decision without a clock of its own."""

import math
import random

import pytest

from troth.errors import MisuseError
from troth.runtime import Pushed, Receipt, bind
from troth.runtime.promises import RetryPolicy
from troth.runtime.promises.attempt import judge
from troth.runtime.store.promise_records import DeliveryState

from .conftest import Switch, give, until

POLICY = RetryPolicy(limit=3, over=100.0, first=1.0, longest=8.0, send_timeout=1.0, probe=2.0)
NOW = 1000.0


def decide(answer, attempt=1, first_attempt_at=NOW, seed=0):
    return judge(answer, attempt, first_attempt_at, NOW, POLICY, random.Random(seed))


@pytest.mark.parametrize(
    ("answer", "state", "earliest", "latest", "problem"),
    [
        pytest.param(Receipt.done("m"), DeliveryState.DELIVERED, None, None, None, id="done"),
        pytest.param(Receipt.refused("busy"), DeliveryState.DUE, 0.75, 1.25, "refused: busy", id="refused"),
        pytest.param(Receipt.refused("busy", 60), DeliveryState.DUE, 60, 66, "refused: busy", id="retry after"),
        pytest.param(Receipt.refused("busy", 0), DeliveryState.DUE, 0, 0, "refused: busy", id="retry at once"),
        pytest.param(Receipt.refused("busy", -5), DeliveryState.DUE, 0, 0, "refused: busy", id="retry in the past"),
        pytest.param(None, DeliveryState.DUE, 0.75, 1.25, "`send` returned None", id="None"),
        pytest.param(True, DeliveryState.DUE, 0.75, 1.25, "`send` returned True", id="True"),
        pytest.param("ok", DeliveryState.DUE, 0.75, 1.25, "`send` returned 'ok'", id="a text"),
        pytest.param(OSError("down"), DeliveryState.DUE, 0.75, 1.25, "`send` raised OSError: down", id="a raise"),
    ],
)
@pytest.mark.parametrize("seed", range(5))
def test_what_an_attempt_comes_to(answer, state, earliest, latest, problem, seed):
    """Only a receipt that says so is a delivery; the pause is the receiver's, if it names one, and has jitter."""
    settlement = decide(answer, seed=seed)
    assert settlement.state is state
    if problem is None:
        assert (settlement.due_at, settlement.problem, settlement.receipt) == (None, None, "m")
    else:
        assert earliest <= settlement.due_at - NOW <= latest
        assert settlement.problem.startswith(problem)


def test_acceptance_comes_to_nothing_yet():
    """Somebody holds it in memory."""
    assert decide(Receipt.accepted()) is None


@pytest.mark.parametrize(
    ("attempt", "first_attempt_at", "state"),
    [
        pytest.param(3, NOW - 100, DeliveryState.DEAD, id="often enough, long enough"),
        pytest.param(3, NOW - 99, DeliveryState.DUE, id="often enough, not long enough"),
        pytest.param(2, NOW - 1e6, DeliveryState.DUE, id="long enough, not often enough"),
    ],
)
@pytest.mark.parametrize("answer", [Receipt.refused("no"), None, OSError()], ids=["refused", "None", "a raise"])
def test_when_it_is_given_up(answer, attempt, first_attempt_at, state):
    """After so many attempts, and not before so much time: a channel that is down for an hour costs nobody a result."""
    assert decide(answer, attempt, first_attempt_at).state is state


def test_the_pauses_grow_to_a_limit():
    """They double, and no two are the same: those who were refused together do not come back together."""
    pauses = [[POLICY.pause(attempt, random.Random(seed)) for seed in range(200)] for attempt in range(1, 8)]
    for pause, usual in zip(pauses, [1, 2, 4, 8, 8, 8, 8], strict=True):
        assert 0.75 * usual <= min(pause) < max(pause) <= 1.25 * usual
        assert len(set(pause)) == 200
    assert decide(OSError(), attempt=7).due_at - NOW <= POLICY.probe, "a channel in trouble is tried again sooner"


@pytest.mark.parametrize("attempt", [1024, 1025, 1026, 10**9])
def test_a_channel_may_fail_for_as_long_as_it_likes(attempt):
    """One that is down for an hour is tried more often than a number can be doubled."""
    assert decide(OSError(), attempt).due_at - NOW <= POLICY.probe
    assert 6.0 <= decide(Receipt.refused("no"), attempt).due_at - NOW <= 10.0


@pytest.mark.parametrize(
    "numbers",
    [
        {"limit": 0},
        {"limit": math.nan},
        {"limit": "3"},
        {"over": -1.0},
        {"first": 0.0},
        {"first": 2.0, "longest": 1.0},
        {"first": math.inf, "longest": math.inf},
        {"send_timeout": 0.0},
        {"send_timeout": None},
        {"probe": 0.0},
    ],
    ids=str,
)
def test_numbers_that_would_never_try_or_never_stop(numbers):
    """Refused where they are written."""
    with pytest.raises(MisuseError, match="above 0"):
        RetryPolicy(**numbers)


def test_a_receiver_that_says_when_is_not_asked_before(runtime):
    """`retry_after` is in the row, so that it holds after a restart, too."""

    class Busy(Switch):
        def send(self, delivery):
            self.tried.append(delivery)
            return Receipt.refused("busy", retry_after=3600)

    channel = Busy()
    runtime.open_channel(channel)
    with bind("s", channel):
        outcome = runtime.promises.start(give, 1)
    assert isinstance(outcome, Pushed)
    delivery = f"{outcome.promise.id}-done-1"
    outcome.promise.wait(60)
    record = until(lambda: (found := runtime.outbox.find(delivery)).problem and found)
    assert record.problem == "refused: busy"
    assert 3600 <= record.due_at - record.updated_at <= 3960
    assert len(channel.tried) == 1
