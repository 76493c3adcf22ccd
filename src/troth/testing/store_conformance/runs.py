"""Runs: written once, listed, ended and taken up again."""

from operator import methodcaller
from typing import Any

from troth.runtime.store import (
    Happened,
    RunState,
    Transaction,
)
from troth.testing.store_conformance.check import POINT, StoreGround, check

__all__: list[str] = []


@check("runs")
def a_run_is_written_once(ground: StoreGround) -> None:
    """A second one of the same id leaves it as it is; what is read is what was written."""
    with ground.open() as store:
        add = methodcaller("add_run", "r", "d", '[1,"a"]', 2.5, label="l", code="c")
        assert store.commit(POINT, add) is True
        assert store.commit(POINT, lambda tx: tx.add_run("r", "other", "[]", 9.0)) is False
        run = store.run("r")
        assert run is not None
        assert (run.decision, run.args, run.label, run.code, run.created_at) == ("d", (1, "a"), "l", "c", 2.5)
        assert run.state is RunState.INTERRUPTED, "nobody holds it"
        store.commit(POINT, lambda tx: tx.set_run_state("r", RunState.WAITING, 3.0, waiting_for="it", wake_at=9.0))
        run = store.run("r")
        assert run is not None
        assert (run.state, run.waiting_for, run.wake_at) == (RunState.WAITING, "it", 9.0)
        assert store.run("none") is None


@check("runs")
def a_run_ends_and_is_taken_up_again(ground: StoreGround) -> None:
    """Only from the end that somebody has looked at."""
    with ground.open() as store:
        store.commit(POINT, lambda tx: tx.add_run("r", "d", "[]", 1.0))
        assert store.commit(POINT, lambda tx: tx.request_cancel("r", 2.0)) is True
        assert store.cancelling() == ["r"]
        store.commit(POINT, lambda tx: tx.finish_run("r", RunState.FAILED, 3.0, error='{"type":"E"}', ending="gone"))
        run = store.run("r")
        assert run is not None
        assert (run.state, run.error, run.ending) == (RunState.FAILED, {"type": "E"}, "gone")
        assert store.commit(POINT, lambda tx: tx.ending_of("r")) == (RunState.FAILED, None, '{"type":"E"}')
        assert store.commit(POINT, lambda tx: tx.request_cancel("r", 4.0)) is False
        assert store.commit(POINT, lambda tx: tx.reopen_run("r", 5.0, ended_at=2.9)) is False
        assert store.commit(POINT, lambda tx: tx.reopen_run("r", 5.0, ended_at=3.0)) is True
        assert store.commit(POINT, lambda tx: tx.reopen_run("r", 5.0, ended_at=3.0)) is False
        assert store.commit(POINT, lambda tx: tx.state_of("r")) is RunState.RUNNING
        assert store.cancelling() == []
        assert [entry.what for entry in store.history("r")] == [
            Happened.RUN_BEGUN,
            Happened.RUN_ENDED,
            Happened.RUN_RESUMED,
        ]


@check("runs")
def runs_are_listed_newest_first(ground: StoreGround) -> None:
    """By state, decision, label, parent, family and word, page by page."""

    def write(tx: Transaction) -> None:
        for number in range(7):
            family = "flow" if number % 2 else "talk"
            tx.add_run(f"r{number}", f"{family}:{number % 3}", "[]", float(number // 2), label=f"l{number % 2}")
        tx.finish_run("r1", RunState.COMPLETED, 9.0, result="1")
        tx.finish_run("r3", RunState.FAILED, 9.0, error="{}", ending="rolled back")

    def ids(**wanted: Any) -> list[str]:
        return [run.id for run in store.runs(**wanted)]

    with ground.open() as store:
        store.commit(POINT, write)
        everything = ["r6", "r5", "r4", "r3", "r2", "r1", "r0"]
        assert ids() == everything
        assert ids(states=[RunState.INTERRUPTED]) == ["r6", "r5", "r4", "r2", "r0"]
        assert ids(states=[RunState.RUNNING]) == []
        assert ids(states=[RunState.COMPLETED, RunState.FAILED]) == ["r3", "r1"]
        assert ids(label="l1", limit=2) == ["r5", "r3"]
        assert ids(decision="flow:0") == ["r3"]
        assert ids(family="flow:") == ["r5", "r3", "r1"]
        assert ids(family="flow:", word="rolled back") == ["r3"]
        assert ids(family="flow:", word="interrupted") == ["r5"]
        assert ids(family="flow:", word="running") == []
        paged: list[str] = []
        before: tuple[float, str] | None = None
        while page := store.runs(before=before, limit=3):
            paged += [run.id for run in page]
            before = page[-1].created_at, page[-1].id
        assert paged == everything
