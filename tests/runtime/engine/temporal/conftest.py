import contextlib
import sys
from pathlib import Path

import pytest

from troth.testing.engine_programs import DECISIONS
from troth.testing.postgres_server import PostgresServer
from troth.testing.temporal_server import TemporalServer

sys.path.insert(0, str(Path(__file__).parent))  # for `more_programs`, which other processes import, too


@pytest.fixture(scope="session")
def temporal_server():
    missing = TemporalServer.missing()
    if missing is not None:
        pytest.skip(missing)
    with TemporalServer() as server:
        yield server


@pytest.fixture(scope="session")
def postgres_server():
    missing = PostgresServer.missing()
    if missing is not None:
        pytest.skip(missing)
    with PostgresServer() as server:
        yield server


class OnTemporal:
    def __init__(self, address, store):
        self.address = address
        self.store = store

    @contextlib.contextmanager
    def open(self):
        from troth.runtime.engine.temporal.engine import TemporalEngine

        with TemporalEngine(self.address, self.store, decisions=DECISIONS) as engine:
            yield engine

    def program(self):
        return (
            "from troth.runtime.engine.temporal.engine import TemporalEngine\n"
            "from troth.testing.engine_programs import DECISIONS\n"
            f"def open_engine(): return TemporalEngine({self.address!r}, {str(self.store)!r}, decisions=DECISIONS)\n"
        )


@pytest.fixture
def ground(temporal_server, postgres_server):
    return OnTemporal(temporal_server.address(heartbeat=5, task=5), postgres_server.address())
