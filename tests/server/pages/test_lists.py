"""What the lists of pages are made of: what a filter takes is found on later pages of the store, and nothing twice."""

import pytest

from troth.runtime import Runtime
from troth.runtime.store import RunState, commit_point
from troth.runtime.store.promise_records import NewPromise
from troth.server.pages.lists.queries import (
    ListFilter,
    counts_of_runs,
    failures_since,
    find_conversations,
    find_promises,
    find_runs,
    find_sessions,
    search,
)

POINT = commit_point("test.pages.lists", "whatever a test writes")
COUNT = 300


def fill(tx):
    """Runs that end in all ways, each promised; as many conversations. Every hundredth is about apples."""
    for number in range(COUNT):
        run_id, now = f"r{number:06}", 1000.0 + number
        about = "apples" if number % 100 == 0 else "pears"
        tx.add_run(run_id, "workflow:shop@x", "[]", now, label="shop")
        tx.promises.add(NewPromise(run_id, "s", "run", run_id, about, None, None, None, now))
        if number % 3 == 0:
            # the later ones were begun later, and are over sooner
            error = '{"type":"E","message":"m"}'
            tx.finish_run(run_id, RunState.FAILED, 5000.0 - number, error=error, ending=ENDINGS[number // 3 % 3])
        elif number % 3 == 1:
            tx.finish_run(run_id, RunState.COMPLETED, now + 1, result="1")
        tx.append_event(f"conversation/c-{about}-{number:06}", "opened", {"agent": "A"}, now)


ENDINGS = ("failed", "rolled back", "rollback incomplete")


@pytest.fixture(scope="module")
def runtime(tmp_path_factory):
    with Runtime(tmp_path_factory.mktemp("lists") / "runs.db", recover=False, in_process=False) as runtime:
        runtime.store.commit(POINT, fill)
        yield runtime


def every_page(find, limit):
    """All that a list has, page by page; no page is empty while there is another one."""
    items, cursor = [], ""
    while cursor is not None:
        page = find(cursor, limit)
        items += page.items
        cursor = page.next
        assert page.items or cursor is None
    return [item.id for item in items]


@pytest.mark.parametrize("limit", [1, 2, 3, 50])
@pytest.mark.parametrize(
    ("find", "ids"),
    [
        pytest.param(find_conversations, [f"c-apples-{number:06}" for number in (200, 100, 0)], id="conversations"),
        pytest.param(find_promises, [f"r{number:06}" for number in (200, 100, 0)], id="promises"),
        pytest.param(find_sessions, [], id="sessions"),
    ],
)
def test_a_text_is_found_wherever_it_is(runtime, find, ids, limit):
    """The store cannot look for it, so its pages are looked through: each hit once, in order, whatever the size."""
    wanted = ListFilter(text="Apples")
    assert every_page(lambda cursor, size: find(runtime, wanted, cursor, size, None), limit) == ids


def test_promises_by_their_work(runtime):
    """Runs and jobs are told apart by the store."""
    assert (
        len(every_page(lambda cursor, size: find_promises(runtime, ListFilter(work="run"), cursor, size, None), 77))
        == COUNT
    )
    assert find_promises(runtime, ListFilter(work="job"), "", 50, None).items == []


@pytest.mark.parametrize("moment", [4000.0, 4900.0, 4950.0, 4999.5, 6000.0])
def test_failures_since_a_moment(runtime, moment):
    """By when they ended, not by when they began: every one that ended badly, the last one first."""
    expected = [number for number in range(0, COUNT, 3) if 5000.0 - number > moment]
    assert [run.id for run in failures_since(runtime, moment, None)] == [f"r{number:06}" for number in expected]


def test_runs_of_a_governed_session(tmp_path):
    """An admin sees those of every session, an owner those of their own: in the list, in its filters and in searches."""

    def write(tx):
        for number, owner in enumerate(("ann", "ben")):
            tx.server.claim("session", f"of-{owner}", owner, 1.0)
            for of_workflow, decision in ((True, "session workflow:shop@x"), (False, "session act look")):
                run_id = f"{owner}-{'run' if of_workflow else 'act'}"
                tx.add_run(run_id, decision, "[]", 2.0 + number, label="shop" if of_workflow else None)
                tx.sessions.add_work(run_id, f"of-{owner}", "a", "run" if of_workflow else "act", "shop", 2.0)
                tx.finish_run(run_id, RunState.FAILED, 5.0 + number, error='{"type":"E","message":"m"}')

    with Runtime(tmp_path / "runs.db", recover=False, in_process=False) as runtime:
        runtime.store.commit(POINT, write)
        for owner, ids in ((None, ["ben-run", "ann-run"]), ("ann", ["ann-run"]), ("eve", [])):
            for filters in (ListFilter(), ListFilter(("failed",)), ListFilter(workflow="shop"), ListFilter(text="RUN")):
                page = find_runs(runtime, filters, "", 50, owner)
                assert [(run.id, run.session, run.agent) for run in page] == [
                    (run_id, f"of-{run_id[:3]}", "a") for run_id in ids
                ]
            assert [run.id for run in failures_since(runtime, 4.0, owner)] == ids
            assert sum(counts_of_runs(runtime, owner).values()) == len(ids)
            assert [hit.id for hit in search(runtime, "-run", owner, "", 50)[0] if hit.kind == "run"] == ids
            of_ann = find_runs(runtime, ListFilter(session="of-ann"), "", 50, owner)
            assert [run.id for run in of_ann] == [run_id for run_id in ids if run_id == "ann-run"]


def test_an_owner_who_began_nothing_sees_nothing(runtime):
    """Whatever the filter."""
    for find in (find_conversations, find_promises, find_sessions, find_runs):
        assert list(find(runtime, ListFilter(), "", 50, "somebody else").items) == []
