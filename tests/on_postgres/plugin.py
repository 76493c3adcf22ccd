"""Run the tests of the runtime with PostgreSQL in the place of files: `pytest -p tests.on_postgres.plugin …`.

Each process of the suite starts a server of its own. `redirect/sitecustomize.py` opens a schema wherever a test opens a
file, also in programs that tests start. `skips.py` has what is said of files alone.
"""

import os
import runpy
import sys
import tempfile
from pathlib import Path

import pytest
from tests.on_postgres.skips import SKIPS

from troth.runtime.store.open import open_store
from troth.runtime.store.postgres.store import PostgresStore
from troth.testing.postgres_server import PostgresServer

_REDIRECT = Path(__file__).with_name("redirect")
_server = pytest.StashKey[PostgresServer]()

sys.path.append(str(_REDIRECT))  # programs that are given our path are redirected, too
runpy.run_path(str(_REDIRECT / "sitecustomize.py"))["redirect"]()  # before any conftest imports a store


def pytest_configure(config):
    missing = PostgresServer.missing()
    if missing is not None:
        pytest.exit(f"Nothing can be run on PostgreSQL: {missing}.", returncode=0)
    is_controller = not hasattr(config, "workerinput") and getattr(config.option, "dist", "no") != "no"
    if is_controller:
        return
    config.stash[_server] = server = PostgresServer()
    os.environ["TROTH_TESTS_POSTGRES"] = f"postgresql://troth@/postgres?host={server.folder}"
    os.environ["PYTHONPATH"] = os.pathsep.join([str(_REDIRECT), *filter(None, [os.environ.get("PYTHONPATH")])])
    check_redirect()


def check_redirect():
    """Refuse to go on where a path still opens a file: the tests would pass, and say nothing about PostgreSQL."""
    with tempfile.TemporaryDirectory() as folder, open_store(Path(folder) / "probe.db") as store:
        if not isinstance(store, PostgresStore):
            pytest.exit(f"A path opens a {type(store).__qualname__}, not PostgreSQL: see {_REDIRECT}.", returncode=1)


def pytest_unconfigure(config):
    server = config.stash.get(_server, None)
    if server is not None:
        server.close()


def pytest_collection_modifyitems(items):
    for item in items:
        for name, reason in SKIPS.items():
            if item.nodeid.startswith(name):
                item.add_marker(pytest.mark.skip(reason=reason))
