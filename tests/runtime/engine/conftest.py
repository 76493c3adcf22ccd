import contextlib

import pytest

from troth.runtime.engine import EmbeddedEngine
from troth.testing.engine_programs import DECISIONS


class Embedded:
    def __init__(self, path):
        self.path = path

    @contextlib.contextmanager
    def open(self):
        with EmbeddedEngine(self.path, decisions=DECISIONS) as engine:
            yield engine

    def program(self):
        return (
            "from troth.runtime.engine import EmbeddedEngine\n"
            "from troth.testing.engine_programs import DECISIONS\n"
            f"def open_engine(): return EmbeddedEngine({str(self.path)!r}, decisions=DECISIONS)\n"
        )


@pytest.fixture
def ground(tmp_path):
    return Embedded(tmp_path / "troth.db")


@pytest.fixture
def engine(tmp_path):
    with EmbeddedEngine(tmp_path / "troth.db") as engine:
        yield engine
