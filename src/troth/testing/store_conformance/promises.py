"""Promises and their deliveries."""

import json
from functools import partial
from typing import Any

from troth.runtime.store import RunState, Store, Transaction
from troth.runtime.store.promise_records import DeliveryAttempt, DeliveryState, NewPromise, PromiseState, Settlement
from troth.testing.store_conformance.check import POINT, StoreGround, check, in_threads

__all__: list[str] = []


def _promise(promise_id: str, subject: str, now: float = 1.0, **more: Any) -> NewPromise:
    return NewPromise(promise_id, "sess", "task", subject, "title", "chat", None, 100.0, now)._replace(**more)


@check("promises")
def a_promise_is_settled_once(ground: StoreGround) -> None:
    """Whoever tells of the end of its work; the delivery is there with it, and the counts agree."""

    def begin(tx: Transaction) -> None:
        assert tx.promises.add(_promise("p", "r")) is True
        assert tx.promises.add(_promise("p", "r")) is False

    def settle(store: Store) -> str | None:
        return store.commit(POINT, lambda tx: tx.promises.settle("task", "r", PromiseState.DONE, 2.0, result="[1]"))

    with ground.open() as store, ground.open() as second:
        store.commit(POINT, begin)
        settled = in_threads([partial(settle, each) for each in (store, second) for _ in range(3)])
        assert sorted(filter(None, settled)) == ["p"]  # type: ignore[type-var]
        promise = second.promises.find("p")
        assert promise is not None
        assert (promise.state, promise.result, promise.expires_at) == (PromiseState.DONE, [1], 102.0)
        (delivery,) = second.promises.deliveries_of("p")
        assert (delivery.id, delivery.state) == ("p-done-1", DeliveryState.DUE)
        counts = store.promises.counts()
        assert counts.is_balanced
        assert (counts.promised, counts.stored) == (1, 1)


@check("promises")
def the_first_end_of_a_run_settles_its_promise(ground: StoreGround) -> None:
    """Whoever writes it; a run that goes on after that has promised nothing more. A large result is kept whole."""

    def begin(tx: Transaction) -> None:
        for run_id in ("kept", "open", "gone"):
            tx.add_run(run_id, "d", "[]", 1.0)
            if run_id != "gone":
                tx.promises.add(_promise(run_id, run_id, work="run", channel=None, retention=50.0))

    large = "x" * 5000
    with ground.open() as store, ground.open() as second:
        assert store.promises.shortest_retention() > 50.0
        store.commit(POINT, begin)
        assert second.promises.shortest_retention() == 50.0
        assert second.promises.unheld_runs(2.0) == ["kept", "open"]
        error = json.dumps({"message": large})
        second.commit(POINT, lambda tx: tx.finish_run("kept", RunState.FAILED, 2.0, error=error))
        assert store.commit(POINT, lambda tx: tx.reopen_run("kept", 3.0, ended_at=2.0)) is True
        assert store.promises.unheld_runs(3.0) == ["open"]
        store.commit(POINT, lambda tx: tx.finish_run("kept", RunState.COMPLETED, 4.0, result="1"))
        store.commit(POINT, lambda tx: tx.finish_run("gone", RunState.COMPLETED, 4.0, result="1"))
        promise = store.promises.find("kept")
        assert promise is not None
        assert (promise.state, promise.error, promise.settled_at) == (PromiseState.FAILED, {"message": large}, 2.0)
        assert [each.id for each in store.promises.newest(session="sess")] == ["open", "kept"]
        assert [each.id for each in store.promises.newest(session="sess", work="run", limit=1)] == ["open"]
        (delivery,) = store.promises.deliveries(states=[DeliveryState.STORED], session="sess")
        assert delivery.id == "kept-done-1"
        assert store.promises.deliveries(channel="chat") == []
        assert store.promises.states() == {"failed": 1, "open": 1}
        counts = second.promises.counts()
        assert counts.is_balanced
        assert (counts.promised, counts.stored) == (2, 2)
        assert second.promises.next_expiry() == 52.0


@check("promises")
def a_delivery_is_leased_once(ground: StoreGround) -> None:
    """Of many that are due, each goes to one of those who take them at the same time."""

    def write(tx: Transaction) -> None:
        for number in range(12):
            tx.promises.add(_promise(f"p{number}", f"r{number}", float(number)))
            tx.promises.settle("task", f"r{number}", PromiseState.DONE, float(number))

    def lease(store: Store, token: str) -> list[str]:
        leased = store.commit(
            POINT,
            lambda tx: tx.promises.lease("chat", token, token, 50.0, until=80.0, limit=3, due_before=50.0),
        )
        return [record.id for record in leased]

    with ground.open() as store, ground.open() as second:
        store.commit(POINT, write)
        assert lease(store, "first") == ["p0-done-1", "p1-done-1", "p2-done-1"]
        leased = in_threads([partial(lease, each, f"t{n}") for n in range(4) for each in (store, second)])
        ids = [name for names in leased for name in names]  # type: ignore[attr-defined]
        assert sorted(ids) == sorted(f"p{number}-done-1" for number in range(3, 12))
        settle = partial(Settlement, DeliveryState.DELIVERED, receipt="m-1")
        perform = partial(store.commit, POINT)
        assert perform(lambda tx: tx.promises.settle_attempt("p0-done-1", "other", settle(), 60.0)) is False
        assert perform(lambda tx: tx.promises.settle_attempt("p0-done-1", "first", settle(), 60.0)) is True
        assert (
            perform(lambda tx: tx.promises.give_back("p1-done-1", "first", 60.0, due_at=61.0, is_unsent=True)) is True
        )
        assert perform(lambda tx: tx.promises.acknowledge("p2-done-1", 60.0, "by hand")) is True
        assert perform(lambda tx: tx.promises.acknowledge("p2-done-1", 60.0, "by hand")) is False
        assert store.promises.next_due("chat", "first") == 61.0
        assert store.promises.needs_sweep(60.0) is True, "its owners were never enrolled"
        voided = perform(lambda tx: tx.promises.void_leases(90.0, float))
        assert voided == len(ids)
        assert perform(lambda tx: tx.promises.store_unserved(95.0)) == 10
        counts = store.promises.counts()
        assert counts.is_balanced
        assert (counts.delivered, counts.stored) == (2, 10)
        replay = [("p4-done-1", None), ("p4-done-1", "typo"), ("p4-done-1", "chat")]
        assert perform(lambda tx: tx.promises.replay(*replay[0], 95.1)) is False, "through which channel?"
        assert perform(lambda tx: tx.promises.replay(*replay[1], 95.2)) is True
        assert perform(lambda tx: tx.promises.replay(*replay[2], 95.3)) is False, "it is due"
        assert perform(lambda tx: tx.promises.store_unserved(95.4)) == 1
        assert store.promises.counts() == counts
        assert perform(lambda tx: tx.promises.replay(*replay[2], 95.5)) is True
        assert store.promises.next_due("chat", "first") == 95.5
        assert store.promises.counts() == counts
        assert perform(lambda tx: tx.promises.offer("sess", "chat", None, 96.0)) == 9
        assert perform(lambda tx: tx.promises.replay("p0-done-1", None, 97.0)) is True
        expired = perform(lambda tx: tx.promises.expire(1000.0, 100))
        assert sorted(expired) == sorted(f"p{number}" for number in range(12))
        assert store.promises.counts().is_balanced
        assert [incident.kind for incident in store.promises.incidents()].count("expired") == 11


@check("promises")
def sessions_that_are_busy_are_left(ground: StoreGround) -> None:
    """Whoever still sends to some sessions takes what is due for the others, and hears when that is."""

    def write(tx: Transaction) -> None:
        for number, session in enumerate("aabc"):
            promise = _promise(f"p{number}", f"r{number}", float(number))._replace(session=session)
            tx.promises.add(promise)
            tx.promises.settle("task", f"r{number}", PromiseState.DONE, float(number))

    with ground.open() as store:
        store.commit(POINT, write)
        due = partial(store.promises.next_due, "chat", "o")
        assert [due(), due(("a",)), due(("a", "b")), due(("a", "b", "c"))] == [0.0, 2.0, 3.0, None]
        for besides, ids in ((("a", "b"), ["p3-done-1"]), (("b",), ["p0-done-1", "p1-done-1"]), (("b",), [])):
            leased = store.commit(
                POINT,
                lambda tx, besides=besides: tx.promises.lease(  # type: ignore[misc]
                    "chat", "o", "t", 50.0, until=80.0, limit=9, due_before=50.0, besides=besides
                ),
            )
            assert [record.id for record in leased] == ids


@check("promises")
def each_attempt_is_kept(ground: StoreGround) -> None:
    """When, through which channel, and what the receiver answered, also where it never settled; the last of many."""

    def write(tx: Transaction) -> None:
        tx.promises.add(_promise("p", "r"))
        tx.promises.settle("task", "r", PromiseState.DONE, 1.0)

    with ground.open() as store, ground.open() as second:
        perform = partial(store.commit, POINT)

        def lease(now: float, channel: str = "chat") -> None:
            (record,) = perform(
                lambda tx: tx.promises.lease(channel, "o", "t", now, until=now + 1, limit=9, due_before=now)
            )
            assert record.id == "p-done-1"

        def settle(now: float, state: DeliveryState, **more: Any) -> None:
            settlement = Settlement(state, **more)
            assert perform(lambda tx: tx.promises.settle_attempt("p-done-1", "t", settlement, now)) is True

        def attempts() -> list[DeliveryAttempt]:
            (record,) = second.promises.deliveries_of("p")
            return list(record.attempts)

        perform(write)
        assert attempts() == []
        lease(2.0)
        settle(3.0, DeliveryState.DUE, due_at=4.0, problem="503 busy\nline ☃")
        lease(4.0)
        assert perform(lambda tx: tx.promises.void_leases(50.0, lambda _: 0.0)) == 1
        lease(51.0)
        assert perform(lambda tx: tx.promises.give_back("p-done-1", "t", 52.0, due_at=52.0, is_unsent=True)) is True
        lease(53.0)
        settle(54.0, DeliveryState.DEAD, problem="x" * 5000)
        first, lost, dead = attempts()
        assert first == DeliveryAttempt(1, 3.0, "chat", "failed", "503 busy\nline ☃")
        assert (lost.number, lost.at, lost.outcome) == (2, 50.0, "lost")
        assert (dead.number, dead.outcome, dead.words[:2], len(dead.words)) == (3, "failed", "xx", 300)
        assert perform(lambda tx: tx.promises.replay("p-done-1", "mail", 60.0)) is True
        lease(61.0, "mail")
        settle(62.0, DeliveryState.DELIVERED, receipt="m-1")
        assert attempts() == [first, lost, dead, DeliveryAttempt(1, 62.0, "mail", "delivered", "m-1")]
        assert perform(lambda tx: tx.promises.replay("p-done-1", None, 70.0)) is True
        assert [attempt.outcome for attempt in attempts()] == ["failed", "lost", "failed", "delivered"]
        for number in range(30):
            lease(80.0 + number, "mail")
            settle(80.0 + number, DeliveryState.DUE, due_at=80.0 + number, problem=f"no {number}")
        assert [attempt.words for attempt in attempts()] == [f"no {number}" for number in range(10, 30)]
        assert perform(lambda tx: tx.promises.acknowledge("p-done-1", 200.0, "by hand")) is True
        assert attempts()[-1] == DeliveryAttempt(30, 200.0, "mail", "acknowledged", "by hand")
