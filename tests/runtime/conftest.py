"""A PostgreSQL server for all tests of one process, started by the first that wants it."""

import pytest

from troth.testing.postgres_server import PostgresServer


@pytest.fixture(scope="session")
def postgres_server():
    missing = PostgresServer.missing()
    if missing is not None:
        pytest.skip(missing)
    with PostgresServer() as server:
        yield server
