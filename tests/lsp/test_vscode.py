"""The extension for VS Code."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from troth.lsp.protocol.settings import _KINDS, parse

FOLDER = Path(__file__).parents[2] / "editors" / "vscode"


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_its_own_tests():
    """It finds the project's own troth, and its manifest is whole."""
    files = [str(one) for one in (FOLDER / "test").glob("*.test.js")]
    done = subprocess.run(["node", "--test", *files], cwd=FOLDER, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout.decode()


def test_settings_of_the_manifest_are_those_of_the_server():
    """Each setting that the manifest offers is taken by the server with its default, and none is left out."""
    properties = json.loads((FOLDER / "package.json").read_text())["contributes"]["configuration"]["properties"]
    section = {name.removeprefix("troth."): one["default"] for name, one in properties.items()}
    assert parse(section)[1] == []
    assert set(_KINDS) <= set(section)


def test_its_license_is_that_of_troth():
    """A package has the license in it."""
    assert (FOLDER / "LICENSE").read_text() == (FOLDER.parents[1] / "LICENSE").read_text()


@pytest.mark.parametrize(
    ("section", "problem"),
    [
        pytest.param({"selct": []}, "`troth.selct` is not a setting", id="a name that is none"),
        pytest.param({"lens": "yes"}, "`troth.lens` cannot be 'yes'", id="a text for a switch"),
        pytest.param({"confidence": "sure"}, "`troth.confidence` cannot be 'sure'", id="a word that is none"),
        pytest.param([], "not a table", id="no table"),
    ],
)
def test_wrong_settings_are_named(section, problem):
    """What is wrong is said, and the rest counts."""
    assert problem in parse(section)[1][0]
