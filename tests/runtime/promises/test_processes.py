"""Real processes that are killed: by their own channel, or in the middle of the work."""

import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

from troth.runtime import Capability, Runtime, bind
from troth.runtime.promises import deliverer, outbox
from troth.runtime.store.promise_records import DeliveryState, PromiseState

from .conftest import QUICK, Switch, give, until

HEAD = """
import os, sys, time
sys.path.insert(0, {folder!r})
from crash_program import FileChannel, give, value_of
from troth.runtime import Capability, Channel, Receipt, Runtime, bind
from troth.runtime.engine import Step
"""


def run(program, **values):
    folder = str(Path(__file__).parent)
    text = HEAD.format(folder=folder) + textwrap.dedent(program).format(**values)
    return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60, check=False)


def test_a_channel_that_kills_its_host(path):
    """Killed in the middle of a send: the next process delivers, at once, and counts the attempt."""
    done = run(
        """
        class Fatal(Channel):
            name = "switch"
            capability = Capability.PUSH
            def send(self, delivery):
                os.kill(os.getpid(), 9)

        with Runtime({path!r}) as runtime:
            channel = Fatal()
            runtime.open_channel(channel)
            with bind("s", channel):
                runtime.promises.start(give, 7, promise_id="p-1").promise.wait(60)
                time.sleep(20)
        """,
        path=str(path),
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    with Runtime(path, delivery=QUICK) as runtime:
        channel = Switch()
        runtime.open_channel(channel)
        until(lambda: channel.sent)
        assert (channel.ids, channel.sent[0].attempt) == (["p-1-done-1"], 2)
        until(lambda: runtime.outbox.counts().delivered == 1)


def test_the_promise_of_a_killed_process_is_still_owed(path):
    """F1, F2: killed while the work was under way: the promise is there, and is owed."""
    done = run(
        """
        def die():
            os.kill(os.getpid(), 9)

        def give(value):
            yield Step("die", die)

        with Runtime({path!r}) as runtime:
            runtime.promises.start(give, 7, promise_id="p-1")
            time.sleep(20)
        """,
        path=str(path),
    )
    assert done.returncode == -signal.SIGKILL, done.stderr

    with Runtime(path, delivery=QUICK) as runtime:
        assert runtime.promises.get("p-1").state is PromiseState.OPEN
        assert runtime.outbox.counts().stored == 1  # work under way is owed, too


def test_a_promised_run_is_taken_up_by_a_runtime_that_knows_it(path):
    """The runtime that comes next goes on with the work by itself, and the session is told when it binds."""
    done = run(
        """
        with Runtime({path!r}, in_process=False) as runtime:
            channel = FileChannel("chat", "/tmp")
            from troth.testing import failpoints
            with failpoints.armed("step.begin.after", "kill"):
                with bind("s"):
                    runtime.promises.start(give, 7, promise_id="p-1")
                time.sleep(20)
        """,
        path=str(path),
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    with Runtime(path, delivery=QUICK, in_process=False) as runtime:
        runtime.register(give)
        record = runtime.promises.wait("p-1", 20)
        assert (record.state, record.result) == (PromiseState.DONE, 7)
        channel = Switch()
        runtime.open_channel(channel)
        with bind("s", channel):
            until(lambda: channel.ids == ["p-1-done-1"])


def test_two_processes_one_is_told_by_the_other(path):
    """A result that is settled in another process is delivered by the one that has the channel."""
    with Runtime(path, delivery=QUICK) as runtime:
        channel = Switch()
        runtime.open_channel(channel)
        done = run(
            """
            with Runtime({path!r}, in_process=False) as runtime:
                with bind("s"):
                    runtime.promises.start(give, 7, promise_id="p-1").promise.wait(60)
            """,
            path=str(path),
        )
        assert done.returncode == 0, done.stderr
        with bind("s", channel, Capability.PUSH):
            until(lambda: channel.ids == ["p-1-done-1"])


def test_a_lease_is_renewed_as_long_as_somebody_holds_the_delivery(path, monkeypatch):
    """What a channel has accepted is not sent again while its process lives."""
    monkeypatch.setattr(deliverer, "LEASE", 1.5)
    monkeypatch.setattr(outbox, "LEASE", 1.5)
    with Runtime(path, delivery=QUICK) as runtime:
        channel = Switch(mode="accepting")
        runtime.open_channel(channel)
        with bind("s", channel):
            runtime.promises.start(give, 1, promise_id="p-1").promise.wait(60)
        until(lambda: channel.sent)
        threads = threading.active_count()
        first = runtime.outbox.find("p-1-done-1").leased_until
        until(lambda: runtime.outbox.find("p-1-done-1").leased_until > first + 2.0)
        assert runtime.outbox.find("p-1-done-1").state is DeliveryState.LEASED
        assert channel.ids == ["p-1-done-1"]
        assert threading.active_count() < threads + 10, "a renewal needs no thread of its own"
