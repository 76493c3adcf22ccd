"""When the driving itself fails: whoever waits is told, and nothing is done over and over."""

import subprocess
import sys
import textwrap

import pytest

from troth.errors import InternalError
from troth.runtime.engine import EmbeddedEngine, Step
from troth.runtime.engine.interpreter import steps
from troth.runtime.store import RunState

ON_A_FULL_DISK = """
    import logging, resource, sys
    from troth.runtime.engine import EmbeddedEngine, Step
    from troth.runtime.store import StoreError

    effects = 0

    def effect():
        global effects
        effects += 1
        return "x" * 5000

    def many():
        for number in range(200):
            yield Step(f"s{number}", effect)

    logging.basicConfig(level="WARNING")
    with EmbeddedEngine(sys.argv[1], decisions=[many]) as engine:
        size = 600_000
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
        try:
            if sys.argv[2] == "run":
                engine.run(many, run_id="r")
            else:
                engine.start(many, run_id="r").result(20)
        except StoreError as told:
            print(str(told).splitlines()[0])
        first = len(engine.steps("r"))
        assert 0 < first <= effects <= first + 1, (first, effects)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        engine.run(many, run_id="r")
        assert effects <= 202, effects
"""


@pytest.mark.parametrize("verb", ["run", "start"])
def test_a_disk_that_is_full_is_told(tmp_path, verb):
    """Whoever waits gets the store's error at once, no step is tried again and again, and later the run continues."""
    command = [sys.executable, "-c", textwrap.dedent(ON_A_FULL_DISK), str(tmp_path / "troth.db"), verb]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "could not be written" in done.stdout
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) < 20


def test_a_mistake_of_the_engines_own_is_made_once(tmp_path, monkeypatch):
    """The run stays where it is, and whoever waits is told; asked for again, it goes on."""
    calls = []

    def effect():
        calls.append(1)
        return "done"

    def once():
        return (yield Step("effect", effect))

    def broken(*_):
        raise ZeroDivisionError("a mistake")

    with EmbeddedEngine(tmp_path / "troth.db", decisions=[once]) as engine:
        with monkeypatch.context() as patch:
            patch.setattr(steps, "keep", broken)
            handle = engine.start(once, run_id="r")
            with pytest.raises(InternalError, match="ZeroDivisionError: a mistake"):
                handle.result(10)
            assert (len(calls), engine.find("r").state) == (1, RunState.INTERRUPTED)
        assert engine.run(once, run_id="r") == "done"
        assert len(calls) == 2
