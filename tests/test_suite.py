"""The suite itself: what `conftest.py` promises, seen in small suites that have the same one."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest


@pytest.fixture
def suite(tmp_path):
    """Run a small suite with our `conftest.py`."""
    shutil.copy(Path(__file__).with_name("conftest.py"), tmp_path)

    def run(text: str, *options: str, **environ: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "test_small.py").write_text(text)
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", *options, "test_small.py"]
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        return subprocess.run(
            command, cwd=tmp_path, env=inherited | environ, capture_output=True, text=True, timeout=100, check=False
        )

    return run


HUNGRY = """
def test_modest():
    pass

def test_hungry():
    assert len(b"x" * 300_000_000)
"""


@pytest.mark.parametrize("options", [pytest.param([], id="one process"), pytest.param(["-n", "1"], id="workers")])
def test_a_process_that_needs_too_much(suite, options):
    """The run fails although all tests passed, and says which of them it was."""
    done = suite(HUNGRY, *options, TROTH_TESTS_MB="250")
    assert done.returncode == 1, done.stdout
    assert "2 passed" in done.stdout
    assert "250 MB is the limit" in done.stdout
    assert "MB  test_small.py::test_hungry" in done.stdout
    assert "test_modest" not in done.stdout


@pytest.mark.parametrize("options", [pytest.param([], id="one process"), pytest.param(["-n", "1"], id="workers")])
def test_a_process_that_does_not(suite, options):
    """Nothing is said."""
    done = suite(HUNGRY, *options, TROTH_TESTS_MB="2000")
    assert done.returncode == 0, done.stdout
    assert "limit" not in done.stdout


@pytest.mark.parametrize("options", [pytest.param([], id="one process"), pytest.param(["-n", "1"], id="workers")])
def test_temporary_files(suite, options, tmp_path):
    """They lie in a folder of this run alone, also those of programs that it starts, and are gone afterwards."""
    text = """
        import subprocess, sys, tempfile
        def test_where(tmp_path):
            command = [sys.executable, "-c", "import tempfile; print(tempfile.mkdtemp())"]
            started = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
            with open({log!r}, "a") as log:
                print(tmp_path, tempfile.mkdtemp(), started, sep="\\n", file=log)
    """
    log = tmp_path / "log"
    for _ in range(2):
        suite("\n".join(line[8:] for line in text.format(log=str(log)).splitlines()), *options)
    places = [Path(line).relative_to(tempfile.gettempdir()) for line in log.read_text().splitlines()]
    roots = [place.parts[0] for place in places]
    assert len(roots) == 6
    assert len({*roots[:3]}) == len({*roots[3:]}) == 1
    assert roots[0] != roots[3]
    assert not [root for root in roots if Path(tempfile.gettempdir(), root).exists()]


def test_what_the_machine_is_set_to(suite):
    """Variables of the user's own change nothing."""
    text = "import os\ndef test_it():\n    assert [n for n in os.environ if n.startswith('TROTH_')] == []\n"
    assert suite(text, TROTH_NO_CACHE="1", TROTH_GUARD="1").returncode == 0
