"""Both stores do what every store has to do."""

import contextlib

import pytest

from troth.runtime.store import open_store
from troth.testing.store_conformance import checks

CHECKS = [pytest.param(check, id=f"{check.part}: {check.name}") for check in checks()]


class Ground:
    def __init__(self, address):
        self.address = address

    @contextlib.contextmanager
    def open(self):
        with open_store(self.address) as store:
            yield store

    def program(self):
        return (
            f"from troth.runtime import store as stores\ndef open_store(): return stores.open_store({self.address!r})\n"
        )


@pytest.mark.parametrize("check", CHECKS)
def test_the_file(check, tmp_path):
    """Each check of the suite, on SQLite."""
    check.run(Ground(str(tmp_path / "troth.db")))


@pytest.mark.parametrize("check", CHECKS)
def test_postgres(check, postgres_server):
    """Each check of the suite, on PostgreSQL."""
    check.run(Ground(postgres_server.address()))
