"""What happened in a run, and what its steps are."""

from troth.runtime.store import (
    Happened,
    LeaseLostError,
    StepState,
    Transaction,
)
from troth.runtime.store.records import BegunStep, Place
from troth.testing.store_conformance.check import POINT, STEP, StoreGround, begin, check, claimed, enrolled

__all__: list[str] = []


@check("history")
def a_step_is_what_its_entries_say(ground: StoreGround) -> None:
    """Begun, tried again, settled; what is not shown has no number of its own."""
    place, branch = Place("r", "", 1), Place("r", "2.0/", 1)

    def write(tx: Transaction) -> None:
        tx.add_run("r", "d", "[]", 1.0)
        begin(tx, place, "one", 2.0, color="sync", code="c1")
        tx.add_attempt(
            place, name="one", number=1, outcome="failed", error='{"m":1}', started_at=2.0, now=3.0, next_at=4.0
        )
        tx.begin_attempt(place, 2, 4.0, name="one", code="c2")
        tx.settle_step(place, StepState.DONE, 5.0, kind="step", name="one", attempt=2, result='{"a":[1]}')
        tx.begin_step(
            branch, kind="wait", name="s", key="k", args="[]", now=6.0, state=StepState.WAITING, wake_at=9.0, note="[1]"
        )
        tx.tell_code_changed(place, 7.0, name="one", before="c1", code="c2")
        tx.tell_callback_failed("r", 8.0, name="listener", error='{"type":"E"}')

    with ground.open() as store:
        store.commit(POINT, write)
        first, last = store.steps("r")
        assert (first.place, first.state, first.result, first.attempt, first.code) == (
            place,
            StepState.DONE,
            {"a": [1]},
            2,
            "c2",
        )
        assert [(attempt.number, attempt.outcome, attempt.error) for attempt in first.attempts] == [
            (1, "failed", {"m": 1})
        ]
        assert (last.place, last.state, last.wake_at) == (branch, StepState.WAITING, 9.0)
        entries = store.history("r")
        assert [entry.seq for entry in entries] == list(range(1, 8))
        assert store.last_entry("r") == 7
        assert Happened.AGAIN not in [entry.what for entry in entries]
        assert [entry.seq for entry in store.history("r", after=2, limit=2)] == [3, 4]
        store.commit(POINT, lambda tx: tx.take_back_step(first, 9.0))
        recorded = store.recorded("r")
        assert ([step.place for step in recorded.steps], recorded.taken_back[0].result) == ([branch], {"a": [1]})


@check("history")
def a_fork_has_the_steps_before_it(ground: StoreGround) -> None:
    """With their branches, numbered behind what the new run has, and the name of the run that did them."""

    def write(tx: Transaction) -> int:
        tx.add_run("r", "d", "[]", 1.0)
        for place in (
            Place("r", "", 1),
            Place("r", "", 2),
            Place("r", "2.0/", 1),
            Place("r", "2.1/", 1),
            Place("r", "", 3),
        ):
            begin(tx, place, f"at {place}", 2.0, is_shown=place.seq != 2)
            tx.settle_step(place, StepState.DONE, 3.0, kind="step", name=f"at {place}", result="1")
        tx.add_run("f", "d", "[]", 4.0)
        return tx.copy_steps("r", "f", 3)

    with ground.open() as store:
        assert store.commit(POINT, write) == 4
        assert [str(step.place) for step in store.steps("f")] == ["1", "2", "2.0/1", "2.1/1"]
        assert {entry.done_by for entry in store.history("f")[1:]} == {"r"}
        store.commit(POINT, lambda tx: begin(tx, Place("f", "", 3), "next", 5.0))
        assert [entry.seq for entry in store.history("f")] == list(range(1, store.last_entry("f") + 1))


@check("history")
def a_held_step_is_begun_by_its_owner_alone(ground: StoreGround) -> None:
    """In one statement with the proof of the lease; a cancellation is told with it."""
    intent = BegunStep("one", "k", "[]", "sync", "c", 2.0)
    with ground.open() as store, enrolled(store) as owner:
        assert store.commit(POINT, claimed(store, owner, "mine")) is None

        def begin(seq: int, token: str, step: BegunStep = intent) -> bool:
            return store.commit(STEP, lambda tx: tx.begin_held_step(Place("r", "", seq), "run:r", token, step))

        assert begin(1, "mine") is False
        store.commit(POINT, lambda tx: tx.request_cancel("r", 3.0))
        assert begin(2, "mine") is True
        assert begin(3, "mine", intent._replace(is_shown=False)) is True
        try:
            begin(4, "theirs")
        except LeaseLostError:
            pass
        else:
            raise AssertionError("a step was begun without the lease")
        assert [step.place.seq for step in store.steps("r")] == [1, 2, 3]
