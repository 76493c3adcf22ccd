"""The generator, run on packages that the development environment has installed."""

import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TABLES = ROOT / "src" / "troth" / "analysis" / "knowledge" / "tables"


@pytest.mark.parametrize(("top", "distribution"), [("anyio", "anyio"), ("httpx", "httpx"), ("starlette", "starlette")])
def test_a_table_regenerated_is_the_bundled_one(top, distribution, tmp_path):
    """Nothing in a table was typed by hand: the same package gives the same table."""
    bundled = json.loads((TABLES / f"{top}.json").read_bytes())
    if bundled["source"] != [f"{distribution} {version(distribution)}"]:
        pytest.skip(f"bundled from {bundled['source']}, installed is {version(distribution)}")
    command = [sys.executable, "-m", "tools.knowledge", "build", top, "--here", "--into", str(tmp_path)]
    subprocess.run(command, check=True, cwd=ROOT, timeout=100, capture_output=True)
    assert json.loads((tmp_path / f"{top}.json").read_bytes()) == bundled
