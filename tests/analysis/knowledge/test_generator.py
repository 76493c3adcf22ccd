"""The generator, run on packages that the development environment has installed."""

import json
import subprocess
import sys
import zlib
from importlib.metadata import version
from pathlib import Path

import pytest

from troth.analysis import knowledge

ROOT = Path(__file__).parents[3]
TABLES = Path(knowledge.__file__).parent / "tables"


@pytest.mark.parametrize(("top", "distribution"), [("anyio", "anyio"), ("httpx", "httpx"), ("starlette", "starlette")])
def test_a_table_regenerated_is_the_bundled_one(top, distribution, tmp_path):
    """Nothing in a table was typed by hand: the same package gives the same table."""
    bundled = json.loads(zlib.decompress((TABLES / f"{top}.z").read_bytes()))
    if bundled["source"] != [f"{distribution} {version(distribution)}"]:
        pytest.skip(f"bundled from {bundled['source']}, installed is {version(distribution)}")
    command = [sys.executable, "-m", "tools.knowledge", "build", top, "--here", "--into", str(tmp_path)]
    subprocess.run(command, check=True, cwd=ROOT, timeout=100, capture_output=True)
    made = json.loads(zlib.decompress((tmp_path / f"{top}.z").read_bytes()))
    assert made["modules"].keys() == bundled["modules"].keys()
    for name, module in made["modules"].items():
        assert module == bundled["modules"][name], name
