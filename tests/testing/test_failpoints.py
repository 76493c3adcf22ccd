"""Arming failpoints: by name, here and in another process; a name that does not exist is refused."""

import subprocess
import sys

import pytest

from troth.errors import MisuseError
from troth.runtime.store import SqliteStore
from troth.testing import failpoints

MAKE_A_STORE = "import sys; from troth.runtime.store import SqliteStore; SqliteStore(sys.argv[1]).close()"


def test_an_unknown_name_is_refused():
    """A crash test that never crashes proves nothing; the nearest name is offered."""
    with pytest.raises(MisuseError, match=r"did you mean 'step\.begin\.after'"), failpoints.armed("step.begin.aftre"):
        pass
    with pytest.raises(MisuseError, match="armed with 'explode'"), failpoints.armed("step.begin.after", "explode"):
        pass


def test_the_nth_arrival(tmp_path):
    """Earlier and later ones pass, and after the block all do."""
    with failpoints.armed("store.migrate.before", nth=2):
        SqliteStore(tmp_path / "a.db").close()
        with pytest.raises(failpoints.InjectedFaultError, match=r"store\.migrate\.before"):
            SqliteStore(tmp_path / "b.db")
        SqliteStore(tmp_path / "c.db").close()
    SqliteStore(tmp_path / "d.db").close()


@pytest.mark.parametrize(("action", "code"), [("kill", -9), ("exit", 70), ("raise", 1)])
def test_another_process_is_armed_through_its_environment(tmp_path, action, code):
    """Killed by a real signal, in the middle of its first commit; and nothing of that commit is there."""
    import os

    env = {**os.environ, **failpoints.environment("store.migrate.written", action)}
    command = [sys.executable, "-c", MAKE_A_STORE, str(tmp_path / "a.db")]
    assert subprocess.run(command, env=env, capture_output=True, timeout=30, check=False).returncode == code
    with SqliteStore(tmp_path / "a.db") as store:
        assert store.runs() == []


def test_a_setting_that_cannot_be_read_stops_the_process(tmp_path):
    """Rather than a test that passes because nothing was armed."""
    import os

    env = {**os.environ, "TROTH_FAILPOINTS": "store.migrate.written"}
    command = [sys.executable, "-c", MAKE_A_STORE, str(tmp_path / "a.db")]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 1
    assert "is not NAME=ACTION" in done.stderr
