"""Who waits here hears of what other processes commit, whenever they do."""

import asyncio
import threading
import time

import pytest

from troth.runtime.engine import EmbeddedEngine, Wait
from troth.runtime.store import Follower, HistoryFollower, RunState, SqliteStore, commit_point
from troth.runtime.store.notifications import Notifications, Notifier

LIMIT = 60
POINT = commit_point("test.foreign", "what another process writes")


def waits():
    return (yield Wait("go"))


def blinded(store):
    """Keep the store from looking for foreign commits until the answer is called."""
    look, may_look = store._look_abroad, threading.Event()
    store._look_abroad = lambda: look() if may_look.is_set() else None
    return may_look.set


def until(condition):
    deadline = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.005)


def in_thread(work):
    """A call whose answer is waited for elsewhere."""
    answers = []
    thread = threading.Thread(target=lambda: answers.append(work()), daemon=True)
    thread.start()

    def answer():
        thread.join(LIMIT)
        return answers

    return answer


@pytest.mark.parametrize("is_async", [False, True], ids=["run", "arun"])
def test_a_signal_before_the_first_look_reaches_a_waiting_run(path, is_async):
    """A new file was never looked at. What another process sends before the first look is news all the same."""
    with SqliteStore(path) as store, SqliteStore(path) as other, EmbeddedEngine(store, decisions=[waits]) as engine:
        see = blinded(store)
        sync, loop = (lambda: engine.run(waits, run_id="r")), (lambda: asyncio.run(engine.arun(waits, run_id="r")))
        answer = in_thread(loop if is_async else sync)
        until(lambda: (found := store.run("r")) is not None and found.state is RunState.WAITING)
        other.commit(POINT, lambda tx: tx.send_signal("r", "go", '"yes"', other.clock()))
        see()
        assert answer() == ["yes"]


@pytest.mark.parametrize("is_async", [False, True], ids=["take", "atake"])
def test_an_entry_before_the_first_look_reaches_a_follower(path, is_async):
    """The same for whoever follows a stream: a conversation, say."""
    with SqliteStore(path) as store, SqliteStore(path) as other:
        see = blinded(store)
        with Follower(store, "s") as follower:
            sync, loop = (lambda: follower.take(LIMIT)), (lambda: asyncio.run(follower.atake(LIMIT)))
            answer = in_thread(loop if is_async else sync)
            until(lambda: follower._bell._wakers)  # it has looked, found nothing, and waits
            other.commit(POINT, lambda tx: tx.append_event("s", "said", "hello", 0.0))
            see()
            ((event,),) = answer()
        assert event.payload == "hello"


def test_an_entry_before_the_first_look_reaches_a_follower_of_a_run(path):
    """The same for whoever follows the events of a run."""
    with SqliteStore(path) as store, SqliteStore(path) as other:
        see = blinded(store)
        store.commit(POINT, lambda tx: tx.add_run("r", "d", "[]", 0.0))
        with HistoryFollower(store, "r") as follower:
            _, before = follower.look()
            answer = in_thread(lambda: follower.wait(LIMIT))
            other.commit(POINT, lambda tx: tx.finish_run("r", RunState.COMPLETED, 1.0, result="null"))
            see()
            assert answer() == [True]
            is_over, _ = follower.look()
        assert (len(before), is_over) == (1, True)


def test_who_stops_listening_in_a_forked_child_silences_nobody():
    """A child inherits blocks that listen and are left in it. Those who listen there later are watched for."""
    watched = []
    notices = Notifications(lambda: watched.append(1))
    parents, childs = Notifier(), Notifier()
    notices.add(parents, ["a"])
    notices.after_fork()
    notices.remove(parents, ["a"])
    notices.add(childs, ["b"])
    assert (len(watched), notices.is_listened_to) == (2, True)
    notices.publish_all()
    assert (parents.count, childs.count) == (0, 1)
    notices.remove(childs, ["b"])
    assert not notices.is_listened_to
