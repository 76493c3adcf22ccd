"""Lists cost what they show: no statement of a page walks through a table, and more rows in the store are not read."""

import contextlib
import random
import sqlite3

import psycopg
import pytest

from troth.errors import MisuseError
from troth.runtime import Runtime
from troth.runtime.store import RunState, SqliteStore, commit_point, open_store
from troth.runtime.store.lists import StoreLists
from troth.runtime.store.postgres.address import parse
from troth.runtime.store.postgres.dialect import in_psycopg
from troth.runtime.store.postgres.link import connect
from troth.runtime.store.promise_records import NewPromise
from troth.runtime.store.rows.sessions import SessionRow
from troth.runtime.store.sqlite import schema

POINT = commit_point("test.lists", "whatever a test writes")
STATES = ("completed", "rolled back", "waiting", "running")


def fill(store, count, first=0):
    """Runs of two workflows in four states, half of them promised; a conversation and a session for every tenth."""

    def write(tx):
        for number in range(first, first + count):
            run_id, now = f"r{number:06}", float(number)
            place = "" if number % 10 else "session "
            tx.add_run(run_id, f"{place}workflow:w{number % 2}@x", "[]", now, label=f"w{number % 2}")
            if number % 2:
                tx.promises.add(NewPromise(run_id, f"s{number % 7}", "run", run_id, "t", None, None, None, now))
            state = STATES[number // 2 % 4]
            if state == "waiting":
                tx.set_run_state(run_id, RunState.WAITING, now)
            elif state == "rolled back":
                tx.finish_run(run_id, RunState.FAILED, now, error='{"type":"E","message":"m"}', ending=state)
            elif state == "completed":
                tx.finish_run(run_id, RunState.COMPLETED, now, result="1")
            if number % 10 == 3:
                tx.server.claim("run", run_id, "ann", now)
            if number % 10 == 0:
                tx.sessions.add_work(run_id, "here", "ann", "run", "x", now)
                tx.sessions.add_session(SessionRow(f"s{number:06}", "ann", "created", "{}", now, 9e9, None, None))
                tx.append_event(f"conversation/c{number:06}", "opened", {"agent": "A"}, now)

    store.commit(POINT, write)


BIG = ("runs", "promises", "deliveries", "state_changes", "conversations", "sessions", "session_work")
BOTH = ("workflow:", "session workflow:")
ASKS = {
    "runs": lambda lists: lists.runs(family="workflow:", limit=20),
    "runs, further on": lambda lists: lists.runs(family="workflow:", cursor="99.0:r000099", limit=20),
    "runs in a state": lambda lists: lists.runs(family="workflow:", states=["rolled back"], limit=20),
    "runs in two states": lambda lists: lists.runs(family="workflow:", states=["rolled back", "waiting"], limit=20),
    "runs at work": lambda lists: lists.runs(family="workflow:", states=["running"], limit=20),
    "interrupted runs": lambda lists: lists.runs(family="workflow:", states=["interrupted"], limit=20),
    "runs of both families": lambda lists: lists.runs(family=BOTH, limit=20),
    "runs of both families, further on": lambda lists: lists.runs(family=BOTH, cursor="99.0:r000099", limit=20),
    "runs of both families in a state": lambda lists: lists.runs(family=BOTH, states=["rolled back"], limit=20),
    "runs at work of both families": lambda lists: lists.runs(family=BOTH, states=["running"], limit=20),
    "interrupted runs of both families": lambda lists: lists.runs(family=BOTH, states=["interrupted"], limit=20),
    "runs of a workflow in both families": lambda lists: lists.runs(family=BOTH, label="w1", limit=20),
    "runs of a workflow": lambda lists: lists.runs(label="w1", limit=20),
    "runs of a workflow in a state": lambda lists: lists.runs(label="w1", states=["completed"], limit=20),
    "runs of some time": lambda lists: lists.runs(family="workflow:", since=40.0, until=90.0, limit=20),
    "runs of an owner": lambda lists: lists.runs(family=BOTH, owner="ann", limit=20),
    "runs of an owner, further on": lambda lists: lists.runs(family=BOTH, owner="ann", cursor="99.0:r99", limit=20),
    "runs of a session": lambda lists: lists.runs(session="here", limit=20),
    "names of workflows": lambda lists: lists.labels(limit=20),
    "open waits": lambda lists: lists.open_waits([f"r{number:06}" for number in range(20)], signal="approve "),
    "conversations": lambda lists: lists.conversations(limit=20),
    "conversations in a state": lambda lists: lists.conversations(states=["idle"], limit=20),
    "sessions": lambda lists: lists.sessions(limit=20),
    "sessions in two states": lambda lists: lists.sessions(states=["created", "active"], limit=20),
    "promises": lambda lists: lists.promises(limit=20),
    "promises of a session": lambda lists: lists.promises(session="s3", work="run", limit=20),
    "jobs": lambda lists: lists.jobs(limit=20),
    "deliveries": lambda lists: lists.deliveries(limit=20),
    "deliveries in a state": lambda lists: lists.deliveries(states=["stored"], limit=20),
    "deliveries of a session": lambda lists: lists.deliveries(session="s3", limit=20),
    "counts": lambda lists: lists.counts(family=BOTH),
    "changes": lambda lists: lists.changes(after=100, limit=20),
}
NOT_EXPLAINED = {"counts", "runs at work", "runs at work of both families", "open waits", "runs of an owner"}
"""Those that count, those that cost what is under way, and what costs as much as an owner's sessions have carried out."""
OF_WHAT_IS_UNDER_WAY = {"promises of a session"}
"""Costs as much as there is under way, which in these stores is half of everything."""


def asked(store, path, ask):
    """The statements of a question, how SQLite carries them out, and how many steps of its machine they take."""
    statements, steps = [], [0]
    with contextlib.closing(sqlite3.connect(path)) as connection:

        def execute(statement, values=()):
            statements.append((statement, values))
            return connection.execute(statement, values)

        def count():
            steps[0] += 1

        connection.set_progress_handler(count, 1)
        answer = ask(StoreLists(lambda question: question(execute), lambda _: ["nobody"]))
        connection.set_progress_handler(None, 1)
        plan = [
            row[3]
            for statement, values in statements
            for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", values).fetchall()
        ]
    return answer, plan, steps[0]


@pytest.mark.parametrize("name", ASKS)
def test_a_page_reads_what_it_shows(tmp_path, name):
    """No table is walked through or sorted, and ten times the rows in the store are not read."""
    few, many = tmp_path / "few.db", tmp_path / "many.db"
    costs = []
    for path, count in ((few, 300), (many, 3000)):
        with SqliteStore(path) as store:
            fill(store, count)
            answer, plan, steps = asked(store, path, ASKS[name])
            costs.append(steps)
    if name not in OF_WHAT_IS_UNDER_WAY:
        tables = ("runs", "r", "conversations", "sessions", "promises", "p", "deliveries", "w", "session_work")
        scans = [line for line in plan if line.startswith("SCAN") and "USING" not in line]
        assert name == "promises" or not [line for line in scans if line.split()[1] in tables], plan
        assert costs[1] < costs[0] * 1.5 + 200, (costs, plan)
    if "runs at work" not in name and "owner" not in name:  # of an owner, two pages are sorted into one
        assert "USE TEMP B-TREE FOR ORDER BY" not in plan or "deliveries" in name, plan  # of the page itself
    if name in {"runs", "sessions", "promises", "deliveries"}:
        assert len(answer) == 20


@pytest.mark.parametrize("name", [name for name in ASKS if name not in {*OF_WHAT_IS_UNDER_WAY, *NOT_EXPLAINED}])
def test_a_page_reads_what_it_shows_in_postgres(filled_postgres, name):
    """Rows that its scans give are a small part of what the tables hold, and none of them is a scan of all rows."""
    with contextlib.closing(connect(parse(filled_postgres))) as connection:
        connection.execute("SET enable_seqscan = off")
        connection.execute("SET enable_bitmapscan = off")
        connection.execute("SET enable_sort = off")
        for other in ("hashjoin", "mergejoin"):  # which are right for tables as small as these
            connection.execute(f"SET enable_{other} = off")
        nodes = []

        def execute(statement, values=()):
            native = in_psycopg(statement)
            plan = connection.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {native}", values).fetchone()[0]
            nodes.extend(nodes_of(plan[0]["Plan"]))
            return connection.execute(native, values)

        execute.limits_arms = True
        ASKS[name](StoreLists(lambda question: question(execute), lambda _: ["nobody"]))
    scans = [node for node in nodes if node.get("Relation Name") in BIG]
    assert scans
    assert not [node for node in scans if node["Node Type"] == "Seq Scan"], scans
    rows = [node["Actual Rows"] * node["Actual Loops"] for node in scans]
    assert max(rows, default=0) <= 110, scans


def nodes_of(plan):
    yield plan
    for below in plan.get("Plans", ()):
        yield from nodes_of(below)


@pytest.fixture(scope="module")
def filled_postgres(postgres_server):
    address = postgres_server.address()
    with open_store(address) as store:
        fill(store, 1500)
    with psycopg.connect(parse(address).conninfo, autocommit=True) as connection:
        for table in (*BIG, "belongings"):
            connection.execute(f"ANALYZE {parse(address).schema}.{table}".encode())
    return address


@pytest.mark.parametrize("seed", range(5))
def test_counts_add_up_with_the_lists(path, seed):
    """Whatever happens to runs, in one commit or in many, also where a commit is rolled back."""
    chance = random.Random(seed)
    runs: list[str] = []

    def act(tx):
        for _ in range(chance.randrange(1, 4)):
            if not runs or chance.random() < 0.4:
                runs.append(f"r{len(runs)}")
                family = chance.choice(["workflow:x", "act:y", "plain"])
                tx.add_run(runs[-1], family, "[]", float(len(runs)), label=chance.choice([None, "w"]))
                continue
            run_id, now = chance.choice(runs), 100.0 + len(runs)
            state = tx.state_of(run_id)
            if state is None:
                continue
            if state.is_over:
                tx.reopen_run(run_id, now, ended_at=None)
                tx.reopen_run(run_id, now, ended_at=101.0)
            elif chance.random() < 0.5:
                tx.set_run_state(run_id, chance.choice([RunState.WAITING, RunState.RUNNING]), now)
            else:
                ending = chance.choice([None, "rolled back"])
                tx.finish_run(run_id, chance.choice([RunState.FAILED, RunState.COMPLETED]), 101.0, ending=ending)
        if chance.random() < 0.2:
            raise KeyError

    with SqliteStore(path) as store:
        for _ in range(80):
            with contextlib.suppress(KeyError):
                store.commit(POINT, act)
        for family in (None, "workflow:", "act:", ("workflow:", "act:")):
            shown: dict[str, int] = {}
            for item in store.lists.runs(family=family, limit=1000):
                shown[item.state] = shown.get(item.state, 0) + 1
            assert store.lists.counts(family=family).runs == dict(sorted(shown.items()))
        changes = store.lists.changes().items
        last = {change.thing: change.word for change in changes}
        assert {item.id: item.state.replace("interrupted", "running") for item in store.lists.runs(limit=1000)} == last


def test_a_file_of_the_version_before_is_counted(path):
    """Runs, sessions, deliveries and conversations that are there already are in the lists and in the counts."""
    with SqliteStore(path) as store:
        fill(store, 60)
        store.commit(POINT, lambda tx: tx.append_event("conversation/c000000", "run.started", {"run": "1"}, 100.0))
        counts, changes = store.lists.counts(), store.lists.changes()
        listed = [store.lists.conversations().items, store.lists.runs(label="w1").items]
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        downgrade(connection)
    with SqliteStore(path) as store:
        assert store.lists.counts() == counts
        assert [store.lists.conversations().items, store.lists.runs(label="w1").items] == listed
        assert (len(changes.items) > 60, store.lists.changes().items) == (True, [])


def downgrade(connection):
    """Make a file one of version 7."""
    names = "SELECT type, name FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'"
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as old:
        schema.migrate(old, schema.MIGRATIONS[:7])
        before = set(old.execute(names))
    order = {"trigger": 0, "index": 1, "table": 2}
    for kind, name in sorted(set(connection.execute(names)) - before, key=lambda one: order[one[0]]):
        connection.execute(f"DROP {kind} IF EXISTS {name}")
    connection.execute("ALTER TABLE deliveries DROP COLUMN attempts")
    connection.execute("DROP INDEX runs_by_label")
    connection.execute("CREATE INDEX runs_by_label ON runs (label, created_at, id) WHERE label IS NOT NULL")
    connection.execute("PRAGMA user_version = 7")


def test_a_migrated_file_is_a_fresh_one(tmp_path):
    """Version by version, or all at once: the same tables, indexes and triggers."""
    everything = "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY type, name"
    with contextlib.closing(sqlite3.connect(tmp_path / "step.db", isolation_level=None)) as step:
        for number in range(1, schema.VERSION + 1):
            schema.migrate(step, schema.MIGRATIONS[:number])
        stepwise = step.execute(everything).fetchall()
    SqliteStore(tmp_path / "fresh.db").close()
    with contextlib.closing(sqlite3.connect(tmp_path / "fresh.db")) as fresh:
        assert fresh.execute(everything).fetchall() == stepwise


def test_only_the_last_changes_are_kept(path):
    """A reader who comes back too late is told so by `first`; what it missed is in the lists."""
    with SqliteStore(path) as store:
        store.commit(POINT, lambda tx: tx.add_run("old", "d", "[]", 1.0))
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
            rows = "WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 101999)"
            connection.execute(f"{rows} INSERT INTO state_changes SELECT i, 1.0, 'run/', 'x', 'running' FROM n")
        store.commit(POINT, lambda tx: tx.add_run("new", "d", "[]", 2.0))
        changes = store.lists.changes(after=1, limit=5)
    assert (changes.first, changes.last, changes.items[0].id) == (2001, 102_000, 2001)


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        pytest.param(lambda lists: lists.runs(cursor="nonsense"), "not a cursor", id="a cursor"),
        pytest.param(lambda lists: lists.deliveries(cursor="1:2"), "not a cursor", id="a cursor of another list"),
        pytest.param(lambda lists: lists.search("x", cursor="e30x"), "not a cursor", id="a cursor of a search"),
        pytest.param(lambda lists: lists.runs(limit=0), "whole number", id="nothing"),
        pytest.param(lambda lists: lists.runs(limit=5000), "1,000 or less", id="too much"),
        pytest.param(lambda lists: lists.search(" "), "nothing to search for", id="an empty search"),
        pytest.param(lambda lists: lists.search("x", kinds=["dog"]), "no kind 'dog'", id="another kind"),
    ],
)
def test_what_cannot_be_listed(path, ask, says):
    """Said with a sentence."""
    with SqliteStore(path) as store, pytest.raises(MisuseError, match=says):
        ask(store.lists)


def test_a_long_error_is_told_by_its_beginning(path):
    """A traceback behind it, or a message that does not end, does not hide what went wrong."""
    long = '{"outcome":"failed","type":"Boom","message":"it \\"broke\\" ' + "x" * 9000 + '","traceback":"y"}'
    with SqliteStore(path) as store:
        store.commit(POINT, lambda tx: tx.add_run("r", "d", "[]", 1.0))
        store.commit(POINT, lambda tx: tx.finish_run("r", RunState.FAILED, 2.0, error=long))
        (item,) = store.lists.runs()
    assert (item.error_type, item.error[:13], len(item.error)) == ("Boom", 'it "broke" xx', 1000)


def test_a_damaged_run_hides_none_of_the_others(path):
    """It is listed as damaged."""
    with SqliteStore(path) as store:
        fill(store, 6)
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("UPDATE runs SET label = x'ff' WHERE id = 'r000003'")
        items = {item.id: item.state for item in store.lists.runs()}
    assert (len(items), items["r000003"]) == (6, "damaged")


@pytest.mark.parametrize("states", [None, ["stored"], ["due", "dead"], ["leased", "delivered"], ["expired"]], ids=str)
@pytest.mark.parametrize("limit", [1, 3, 50])
def test_pages_of_deliveries_of_many_sessions_are_one_list(tmp_path, states, limit):
    """Whatever state they are in, and whoever they belong to: nothing is left out, and nothing comes twice."""
    chance, path = random.Random(7), tmp_path / "troth.db"
    with SqliteStore(path) as store:
        rows = []
        for number in range(1, 121):
            session = f"s{chance.randrange(25)}"
            promise = NewPromise(f"p{number}", session, "x", f"{number}", "t", None, None, None, 1.0)
            store.commit(POINT, lambda tx, promise=promise: tx.promises.add(promise))
            for kind in chance.sample(["done", "watch", "summary"], k=2):
                state = chance.choice(["due", "leased", "stored", "delivered", "expired", "dead"])
                is_over = state in {"delivered", "expired", "dead"}
                rows.append((state, session, number, kind, chance.randrange(1, 12), 1.0, 1.0, 2.0 if is_over else None))
        with contextlib.closing(sqlite3.connect(path)) as connection:
            connection.executemany(
                "INSERT INTO deliveries (state, session, promise, kind, seq, created_at, updated_at, finished_at) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                rows,
            )
            connection.commit()
        found, cursor = [], None
        while True:
            page = store.lists.deliveries(states=states, cursor=cursor, limit=limit)
            found += [item.id for item in page]
            cursor = page.next
            if cursor is None:
                break
            assert len(page) == limit
    wanted = sorted((row[2:5] for row in rows if states is None or row[0] in states), reverse=True)
    assert found == [f"p{number}-{kind}-{seq}" for number, kind, seq in wanted]


def test_a_run_in_a_state_that_there_is_not_is_damaged(path):
    """It is shown as that, in the counts and in the list behind them, and hides no other one."""
    with SqliteStore(path) as store:
        fill(store, 12)
        with contextlib.closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("UPDATE runs SET state = 'nosuch', ending = NULL WHERE id IN ('r000003', 'r000010')")
        with Runtime(store, recover=False, in_process=False) as runtime:
            items = {item.id: item.state for item in runtime.lists.runs()}
            assert len(items) == 12
            assert {run_id for run_id, state in items.items() if state == "damaged"} == {"r000003", "r000010"}
            assert [item.id for item in runtime.lists.runs(state="damaged")] == ["r000010", "r000003"]
            assert runtime.lists.counts().runs["damaged"] == 2
            assert sum(runtime.lists.counts().runs.values()) == 12


def test_a_run_of_which_the_arguments_cannot_be_read_is_damaged(path):
    """It is shown as that wherever its last state is listed, so that the counts add up with the lists."""
    with SqliteStore(path) as store:
        fill(store, 12)
        with contextlib.closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("UPDATE runs SET args = 'no json'")
        with Runtime(store, recover=False, in_process=False) as runtime:
            counts = runtime.lists.counts().runs
            assert counts == {"completed": 4, "interrupted": 2, "rolled back": 4, "waiting": 2}
            for state, count in counts.items():
                assert [item.state for item in runtime.lists.runs(state=state)] == ["damaged"] * count
                assert len(runtime.lists.runs(state=state, workflow="w1")) == count // 2
            assert len(runtime.lists.runs(state="damaged")) == 12
            assert {runtime.run_page().items[0].state, runtime.runs()[0].state} == {"damaged"}
