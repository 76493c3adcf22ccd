"""Leases: who owns what, and who is refused."""

import threading
from contextlib import ExitStack
from functools import partial

from troth.runtime.store import (
    LeaseLostError,
    RunState,
    Store,
    Transaction,
)
from troth.runtime.store.identity import retire
from troth.runtime.store.records import Place
from troth.testing.store_conformance.check import (
    PATIENCE,
    POINT,
    StoreGround,
    append,
    begin,
    check,
    claimed,
    enrolled,
    in_threads,
    said,
    started,
    until,
)

__all__: list[str] = []


_HOLDER = """
    from troth.runtime.store import commit_point
    from troth.runtime.store.identity import new_owner
    POINT = commit_point("test.conformance", "whatever a check of a store writes")
    store = open_store()
    owner = new_owner(store.clock())
    def hold(tx):
        tx.enroll(owner)
        tx.add_run("r", "d", "[]", store.clock())
        return tx.claim("run:r", owner.id, "theirs", store.clock())
    assert store.commit(POINT, hold) is None
    print("held", flush=True)
    sys.stdin.readline()
"""


@check("leases")
def one_of_many_claims_wins(ground: StoreGround) -> None:
    """All others are told who lives."""
    with ground.open() as first, ground.open() as second, ExitStack() as stack:
        owners = [(store, stack.enter_context(enrolled(store))) for store in (first, second) for _ in range(4)]
        first.commit(POINT, lambda tx: tx.add_run("r", "d", "[]", 1.0))
        claims = [partial(store.commit, POINT, claimed(store, owner, owner.id)) for store, owner in owners]
        answers = in_threads(claims)
        winners = [owner for (_, owner), answer in zip(owners, answers, strict=True) if answer is None]
        assert len(winners) == 1
        holder = second.holder("run:r")
        assert holder is not None
        assert holder.id == winners[0].id
        assert second.is_alive(holder)
        assert all(answer is None or answer.id == holder.id for answer in answers)  # type: ignore[attr-defined]
        run = second.run("r")
        assert run is not None
        assert run.state is RunState.RUNNING
        assert second.orphans(["d"]) == []
        assert [found.id for found in second.runs(states=[RunState.RUNNING])] == ["r"]


@check("leases")
def a_dead_process_leaves_its_run_to_others(ground: StoreGround) -> None:
    """It is seen to be dead, its run is interrupted, and whoever claims it has it."""
    with ground.open() as store, enrolled(store) as me, started(ground, _HOLDER) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        theirs = store.commit(POINT, claimed(store, me, "mine"))
        assert theirs is not None
        assert theirs.pid == process.pid
        process.kill()
        process.wait()

        def is_orphan() -> bool:
            return store.orphans(["d", "other"]) == [("r", "d")]

        until(is_orphan, "the death of the owner")
        run = store.run("r")
        assert run is not None
        assert run.state is RunState.INTERRUPTED
        assert store.unheld("d") == ["r"]
        assert store.unheld("e") == []
        assert (store.open_decisions("d"), store.open_decisions("e")) == (["d"], [])
        assert store.commit(POINT, claimed(store, me, "mine")) is None
        assert store.orphans(["d"]) == []


@check("leases")
def nothing_is_written_under_a_lost_lease(ground: StoreGround) -> None:
    """Whoever was taken for dead is refused, with all that the commit would have written."""

    def late(tx: Transaction) -> None:
        tx.append_event("s", "said", "late", 1.0)
        tx.hold("run:r", "theirs")

    def late_run(tx: Transaction) -> None:
        tx.append_event("s", "said", "late", 1.0)
        tx.hold_run("r", "run:r", "theirs")

    with ground.open() as store, enrolled(store) as them, enrolled(store) as me:
        assert store.commit(POINT, claimed(store, them, "theirs")) is None
        store.commit(POINT, lambda tx: tx.hold("run:r", "theirs"))
        assert store.commit(POINT, lambda tx: tx.hold_run("r", "run:r", "theirs")) is False
        retire(them)
        store.commit(POINT, lambda tx: tx.retire(them.id))
        assert store.holder("run:r") is None
        assert store.commit(POINT, claimed(store, me, "mine")) is None
        for work in (late, late_run):
            try:
                store.commit(POINT, work)
            except LeaseLostError:
                continue
            raise AssertionError("a commit was kept under a lease that was lost")
        assert said(store) == []
        store.commit(POINT, lambda tx: tx.release("run:r", "theirs"))
        assert store.holder("run:r") is not None, "a lease is given back by its holder alone"
        store.commit(POINT, lambda tx: tx.release("run:r", "mine"))
        assert store.holder("run:r") is None


@check("leases")
def a_renewed_lease_refuses_its_old_token(ground: StoreGround) -> None:
    """By its owner alone, also from another process that writes in turn; numbers go on without a gap."""
    with ground.open() as first, ground.open() as second, enrolled(first) as me, enrolled(second) as them:
        assert first.commit(POINT, claimed(first, me, "1")) is None
        stores = [first, second, first, second]
        for number, store in enumerate(stores, start=1):

            def write(tx: Transaction, number: int = number, store: Store = store) -> bool:
                assert tx.hold_run("r", "run:r", str(number)) is False
                is_renewed = tx.renew("run:r", me.id, str(number + 1), store.clock())
                begin(tx, Place("r", "", number), "step", store.clock())
                return is_renewed

            assert store.commit(POINT, write) is True
        assert second.commit(POINT, lambda tx: tx.renew("run:r", them.id, "9", 1.0)) is False
        try:
            first.commit(POINT, lambda tx: tx.hold("run:r", "1"))
        except LeaseLostError:
            pass
        else:
            raise AssertionError("an old token is still worth something")
        assert [entry.seq for entry in first.history("r")] == [1, 2, 3, 4, 5]
        assert [step.place.seq for step in second.steps("r")] == [1, 2, 3, 4]


@check("leases")
def a_claim_waits_for_a_commit_in_progress(ground: StoreGround) -> None:
    """A commit that has proved its lease is kept before somebody else has the lease, or not at all."""
    with ground.open() as first, ground.open() as second, enrolled(first) as them, enrolled(second) as me:
        assert first.commit(POINT, claimed(first, them, "theirs")) is None
        inside, go_on = threading.Event(), threading.Event()

        def slow(tx: Transaction) -> None:
            tx.hold("run:r", "theirs")
            tx.append_event("s", "said", "in time", 1.0)
            inside.set()
            go_on.wait(0.5)  # nobody sets it: long enough for the claim to come and wait

        def take_over() -> None:
            assert inside.wait(PATIENCE)
            second.commit(POINT, lambda tx: tx.retire(them.id))
            second.commit(POINT, lambda tx: tx.claim("run:r", me.id, "mine", second.clock()))
            second.commit(POINT, append("after"))

        retire(them)
        claimer = threading.Thread(target=take_over)
        claimer.start()
        first.commit(POINT, slow)
        claimer.join(PATIENCE)
        assert said(second) == ["in time", "after"]
