"""Servers as users start them: a process on a free port, and the clients that come to it."""

import contextlib
from pathlib import Path

import pytest
from tests.server.service import Served, fill


@pytest.fixture
def folder(tmp_path):
    return fill(tmp_path)


@pytest.fixture
def serve(folder):
    """Start `troth serve` in the folder; every process ends with the test."""
    with contextlib.ExitStack() as stack:

        def start(*args, **options):
            served = Served(folder, *args, **options)
            stack.callback(served.close)
            return served

        yield start


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """One server without keys for all tests of a module that leave it as it is."""
    served = Served(fill(tmp_path_factory.mktemp("shared")), "app:server")
    yield served
    served.close()


@pytest.fixture
def client(shared):
    with shared.client() as client:
        yield client


_HERE = Path(__file__).parent
_COLLECTED_LATE = ("ignore:unclosed transport:ResourceWarning", "ignore:unclosed <socket:ResourceWarning")


def pytest_collection_modifyitems(items):
    """A client of one test, whose connection is collected while another one runs, is not that one's fault."""
    for item in items:
        if item.path.is_relative_to(_HERE):
            for line in _COLLECTED_LATE:
                item.add_marker(pytest.mark.filterwarnings(line))
