"""A database that does not answer: whoever asks for what it has waits, and nobody else does."""

import threading

import psycopg
import pytest
from tests.server.service import Served, fill, wait_until
from tests.server.test_conversations import talk
from tests.server.test_runs import begin, ended

from troth.runtime.store.postgres.address import parse
from troth.testing.postgres_server import PostgresServer

WAITING = "SELECT 1 FROM pg_locks JOIN pg_class ON oid = relation WHERE NOT granted AND relname = %s"


@pytest.fixture(scope="module")
def address():
    if missing := PostgresServer.missing():
        pytest.skip(missing)
    with PostgresServer() as server:
        yield server.address()


@pytest.fixture(scope="module")
def served(address, tmp_path_factory):
    folder = fill(tmp_path_factory.mktemp("slow"))
    app = folder / "app.py"
    app.write_text(app.read_text().replace('HERE / "shop.db"', repr(address)))
    served = Served(folder, "app:server")
    yield served
    served.close()


@pytest.mark.parametrize(
    ("method", "path", "body", "table"),
    [
        pytest.param("GET", "/runs/{run}", None, "belongings", id="whose it is"),
        pytest.param("GET", "/runs/{run}/events", None, "runs", id="a run that is followed"),
        pytest.param("GET", "/conversations/{talk}", None, "events", id="a conversation"),
        pytest.param("POST", "/conversations/{talk}/messages", {"text": "x", "run": True}, "events", id="a message"),
        pytest.param("POST", "/conversations/{talk}/interrupt", None, "events", id="an interruption"),
        pytest.param("POST", "/conversations/{talk}/run", None, "turns", id="how much is at work"),
        pytest.param("POST", "/responses", {"model": "parrot", "input": "x"}, "events", id="a response"),
    ],
)
def test_nobody_else_waits(served, address, method, path, body, table):
    """The loop of the server is free while it waits for the database: others are answered meanwhile."""
    with served.client() as client, psycopg.connect(parse(address).conninfo) as blocker:
        run = begin(client, "greet", who="you")
        ended(client, run)
        place = path.format(run=run, talk=talk(client, "parrot"))
        schema = parse(address).schema
        blocker.execute(f'LOCK TABLE "{schema}"."{table}" IN ACCESS EXCLUSIVE MODE')
        answers = []
        asking = threading.Thread(target=lambda: answers.append(client.request(method, place, json=body)))
        asking.start()
        try:
            wait_until(lambda: blocker.execute(WAITING, (table,)).fetchone(), "a wait for the database")
            with served.client() as other:
                assert other.get("/health").status_code == 200
            assert not answers
        finally:
            blocker.rollback()
            asking.join()
        assert answers[0].status_code < 300, answers[0].text
