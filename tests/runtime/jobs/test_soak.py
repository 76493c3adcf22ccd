"""Many jobs, sessions, and channels that come and go: none lost, none crossed, none twice, quick, and memory flat."""

import contextlib
import os
import random
import statistics
import threading
import time
from pathlib import Path

import pytest

from troth.runtime import Capability, Channel, Receipt, Runtime, bind

from .conftest import until

SESSIONS, CHANNELS = 8, 3


class Flaky(Channel):
    """Notes what comes when; it is opened and closed all the time."""

    capability = Capability.PUSH

    def __init__(self, name):
        self.name = name
        self.opened_at = 0.0
        self.received = []
        self.delays = []

    async def send(self, delivery):
        self.received.append((delivery.id, delivery.session))
        self.delays.append(min(delivery.age, time.time() - self.opened_at))
        return Receipt.done(delivery.id)


def memory():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def soak(path, jobs):
    """Start `jobs` for each session while the channels come and go; answers the delays and how much memory grew."""
    chance = random.Random(7)
    over, memories, failures = threading.Event(), [], []
    with Runtime(path, in_process=False) as runtime:
        channels = [Flaky(f"c-{number}") for number in range(CHANNELS)]

        def come_and_go():
            while not over.wait(chance.uniform(0.1, 0.4)):
                channel = chance.choice(channels)
                runtime.close_channel(channel)
                over.wait(chance.uniform(0.05, 0.3))
                channel.opened_at = time.time()
                runtime.open_channel(channel)

        def work(session):
            channel = channels[session % CHANNELS]
            try:
                for number in range(jobs):
                    with bind(f"s-{session}", channel):
                        runtime.jobs.start(["true"], job_id=f"j-{session}-{number}")
                    if number % 20 == 19:
                        runtime.jobs.wait(f"j-{session}-{number}", 120)
                    if session == 0 and number % max(1, jobs // 10) == 0:
                        memories.append(memory())
            except BaseException as error:
                failures.append(error)

        for channel in channels:
            channel.opened_at = time.time()
            runtime.open_channel(channel)
        threads = [threading.Thread(target=work, args=(session,)) for session in range(SESSIONS)]
        unrest = threading.Thread(target=come_and_go)
        for thread in (unrest, *threads):
            thread.start()
        for thread in threads:
            thread.join()
        over.set()
        unrest.join()
        assert not failures, failures[0]
        total = SESSIONS * jobs
        # What was started while its channel was away is stored, and sent in a turn: so there is one until all is over.
        with contextlib.ExitStack() as turns:
            for session in range(SESSIONS):
                turns.enter_context(bind(f"s-{session}", channels[session % CHANNELS]))
            until(lambda: runtime.outbox.counts().delivered == total, 300)
        for session in range(SESSIONS):
            assert len(runtime.promises.list(session=f"s-{session}", limit=jobs + 1)) == jobs
        received = [entry for channel in channels for entry in channel.received]
        assert sorted(entry for entry, _ in received) == sorted(
            f"j-{session}-{number}-done-1" for session in range(SESSIONS) for number in range(jobs)
        )
        assert all(session == f"s-{entry.split('-')[1]}" for entry, session in received)
        for number, channel in enumerate(channels):
            assert {int(session[2:]) % CHANNELS for _, session in channel.received} <= {number}
        assert runtime.outbox.counts().is_balanced
        delays = [delay for channel in channels for delay in channel.delays]
    return delays, memories


def test_channels_that_come_and_go(path):
    """A short one."""
    delays, _ = soak(path, 8)
    assert len(delays) == 8 * SESSIONS


@pytest.mark.soak
def test_channels_that_come_and_go_for_long(path):
    """1,000 jobs in each of 8 sessions: 95 of 100 are delivered within a second of a reconnect, and memory is flat."""
    delays, memories = soak(path, 1000)
    assert statistics.quantiles(delays, n=20)[-1] < 1.0
    assert memories[-1] - memories[len(memories) // 3] < 40e6
