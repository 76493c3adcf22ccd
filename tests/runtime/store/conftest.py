import pytest

from troth.runtime.store import SqliteStore


@pytest.fixture
def path(tmp_path):
    return tmp_path / "troth.db"


@pytest.fixture
def store(path):
    with SqliteStore(path) as store:
        yield store
