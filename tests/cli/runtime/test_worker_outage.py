"""`troth worker` while its database is away: it says so once, and goes on when the database is back."""

import json
import os
import subprocess
import sys

import pytest

from troth.runtime.engine import EmbeddedEngine
from troth.runtime.engine.commit_points import RUN_START as BEGIN
from troth.runtime.workflows.execute.worker import Worker, WorkerNews
from troth.testing.postgres_server import PostgresServer

APP = """
import os, sys
from troth.runtime import Runtime
from troth.runtime.engine import Step, Wait
from troth.runtime.store.postgres.store import PostgresStore

def double(number):
    return 2 * number

def decision(number):
    return (yield Step("double", double, number))

def open_runtime():
    runtime = Runtime(PostgresStore(os.environ["ADDRESS"], patience=0.2))
    runtime.register(decision)
    return runtime
"""


@pytest.fixture
def own_server():
    missing = PostgresServer.missing()
    if missing is not None:
        pytest.skip(missing)
    with PostgresServer() as server:
        yield server


def decision(number):
    yield from ()
    raise NotImplementedError("never carried out by this process")


def begun(address, run_id):
    """A run that this process begins and does not carry on."""
    with EmbeddedEngine(address, decisions=[decision]) as engine:
        engine.store.commit(BEGIN, lambda tx: tx.add_run(run_id, "decision", "[4]", engine.store.clock()))


def test_it_outlives_an_outage(own_server, tmp_path):
    """Longer than a store waits. It neither ends nor says the same again and again."""
    (tmp_path / "app.py").write_text(APP, encoding="utf-8")
    address = own_server.address("shop")
    command = [sys.executable, "-m", "troth", "worker", "--json", "--app", "app:open_runtime"]
    begun(address, "before")
    with subprocess.Popen(
        command,
        cwd=tmp_path,
        env={**os.environ, "ADDRESS": address},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as worker:
        try:

            def lines_until(what, run=None):
                news = []
                while not news or (news[-1]["what"], news[-1]["run"]) != (what, run):
                    line = worker.stdout.readline()
                    assert line, worker.stderr.read()
                    news.append(json.loads(line))
                return news

            lines_until("over", "before")
            own_server.stop("fast")
            assert "could not be reached" in lines_until("away")[-1]["why"]
            own_server.start()
            assert [entry["what"] for entry in lines_until("back")] == ["back"]
            begun(address, "after")
            lines_until("over", "after")
            worker.terminate()
            assert worker.wait() == 0
            assert "Traceback" not in worker.stderr.read()
        finally:
            worker.kill()


def test_what_was_seen_before_the_outage_is_told_after_it():
    """A look that ends in the middle keeps what it has seen for the next one."""

    class Interrupted(Worker):
        fails = True

        def __init__(self):
            self._untold = []

        def _ended(self):
            if self.fails:
                yield WorkerNews("a", "over")

        def _take_up(self):
            yield WorkerNews("b", "resumed")
            if self.fails:
                raise ConnectionError

    worker = Interrupted()
    with pytest.raises(ConnectionError):
        worker.look()
    worker.fails = False
    assert [news.run_id for news in worker.look()] == ["a", "b", "b"]
    assert [news.run_id for news in worker.look()] == ["b"]
