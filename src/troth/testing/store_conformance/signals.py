"""Signals: sent once, taken once."""

from functools import partial
from operator import methodcaller

from troth.runtime.store import (
    RunState,
    StepState,
    Store,
    Transaction,
)
from troth.runtime.store.records import Place
from troth.testing.store_conformance.check import POINT, StoreGround, check, in_threads

__all__: list[str] = []


@check("signals")
def a_signal_is_taken_once(ground: StoreGround) -> None:
    """The oldest first, by one of those who want it at the same time, and only if it was sent in time."""

    def send(tx: Transaction) -> None:
        tx.add_run("r", "d", "[]", 1.0)
        for number in range(10):
            tx.send_signal("r", "s", str(number), float(number))

    with ground.open() as store, ground.open() as second:
        store.commit(POINT, send)
        assert store.commit(POINT, lambda tx: tx.take_signal("r", "s", "0", before=0.0)) is None
        assert store.commit(POINT, lambda tx: tx.take_signal("r", "s", "1", before=5.0)) == "0"
        take = methodcaller("take_signal", "r", "s", "2")
        both = [partial(each.commit, POINT, take) for _ in range(8) for each in (store, second)]
        payloads = [payload for payload in in_threads(both) if payload is not None]
        assert sorted(payloads) == [str(number) for number in range(1, 10)]  # type: ignore[type-var]
        assert all(signal.taken_by is not None for signal in store.signals("r"))


@check("signals")
def who_waits_and_was_sent_something_is_known(ground: StoreGround) -> None:
    """A run that works is not, nor one whose signal is taken."""

    def send(tx: Transaction) -> None:
        for run_id in ("waits", "works", "took"):
            tx.add_run(run_id, "d", "[]", 1.0)
            tx.send_signal(run_id, "s", "1", 2.0)
            tx.send_signal(run_id, "s", "2", 2.0)
        for run_id in ("waits", "took"):
            tx.set_run_state(run_id, RunState.WAITING, 3.0)
        tx.take_signal("took", "s", "1")
        tx.take_signal("took", "s", "2")

    with ground.open() as store:
        store.commit(POINT, send)
        assert store.signalled() == ["waits"]


@check("signals")
def a_key_makes_a_second_sending_harmless(ground: StoreGround) -> None:
    """For each run."""

    def send(store: Store, run_id: str) -> bool:
        return store.commit(POINT, lambda tx: tx.send_signal(run_id, "s", "1", 1.0, key="k"))

    with ground.open() as store, ground.open() as second:
        for run_id in ("r", "q"):
            store.commit(POINT, lambda tx, run_id=run_id: tx.add_run(run_id, "d", "[]", 1.0))  # type: ignore[misc]
        sent = in_threads([partial(send, each, "r") for each in (store, second) for _ in range(4)])
        assert sorted(map(bool, sent)) == [False] * 7 + [True]
        assert send(store, "q") is True
        assert len(store.signals("r")) == 1


@check("signals")
def an_open_wait_is_known(ground: StoreGround) -> None:
    """Until when it can be answered, and whether it was."""
    place = Place("r", "", 1)

    def wait(tx: Transaction) -> None:
        tx.add_run("r", "d", "[]", 1.0)
        tx.begin_step(place, kind="wait", name="s", key="k", args="[]", now=2.0, state=StepState.WAITING, wake_at=9.0)

    with ground.open() as store:
        store.commit(POINT, wait)
        look = methodcaller("open_wait", "r", "s")
        open_wait = store.commit(POINT, look)
        assert open_wait is not None
        assert (open_wait.deadline, open_wait.is_answered) == (9.0, False)
        store.commit(POINT, lambda tx: tx.send_signal("r", "s", "1", 3.0))
        open_wait = store.commit(POINT, look)
        assert open_wait is not None
        assert open_wait.is_answered
        store.commit(POINT, lambda tx: tx.settle_step(place, StepState.DONE, 4.0, kind="wait", name="s", result="1"))
        assert store.commit(POINT, look) is None
