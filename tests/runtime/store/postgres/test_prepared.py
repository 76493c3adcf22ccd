"""Statements that are sent over libpq itself: what they answer, refuse and raise is what a cursor would."""

import os
import signal
import threading
import time

import psycopg
import pytest

from troth.runtime.engine import EmbeddedEngine, Step
from troth.runtime.store import open_store
from troth.runtime.store.postgres.address import parse
from troth.runtime.store.postgres.commits.prepared import PreparedStatements, can_be_prepared, text_array, texts_of

TEXTS = ["", "a", "ä€😀", 'a"b', "a\\b", "a,b", "{}", "NULL", " a ", "a\nb", "'", "\\N", '\\"']


@pytest.fixture
def connection(postgres_server):
    with psycopg.connect(parse(postgres_server.address()).conninfo, autocommit=True) as connection:
        yield connection


@pytest.mark.parametrize("text", [*TEXTS, None, "x" * 3_000_000])
def test_a_text_comes_back_as_it_went(connection, text):
    """Whatever is in it, and however large it is: what does not fit into the socket at once is sent bit by bit."""
    assert PreparedStatements(connection).execute("SELECT %s::text, 'a%%'", (text,)) == [[text, "a%"]]


@pytest.mark.parametrize("texts", [[], TEXTS, ["x" * 200_000] * 20], ids=["none", "odd ones", "large ones"])
def test_a_list_of_texts(connection, texts):
    """Read back one by one, in their order."""
    rows = PreparedStatements(connection).execute("SELECT item FROM unnest(%s::text[]) item", (text_array(texts),))
    assert rows == [[text] for text in texts]


@pytest.mark.parametrize(
    ("statement", "values", "error"),
    [
        pytest.param("SELECT %s::text", ("a\0b",), psycopg.DataError, id="libpq would cut it off"),
        pytest.param("SELECT %s::bigint", ("a",), psycopg.errors.InvalidTextRepresentation, id="no number"),
        pytest.param("SELECT * FROM nowhere", (), psycopg.errors.UndefinedTable, id="cannot be prepared"),
        pytest.param("SELECT 1 / %s::bigint", ("0",), psycopg.errors.DivisionByZero, id="fails on the way"),
        pytest.param("SELECT %s::text", ("\ud800",), UnicodeEncodeError, id="no text at all"),
    ],
)
def test_what_is_refused(connection, statement, values, error):
    """With the error that psycopg has for it, and the connection goes on."""
    prepared = PreparedStatements(connection)
    for _ in range(2):
        with pytest.raises(error):
            prepared.execute(statement, values)
        assert prepared.execute("SELECT 1::text", ()) == [["1"]]


def test_an_answer_is_read_by_its_types(connection):
    """As by a cursor: numbers, texts, and nothing; a row at a time, or those that are left."""
    statement = "SELECT n, 'a' || n, n / 2::float8, n = 2, NULL::text FROM generate_series(1, %s::bigint) n"
    by_cursor = connection.execute(statement, (3,)).fetchall()
    result = PreparedStatements(connection).ask(statement, ("3",))
    assert (result.rowcount, [result.fetchone(), *result], result.fetchone()) == (3, by_cursor, None)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param(12, "12", id="an integer"),
        pytest.param(0.1, "0.1", id="a float"),
        pytest.param(float("inf"), "inf", id="without end"),
        pytest.param(None, None, id="nothing"),
        pytest.param(["a", 'b"'], '{"a","b\\""}', id="texts"),
    ],
)
def test_a_value_whose_type_is_told_by_its_place(value, text):
    """Is sent as text."""
    assert texts_of((value,)) == [text]


@pytest.mark.parametrize("value", [True, b"a", [1], {"a": 1}], ids=str)
def test_a_value_of_another_kind(value):
    """Is left to a cursor."""
    assert texts_of(("a", value)) is None


def test_prepared_statements_that_were_dropped(connection):
    """The next call fails and is worth another, which prepares them again."""
    prepared = PreparedStatements(connection)
    assert prepared.execute("SELECT 1::text", ()) == [["1"]]
    connection.execute("DEALLOCATE ALL")
    with pytest.raises(psycopg.errors.InvalidSqlStatementName):
        prepared.execute("SELECT 1::text", ())
    assert prepared.execute("SELECT 1::text", ()) == [["1"]]


def test_a_session_that_is_ended_says_why(connection, postgres_server):
    """The words of the server, not only that nobody answers."""
    prepared = PreparedStatements(connection)
    with psycopg.connect(parse(postgres_server.address()).conninfo, autocommit=True) as other:
        ending = "SELECT pg_terminate_backend(%s) FROM pg_sleep(0.2)"
        thread = threading.Thread(target=other.execute, args=(ending, (connection.info.backend_pid,)))
        thread.start()
        with pytest.raises(psycopg.errors.AdminShutdown):
            prepared.execute("SELECT pg_sleep(60)::text", ())
        thread.join()
    assert connection.closed


def test_ctrl_c_cancels_it(connection, postgres_server):
    """The statement ends on the server, and the connection can be used again."""
    prepared = PreparedStatements(connection)
    asking = "SELECT count(*) FROM pg_stat_activity WHERE pid = %s AND state = 'active'"
    pid = connection.info.backend_pid
    with psycopg.connect(parse(postgres_server.address()).conninfo, autocommit=True) as other:

        def interrupt():
            while other.execute(asking, (pid,)).fetchone() != (1,):
                time.sleep(0.01)
            time.sleep(0.1)  # it is in `poll` by now, or else about to be
            os.kill(os.getpid(), signal.SIGINT)

        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            prepared.execute("SELECT pg_sleep(60)::text", ())
        thread.join()
        assert other.execute(asking, (pid,)).fetchone() == (0,)
    assert prepared.execute("SELECT 1::text", ()) == [["1"]]


def add(number):
    return number + 1


def counting(steps):
    number = 0
    for _ in range(steps):
        number = yield Step("add", add, number)
    return number


def test_another_encoding(postgres_server):
    """Texts are then left to psycopg, which knows it."""
    address = f"{postgres_server.address()}&client_encoding=latin1"
    with psycopg.connect(parse(address).conninfo) as connection:
        assert not can_be_prepared(connection)
    with EmbeddedEngine(address) as engine:
        assert engine.run(counting, 5, run_id="r-ä") == 5
        assert [step.result for step in engine.steps("r-ä")] == [1, 2, 3, 4, 5]


def test_an_administrator_drops_what_is_prepared(postgres_server):
    """A run goes on: such a step is committed the long way, and those after it as before."""
    with open_store(postgres_server.address()) as store, EmbeddedEngine(store) as engine:
        assert engine.run(counting, 3) == 3
        store._writer._link.connection.execute("DEALLOCATE ALL")
        assert engine.run(counting, 5, run_id="r") == 5
        assert [step.result for step in engine.steps("r")] == [1, 2, 3, 4, 5]
