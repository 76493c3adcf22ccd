"""Run the tests of workflows and sagas on Temporal: `pytest -p tests.on_temporal.plugin …`.

Each process of the suite starts a server of its own. Wherever a test opens a runtime, its engine is on that server; the
store is the file that the test names. `skips.py` has what is said of an engine in the same process alone.
"""

import hashlib

import pytest
from tests.on_temporal.skips import SKIPS

import troth.runtime.assemble as assemble
from troth.runtime.engine.open import open_engine
from troth.testing.temporal_server import TemporalServer

_server = pytest.StashKey[TemporalServer]()


def pytest_configure(config):
    missing = TemporalServer.missing()
    if missing is not None:
        pytest.exit(f"Nothing can be run on Temporal: {missing}.", returncode=0)
    is_controller = not hasattr(config, "workerinput") and getattr(config.option, "dist", "no") != "no"
    if is_controller:
        return
    config.stash[_server] = server = TemporalServer()

    def on_temporal(address, store, **options):
        """The same task queues for the same store, whoever opens it."""
        queue = hashlib.sha256(store.address.encode()).hexdigest()[:12]
        return open_engine(address or server.address(queue, heartbeat=10, task=10), store, **options)

    assemble.open_engine = on_temporal


def pytest_unconfigure(config):
    server = config.stash.get(_server, None)
    if server is not None:
        server.close()


def pytest_collection_modifyitems(items):
    for item in items:
        for name, reason in SKIPS.items():
            if item.nodeid.startswith(name):
                item.add_marker(pytest.mark.skip(reason=reason))
