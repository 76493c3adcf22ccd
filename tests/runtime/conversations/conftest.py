"""A store in a file of its own, and conversations in it."""

import pytest

from troth.runtime.conversations import Conversations
from troth.runtime.store import SqliteStore


@pytest.fixture
def store(tmp_path):
    with SqliteStore(tmp_path / "troth.db") as opened:
        yield opened


@pytest.fixture
def home(store):
    with Conversations(store) as conversations:
        yield conversations
