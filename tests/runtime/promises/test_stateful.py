"""Bind, start, finish, disconnect, reconnect, acknowledge, kill and set the clock in any order, against a small model."""

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from troth.runtime import Capability, Pushed, Runtime, Stored, bind
from troth.runtime.jobs import ForeignJobError, JobState
from troth.runtime.store import SqliteStore
from troth.runtime.store.promise_records import DeliveryState

from .conftest import QUICK, Switch, give, until

KILLED = """
import os, time
from troth.runtime import Runtime, bind
from troth.runtime.store import SqliteStore
runtime = Runtime(SqliteStore({path!r}, clock=lambda: time.time() + {shift}), in_process=False)
with bind({session!r}):
    runtime.jobs.start("exit 5", job_id={job!r})
os.kill(os.getpid(), 9)
"""
SESSIONS = st.sampled_from(["a", "b"])


class Delivering(RuleBasedStateMachine):
    """The model: which deliveries each session is owed, and which it has."""

    def __init__(self):
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.owed, self.has = {"a": [], "b": []}, {"a": [], "b": []}
        self.seen, self.running, self.untold, self.shift = [], [], 0, 0.0
        self.kills = 0
        self.open()

    def open(self):
        self.store = SqliteStore(self.folder / "troth.db", clock=lambda: time.time() + self.shift)
        self.runtime = Runtime(self.store, delivery=QUICK, in_process=False)
        self.runtime.outbox.counts()
        self.channel = None

    def model_offers(self, session):
        self.has[session] += self.owed[session]
        self.owed[session] = []

    @precondition(lambda self: self.channel is None)
    @rule()
    def connect(self):
        self.channel = Switch("chat")
        self.channel.sent = self.seen
        self.runtime.open_channel(self.channel)

    @precondition(lambda self: self.channel is not None)
    @rule()
    def disconnect(self):
        self.runtime.close_channel(self.channel)
        self.channel = None

    @rule(session=SESSIONS, can_push=st.booleans())
    def start(self, session, can_push):
        narrowed = None if can_push or self.channel is None else Capability.STORE
        with bind(session, self.channel, narrowed):
            outcome = self.runtime.promises.start(give, 1)
        pushes = self.channel is not None and can_push
        assert type(outcome) is (Pushed if pushes else Stored)
        outcome.promise.wait(60)
        if pushes:  # a turn on a channel that can push is offered everything that is stored
            self.model_offers(session)
        (self.has if pushes else self.owed)[session].append(f"{outcome.promise.id}-done-1")
        self.settle()

    @rule(session=SESSIONS, code=st.integers(0, 3), hits=st.integers(0, 2), notify=st.booleans())
    def job(self, session, code, hits, notify):
        with bind(session, self.channel):
            outcome = self.runtime.jobs.start(
                f"for i in $(seq {hits}); do echo hit; done; exit {code}", watch="hit", notify=notify
            )
        pushes = self.channel is not None
        assert type(outcome) is (Pushed if pushes else Stored)
        record = self.runtime.jobs.wait(outcome.promise.id, 20)
        assert (record.exit_code, record.hits) == (code, hits)
        if pushes:
            self.model_offers(session)
        mine = (self.has if pushes else self.owed)[session]
        mine += [f"{record.id}-watch-{number + 1}" for number in range(hits)]
        if notify:
            mine.append(f"{record.id}-done-1")
        else:
            self.untold += 1
        self.settle()

    @rule(session=SESSIONS)
    def start_a_job_that_stays(self, session):
        with bind(session):
            self.running.append((session, self.runtime.jobs.start("exec sleep 60").promise.id))

    @precondition(lambda self: self.running)
    @rule()
    def stop_a_job(self):
        session, job = self.running.pop(0)
        other = "b" if session == "a" else "a"
        with pytest.raises(ForeignJobError):
            self.runtime.jobs.stop(job, session=other)
        assert self.runtime.jobs.stop(job, session=session).state is JobState.STOPPED
        self.owed[session].append(f"{job}-done-1")

    @rule(hours=st.integers(-2, 2))
    def set_the_clock(self, hours):
        self.shift = 3600.0 * hours

    @precondition(lambda self: self.channel is not None)
    @rule(session=SESSIONS)
    def turn(self, session):
        with bind(session, self.channel):
            self.model_offers(session)
            self.settle()

    @precondition(lambda self: any(self.owed.values()))
    @rule(session=SESSIONS)
    def acknowledge(self, session):
        if self.owed[session]:
            delivery = self.owed[session].pop(0)
            assert self.runtime.outbox.ack(delivery)
            self.has[session].append(delivery)

    @rule()
    def restart(self):
        self.close()
        self.open()

    @rule(session=SESSIONS)
    def another_program_is_killed(self, session):
        """It leaves a job of which nobody has told yet."""
        self.kills += 1
        job = f"k-{self.kills}"
        program = KILLED.format(path=str(self.folder / "troth.db"), session=session, job=job, shift=self.shift)
        done = subprocess.run([sys.executable, "-c", program], timeout=60, check=False, capture_output=True)
        assert done.returncode == -9, done.stderr
        self.runtime.jobs.wait(job, 30)
        self.owed[session].append(f"{job}-done-1")

    def close(self):
        self.runtime.close()
        self.store.close()

    def settle(self):
        """Wait until the world is as the model says."""
        wanted = sum(map(len, self.has.values())) + self.untold
        until(lambda: self.runtime.outbox.counts().delivered == wanted)

    def stored(self):
        return sorted(record.id for record in self.runtime.outbox.list(states=[DeliveryState.STORED]))

    @invariant()
    def nothing_is_missing(self):
        counts = self.runtime.outbox.counts()
        assert counts.is_balanced, counts
        assert counts.stored == len(self.owed["a"]) + len(self.owed["b"]) + len(self.running)
        # A deliverer that has not noticed yet that a turn is over may lease what is stored, and puts it back.
        until(lambda: self.stored() == sorted(self.owed["a"] + self.owed["b"]))
        ids = [delivery.id for delivery in self.seen]
        assert len(ids) == len(set(ids))
        assert all(delivery.id in self.has[delivery.session] for delivery in self.seen)

    def teardown(self):
        for _, job in self.running:
            self.runtime.jobs.stop(job)
        self.close()
        shutil.rmtree(self.folder)


def test_any_order():
    """A short search; `make soak` searches longer."""
    run(5, 12)


@pytest.mark.soak
def test_any_order_for_long():
    """The same, for long."""
    run(200, 40)


def run(examples, steps):
    from hypothesis.stateful import run_state_machine_as_test

    run_state_machine_as_test(
        Delivering,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
