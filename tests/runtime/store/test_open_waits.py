"""What runs wait for is told out of their histories: by whichever branch, and until somebody has sent it."""

import json

import pytest

from troth.runtime.store import RunState, changes_topic, commit_point, open_store
from troth.runtime.store.records import Place, StepState

POINT = commit_point("test.open waits", "whatever a test writes")
RUN = "run-1"


@pytest.fixture(params=["sqlite", "postgres"])
def store(request, tmp_path):
    address = (
        tmp_path / "store.db" if request.param == "sqlite" else request.getfixturevalue("postgres_server").address()
    )
    with open_store(address) as store:
        store.commit(POINT, lambda tx: tx.add_run(RUN, "workflow:w@x", "[]", 1.0, label="w"))
        yield store


def wait(tx, branch, name, now=2.0, **more):
    note = json.dumps({"place": name, "question": f"{name}?"})
    tx.begin_step(
        Place(RUN, branch, 1),
        kind="wait",
        name=name,
        key="k",
        args="",
        now=now,
        state=StepState.WAITING,
        note=note,
        **more,
    )


def settle(tx, branch, name):
    tx.settle_step(Place(RUN, branch, 1), StepState.DONE, 9.0, kind="wait", name=name, result="null")


def open_waits(store, *runs):
    return store.lists.open_waits(runs or [RUN], signal="approve ")


def test_every_branch_that_waits(store):
    """Not only what the run's own row names, and nothing that has another name; the oldest first."""

    def ask(tx):
        wait(tx, "1.0/", "approve b", now=3.0, wake_at=50.0)
        wait(tx, "1.1/", "approve a", now=2.0)
        wait(tx, "1.2/", "approved", now=2.0)
        wait(tx, "1.3/", "let go c", now=2.0)
        tx.set_run_state(RUN, RunState.WAITING, 3.0, waiting_for="its other branches")

    store.commit(POINT, ask)
    waits = open_waits(store)[RUN]
    assert [(item.signal, item.at, item.until) for item in waits] == [
        ("approve a", 2.0, None),
        ("approve b", 3.0, 50.0),
    ]
    assert json.loads(waits[0].note)["question"] == "approve a?"


def test_also_while_the_run_is_at_work(store):
    """One branch asks, another one works: the run's state says nothing of the question."""
    store.commit(POINT, lambda tx: wait(tx, "1.0/", "approve a"))
    assert store.run(RUN).state is not RunState.WAITING
    assert list(open_waits(store)) == [RUN]


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(lambda tx: tx.send_signal(RUN, "approve a", "{}", 8.0), id="sent, and nobody has taken notice"),
        pytest.param(lambda tx: settle(tx, "1.0/", "approve a"), id="settled"),
    ],
)
def test_what_is_answered_is_open_no_more(store, end):
    """Of two branches that ask the same, the other one still does."""
    store.commit(POINT, lambda tx: wait(tx, "1.0/", "approve a"))
    store.commit(POINT, end)
    assert open_waits(store) == {}
    store.commit(POINT, lambda tx: wait(tx, "1.1/", "approve a", now=10.0))
    assert len(open_waits(store)[RUN]) == 1


def test_what_is_asked_anew_is_open_again(store):
    """Its answer was taken back when the run was resumed."""
    store.commit(POINT, lambda tx: wait(tx, "1.0/", "approve a"))
    store.commit(POINT, lambda tx: settle(tx, "1.0/", "approve a"))
    (step,) = store.steps(RUN)
    store.commit(POINT, lambda tx: tx.take_back_step(step, 10.0))
    assert open_waits(store) == {}
    store.commit(POINT, lambda tx: wait(tx, "1.0/", "approve a", now=11.0))
    assert [item.at for item in open_waits(store)[RUN]] == [11.0]


def test_more_runs_than_one_statement_asks_for(store):
    """Each with its own waits; those that wait for nothing are left out."""
    names = [f"r{number}" for number in range(450)]

    def begin(tx):
        for name in names:
            tx.add_run(name, "workflow:w@x", "[]", 1.0, label="w")
            if name.endswith("7"):
                place = Place(name, "", 1)
                tx.begin_step(place, kind="wait", name="approve a", key="k", args="", now=1.0, state=StepState.WAITING)

    store.commit(POINT, begin)
    waits = open_waits(store, *names)
    assert sorted(waits) == sorted(name for name in names if name.endswith("7"))
    assert all(item.run == name and item.note is None for name, items in waits.items() for item in items)
    assert open_waits(store, "no such run") == {}


def test_whoever_follows_everything_hears_of_it(store):
    """A question of one branch is no change of the run's state, and is told all the same."""

    def topics_of(work):
        seen = set()

        def look(tx):
            work(tx)
            seen.update(tx.topics)

        store.commit(POINT, look)
        return seen

    assert changes_topic in topics_of(lambda tx: wait(tx, "1.0/", "approve a"))
    assert changes_topic in topics_of(lambda tx: tx.send_signal(RUN, "approve a", "{}", 8.0))
    assert changes_topic in topics_of(lambda tx: settle(tx, "1.0/", "approve a"))
