import os
import signal
import time

import pytest

from troth.runtime import Capability, Channel, Receipt, Runtime
from troth.runtime.jobs.job_files import JobFiles
from troth.runtime.jobs.machine import folder_of
from troth.runtime.promises import RetryPolicy
from troth.runtime.store import SqliteStore

QUICK = RetryPolicy(limit=3, over=0.0, first=0.01, longest=0.05, send_timeout=30.0, probe=0.2)


def until(condition, seconds=60.0):
    """Wait for a fact, with a deadline."""
    deadline = time.monotonic() + seconds
    while not (answer := condition()):
        assert time.monotonic() < deadline, "it did not become true in time"
        time.sleep(0.005)
    return answer


class Chat(Channel):
    """Takes everything."""

    capability = Capability.PUSH

    def __init__(self, name="chat"):
        self.name = name
        self.sent = []

    def send(self, delivery):
        self.sent.append(delivery)
        return Receipt.done(delivery.id)

    def of(self, kind):
        return [delivery for delivery in self.sent if delivery.kind == kind]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "troth.db"


def end_all(path):
    """End every process that the jobs of a store have left, and their supervisors."""
    folders = folder_of(path).glob("*/process")
    processes = [process for folder in folders if (process := JobFiles(folder.parent).process())]
    for process in processes:
        if process.lives:
            os.killpg(process.pid, signal.SIGKILL)
    until(lambda: not any(process.lives or process.is_supervised for process in processes))


@pytest.fixture(autouse=True)
def nothing_is_missing(path):
    """After every test: promised = delivered + stored + expired + dead, and no process is left."""
    yield
    end_all(path)
    if path.exists():
        with SqliteStore(path) as store:
            counts = store.promises.counts()
            assert counts.is_balanced, counts


@pytest.fixture
def runtime(path):
    with Runtime(path, delivery=QUICK) as runtime:
        yield runtime


@pytest.fixture
def chat(runtime):
    channel = Chat()
    runtime.open_channel(channel)
    return channel
