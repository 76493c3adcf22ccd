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
    bundled = zlib.decompress((TABLES / f"{top}.z").read_bytes())
    head, *modules = map(json.loads, bundled.splitlines())
    if head["source"] != [f"{distribution} {version(distribution)}"]:
        pytest.skip(f"bundled from {head['source']}, installed is {version(distribution)}")
    command = [sys.executable, "-m", "tools.knowledge", "build", top, "--here", "--into", str(tmp_path)]
    subprocess.run(command, check=True, cwd=ROOT, timeout=100, capture_output=True)
    made = zlib.decompress((tmp_path / f"{top}.z").read_bytes())
    head_made, *modules_made = map(json.loads, made.splitlines())
    assert head_made == head
    for name, module, module_made in zip(head["modules"], modules, modules_made, strict=True):
        assert module == module_made, name
