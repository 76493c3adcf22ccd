import asyncio
import os
import signal
import threading
import time

import pytest

from troth.runtime import Capability, Channel, Receipt, Runtime
from troth.runtime.engine import Step
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


def value_of(value):
    return value


def give(value):
    """A decision that returns what it was given."""
    return (yield Step("give", value_of, value))


class Switch(Channel):
    """A channel that can be up, down, refusing, silent, accepting, or fatal to its host in the middle of a send."""

    def __init__(self, name="switch", mode="up", capability=Capability.PUSH):
        self.name = name
        self.mode = mode
        self.can = capability
        self.sent = []  # effects
        self.tried = []
        self.freed = threading.Event()

    @property
    def capability(self):
        return self.can

    def send(self, delivery):
        self.tried.append(delivery)
        match self.mode:
            case "down":
                raise ConnectionError("nobody answers")
            case "refusing":
                return Receipt.refused("not now")
            case "silent":
                return None
            case "hanging":
                self.freed.wait(5)
                return None
            case "fatal":
                os.kill(os.getpid(), signal.SIGKILL)
        self.sent.append(delivery)
        return Receipt.accepted() if self.mode == "accepting" else Receipt.done(f"m-{len(self.sent)}")

    @property
    def ids(self):
        return [delivery.id for delivery in self.sent]


class AsyncSwitch(Switch):
    """The same, async."""

    async def send(self, delivery):
        await asyncio.sleep(0)
        if self.mode == "hanging":
            self.tried.append(delivery)
            await asyncio.sleep(3600)  # to block the loop would be wrong in itself
        return Switch.send(self, delivery)


_stores = []


@pytest.fixture
def path(tmp_path):
    return tmp_path / "troth.db"


@pytest.fixture(autouse=True)
def nothing_is_missing(path):
    """After every test of this part: promised = delivered + stored + expired + dead."""
    yield
    if path.exists():
        with SqliteStore(path) as store:
            counts = store.promises.counts()
            assert counts.is_balanced, counts


@pytest.fixture
def runtime(path):
    with Runtime(path, delivery=QUICK) as runtime:
        yield runtime
