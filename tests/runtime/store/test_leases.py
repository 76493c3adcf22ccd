"""Who owns what, and when somebody else may take it."""

import dataclasses
import os
import signal
import subprocess
import sys
import time

import pytest

from troth.runtime.store import LeaseLostError, RunState, commit_point
from troth.runtime.store.identity import LIFETIME, is_alive, new_owner, retire

POINT = commit_point("test.commit", "whatever a test writes")
HOLDER = """
import sys, time
from troth.runtime.store import SqliteStore, commit_point
from troth.runtime.store.identity import new_owner
POINT = commit_point("test.commit", "whatever a test writes")
store = SqliteStore(sys.argv[1])
owner = new_owner(time.time())
def hold(tx):
    tx.enroll(owner)
    tx.add_run("r", "d", "[]", time.time())
    return tx.claim("run:r", owner.id, "theirs", time.time())
assert store.commit(POINT, hold) is None
print("held", flush=True)
time.sleep(60)
"""


def claim(store, owner, token):
    def work(tx):
        tx.enroll(owner)
        return tx.claim("run:r", owner.id, token, time.time())

    return store.commit(POINT, work)


@pytest.fixture
def holder(path, store):
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(path)], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()


def test_a_killed_owner_is_dead_at_once(store, holder):
    """Not after a timeout, and not only once its parent has collected it: a zombie is dead too."""
    me = new_owner(time.time())
    theirs = claim(store, me, "mine")
    assert (theirs.pid, store.run("r").state) == (holder.pid, RunState.RUNNING)
    holder.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 5
    while store.run("r").state is not RunState.INTERRUPTED:
        assert time.monotonic() < deadline
    assert store.orphans(["d"]) == [("r", "d")]
    assert claim(store, me, "mine") is None
    assert store.run("r").state is RunState.RUNNING
    retire(me)


def test_a_stopped_owner_that_wakes_up_late_writes_nothing(store):
    """Whoever lost the lease while it slept is told at its next commit."""
    first, second = new_owner(time.time()), new_owner(time.time())
    claim(store, first, "first")
    retire(first)  # silent for so long that it counts as dead
    assert claim(store, second, "second") is None

    def late(tx):
        tx.append_event("s", "said", "too late", 0.0)
        tx.hold("run:r", "first")

    with pytest.raises(LeaseLostError, match="owned by another process"):
        store.commit(POINT, late)
    assert store.events("s") == []
    store.commit(POINT, lambda tx: tx.release("run:r", "first"))
    assert store.holder("run:r").id == second.id
    retire(second)


def test_a_lease_given_back_is_free(store):
    """Released or retired: the next one takes it."""
    first, second = new_owner(time.time()), new_owner(time.time())
    claim(store, first, "a")
    assert claim(store, second, "b").id == first.id
    store.commit(POINT, lambda tx: tx.release("run:r", "a"))
    assert claim(store, second, "b") is None
    store.commit(POINT, lambda tx: tx.retire(second.id))
    assert store.holder("run:r") is None
    retire(first)
    retire(second)


ME = new_owner(1000.0)
retire(ME)


@pytest.mark.parametrize(
    ("change", "now", "alive"),
    [
        pytest.param(
            {"pid": os.getppid(), "pid_started": 1}, 1001.0, False, id="its number was given to another process"
        ),
        pytest.param({"pid": 2**22 + 1}, 1001.0, False, id="no such process"),
        pytest.param({"machine": "elsewhere"}, 1001.0, True, id="another machine, heard of lately"),
        pytest.param({"machine": "elsewhere"}, 1001.0 + LIFETIME, False, id="another machine, silent"),
        pytest.param({}, 1001.0, False, id="this process, but closed"),
    ],
)
def test_signs_of_life(change, now, alive):
    """What can be looked up is looked up; the rest goes by heartbeat."""
    assert is_alive(dataclasses.replace(ME, **change), now) is alive


def test_a_forked_child_is_not_its_parent():
    """The child does not count its parent's owners as its own living ones, but sees that the parent lives."""
    owner = new_owner(time.time())
    child = os.fork()
    if child == 0:
        os._exit(0 if is_alive(owner, time.time()) and not is_alive(owner, time.time() + 2 * LIFETIME) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    retire(owner)
