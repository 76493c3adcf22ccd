"""An ordinary step is one statement: what it is, what it refuses, and what becomes of it when the answer is lost."""

import asyncio
import threading
import time

import psycopg
import pytest
from tests.runtime.store.postgres.proxy import Proxy

from troth.errors import MisuseError
from troth.runtime.engine.commit_points import STEP_BEGIN
from troth.runtime.store import LeaseLostError, StoreError, commit_point, open_store
from troth.runtime.store.identity import new_owner
from troth.runtime.store.large_values import LARGE
from troth.runtime.store.postgres import statements
from troth.runtime.store.postgres.address import parse
from troth.runtime.store.postgres.commits.ordinary_steps import encode, ordinary_step
from troth.runtime.store.records import BegunStep, Place, StepState
from troth.testing import failpoints

POINT = commit_point("test.ordinary", "whatever a test writes")


def begun(name="next", **changes):
    return BegunStep(name, "key", "[1]", "sync", "c0de", 5.0)._replace(**changes)


def settle(tx, run_id="r", number=1, **changes):
    values = {"kind": "step", "name": "first", "result": "1", **changes}
    tx.settle_step(Place(run_id, "", number), StepState.DONE, 4.0, **values)


def step(run_id="r", number=1, token="t"):
    """The work of an ordinary commit."""

    def work(tx):
        settle(tx, run_id, number)
        return tx.begin_held_step(Place(run_id, "", number + 1), f"run:{run_id}", token, begun(f"step {number + 1}"))

    return work


def begin(tx, **changes):
    return tx.begin_held_step(Place("r", "", 2), "run:r", "t", begun(**changes))


def settle_and_begin(tx, *, begins=None, **changes):
    settle(tx, **changes)
    return begin(tx, **(begins or {}))


def begin_then_ask(tx):
    return bool(begin(tx))


def begin_then_compare(tx):
    return begin(tx) == 1


def begin_then_write(tx):
    answer = begin(tx)
    tx.append_event("s", "said", "more", 1.0)
    return answer


def begin_and_answer_something_else(tx):
    begin(tx)


def begin_twice(tx):
    begin(tx)
    return begin(tx)


def settle_twice(tx):
    settle(tx)
    return settle_and_begin(tx)


def raising(tx):
    begin(tx)
    raise ValueError("of the work's own")


@pytest.mark.parametrize("work", [begin, settle_and_begin], ids=lambda work: work.__name__)
def test_what_is_ordinary(work):
    """The answer of a step, perhaps, and the intent of the next."""
    assert ordinary_step(work).run_id == "r"


@pytest.mark.parametrize(
    "work",
    [
        begin_then_ask,
        begin_then_compare,
        begin_then_write,
        begin_and_answer_something_else,
        begin_twice,
        settle_twice,
        settle,
        raising,
        lambda tx: tx.hold_run("r", "run:r", "t"),
        lambda tx: settle_and_begin(tx, run_id="another"),
        lambda tx: settle_and_begin(tx, attempt=2),
        lambda tx: settle_and_begin(tx, kind="wait"),
        lambda tx: settle_and_begin(tx, is_shown=False),
        lambda tx: settle_and_begin(tx, result="x" * (LARGE + 1)),
        lambda tx: settle_and_begin(tx, begins={"is_shown": False}),
        lambda tx: settle_and_begin(tx, begins={"args": "x" * (LARGE + 1)}),
    ],
)
def test_what_is_not(work):
    """Whatever does more, looks at the answer, or is large: it is committed the long way."""
    assert ordinary_step(work) is None


@pytest.fixture
def address(postgres_server):
    return postgres_server.address()


def until(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def add_run(store, run_id="r", token="t"):
    """A run with a first step, and its lease."""

    def work(tx):
        owner = new_owner(store.clock())
        tx.enroll(owner)
        tx.add_run(run_id, "decision", "[]", 1.0)
        assert tx.claim(f"run:{run_id}", owner.id, token, store.clock()) is None
        tx.begin_step(Place(run_id, "", 1), kind="step", name="first", key="k", args="[]", now=2.0)

    store.commit(POINT, work)


def names(store, run_id="r"):
    return [(entry.seq, str(entry.what), entry.name) for entry in store.history(run_id)]


ONCE = [(1, "run begun", None), (2, "begun", "first"), (3, "done", "first"), (4, "begun", "step 2")]


def count_statements(store):
    """The statements that the store's connection for commits sends from here on."""
    link, sent = store._writer._open(), []

    def count(execute):
        def counting(statement, values=()):
            sent.append(statement)
            return execute(statement, values)

        return counting

    link.execute, link._prepared.execute = count(link.execute), count(link._prepared.execute)
    return sent


def test_one_round_trip(address):
    """For a step, and for steps of many runs that are committed at the same time."""
    with open_store(address) as store:
        for run_id in ("r", "a", "b", "c"):
            add_run(store, run_id)
        store.commit(STEP_BEGIN, step())
        sent = count_statements(store)
        assert store.commit(STEP_BEGIN, step(number=2)) is False
        assert len(sent) == 1

        async def together():
            return await asyncio.gather(*(store.acommit(STEP_BEGIN, step(run_id)) for run_id in "abc"))

        assert asyncio.run(together()) == [False] * 3
        assert len(sent) == 2
        assert names(store)[:4] == ONCE
        assert all(names(store, run_id) == ONCE for run_id in "abc")


def test_what_is_written_is_what_the_long_way_writes(address):
    """Every column, with a step before or without."""
    works = [begin, settle_and_begin, lambda tx: settle_and_begin(tx, result=None, error='{"message": "\\u0000 ä"}')]
    columns = (
        "seq, sub, what, at, branch, step, name, data, kind, key, args, color, code, attempt, outcome, note, done_by"
    )
    with open_store(address) as store, psycopg.connect(parse(address).conninfo, autocommit=True) as connection:
        table, rows = f"{parse(address).schema}.history", []
        for number, work in enumerate(works):
            for point in (POINT, STEP_BEGIN):
                run_id = f"r{number}{point.name}"
                add_run(store, run_id)

                def renamed(tx, work=work, run_id=run_id):
                    return work(_Renamed(tx, run_id))

                store.commit(point, renamed)
                written = f"SELECT {columns} FROM {table} WHERE run_id = %s ORDER BY seq, sub"
                rows.append(connection.execute(written, (run_id,)).fetchall())
        assert rows[0::2] == rows[1::2]
        assert [len(entries) for entries in rows[1::2]] == [3, 4, 4]


class _Renamed:
    """A transaction for a run of another id."""

    def __init__(self, tx, run_id):
        self._tx, self._run_id = tx, run_id

    def settle_step(self, place, *args, **options):
        return self._tx.settle_step(place._replace(run_id=self._run_id), *args, **options)

    def begin_held_step(self, place, _, token, step):
        return self._tx.begin_held_step(place._replace(run_id=self._run_id), f"run:{self._run_id}", token, step)


def test_a_lease_that_is_lost_refuses_its_own_step_alone(address):
    """The others in the statement are kept."""
    with open_store(address) as store:
        for run_id in "abc":
            add_run(store, run_id, token="mine" if run_id == "b" else "t")

        async def together():
            return await asyncio.gather(
                *(store.acommit(STEP_BEGIN, step(run_id)) for run_id in "abc"), return_exceptions=True
            )

        first, second, third = asyncio.run(together())
        assert (first, third) == (False, False)
        assert isinstance(second, LeaseLostError)
        assert names(store, "b") == ONCE[:2]
        assert names(store, "c") == ONCE


def test_steps_of_one_run_keep_their_order(address):
    """Two branches of a run whose commits come together: numbers without gaps, one after the other."""
    with open_store(address) as store:
        add_run(store)

        async def together():
            return await asyncio.gather(*(store.acommit(STEP_BEGIN, step(number=number)) for number in (1, 2, 3)))

        assert asyncio.run(together()) == [False] * 3
        assert [seq for seq, *_ in names(store)] == list(range(1, 9))
        assert [name for _, what, name in names(store) if what == "begun"] == ["first", "step 2", "step 3", "step 4"]


def test_a_cancellation_is_told(address):
    """With the answer of the statement."""
    with open_store(address) as store:
        add_run(store)
        store.commit(POINT, lambda tx: tx.request_cancel("r", 3.0))
        assert store.commit(STEP_BEGIN, step()) is True


@pytest.mark.parametrize("how", ["before", "after"])
def test_the_answer_is_lost(postgres_server, how):
    """Whether it was kept is found out before anything is said, and it is kept once in either case."""
    proxy = Proxy(postgres_server)
    schema = parse(postgres_server.address()).schema
    through = f"postgresql://troth@127.0.0.1:{proxy.port}/postgres?sslmode=disable&gssencmode=disable&schema={schema}"
    try:
        with open_store(through) as store:
            for run_id in ("r", "a"):
                add_run(store, run_id)
            store.commit(STEP_BEGIN, step("a"))  # so that the connection has its row
            with failpoints.armed(STEP_BEGIN.written, lambda _: proxy.cut(how)):
                assert store.commit(STEP_BEGIN, step()) is False
            assert names(store) == ONCE
            assert store.commit(STEP_BEGIN, step(number=2)) is False
    finally:
        proxy.close()


@pytest.mark.parametrize("how", ["before", "after"])
def test_the_answer_of_a_step_alone_is_lost(postgres_server, how):
    """The same where nobody else commits, and no failpoint is armed: such a step goes without a queue."""
    proxy = Proxy(postgres_server)
    schema = parse(postgres_server.address()).schema
    through = f"postgresql://troth@127.0.0.1:{proxy.port}/postgres?sslmode=disable&gssencmode=disable&schema={schema}"
    works = []

    def cutting(tx):
        if not works:
            proxy.cut(how)
        works.append(type(tx).__name__)
        return step()(tx)

    try:
        with open_store(through) as store:
            add_run(store)
            link = store._writer._open()
            assert store.commit(STEP_BEGIN, cutting) is False
            assert works[0] == "_Recorder"
            assert store._writer._open() is not link
            assert names(store) == ONCE
            assert store.commit(STEP_BEGIN, step(number=2)) is False
    finally:
        proxy.close()


def test_a_step_alone_that_has_lost_its_lease(address):
    """Refused by its own statement, and the next one of the lease's holder is kept."""
    with open_store(address) as store:
        add_run(store)
        store.commit(STEP_BEGIN, step())
        sent = count_statements(store)
        with pytest.raises(LeaseLostError, match="owned by another process"):
            store.commit(STEP_BEGIN, step(number=2, token="another"))
        assert len(sent) == 1
        assert names(store) == ONCE
        assert store.commit(STEP_BEGIN, step(number=2)) is False


def test_a_commit_inside_a_step_alone_is_refused(address):
    """It would wait for itself."""
    with open_store(address) as store:
        add_run(store)
        store.commit(STEP_BEGIN, step())
        refused = []

        def nested(tx):
            try:
                store.commit(STEP_BEGIN, step(number=2))
            except MisuseError as error:
                refused.append(str(error))
            return step(number=2)(tx)

        assert store.commit(STEP_BEGIN, nested) is False
        assert "inside another one of the same thread" in refused[0]


def test_a_statement_that_was_called_off_writes_nothing(address):
    """It may still stand in a buffer when the question is asked what became of it."""
    with open_store(address) as store:
        add_run(store)
        link = store._writer._open()
        with store._connect_link().connection as asking:
            asking.execute("DELETE FROM writers WHERE id = %s", (link.id,))
        statement = ordinary_step(step())
        values = ("statement 1", link.id, None, encode([statement]))
        assert link.execute(statements.ORDINARY_STEPS, values).fetchall() == []
        assert names(store) == ONCE[:2]
        assert store.commit(STEP_BEGIN, step()) is False, "the row of a connection that was idle for long is made anew"
        assert names(store) == ONCE


def test_calling_off_waits_for_a_statement_under_way(address):
    """It holds the row that is to be deleted until it is decided."""
    with open_store(address) as store:
        add_run(store)
        store.commit(STEP_BEGIN, step())
        link, other = store._writer._open(), store._connect_link()
        blocker = psycopg.connect(parse(address).conninfo)
        blocker.execute(f"SELECT 1 FROM {parse(address).schema}.runs WHERE id = 'r' FOR UPDATE")
        committing = threading.Thread(target=lambda: store.commit(STEP_BEGIN, step(number=2)))
        committing.start()
        answers = []
        waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted"
        until(lambda: other.execute(waiting).fetchone()[0] > 0)
        number = f"statement {next(store._writer._statements) - 1}"
        asking = threading.Thread(target=lambda: answers.append(other.call_off(link.id, number)))
        asking.start()
        blocker.close()
        asking.join(60)
        committing.join(60)
        assert answers == [True]
        other.close()


def test_a_failpoint_that_raises_fails_its_own_commit(address):
    """As everywhere: nothing was kept, and the store goes on."""

    def refuse(_):
        raise StoreError("no more")

    with open_store(address) as store:
        add_run(store)
        with failpoints.armed(STEP_BEGIN.written, refuse), pytest.raises(StoreError, match="no more"):
            store.commit(STEP_BEGIN, step())
        assert names(store) == ONCE[:2]
        assert store.commit(STEP_BEGIN, step()) is False
